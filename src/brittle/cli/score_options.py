"""The options that say what is scored: those of every run, and the fields of the catalogue's scores.

The scores are read when this module is imported, and PyTorch with them; the commands that need it are loaded lazily.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar, get_type_hints

from cyclopts import Parameter

from brittle.cli.common import LENGTH, NOISE, Flag, Many
from brittle.cli.noise_options import COLUMNS, TOKENS, check_noise, has_level, noises, plain_name
from brittle.cli.options import UNIT, ModelOptions
from brittle.errors import UsageError
from brittle.estimate import MOST_DRAWS
from brittle.model.bounds import Bounds, BoundsLike
from brittle.noise import Sphere
from brittle.scores import CATALOGUE, LogitMargin, NoiseScore, Score
from brittle.scores.choose import choose, drawn_until
from brittle.scores.options import Option, by_name, described

if TYPE_CHECKING:
    from brittle.data import Points
    from brittle.detector.pseudo_margin import PseudoMargin
    from brittle.model.classifier import Classifier
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
        sigma: Standard deviations of the noise, in pixel units; a tenth of the value range by default, where
            --bounds give one.
        radius: Lengths of noise on the sphere, in pixel units, instead of --sigma and --noise.
        noise: gaussian, uniform, laplace, sphere or ball; relative or per-feature, whose --sigma is in root mean
            squares of the point or in standard deviations of each feature; with levels of its own rotation:15, shift:2,
            brightness:0.2, relative:0.5, decibels:20, swap:0.1 or another corruption, and for texts token-dropout:0.2,
            token-mask:0.2 or token-replacement:0.2; or FILE.py:CLASS or FILE.py:FUNCTION, any function (x, generator).
        categories: All columns that --noise per-feature leaves alone (without it those of few whole numbers), or that
            alone --noise swap changes.
        seed: Seed of the noise.
        until: decided counts noisy copies of each point until it is decided whether its prediction holds with
            probability --limit; most points need few.
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

    def taking(self, **options: object) -> Self:
        """These options with others, fields of scores among them."""
        return replace(self, **options)

    def declared(self, model: ModelOptions) -> ModelOptions:
        """The declaration of the model, without bounds where none are given and the noise is that of tables."""
        of_tables = plain_name(self.noise) in COLUMNS
        return replace(model, bounds=("none", "none")) if of_tables and model.bounds is UNIT else model

    def choose(self, model: ModelOptions) -> Choice:
        """The scores that are chosen, for a model so declared."""
        bounds = model.declared_bounds
        spread = None if bounds.pair is None else 0.1 * (bounds.pair[1] - bounds.pair[0])
        if self.scores is BY_DEFAULT and not model.decides.has_probability:
            margins = [name for name in BY_DEFAULT if CATALOGUE[name].serves == "all"]
            kept = [name for name in margins if not (model.decides.level and name == LogitMargin.name)]
            self = replace(self, scores=tuple(kept))
        check_noise(self.noise, self.sigma, self.categories)
        named = tuple(self.named(self.sigma or self.radius or (spread or 1.0,), bounds))
        learned = None
        if self.pseudo_margin is not None:
            from brittle.detector.pseudo_margin import PseudoMargin

            learned = PseudoMargin.load(self.pseudo_margin)
        choice = Choice(self, named, learned, spread, bounds)
        if spread is None and choice.default_noise:
            raise UsageError(
                f"with --bounds {'none' if bounds.none else 'per feature'} there is no one range of which the noise "
                f"could be a tenth: for a table add --noise per-feature --sigma 0.1, a tenth of each feature's "
                f"deviation, or --sigma S in the units of the inputs",
            )
        _check_used(choice, model)
        return choice

    def named(
        self,
        sigmas: Sequence[float],
        bounds: BoundsLike = (0.0, 1.0),
        points: Points | None = None,
        texts: TextForm | None = None,
    ) -> list[Score]:
        """The scores that the names stand for, at these standard deviations, where noise has none of its own."""
        given = {name: getattr(self, name) for name in OF_FIELDS}
        family = noises(self._family(), sigmas, bounds, self.categories, points, texts)
        chosen = choose(self.scores, sigmas, family, given, self.settings)
        if self.most_draws is not None and self.until is None and self.precision is None:
            raise UsageError("--most-draws is for --until decided and --precision; give one of them")
        most = MOST_DRAWS if self.most_draws is None else self.most_draws
        return [*drawn_until(chosen, self.until, self.limit, self.precision, most)]

    def _family(self) -> str:
        """The noise family: that on the sphere where a radius is given."""
        others = ["--sigma"] * bool(self.sigma) + ["--noise"] * (self.noise not in ("gaussian", "sphere"))
        if self.radius and others:
            beside = " and ".join(others)
            raise UsageError(f"--radius is noise on the sphere of that length; leave out {beside}")
        return "sphere" if self.radius else self.noise


@dataclass(frozen=True)
class Choice:
    """Scores that were chosen, and checked as far as they can be before the data and the model are opened.

    Attributes:
        options: what they were chosen by.
        named: those with a name; where a radius was given, not yet at their standard deviation.
        learned: the pseudo-margin, where its file was given.
        spread: standard deviation of the noise where none is given: a tenth of the value range; None where
            there is none.
        bounds: of the values of an input.
    """

    options: ScoreOptions
    named: tuple[Score, ...]
    learned: PseudoMargin | None
    spread: float | None
    bounds: Bounds

    @property
    def default_noise(self) -> bool:
        """Whether there is noise whose size nobody gave."""
        return self.noisy and not (self.options.sigma or self.options.radius or has_level(self.options.noise))

    @property
    def noisy(self) -> bool:
        """Whether there is a score under noise."""
        return any(isinstance(score, NoiseScore) for score in self.named)

    def scores(self, points: Points | None = None, texts: TextForm | None = None) -> list[Score]:
        """All scores, for points like these, which `texts` made of texts where they are some."""
        named = self.named if points is None else self._named_for(points, texts)
        return [*named, *([] if self.learned is None else [self.learned.score])]

    def _named_for(self, points: Points, texts: TextForm | None) -> Sequence[Score]:
        """The scores with a name, once more where their noise depends on the data."""
        options = self.options
        if options.radius:
            return options.named(_sigmas_of(options.radius, points), self.bounds)
        if plain_name(options.noise) in COLUMNS and self.noisy:
            return options.named(options.sigma, self.bounds, points)
        if plain_name(options.noise) in TOKENS and self.noisy:
            return options.named(options.sigma, self.bounds, texts=texts)
        return self.named

    def check_texts(self, reads_texts: bool) -> None:
        """Raise where the noise is not for such a model."""
        name, noise = plain_name(self.options.noise), self.options.noise
        if not self.noisy:
            return
        if name in TOKENS and not reads_texts:
            raise UsageError(f"--noise {noise:.60} is for models that read texts, and this one does not")
        if reads_texts and (name in COLUMNS or self.default_noise):
            what = "of a size that is given" if self.default_noise else "on their embeddings or tokens"
            raise UsageError(
                f"the model reads texts, which need noise {what}: --noise relative:0.5 (half the root mean square of a "
                f"text's embeddings) or --noise token-dropout:0.2 (a fifth of the tokens)",
            )

    def check_model(self, classifier: Classifier) -> None:
        """Raise where the pseudo-margin was learned from another model."""
        if self.learned is not None:
            self.learned.check_model(classifier.source["state_sha256"])


def _sigmas_of(radius: Sequence[float], points: Points) -> tuple[float, ...]:
    """The standard deviation per coordinate of noise on spheres, for inputs as these points have them."""
    size = next(iter(points.batches(1))).inputs[0].numel()
    return tuple(Sphere.of_radius(each, size).sigma for each in radius)


def _check_used(choice: Choice, model: ModelOptions) -> None:
    """Raise where an option would silently change nothing."""
    options = choice.options
    if (options.sigma or options.radius or options.noise != "gaussian") and not choice.noisy:
        raise UsageError("--sigma, --radius and --noise are for scores under noise; none was chosen")
    if model.head is not None and not any(need.uses_features for score in choice.scores() for need in score.needs):
        raise UsageError("--head is for scores that need features; none was chosen")
