"""What the command line names: a model, one source a file, and code of the user's."""
