"""The command line: parses, calls, prints. Results go to files and stdout, talk to stderr."""
