"""The command line: parses, calls, prints. Results go to files and stdout, talk to stderr."""

from brittle.cli.commands import INTERRUPTED, TERMINATED, app, main, run
from brittle.cli.common import ROW_FAILURES

__all__ = ["INTERRUPTED", "ROW_FAILURES", "TERMINATED", "app", "main", "run"]
