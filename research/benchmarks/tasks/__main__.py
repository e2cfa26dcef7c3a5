"""Several labels, regression, tables, sound and texts: networks trained on real data, and errors of the estimators.

    python research/benchmarks/tasks --data FOLDER --out FOLDER [--only scene diabetes census sound texts]
        [--reference 20000]

FOLDER of the data holds `scene` (ARFF files of Mulan), `census` (`census.csv`, UCI Adult) and `spoken_digits` (Parquet,
the Free Spoken Digit Dataset), `movie_reviews` (Parquet with `text` and `label`; needs transformers); `diabetes` comes
with scikit-learn. Networks are trained with seed 0 and saved with
their test points, and for each setting the `brittle` command that scores them is printed. Then 50 test points are
scored with 200 draws and 8 seeds, and compared with plain counting over draws of its own: the root mean square error as
a share of that of counting as many copies, mean passes, and 99% intervals that miss. `--only-train` stops before.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from task_data import Split, census, diabetes, scene, spoken_digits
from task_errors import Draw, Holds, Setting, errors, line, reference
from task_networks import (
    for_census,
    for_diabetes,
    for_scene,
    for_sound,
    number,
    save,
    save_points,
    save_trees,
    several,
    train,
    trees,
)  # fmt: skip
from task_texts import alone, for_texts, reviews, save_texts, share_right
from torch import Tensor, nn

import brittle
from brittle.data import open_points, text_points
from brittle.noise import Decibels, Gaussian, Noise, PerFeature, Relative, Swap, TokenDropout, Transform
from brittle.scores import Moments, MonteCarlo, Score, Shrinkage

DRAWS, REPLICATES, POINTS = 200, 8, 50
SIGMA, TOLERANCE, SHARE, DROPPED = 0.1, 0.25, 0.1, 0.2
ROUNDS = 4


@dataclass(frozen=True)
class Request:
    """Options of the command line."""

    data: Path
    out: Path
    reference: int
    points: int
    replicates: int
    train_only: bool


def scores(noise: Noise | Transform) -> dict[str, Score]:
    """Return the estimators for this noise; `moments` needs symmetric noise."""
    applicable: dict[str, Score] = {
        "monte_carlo": MonteCarlo(noise=noise, draws=DRAWS, limit=None),
        "shrinkage": Shrinkage(noise=noise, draws=DRAWS, limit=None),
    }
    if isinstance(noise, Transform | Swap | TokenDropout):
        return applicable
    return applicable | {"moments": Moments(noise=noise, draws=DRAWS)}


def normal(scale: float | Tensor) -> Draw:
    """Return normal noise of these standard deviations."""
    return lambda point, count, generator: point + scale * torch.randn(count, *point.shape, generator=generator)


def white(level: float) -> Draw:
    """Return normal noise at a signal-to-noise ratio in decibels."""
    return lambda point, count, generator: normal(float(point.norm()) / math.sqrt(point.numel()) * 10 ** (-level / 20))(
        point, count, generator
    )


def swapped(rows: Tensor) -> Draw:
    """Return noise that takes every value with probability `SHARE` from a random row."""

    def draw(point: Tensor, count: int, generator: torch.Generator) -> Tensor:
        donors = torch.randint(len(rows), (count, len(point)), generator=generator)
        chosen = torch.rand(count, len(point), generator=generator) < SHARE
        return torch.where(chosen, rows.gather(0, donors), point)

    return draw


def same_class(copies: Tensor, at_point: Tensor) -> Tensor:
    """Return whether the greatest logit is the same."""
    return copies.argmax(1) == at_point.argmax(1)


def same_labels(copies: Tensor, at_point: Tensor) -> Tensor:
    """Return whether all signs are the same."""
    return ((copies > 0) == (at_point > 0)).all(1)


def same_label(place: int) -> Holds:
    """Return whether the sign of one number is the same."""
    return lambda copies, at_point: (copies[:, place] > 0) == (at_point[:, place] > 0)


def near(copies: Tensor, at_point: Tensor) -> Tensor:
    """Return whether numbers are within the tolerance."""
    return ((copies - at_point).abs() < TOLERANCE).all(1)


def range_of(split: Split) -> tuple[float, float]:
    """Return whole numbers that enclose all inputs."""
    parts = (split.x, split.test_x)
    return float(math.floor(min(map(np.min, parts)))), float(math.ceil(max(map(np.max, parts))))


def say(model: Path, data: Path, split: Split, *options: str) -> None:
    """Print the command that scores all test points."""
    low, high = range_of(split)
    stem = model.name.partition(".")[0]
    run = model.with_name(f"run-{stem}-{options[1]}".replace(":", "-"))
    print(f"brittle score {model} {data} --bounds {low:.10g} {high:.10g} {' '.join(options)} --out {run}")


def scene_settings(request: Request) -> Iterator[Setting]:
    """Return settings with six labels."""
    split = scene(request.data)
    network = train(for_scene, split, several, rounds=30)
    model, data = request.out / "scene.pt2", request.out / "scene.npz"
    save(network, split, model)
    save_points(split, data)
    with torch.no_grad():
        correct = (network(torch.from_numpy(split.test_x)) > 0).numpy() == split.test_y
    print(f"scene: all labels right on {correct.all(1).mean():.1%}, each on {correct.mean():.1%}")
    x, noise = torch.from_numpy(split.test_x[: request.points]), Gaussian(SIGMA)
    single_labels = [(f"multilabel:{place}", same_label(place)) for place in range(split.y.shape[1])]
    for decision, holds in [("multilabel", same_labels), *single_labels]:
        say(model, data, split, "--decision", decision, "--sigma", f"{SIGMA:g}")
        classifier = brittle.Classifier(network, decision=decision, bounds=range_of(split))
        yield Setting(f"scene, {decision}", network, classifier, x, normal(SIGMA), holds, scores(noise))


def diabetes_settings(request: Request) -> Iterator[Setting]:
    """Return the setting of a number within a tolerance."""
    split = diabetes()
    network = train(for_diabetes, split, number, rounds=60)
    model, data = request.out / "diabetes.pt2", request.out / "diabetes.npz"
    save(network, split, model)
    save_points(split, data)
    with torch.no_grad():
        residual = (network(torch.from_numpy(split.test_x))[:, 0].numpy() - split.test_y).var() / split.test_y.var()
    print(f"diabetes: R squared {1 - residual:.2f}")
    decision = f"within:{TOLERANCE:g}"
    say(model, data, split, "--decision", decision, "--sigma", f"{SIGMA:g}")
    classifier = brittle.Classifier(network, decision=decision, bounds=range_of(split))
    x = torch.from_numpy(split.test_x[: request.points])
    yield Setting(f"diabetes, {decision}", network, classifier, x, normal(SIGMA), near, scores(Gaussian(SIGMA)))


def census_settings(request: Request) -> Iterator[Setting]:
    """Return settings of a network and gradient-boosted trees on one table."""
    split = census(request.data)
    network, boosted = train(for_census, split, nn.functional.cross_entropy, rounds=5), trees(split)
    data = request.out / "census.csv"
    save(network, split, request.out / "census.pt2")
    save_trees(boosted, request.out)
    save_points(split, data)
    points, names = open_points(data), [name for name, _ in split.categories]
    table = torch.from_numpy(split.test_x)
    scale = table.double().std(0, correction=0).float()
    scale[[split.names.index(name) for name in names]] = 0
    plain = ("--sigma", f"{SIGMA:g}", "--categories", *names)
    noises = (
        ("per-feature", PerFeature.of(points, SIGMA, names), normal(SIGMA * scale), plain),
        (f"swap:{SHARE:g}", Swap.of(points, SHARE), swapped(table), ()),
    )

    def by_trees(x: Tensor) -> Tensor:
        return torch.from_numpy(np.eye(2)[boosted.predict(x.numpy())])

    models: tuple[tuple[str, Path, Any, Callable[[Tensor], Tensor]], ...] = (
        ("network", request.out / "census.pt2", network, network),
        ("trees", request.out / "trees.py:make", boosted, by_trees),
    )
    for name, path, model, outputs in models:
        correct = outputs(table).argmax(1).numpy() == split.test_y
        print(f"census, {name}: {correct.mean():.1%} right")
        for kind, noise, draw, options in noises:
            say(path, data, split, "--noise", kind, *options)
            classifier = brittle.Classifier(model, bounds=range_of(split))
            yield Setting(
                f"census, {name}, {kind}", outputs, classifier, table[: request.points], draw, same_class, scores(noise)
            )


def sound_settings(request: Request) -> Iterator[Setting]:
    """Return settings of spoken digits under white noise."""
    split = spoken_digits(request.data)
    network = train(for_sound, split, nn.functional.cross_entropy, rounds=30)
    model, data = request.out / "sound.pt2", request.out / "sound.npz"
    save(network, split, model)
    save_points(split, data)
    with torch.no_grad():
        correct = network(torch.from_numpy(split.test_x)).argmax(1).numpy() == split.test_y
    print(f"spoken digits: {correct.mean():.1%} right")
    # the first rows are all of one digit
    x = torch.from_numpy(split.test_x[:: max(1, len(split.test_x) // request.points)][: request.points])
    for level in (20, 10):
        say(model, data, split, "--noise", f"decibels:{level}")
        classifier = brittle.Classifier(network, bounds=range_of(split))
        noise = scores(Decibels(level))
        yield Setting(f"sound, decibels:{level}", network, classifier, x, white(level), same_class, noise)


def inner(move: Draw) -> Draw:
    """Return noise on the tokens between the marks of the beginning and the end of a text."""

    def draw(point: Tensor, count: int, generator: torch.Generator) -> Tensor:
        beginning, end = (mark.expand(count, 1, -1) for mark in (point[:1], point[-1:]))
        return torch.cat((beginning, move(point[1:-1], count, generator), end), dim=1)

    return draw


def dropped(rows: Tensor) -> Draw:
    """Return noise that replaces every token with probability `DROPPED` by a random one of `rows`, `[R, E]`."""

    def draw(point: Tensor, count: int, generator: torch.Generator) -> Tensor:
        chosen = torch.rand(count, len(point), generator=generator) < DROPPED
        return torch.where(chosen[:, :, None], rows[torch.randint(len(rows), chosen.shape, generator=generator)], point)

    return draw


def relative(level: float) -> Draw:
    """Return normal noise of so many root mean squares of the point."""
    return lambda point, count, generator: normal(level * float(point.double().square().mean().sqrt()))(
        point, count, generator
    )


def texts_settings(request: Request) -> Iterator[Setting]:
    """Return settings of sentences from film reviews."""
    data = reviews(request.data)
    network, tokenizer = for_texts(data, rounds=ROUNDS)
    path = save_texts(network, tokenizer, data, request.out / "bert")
    print(f"film reviews: {share_right(network, tokenizer, data):.1%} right")
    texts = data.test_texts[: request.points]
    points = text_points(texts, data.test_labels[: request.points], tokenizer=tokenizer, model=network)
    vocabulary = network.get_input_embeddings().weight.detach()
    share = f"{DROPPED:g}"
    noises = (
        ("relative:0.5", Relative(0.5), relative(0.5)),
        ("relative:1.5", Relative(1.5), relative(1.5)),
        (f"token-dropout:{share}", TokenDropout(DROPPED), dropped(torch.zeros_like(vocabulary[:1]))),
        (f"token-replacement:{share}", TokenDropout(DROPPED, vocabulary), dropped(vocabulary)),
    )
    alone_each = [alone(network, tokenizer, text) for text in texts]
    for kind, noise, move in noises:
        run = request.out / f"run-bert-{kind.replace(':', '-')}"
        print(f"brittle score {request.out / 'bert'} {path} --noise {kind} --out {run}")
        yield Setting(
            f"film reviews, {kind}",
            lambda rows: network(inputs_embeds=rows).logits,
            brittle.Classifier(network, bounds=points.bounds, perturb="inputs_embeds"),
            alone_each,
            inner(move),
            same_class,
            scores(noise),
            points,
        )


TASKS: dict[str, Callable[[Request], Iterator[Setting]]] = {
    "scene": scene_settings, "diabetes": diabetes_settings, "census": census_settings, "sound": sound_settings,
    "texts": texts_settings,
}  # fmt: skip


def main() -> None:
    """Train, save, compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--reference", type=int, default=20_000)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    parser.add_argument("--only-train", action="store_true")
    arguments = parser.parse_args()
    request = Request(
        arguments.data, arguments.out, arguments.reference, arguments.points, arguments.replicates, arguments.only_train
    )
    request.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in arguments.only:
        for setting in TASKS[name](request):
            if not request.train_only:
                truth = reference(setting, request.reference)
                estimator_errors = errors(setting, truth, request.reference, request.replicates)
                print(line(setting.name, truth, estimator_errors), flush=True)


if __name__ == "__main__":
    main()
