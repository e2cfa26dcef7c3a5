"""Compare classifiers of trees of every objective and booster with their library, and print a table.

    PYTHONPATH=tests python -m checks.trees [NAME ...]

The settings are those of `helpers/odd_trees.py`, at 500 inputs on the cuts, beside them and far away. By object and by
file each is `exact` (classes, scores and trees are the library's), `right` (classes and scores are, and no exact
distance is claimed) or refused by a sentence; anything else is WRONG, and the exit code 1.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

from helpers.odd_trees import SETTINGS, judge


def main() -> int:
    """Judge the settings whose names hold an argument, or all; return the exit code."""
    warnings.simplefilter("ignore")  # the libraries warn of odd settings
    names = [name for name in SETTINGS if not sys.argv[1:] or any(word in name for word in sys.argv[1:])]
    wrong = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            for source, verdict in judge(name, Path(folder)).items():
                wrong += verdict.startswith("WRONG")
                print(f"{name:42} {source:8} {verdict}", flush=True)
    print(f"{len(names)} settings, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
