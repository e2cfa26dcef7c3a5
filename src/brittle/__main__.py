"""`python -m brittle` is the command `brittle`."""

import sys

if __name__ == "__main__":
    # Python puts the current folder first; as for the installed command, what lies there is not imported.
    if not sys.flags.safe_path:
        del sys.path[0]
    from brittle.cli.commands import run

    run()
