"""Trains many networks: what is there stays, what is absent is said, the rest is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from filelock import FileLock, Timeout

from brittle.errors import UsageError
from brittle.store.writing import make_folder
from studies.train.images import DATASETS, read
from studies.train.loop import Training, train
from studies.train.measured import accuracy, attacked_accuracy
from studies.train.recipes import Recipe, Size
from studies.train.stored import CHECKPOINTS, digest, load_meta, store


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def train_all(chosen: Sequence[Recipe], data: Path, out: Path, size: Size, seed: int) -> None:
    """Train each of these networks that is not there and that no other process trains.

    Raises:
        DataError: a data set is damaged.
        StorageError: something cannot be written.
        UsageError: a network is there that was trained otherwise.
    """
    make_folder(out / CHECKPOINTS)
    for recipe in chosen:
        check_same(recipe, seed, out)
    absent = [name for name in DATASETS if not (data / name).is_dir()]
    for name in absent:
        if count := sum(recipe.dataset == name for recipe in chosen):
            say(f"there is no folder {data / name}; left out because of that: {count} of {len(chosen)} networks")
    for recipe in chosen:
        if recipe.dataset not in absent and load_meta(out / recipe.name) is None:
            try:
                with FileLock(out / CHECKPOINTS / f"{recipe.name}.lock", timeout=0):
                    train_one(recipe, data / recipe.dataset, out, size, seed)
            except Timeout:
                say(f"{recipe.name}: another process trains it")


def check_same(recipe: Recipe, seed: int, out: Path) -> None:
    """Raise where the network that is there was made by another recipe or from another seed.

    Raises:
        UsageError: it was.
    """
    meta = load_meta(out / recipe.name)
    if meta is not None and (meta["recipe"], meta["seed"]) != (repr(recipe), seed):
        raise UsageError(
            f"{out / recipe.name} was trained from seed {meta['seed']} as {meta['recipe']}, and asked for is seed "
            f"{seed} as {recipe!r}; remove it, or choose another --out",
        )


def train_one(recipe: Recipe, folder: Path, out: Path, size: Size, seed: int) -> None:
    """Train, measure and store one network, unless it is there by now."""
    if load_meta(out / recipe.name) is not None:
        return
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = DATASETS[recipe.dataset]
    x, y = read(folder, data, "train", recipe.schedule.points)
    threads = torch.get_num_threads()
    made_by = f"{recipe!r}, seed {seed}, {threads} threads, {device}, torch {torch.__version__}"
    checkpoint = out / CHECKPOINTS / f"{recipe.name}.pt"
    with torch.random.fork_rng():
        done = train(Training(recipe, seed, x, y, device), checkpoint, made_by, say)
    tests, classes = (part.to(device) for part in read(folder, data, "test", None))
    attacked = slice(recipe.attacked)
    meta: dict[str, Any] = {
        "name": recipe.name,
        "dataset": recipe.dataset,
        "architecture": recipe.architecture,
        "width": recipe.width,
        "way": recipe.way.name,
        "strength": recipe.way.strength,
        "epsilon": data.epsilon,
        "size": size,
        "seed": seed,
        "threads": threads,
        "epochs": recipe.schedule.epochs,
        "training_points": len(x),
        "seconds": round(done.seconds, 1),
        "loss": done.loss,
        "accuracy": accuracy(done.network, tests, classes),
        "accuracy_pgd10": attacked_accuracy(done.network, tests[attacked], classes[attacked], data.epsilon),
        "digest": digest(done.network),
        "recipe": repr(recipe),
    }
    store(done.network, tests[:2], meta, out / recipe.name)
    checkpoint.unlink()
    say(f"{recipe.name}: {meta['accuracy']:.1%} right, {meta['accuracy_pgd10']:.1%} under PGD-10 at {data.epsilon:.3g}")


def printed(table: pd.DataFrame) -> str:
    """The table for the terminal."""
    if table.empty:
        return "no network is there"
    shown = table[["name", "epochs", "training_points"]].assign(
        seconds=table["seconds"].map("{:.0f}".format),
        accuracy=table["accuracy"].map("{:.1%}".format),
        accuracy_pgd10=table["accuracy_pgd10"].map("{:.1%}".format),
    )
    return shown.to_string(index=False)
