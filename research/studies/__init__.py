"""The papers' tables and figures, run with the library as a user would run it."""
