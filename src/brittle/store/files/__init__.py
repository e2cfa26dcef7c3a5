"""How any file is written whole, and read without trust."""
