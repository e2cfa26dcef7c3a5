"""The options that say what is scored, the fields of the catalogue's scores among them, and what is opened for it.

The scores are read when this module is imported, and PyTorch with them; the commands that need it are loaded lazily.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

from cyclopts import Parameter

from brittle.cli.common import LENGTH, NOISE, Flag, Many, say
from brittle.cli.noise_options import COLUMNS, TOKENS, check_noise, has_level, noises, plain_name
from brittle.cli.options import UNIT, DataOptions, ModelOptions
from brittle.errors import UsageError
from brittle.estimate import MOST_DRAWS
from brittle.noise import Sphere
from brittle.scores import CATALOGUE, LogitMargin, NoiseScore, Score
from brittle.scores.choose import choose, drawn_until
from brittle.scores.options import Option, by_name, described

if TYPE_CHECKING:
    from brittle.data import Points
    from brittle.detector.pseudo_margin import PseudoMargin
    from brittle.model.classifier import Classifier
    from brittle.model.loading.load import LoadedModel
    from brittle.model.texts import TextForm

FIELDS = ("draws", "clip", "norm", "effort", "unbounded", "certify")
"""Fields of scores that are options; all others are given by `--set NAME.FIELD=VALUE`."""

OF_FIELDS = {name: takers for name, takers in by_name(CATALOGUE.items()).items() if name in FIELDS}
"""For each of these options the scores that take it."""

Options = TypeVar("Options")


def with_fields_of_scores(kind: type[Options]) -> type[Options]:
    """The dataclass with an option for every field of a score of the catalogue."""
    hints = get_type_hints(kind, include_extras=True)
    common = [(one.name, hints[one.name], field(default=one.default)) for one in fields(kind)]  # type: ignore[arg-type]
    own = [_field(name, takers) for name, takers in OF_FIELDS.items()]
    found = make_dataclass(kind.__name__, [*common, *own], bases=(kind,), frozen=True, kw_only=True)
    found.__doc__, found.__module__ = kind.__doc__, kind.__module__
    return found


def _field(name: str, takers: Mapping[str, Option]) -> tuple[str, Any, Any]:
    first = next(iter(takers.values()))
    helped = Parameter(help=described(takers))
    if first.is_switch:
        return name, Annotated[bool, Flag, helped], field(default=False)
    if first.several:
        return name, Annotated[tuple[first.kind, ...], Many, helped], field(default=())
    return name, Annotated[first.kind | None, helped], field(default=None)


LASTS = Parameter(group=LENGTH)

BY_DEFAULT = ("shrinkage", "softmax", "logit_margin")
"""What is computed where nothing is chosen; of decisions without a probability only what reads margins."""


@Parameter(name="*", group=NOISE)
@with_fields_of_scores
@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """What is computed of every point.

    Attributes:
        scores: What to compute, by the names that `brittle list` shows, or FILE.py:CLASS.
        sigma: Standard deviations of the noise, in pixel units; a tenth of the value range by default.
        radius: Lengths of noise on the sphere, in pixel units, instead of --sigma and --noise.
        noise: gaussian, uniform, laplace, sphere, ball; relative or per-feature, whose --sigma is in root mean squares
            of the point or deviations of each feature; with levels rotation:15, shift:2, relative:0.5, decibels:20,
            swap:0.1 or another corruption, for texts token-dropout:0.2, token-mask or token-replacement; or
            FILE.py:CLASS, FILE.py:FUNCTION, any function (x, generator).
        categories: All columns that --noise per-feature leaves alone (without it those of few whole numbers), or that
            alone --noise swap changes.
        seed: Seed of the noise.
        until: Count noisy copies of each point until it is decided whether its prediction holds with probability
            --limit; most points need few.
        limit: Probability with which a prediction has to survive the noise, such as 0.9; with --until decided.
        precision: Count noisy copies of each point until the interval of its flip probability is no wider than this.
        most_draws: Noisy copies of a point at most, with --until or --precision (10,000).
        pseudo_margin: A file of `brittle pseudo-margin fit`, to score the points by.
        settings: Fields of one score or of the noise alone, as NAME.FIELD=VALUE, such as mmse.draws=40 or
            taylor.classes=20.
    """

    scores: Annotated[tuple[str, ...], Many] = BY_DEFAULT
    sigma: Annotated[tuple[float, ...], Many] = ()
    radius: Annotated[tuple[float, ...], Many] = ()
    noise: str = "gaussian"
    categories: Annotated[tuple[str, ...], Many] = ()
    seed: int = 0
    until: Annotated[Literal["decided"] | None, LASTS] = None
    limit: Annotated[float | None, LASTS] = None
    precision: Annotated[float | None, LASTS] = None
    most_draws: Annotated[int | None, LASTS] = None
    pseudo_margin: Path | None = None
    settings: Annotated[tuple[str, ...], Parameter(name="--set"), Many] = ()

    def declared(self, model: ModelOptions) -> ModelOptions:
        """The declaration of the model, without bounds where none are given and the noise is that of tables."""
        of_tables = plain_name(self.noise) in COLUMNS
        return replace(model, bounds=("none", "none")) if of_tables and model.bounds is UNIT else model

    def chosen(
        self, model: ModelOptions, points: Points | None = None, texts: TextForm | None = None
    ) -> tuple[Score, ...]:
        """The scores that are asked for, of a model so declared, for points like these.

        Before the data are opened, `points` is None, and noise that learns from them is only checked.
        """
        bounds, names = model.declared_bounds, self.scores
        if names is BY_DEFAULT and not model.decides.has_probability:
            margins = [name for name in BY_DEFAULT if CATALOGUE[name].serves == "all"]
            names = tuple(name for name in margins if not (model.decides.level and name == LogitMargin.name))
        sigmas: Sequence[float] = self.sigma or self.radius or (self.spread(model) or 1.0,)
        if self.radius and points is not None:
            size = next(iter(points.batches(1))).inputs[0].numel()
            sigmas = tuple(Sphere.of_radius(each, size).sigma for each in self.radius)
        noise = "sphere" if self.radius else self.noise
        family = noises(noise, sigmas, bounds, self.categories, points, texts)
        given = {name: getattr(self, name) for name in OF_FIELDS}
        scores = choose(names, sigmas, family, given, self.settings)
        most = MOST_DRAWS if self.most_draws is None else self.most_draws
        drawn = drawn_until(scores, self.until, self.limit, self.precision, most)
        return drawn if self.learned is None else (*drawn, self.learned.score)

    def check(self, model: ModelOptions, reads_texts: bool) -> bool:
        """Raise where options do not fit together or to a model; whether there is noise whose size nobody gave."""
        name, sized = plain_name(self.noise), bool(self.sigma or self.radius) or has_level(self.noise)
        check_noise(self.noise, self.sigma, self.categories)
        others = ["--sigma"] * bool(self.sigma) + ["--noise"] * (self.noise not in ("gaussian", "sphere"))
        if self.radius and others:
            raise UsageError(f"--radius is noise on the sphere of that length; leave out {' and '.join(others)}")
        if self.most_draws is not None and self.until is None and self.precision is None:
            raise UsageError("--most-draws is for --until decided and --precision; give one of them")
        scores = self.chosen(model)
        noisy = any(isinstance(score, NoiseScore) for score in scores)
        if not noisy and (self.sigma or self.radius or self.noise != "gaussian"):
            raise UsageError("--sigma, --radius and --noise are for scores under noise; none was chosen")
        if model.head is not None and not any(need.uses_features for score in scores for need in score.needs):
            raise UsageError("--head is for scores that need features; none was chosen")
        if noisy and name in TOKENS and not reads_texts:
            raise UsageError(f"--noise {self.noise:.60} is for models that read texts, and this one does not")
        if noisy and reads_texts and (name in COLUMNS or not sized):
            raise UsageError(
                "the model reads texts, whose noise is on their embeddings or tokens and of a size that is given: "
                "--noise relative:0.5 (half the root mean square of a text's embeddings) or --noise token-dropout:0.2 "
                "(a fifth of the tokens)",
            )
        if noisy and not sized and self.spread(model) is None:
            raise UsageError(
                f"with --bounds {'none' if model.declared_bounds.none else 'per feature'} there is no one range of "
                f"which the noise could be a tenth: for a table add --noise per-feature --sigma 0.1, a tenth of each "
                f"feature's deviation, or --sigma S in the units of the inputs",
            )
        return noisy and not sized

    def spread(self, model: ModelOptions) -> float | None:
        """The standard deviation of the noise where none is given, a tenth of the value range; None without one."""
        pair = model.declared_bounds.pair
        return None if pair is None else 0.1 * (pair[1] - pair[0])

    @cached_property
    def learned(self) -> PseudoMargin | None:
        """The pseudo-margin, where its file was given."""
        from brittle.detector.pseudo_margin import PseudoMargin

        return None if self.pseudo_margin is None else PseudoMargin.load(self.pseudo_margin)


@dataclass(frozen=True)
class Opening:
    """MODEL, DATA and options of a command line, which are opened one by one, each once. Data are opened without the
    model, unless it reads texts: its files say how these become points.
    """

    model: str
    data: Path
    declared: ModelOptions
    reading: DataOptions
    scoring: ScoreOptions

    @classmethod
    def checked(
        cls, model: str, data: Path, declared: ModelOptions, reading: DataOptions, scoring: ScoreOptions, quiet: bool
    ) -> Opening:
        """All that can be refused before either is opened is refused."""
        from brittle.model.loading.hugging_face import reads_texts

        declared, texts = scoring.declared(declared), reads_texts(model)
        by_default = scoring.check(declared, texts)
        own = [name for name in ("bounds", "mean", "std") if getattr(declared, name) != getattr(ModelOptions(), name)]
        if texts and own:
            raise UsageError(
                f"{model} reads texts, and noise is on the embeddings of their tokens; leave out "
                f"{' and '.join(f'--{name}' for name in own)}",
            )
        if by_default:
            spread = scoring.spread(declared)
            say(quiet, f"sigma {spread:g}, a tenth of the value range {declared.declared_bounds}")
        if not data.exists() and Path(model).exists() and re.fullmatch(r".*[^:]:\w+|.+\.(pt2|onnx)", str(data)):
            raise UsageError(f"DATA is {data}, which names a model, and does not exist; write MODEL first, then DATA")
        return cls(model, data, declared, reading, scoring)

    def check_there(self) -> None:
        """Raise where either is not there, or MODEL cannot be one, before anything of the other is read."""
        from brittle.data.formats import check_there
        from brittle.model.loading.load import check_named

        check_named(self.model, self.declared.weights)
        check_there(self.data)

    @cached_property
    def texts(self) -> TextForm | None:
        """How texts become points, where the model reads texts; else None."""
        from brittle.model.loading.hugging_face import reads_texts

        declared = self._loaded.declared if reads_texts(self.model) else None
        return None if declared is None else declared.texts

    @cached_property
    def points(self) -> Points:
        """What DATA holds."""
        if self.texts is not None:
            _ = self.classifier  # puts the model where it computes, and it embeds tokens there
        bounds, targets = self.declared.declared_bounds, self.declared.decides.targets
        return self.reading.open(self.data, bounds, targets=targets, texts=self.texts, model=self.model)

    @cached_property
    def classifier(self) -> Classifier:
        """The network that MODEL names, as it was declared: the one that a pseudo-margin was learned from."""
        classifier = self.declared.classifier(self.model, self._loaded)
        if self.scoring.learned is not None:
            self.scoring.learned.check_model(classifier.source["state_sha256"])
        return classifier

    @cached_property
    def scores(self) -> tuple[Score, ...]:
        """What is computed of the points."""
        return self.scoring.chosen(self.declared, self.points, self.texts)

    @cached_property
    def _loaded(self) -> LoadedModel:
        return self.declared.loaded(self.model)
