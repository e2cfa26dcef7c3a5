"""Distances of the nearest inputs, against attacks of others on equal passes, and against proofs by others.

    python research/benchmarks/nearest train DATA OUT
    python research/benchmarks/nearest run DATA ROWS NETWORKS...
    python research/benchmarks/nearest table ROWS [--figure attacks.svg]
    python research/benchmarks/nearest verdicts NETWORKS...
    python research/benchmarks/nearest exact

`DATA` holds `mnist` (the IDX files, gzipped), `cifar10` (Parquet) and `fashion_mnist_900`. `train` trains networks; the
attacks were tuned on none of those whose name begins with `aside`. Each folder of `NETWORKS` holds one folder a
network: `model.pt2` and `meta.json` with its `dataset`, and where verdicts were published `verdicts.csv` with
`centres.npy`.

`run` writes a Parquet file for each network, norm, effort and attack, with a row for each image, and skips files that
exist: it can be stopped, and two can run side by side on other networks (`--network`). `--again` searches anew after
the library changed. A rival gets as many passes for each image as the library's search took on average, forward and
backward. Every input is judged alone, by the exported program. `table` reads the files. The attacks of Foolbox run
where it is installed and `--method` names them. `exact` trains perceptrons small enough that a mixed-integer program
finds the nearest input, on the digits of scikit-learn.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import nearest_foolbox
import torch
from nearest_exact import NETWORKS as EXACT
from nearest_exact import exact
from nearest_networks import RECIPES, train_all
from nearest_rows import EFFORTS, KNOWN, NORMS, USUAL, run, subjects
from nearest_table import against_rivals, by_method, figure, markdown, overall, read_rows, summary
from nearest_verdicts import verdicts

SHARES = ("rival nearer", "any rival nearer", "best rival nearer, mean", "most", "within 1%", "worst", "found")
EXCESS = ("within 0.1%", "within 1%", "median excess", "worst excess")


def main() -> None:
    """Run one of the five commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    commands = parser.add_subparsers(dest="command", required=True)
    add_train(commands.add_parser("train", help="train networks"))
    add_run(commands.add_parser("run", help="run attacks"))
    add_table(commands.add_parser("table", help="print the tables"))
    add_verdicts(commands.add_parser("verdicts", help="compare with published verdicts"))
    add_exact(commands.add_parser("exact", help="compare with exact distances"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    COMMANDS[arguments.command](arguments)


def add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(RECIPES), default=list(RECIPES))


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("networks", type=Path, nargs="+")
    parser.add_argument("--network", nargs="+", default=[], help="these alone")
    parser.add_argument("--norm", nargs="+", choices=NORMS, default=NORMS)
    parser.add_argument("--effort", nargs="+", choices=EFFORTS, default=EFFORTS)
    parser.add_argument("--method", nargs="+", choices=list(KNOWN), help="instead of the usual ones")
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--again", action="store_true")


def add_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rows", type=Path)
    parser.add_argument("--figure", type=Path)


def add_verdicts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("networks", type=Path, nargs="+")
    parser.add_argument("--network", nargs="+", default=[], help="these alone")


def add_exact(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--network", nargs="+", metavar="NAME", choices=list(EXACT), default=list(EXACT), help="these alone"
    )
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="that the solver may take for a class of a point")


def run_all(arguments: argparse.Namespace) -> None:
    """Run every requested unit."""
    arguments.rows.mkdir(parents=True, exist_ok=True)
    absent = () if nearest_foolbox.installed() else tuple(nearest_foolbox.ATTACKS)
    if set(absent) & set(arguments.method or ()):
        print("foolbox is not installed (pip install foolbox): its attacks are left out")
    for subject in subjects(arguments.networks, arguments.data, arguments.points, arguments.network):
        for norm in arguments.norm:
            for effort in arguments.effort:
                for method in arguments.method or USUAL[effort]:
                    if norm in KNOWN[method] and method not in absent:
                        run(subject, norm, effort, method, arguments.rows, arguments.again)


def print_tables(arguments: argparse.Namespace) -> None:
    """Print tables of each network, all networks, and each attack; and save the figure."""
    rows = read_rows(arguments.rows)
    table = summary(rows)
    print(
        *(markdown(part, SHARES) for part in (against_rivals(table), table, overall(table), by_method(rows))),
        sep="\n\n",
    )
    if arguments.figure:
        figure(rows).save(arguments.figure, format="svg")


COMMANDS = {
    "train": lambda arguments: train_all(arguments.data, arguments.out, arguments.only),
    "run": run_all,
    "table": print_tables,
    "verdicts": lambda arguments: print(markdown(verdicts(arguments.networks, arguments.network), SHARES)),
    "exact": lambda arguments: print(markdown(exact(arguments.network, arguments.points, arguments.seconds), EXCESS)),
}


if __name__ == "__main__":
    main()
