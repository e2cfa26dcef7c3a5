"""Arguments of a run, checked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from inspect import signature
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from torch.utils.data import DataLoader, Dataset

from brittle.data import Points
from brittle.data.formats import Data, as_points
from brittle.data.labels import in_classes, text_places
from brittle.data.points import SomePoints
from brittle.data.reading import Reading
from brittle.doctor import varying
from brittle.errors import ParameterError
from brittle.intervals import check_confidence
from brittle.measure.forward import default_rows, hold_missing
from brittle.model.arrays import Fitted, names_itself
from brittle.model.classifier import Classifier
from brittle.noise.named import changes, check_noise, has_level, noises
from brittle.run.job import Job
from brittle.scores import NoiseScore, Score
from brittle.scores.catalogue import CATALOGUE
from brittle.scores.choose import choose, usual_names, usual_sigma
from brittle.scores.evaluate import check_classifier, check_seed
from brittle.scores.outside import check_scores, find_score
from brittle.scores.sound import check_serves

Asked = Sequence[Score | str] | str | None
"""Scores, or names of scores as `brittle list` shows them; None is `brittle.scores.choose.BY_DEFAULT`."""


WORDS = tuple(
    sorted(
        {field.name for field in fields(Reading)} - {"bounds", "limit", "targets", "texts", "levels", "label_column"}
    )
)
"""Fields of `Reading` that are arguments of `brittle.score`; the others it has itself, or the model tells."""


def check_words(words: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Raise where a word is neither a field of `Reading` nor one of these arguments, which has a name like it."""
    for word in words:
        if word not in WORDS:
            if word in signature(Classifier).parameters:
                raise ParameterError(
                    f"{word}= is of brittle.Classifier: give brittle.score(brittle.Classifier(model, {word}=...), ...)"
                )
            near = get_close_matches(word, [*arguments, *WORDS], 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise ParameterError(
                f"brittle.score takes no argument {word!r:.60}; {meant}beside its own it takes how a path is read: "
                f"{', '.join(WORDS)}"
            )


def labels_and_scores(y: Any, scores: Asked) -> tuple[Any, Asked]:
    """Labels and scores out of the argument behind the data and `scores`, which is the former where it is left out.

    A text, a score, a list of scores, and different texts with a score's name among them are scores; else labels.
    """
    return (None, y) if scores is None and _are_scores(y) else (y, scores)


def _are_scores(y: Any) -> bool:
    if not isinstance(y, list | tuple):
        return isinstance(y, str | Score)
    if y and all(isinstance(name, str) for name in y):
        are_names = any(name in CATALOGUE for name in y) or all(":" in name for name in y)  # FILE.py:CLASS
        return are_names and len(set(y)) == len(y)
    return not y or any(isinstance(item, Score) or (isinstance(item, type) and issubclass(item, Score)) for item in y)


def with_labels(data: Data, y: Any) -> Data:
    """Return `data` with these labels; refused where they bring their own."""
    if y is None:
        return data
    x, labels = data if isinstance(data, tuple) and len(data) == 2 else (cast("Any", data), None)
    if labels is not None:
        raise ParameterError("labels are given twice, in the pair (x, y) and behind it; give one")
    if isinstance(x, str | os.PathLike | Points | Dataset | DataLoader) or names_itself(x):
        raise ParameterError(
            f"y goes with arrays, tensors and frames; found it beside a {type(x).__name__}, which has its own labels: "
            "leave y out (for a path, label_column= names a column and labels= a file of labels)"
        )
    return x, y


def make_job(
    classifier: Classifier,
    data: Data,
    requested_scores: Asked,
    seed: int,
    batch_size: int | None,
    confidence: float,
    sigma: float | Sequence[float] | None = None,
    noise: str | None = None,
    words: Mapping[str, Any] = MappingProxyType({}),
    options: Mapping[str, object] = MappingProxyType({}),
) -> Job:
    """Return the job of `score` with these arguments; `words` are fields of `Reading`, and `options` those of scores
    by name (`brittle.scores.choose`)."""
    check_classifier(classifier)
    check_confidence(confidence)
    check_seed(seed)
    if batch_size is not None and (type(batch_size) is not int or batch_size < 1):
        raise ParameterError(f"the batch size must be a whole number of at least 1; found {batch_size!r:.40}")
    if _has_names(requested_scores):
        points = _points_for(classifier, data, words)
        scores = _named(classifier, points, requested_scores, sigma, noise, options, words.get("texts"))
        _check_scores(scores, classifier)
    else:
        scores = cast("Sequence[Score]", requested_scores)
        if names := [name for name, value in {"sigma": sigma, "noise": noise, **options}.items() if value is not None]:
            raise ParameterError(
                f"{', '.join(names)}: for scores by name; scores that are given as objects have their own"
            )
        _check_scores(scores, classifier)
        points = _points_for(classifier, data, words)
    classifier = classifier.reading(points.provenance)
    of_labels = points.labels is not None and not classifier.decision.has_margins  # which name no regions
    classifier = classifier.look_up(None if of_labels else points.class_names)
    batch = next(iter(points.batches(1)))
    rows = batch_size or default_rows(classifier, batch.inputs, batch.extra_inputs)
    points = varying(points, batch, scores, classifier.device)
    if (fixed := classifier.fixed(batch.inputs)) is not None:
        points = SomePoints.of(points, moves=~fixed.flatten())
    return Job(classifier, hold_missing(classifier, points), scores, seed, rows, confidence)


def _has_names(requested: Any) -> bool:
    """Tell whether scores are asked for by name, as those by default are."""
    items = requested if isinstance(requested, list | tuple) else ()
    return requested is None or isinstance(requested, str) or any(isinstance(item, str) for item in items)


def _named(
    classifier: Classifier, points: Points, requested: Any, sigma: Any, noise: Any, options: Mapping, texts: Any
) -> list[Score]:
    """Return the scores of these names under this noise, as for the command line; `texts` as in `Reading`."""
    bounds, family = classifier.bounds, noise or "gaussian"
    usual = usual_names(classifier.decision, classifier.random, classifier.has_probability)
    names = usual if requested is None else [requested] if isinstance(requested, str) else requested
    if (score := next((name for name in names if not isinstance(name, str)), None)) is not None:
        raise ParameterError(f"scores are given all by name or all as they are; found {score!r:.60} beside names")
    sigmas = () if sigma is None else tuple(np.atleast_1d(sigma).tolist())
    _check_noise(family, sigmas, sigma, texts)
    level = usual_sigma(bounds) if texts is None else None  # no range of embeddings says how large noise is
    noisy = any(issubclass(find_score(name), NoiseScore) for name in names)
    if not noisy and (sigma is not None or noise is not None):
        raise ParameterError(f"sigma and noise are for scores under noise; {', '.join(names)} have none")
    if noisy and not sigmas and not has_level(family) and level is None:
        advice = "noise='per-feature'" if texts is None else "noise='relative:0.5'"
        raise ParameterError(f"without bounds no range says how large the noise is: give sigma=, or {advice}")
    sigmas = sigmas or (level or 1.0,)
    return choose(names, sigmas, noises(family, sigmas, bounds, (), points, texts, classifier.rules), options)


def _check_noise(family: Any, sigmas: tuple[Any, ...], sigma: Any, texts: Any) -> None:
    """Raise unless these are words of noise and numbers for it."""
    numbers = all(isinstance(number, int | float) for number in sigmas)
    if not numbers or not isinstance(family, str) or (changes(family) == "tokens" and texts is None):
        raise ParameterError(
            f"sigma takes numbers, and noise the words of --noise that are not for tokens; found {sigma!r:.40} and "
            f"{family!r:.60}; other noise goes into a score, [brittle.scores.Shrinkage(noise=...)]"
        )
    check_noise(family, sigmas, ())


def _points_for(classifier: Classifier, data: Data, words: Mapping[str, Any]) -> Points:
    """Return the points of `data`, with their labels in the classes of the model where it names these."""
    names, targets = classifier.class_names, classifier.decision.targets
    places = None
    if isinstance(data, tuple) and len(data) == 2 and not targets:
        places = text_places(data[1], names, fitted=isinstance(classifier.model, Fitted))
        data = data if places is None else (data[0], places)
    points = as_points(data, classifier.bounds, targets, classifier.reads_frames, **words)
    if targets or places is not None or not classifier.decision.has_margins:
        return points
    sure = classifier.names_are_sure and not isinstance(data, tuple)  # whole numbers in an array are places of classes
    return in_classes(points, names, classifier.class_values, sure=sure)


def _check_scores(scores: Any, classifier: Classifier) -> None:
    """Raise unless these are different scores that can be used together and of this classifier."""
    if not isinstance(scores, Sequence) or not all(isinstance(score, Score) for score in scores):
        example = "[brittle.scores.Moments(sigma=0.1)], with brackets around a single one"
        raise ParameterError(f"expected a list of scores such as {example}; found {scores!r:.80}")
    check_scores(scores)
    if not scores:
        raise ParameterError("no score was asked for; name at least one")
    labels = [score.label for score in scores]
    if len(set(labels)) < len(labels):
        twice = next(label for number, label in enumerate(labels) if label in labels[:number])
        raise ParameterError(f"{twice} is asked for twice; the table could not tell them apart")
    for score in scores:
        check_serves(score, classifier)
