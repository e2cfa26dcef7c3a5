"""The options that say what is scored, and what is opened for it.

The scores are read when this module is imported, and PyTorch with them; the commands that need it are loaded lazily.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from brittle.cli.common import LENGTH, NOISE, say
from brittle.cli.options import UNIT, DataOptions, ModelOptions, load_network
from brittle.errors import UsageError
from brittle.model.texts import is_text_function
from brittle.noise.named import NoiseData, changes, check_noise, has_level, noises
from brittle.registry import load
from brittle.scores import NoiseScore, Score
from brittle.scores.choose import BY_DEFAULT, choose, usual_names, usual_sigma

if TYPE_CHECKING:
    from brittle.data import Points
    from brittle.model.classifier import Classifier
    from brittle.model.loading.load import LoadedModel

LASTS = Parameter(group=LENGTH)


@Parameter(name="*", group=NOISE)
@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """Options of the scores.

    Attributes:
        scores: What to compute, by names that `brittle list` shows, or FILE.py:CLASS.
        sigma: Standard deviations of the noise, in pixel units; a tenth of the value range by default.
        noise: gaussian, uniform, laplace, sphere, ball; per-feature or relative (sigma in deviations, root mean
            squares); with a level relative:0.5, sphere:0.5 (its length), rotation:15, shift:2, decibels:20, swap:0.1,
            corruptions, for texts typos:0.05, token-dropout:0.2, paraphrases:FILE.json; FILE.py:CLASS; or
            FILE.py:FUNCTION (x, generator).
        categories: All columns that --noise per-feature leaves alone (without it those of few whole numbers), or that
            alone --noise swap changes.
        seed: Seed of the noise.
        limit: Draw until it is decided whether a point is kept with this probability, 0.9; none draws all.
        precision: Count until the interval of the probability is no wider than this, whatever the limit.
        draws: Noisy copies of a point at most, 1,000 (moments: 100).
        pseudo_margin: A file of `brittle surrogate fit`, to score the points by.
        settings: Fields of one score or of the noise alone, as NAME.FIELD=VALUE, such as mmse.draws=40,
            monte_carlo.clip=true or input_margin.certify=true.
        norm: Norm of the distance, l2 (the default), linf or l1; or l0, the number of values that change.
        effort: Budget of passes per point for input_margin: fast, standard (the default) or thorough.
    """

    scores: tuple[str, ...] = BY_DEFAULT
    sigma: tuple[float, ...] = ()
    noise: str = "gaussian"
    categories: tuple[str, ...] = ()
    seed: int = 0
    limit: Annotated[float | Literal["none"] | None, LASTS] = None
    precision: Annotated[float | None, LASTS] = None
    draws: Annotated[tuple[int, ...], LASTS] = ()
    pseudo_margin: Path | None = None
    settings: Annotated[tuple[str, ...], Parameter(name="--set")] = ()
    norm: tuple[str, ...] = ()
    effort: str | None = None

    def chosen(
        self, model: ModelOptions, points: Points | None = None, texts: Any = None, probability: bool = True
    ) -> tuple[Score, ...]:
        """Return the scores asked for, of a model so declared, that may lack a `probability`, for points like these.

        Before the data are opened, `points` is None, and noise that learns from them is only checked.
        """
        usual = usual_names(model.decides, model.random_model, probability)
        names = usual if self.scores is BY_DEFAULT else self.scores
        sigmas: Sequence[float] = self.sigma or (usual_sigma(model.declared_bounds) or 1.0,)
        data = NoiseData(model.declared_bounds, self.categories, points, texts, model.rules_by_column)
        kinds = noises(self.noise, sigmas, data)
        options = {"draws": self.draws, "limit": self.limit, "precision": self.precision}
        options |= {"norm": self.norm, "effort": self.effort}
        scores = choose(names, sigmas, kinds, options, self.settings)
        return (*scores,) if self.learned is None else (*scores, self.learned.score)

    def check(self, model: ModelOptions, reads_texts: bool) -> bool:
        """Raise where options do not fit together or to a model; whether there is noise whose size nobody gave."""
        check_noise(self.noise, self.sigma, self.categories)
        changed, sized = changes(self.noise), bool(self.sigma) or has_level(self.noise)
        if not any(isinstance(score, NoiseScore) for score in self.chosen(model)):
            if self.sigma or self.noise != "gaussian":
                raise UsageError("--sigma and --noise are for scores under noise; none was chosen")
            return False
        if changed == "tokens" and not reads_texts:
            raise UsageError(f"--noise {self.noise:.60} is for models that read texts, and this one does not")
        if reads_texts and (changed == "columns" or not sized):
            raise UsageError(
                "the model reads texts, whose noise is on their embeddings or tokens and of a size that is given: "
                "--noise relative:0.5 (half the root mean square of a text's embeddings), --noise token-dropout:0.2 (a "
                "fifth of the tokens) or --noise typos:0.05 (of the characters)"
            )
        if not sized and usual_sigma(model.declared_bounds) is None:
            raise UsageError(
                f"with --bounds {' '.join(model.bounds)} there is no range of which the noise could be a tenth: for "
                "a table add --noise per-feature --sigma 0.1, a tenth of each feature's deviation, or --sigma S in the "
                "units of the inputs"
            )
        return not sized

    @cached_property
    def learned(self) -> Any:
        return None if self.pseudo_margin is None else load("file", "pseudo_margin").load(self.pseudo_margin)


@dataclass(frozen=True)
class Opening:
    """MODEL, DATA and options of a command line, which are opened one by one, each once. Data are opened without the
    model, unless it reads texts: its files say how these become points."""

    model: str
    data: Path
    declared: ModelOptions
    reading: DataOptions
    scoring: ScoreOptions
    reads_texts: bool

    @classmethod
    def checked(
        cls, model: str, data: Path, declared: ModelOptions, reading: DataOptions, scoring: ScoreOptions, quiet: bool
    ) -> Opening:
        """All that can be refused before either is opened is refused."""
        from brittle.model.loading.load import reads_texts
        from brittle.store.places import located

        data = located(data)
        if not data.exists() and Path(model).exists() and re.fullmatch(r".*[^:]:\w+|.+\.(pt2|onnx)", str(data)):
            raise UsageError(f"MODEL is {model}, and DATA is {data}, which names a model; write MODEL first")
        if declared.bounds is UNIT and changes(scoring.noise) == "columns":
            declared = replace(declared, bounds=("none",))
        texts = reads_texts(model) or changes(scoring.noise) == "characters" or reading.text_column is not None
        by_default = scoring.check(declared, texts)
        names = [name for name in ("bounds", "mean", "std") if getattr(declared, name) != getattr(ModelOptions, name)]
        if texts and names:
            options = " and ".join(f"--{name}" for name in names)
            raise UsageError(f"{model} reads texts, whose embeddings are the inputs; leave out {options}")
        if by_default:
            sigma = usual_sigma(declared.declared_bounds)
            say(quiet, f"sigma {sigma:g}, a tenth of the value range {declared.declared_bounds}")
        return cls(model, data, declared, reading, scoring, texts)

    def check_there(self) -> None:
        """Raise where either is not there, or MODEL cannot be one, before anything of the other is read."""
        from brittle.data.formats import check_there
        from brittle.model.loading.load import check_named

        check_named(self.model, self.declared.weights)
        check_there(self.data)

    @cached_property
    def texts(self) -> Any:
        """Return how texts become points, as `Reading.texts`, for a model that reads texts; else None."""
        if not self.reads_texts:
            return None
        loaded = self._loaded
        if is_text_function(loaded.module):
            if changes(self.scoring.noise) != "characters":
                raise UsageError(
                    f"{self.model} is a function of texts, which --noise typos:0.05, case, spaces, homoglyphs and "
                    f"paraphrases:FILE.json change; found --noise {self.scoring.noise:.40}"
                )
            return loaded.module
        return None if loaded.declared is None else loaded.declared.texts

    @cached_property
    def points(self) -> Points:
        if self.texts is not None:
            _ = self.classifier  # puts the model where it computes, and it embeds tokens there
        return self._opened(self.reading)

    def _opened(self, reading: DataOptions) -> Points:
        from brittle.data.arrow import is_table

        bounds, targets = self.declared.declared_bounds, self.declared.decides.targets
        levels = is_table(self.data) and self.classifier.reads_frames
        return reading.open(self.data, bounds, targets=targets, texts=self.texts, model=self.model, levels=levels)

    @cached_property
    def classifier(self) -> Classifier:
        """The network that MODEL names, as it was declared: the one that a pseudo-margin was learned from."""
        classifier = self.declared.classifier(self.model, self._loaded)
        if self.scoring.learned is not None:
            self.scoring.learned.check_model(classifier.source.get("state_sha256"))
        return classifier

    @cached_property
    def scores(self) -> tuple[Score, ...]:
        points = self.points
        if self.reading.points is not None and changes(self.scoring.noise) == "columns":
            points = self._opened(replace(self.reading, points=None))  # noise that learns from data does from all
        return self.scoring.chosen(self.declared, points, self.texts, self.classifier.has_probability)

    @cached_property
    def _loaded(self) -> LoadedModel:
        loaded = load_network(self.model, self.declared.weights, texts=self.reads_texts)
        form = None if loaded.declared is None else loaded.declared.texts
        if form is None or changes(self.scoring.noise) != "characters":
            return loaded
        loaded.module.to(self.declared.device or "cpu")
        return replace(loaded, module=form.of_characters(loaded.provenance["state_sha256"]))
