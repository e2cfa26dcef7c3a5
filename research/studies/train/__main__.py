"""Train the networks that the studies look at.

    PYTHONPATH=research python -m studies.train --size cpu|paper --data DATA --out OUT [--only PATTERN]
        [--epochs N] [--seed N] [--seeds N] [--jobs N]

DATA holds a folder for each data set: `mnist` and `fashion_mnist` in IDX files, `cifar10` and `cifar100` in Parquet as
Hugging Face writes it. What is absent is left out with its networks. OUT gets a folder for each network, with
`model.pt2` (pixels in [0, 1] to class scores) and `meta.json`, and `networks.parquet`. A network that is there is not
trained again; one that was killed goes on after its last whole epoch, to the same weights. With `--jobs` several
processes share the work; each network is trained by one of them.

The same seed gives the same weights on the same machine with the same number of threads, on processors.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from dataclasses import replace
from pathlib import Path

import torch

from brittle.errors import BrittleError
from studies.beside import add_jobs, processes_beside
from studies.errors import StudyError
from studies.train.every import printed, tasks_of, train_all
from studies.train.recipes import SIZES, Recipe, recipes
from studies.train.stored import write_table


def main(arguments: list[str] | None = None) -> int:
    """Train what is asked for; 0, or the exit code of what went wrong."""
    parser = argparse.ArgumentParser("studies.train", None, __doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", choices=SIZES, required=True, help="of the networks and of their training")
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder of the networks")
    parser.add_argument("--only", metavar="PATTERN", default="*", help="names, such as 'mnist_*' or '*_pgd_*'")
    parser.add_argument("--epochs", type=int, help="in the place of those of every recipe")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="that networks on which claims rest are trained from")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch")
    add_jobs(parser)
    words = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(words)
    chosen = only(recipes(options.size), options.only)
    if not chosen:
        parser.error(
            f"no network of the size {options.size} is called {options.only}; its names are those of recipes.py"
        )
    if options.epochs is not None:
        chosen = [replace(recipe, schedule=replace(recipe.schedule, epochs=options.epochs)) for recipe in chosen]
    torch.set_num_threads(options.threads)
    try:
        with processes_beside("studies.train", words, options.jobs):
            train_all(tasks_of(chosen, options.seed, options.seeds), options.data, options.out, options.size)
        if not options.beside:
            names = [task.name for task in tasks_of(recipes(options.size), options.seed, options.seeds)]
            print(printed(write_table(options.out, names)))
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrittleError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def only(of: list[Recipe], pattern: str) -> list[Recipe]:
    """Those whose name fits the pattern, as those of files do."""
    return [recipe for recipe in of if fnmatch.fnmatchcase(recipe.name, pattern)]


if __name__ == "__main__":
    sys.exit(main())
