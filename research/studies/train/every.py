"""Training of many networks: existing ones stay, absent data are reported, the others are trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Task:
    """A network to be trained.

    Attributes:
        recipe: of it.
        seed: of its training.
        repeat: 0, or the place among the further seeds that it is trained from.
    """

    recipe: Recipe
    seed: int
    repeat: int = 0

    @property
    def name(self) -> str:
        """That of the recipe, with the seed of a repeat: `mnist_cnn_pgd_0.15_seed1`."""
        return f"{self.recipe.name}_seed{self.seed}" if self.repeat else self.recipe.name


def tasks_of(chosen: Sequence[Recipe], seed: int, seeds: int) -> list[Task]:
    """Each network once, then those that are repeated from the further seeds."""
    repeated = [recipe for recipe in chosen if recipe.repeated]
    return [
        Task(recipe, seed + repeat, repeat) for repeat in range(seeds) for recipe in (repeated if repeat else chosen)
    ]


def train_all(chosen: Sequence[Task], data: Path, out: Path, size: Size) -> None:
    """Train each of these networks that is not there and that no other process trains.

    Raises:
        DataError: a data set is damaged.
        StorageError: something cannot be written.
        UsageError: a network is there that was trained otherwise.
    """
    make_folder(out / CHECKPOINTS)
    for task in chosen:
        check_same(task, out)
    absent = [name for name in DATASETS if not (data / name).is_dir()]
    for name in absent:
        if count := sum(task.recipe.dataset == name for task in chosen):
            say(f"there is no folder {data / name}; left out because of that: {count} of {len(chosen)} networks")
    for task in chosen:
        if task.recipe.dataset not in absent and load_meta(out / task.name) is None:
            try:
                with FileLock(out / CHECKPOINTS / f"{task.name}.lock", timeout=0):
                    train_one(task, data / task.recipe.dataset, out, size)
            except Timeout:
                say(f"{task.name}: another process trains it")


def check_same(task: Task, out: Path) -> None:
    """Raise where the network that is there was made by another recipe or from another seed.

    Raises:
        UsageError: it was.
    """
    meta = load_meta(out / task.name)
    if meta is not None and (meta["recipe"], meta["seed"]) != (repr(task.recipe), task.seed):
        raise UsageError(
            f"{out / task.name} was trained from seed {meta['seed']} as {meta['recipe']}, and asked for is seed "
            f"{task.seed} as {task.recipe!r}; remove it, or choose another --out",
        )


def train_one(task: Task, folder: Path, out: Path, size: Size) -> None:
    """Train, measure and store one network, unless it is there by now."""
    if load_meta(out / task.name) is not None:
        return
    recipe, seed = task.recipe, task.seed
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = DATASETS[recipe.dataset]
    x, y = read(folder, data, "train", recipe.schedule.points)
    threads = torch.get_num_threads()
    made_by = f"{recipe!r}, seed {seed}, {threads} threads, {device}, torch {torch.__version__}"
    checkpoint = out / CHECKPOINTS / f"{task.name}.pt"
    with torch.random.fork_rng():
        done = train(Training(recipe, seed, x, y, device), checkpoint, made_by, say)
    tests, classes = (part.to(device) for part in read(folder, data, "test", None))
    attacked = slice(recipe.attacked)
    meta: dict[str, Any] = {
        "name": task.name,
        "dataset": recipe.dataset,
        "architecture": recipe.architecture,
        "width": recipe.width,
        "way": recipe.way.name,
        "strength": recipe.way.strength,
        "epsilon": data.epsilon,
        "size": size,
        "seed": seed,
        "repeat": task.repeat,
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
    store(done.network, tests[:2], meta, out / task.name)
    checkpoint.unlink()
    say(f"{task.name}: {meta['accuracy']:.1%} right, {meta['accuracy_pgd10']:.1%} under PGD-10 at {data.epsilon:.3g}")


def printed(table: pd.DataFrame) -> str:
    """Return the table for the terminal."""
    if table.empty:
        return "no network is there"
    shown = table[["name", "epochs", "training_points"]].assign(
        seconds=table["seconds"].map("{:.0f}".format),
        accuracy=table["accuracy"].map("{:.1%}".format),
        accuracy_pgd10=table["accuracy_pgd10"].map("{:.1%}".format),
    )
    return shown.to_string(index=False)
