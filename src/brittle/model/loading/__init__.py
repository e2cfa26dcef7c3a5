"""What the command line accepts as a model, one source a file."""
