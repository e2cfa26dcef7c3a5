"""Models that the command line names: a source for each kind of file, and code of the user's."""
