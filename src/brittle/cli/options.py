"""Options that several commands take, each said once: the model's, the data's, the scores' and the run's."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from brittle.cli.common import Flag, Many, say
from brittle.errors import ModelError, UsageError
from brittle.model.bounds import check_bounds

if TYPE_CHECKING:
    from brittle.data import Points
    from brittle.detector.pseudo_margin import PseudoMargin
    from brittle.model.classifier import Classifier
    from brittle.model.loading.load import LoadedModel
    from brittle.run.workers import Workers
    from brittle.scores import Score

BatchSize = Annotated[str, Parameter(help="Most rows in one pass through the network, or auto.")]
Overwrite = Annotated[bool, Parameter(negative=(), help="Replace the file OUT where it is there already.")]
Quiet = Annotated[bool, Parameter(negative=(), help="Show no progress.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """Where the network comes from and where it computes, for commands that know its preprocessing.

    Attributes:
        weights: Weights for a factory's network, in safetensors.
        device: Where to compute, such as cuda.
    """

    weights: Path | None = None
    device: str | None = None

    def load(
        self,
        model: str,
        bounds: tuple[float, float],
        mean: float | Sequence[float] | None,
        std: float | Sequence[float] | None,
        *,
        outputs: str,
        head: str | None,
    ) -> Classifier:
        """The network that MODEL names, with the preprocessing that is known of it."""
        from brittle.model.classifier import Classifier

        loaded = _load(model, self.weights)
        source = loaded.provenance
        return Classifier(
            loaded.module, bounds, mean, std, outputs=outputs, device=self.device, source=source, head=head
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelOptions(NetworkOptions):
    """The model and its preprocessing.

    Attributes:
        bounds: Smallest and largest value of an input; everything is in these units.
        mean: Subtracted from the input before the network, one number or one per channel.
        std: What the difference is divided by, likewise.
        outputs: What the network returns.
        head: Name of the last linear layer, for the scores that need features; found by default.
    """

    bounds: Annotated[tuple[float, float], Flag] = (0.0, 1.0)
    mean: Annotated[tuple[float, ...], Many] = ()
    std: Annotated[tuple[float, ...], Many] = ()
    outputs: Literal["logits", "probs", "binary-logit"] = "logits"
    head: str | None = None

    def classifier(self, model: str) -> Classifier:
        """The network that MODEL names, as it was declared."""
        return self.load(model, self.bounds, self.mean or None, self.std or None, outputs=self.outputs, head=self.head)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How data are read.

    Attributes:
        split: Which part of the data, such as test.
        layout: Axis order of image arrays in .npz files (nchw).
        scale_uint8: Map whole numbers 0..255 in .npz files to the bounds.
        exif: What becomes of images that say in their EXIF data that they are turned: ignore (the default) or apply.
    """

    split: str | None = None
    layout: Literal["nchw", "nhwc"] | None = None
    scale_uint8: Annotated[bool, Flag] = False
    exif: Literal["ignore", "apply"] = "ignore"

    def read(self, data: Path, bounds: tuple[float, float], limit: int | None) -> Points:
        """The first `limit` points of DATA."""
        from brittle.data import open_points

        return open_points(
            data,
            split=self.split,
            bounds=bounds,
            limit=limit,
            layout=self.layout,
            scale_uint8=self.scale_uint8,
            exif=self.exif,
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DataOptions(ReadOptions):
    """How data are read, and how much of them.

    Attributes:
        limit: Take the first points only.
    """

    limit: int | None = None

    def open(self, data: Path, bounds: tuple[float, float]) -> Points:
        """The points of DATA."""
        return self.read(data, bounds, self.limit)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """What is computed of every point.

    Attributes:
        scores: What to compute, by the names that `brittle list` shows.
        sigma: Standard deviations of the noise, in pixel units; a tenth of the value range by default.
        radius: Lengths of noise on the sphere, in pixel units, instead of --sigma and --noise.
        noise: Noise family: gaussian, uniform, laplace, sphere or ball.
        draws: Noisy copies per point and sigma for the scores that only sample (moments 100, monte_carlo 1000).
        gradient_draws: Noisy copies for the scores that differentiate at each (mmse, mmse_mvs, mmse_margin: 20).
        clip: Clip noisy copies to the bounds, for the scores that only sample.
        seed: Seed of the noise.
        classes: Competing classes that the linear scores keep (all up to 100 classes, the 20 nearest above).
        temperature: Temperature of the softmax (1).
        norm: Norms of the distances: l2 (the default), linf.
        attack: What looks for the nearest other decision: best (the default) for the nearest of all attacks,
            or one by name.
        effort: Budget of passes for it: fast, standard (the default) or thorough.
        certify: Look for a certified lower bound of the distance as well.
        unbounded: Look for the nearest other decision outside the bounds, too.
        laplacian_method: How the Laplacian is found: auto (the default), gram, exact or probes.
        probes: Random directions per point for it, where the network bends (32).
        columns: Columns of the Hessian for the bound on the mean absolute change (64).
        pseudo_margin: A file of `brittle pseudo-margin fit`, to score the points by.
    """

    scores: Annotated[tuple[str, ...], Many] = ("moments", "softmax", "logit_margin")
    sigma: Annotated[tuple[float, ...], Many] = ()
    radius: Annotated[tuple[float, ...], Many] = ()
    noise: str = "gaussian"
    draws: int | None = None
    gradient_draws: int | None = None
    clip: Annotated[bool, Flag] = False
    seed: int = 0
    classes: int | None = None
    temperature: float | None = None
    norm: Annotated[tuple[str, ...], Many] = ()
    attack: str | None = None
    effort: str | None = None
    certify: Annotated[bool, Flag] = False
    unbounded: Annotated[bool, Flag] = False
    laplacian_method: str | None = None
    probes: int | None = None
    columns: int | None = None
    pseudo_margin: Path | None = None

    def choose(self, model: ModelOptions) -> Choice:
        """The scores that are chosen, for a model so declared.

        Raises:
            BrittleError: the options do not fit together, a number is out of range, or the pseudo-margin is not sound.
        """
        low, high = check_bounds(model.bounds)
        spread = 0.1 * (high - low)
        named = tuple(self.named(self.sigma or self.radius or (spread,)))
        learned = None
        if self.pseudo_margin is not None:
            from brittle.detector.pseudo_margin import PseudoMargin

            learned = PseudoMargin.load(self.pseudo_margin)
        choice = Choice(self, named, learned, spread)
        _check_used(choice, model)
        return choice

    def named(self, sigmas: Sequence[float]) -> list[Score]:
        """The scores that the names stand for, at these standard deviations."""
        from brittle.scores.choose import choose

        return choose(
            self.scores,
            sigmas=sigmas,
            family=self._family(),
            draws=self.draws,
            gradient_draws=self.gradient_draws,
            clip=self.clip,
            classes=self.classes,
            temperature=self.temperature,
            norms=self.norm,
            attack=self.attack,
            effort=self.effort,
            certify=self.certify,
            bounded=not self.unbounded,
            method=self.laplacian_method,
            probes=self.probes,
            columns=self.columns,
        )

    def _family(self) -> str:
        """The noise family: that on the sphere where a radius is given."""
        if self.radius and (self.sigma or self.noise not in ("gaussian", "sphere")):
            raise UsageError("radius", "--radius is noise on the sphere of that length; leave out --sigma and --noise")
        return "sphere" if self.radius else self.noise


@dataclass(frozen=True)
class Choice:
    """Scores that were chosen, and checked as far as they can be before the data and the model are opened.

    Attributes:
        options: what they were chosen by.
        named: those with a name; where a radius was given, not yet at their standard deviation.
        learned: the pseudo-margin, where its file was given.
        spread: standard deviation of the noise where none is given: a tenth of the value range.
    """

    options: ScoreOptions
    named: tuple[Score, ...]
    learned: PseudoMargin | None
    spread: float

    @property
    def default_noise(self) -> bool:
        """Whether there is noise whose size nobody gave."""
        return self.noisy and not (self.options.sigma or self.options.radius)

    @property
    def noisy(self) -> bool:
        """Whether there is a score under noise."""
        from brittle.scores import NoiseScore

        return any(isinstance(score, NoiseScore) for score in self.named)

    def scores(self, points: Points | None = None) -> list[Score]:
        """All scores, for points like these."""
        radius = self.options.radius
        named = self.named if points is None or not radius else self.options.named(_sigmas_of(radius, points))
        return [*named, *([] if self.learned is None else [self.learned.score])]

    def check_model(self, classifier: Classifier) -> None:
        """Raise where the pseudo-margin was learned from another model.

        Raises:
            ModelError: it was.
        """
        if self.learned is not None:
            self.learned.check_model(classifier.source["state_sha256"])


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run goes.

    Attributes:
        confidence: Confidence of all intervals.
        expected_accuracy: Stop when the accuracy on the first 1,000 labelled points is surely below.
        allow_row_errors: Exit with 0 even where some points got no number; where more than 10 of the first
            1,000 get none the run stops.
        skip_doctor: Leave out the checks before the run; the record says so.
        resume: Go on with the run in OUT, if there is one: what is there and whole is kept,
            and a finished run costs nothing.
    """

    confidence: float = 0.99
    batch_size: BatchSize = "auto"
    expected_accuracy: float | None = None
    allow_row_errors: Annotated[bool, Flag] = False
    skip_doctor: Annotated[bool, Flag] = False
    resume: Annotated[bool, Flag] = False
    quiet: Quiet = False

    def check_folder(self, out: Path) -> None:
        """Raise where the run folder cannot be written or holds another run.

        Raises:
            StorageError: it cannot, or does.
        """
        from brittle.store.folder import check_free, check_writable

        check_writable(out) if self.resume else check_free(out)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Which processes compute.

    Attributes:
        workers: Processes that compute side by side, with one thread each; by default one process with all threads, or
            as many as the cluster has room for.
        cluster: Let them run on a Ray cluster: local (one of this machine, for this run), auto (the one that this
            machine belongs to), or host:port of its head.
        gpus_per_worker: GPUs that each of them gets there, or the share of one (1 with --device cuda, otherwise 0).
        insecure_cluster: Use a cluster though it asks nobody for a token.
        as_worker: What such a process is started with.
    """

    workers: int | None = None
    cluster: str | None = None
    gpus_per_worker: float | None = None
    insecure_cluster: Annotated[bool, Flag] = False
    as_worker: Annotated[bool, Parameter(show=False, negative=())] = False

    def crew(self, device: str | None, quiet: bool) -> Workers | None:
        """The processes, which are started by the command that is running; None for this one alone.

        Raises:
            BrittleError: so many cannot be started, or not there.
        """
        from brittle.run.workers.cluster import Cluster
        from brittle.run.workers.crew import Crew
        from brittle.run.workers.worker import command_of

        arguments = sys.argv[1:]
        if self.cluster is None:
            if self.gpus_per_worker is not None or self.insecure_cluster:
                raise UsageError("unused_option", "--gpus-per-worker and --insecure-cluster are for --cluster")
            return None if self.workers is None else Crew(command_of(arguments), self.workers)
        if device is not None and device.startswith("cuda:"):
            raise UsageError(
                "device", f"each worker of a cluster sees its own GPUs alone: give --device cuda, not {device}"
            )
        gpus = float(device == "cuda") if self.gpus_per_worker is None else self.gpus_per_worker
        cluster = Cluster(self.cluster, arguments, partial(say, quiet), self.workers, gpus, self.insecure_cluster)
        cluster.prepare()
        return cluster


def _load(model: str, weights: Path | None) -> LoadedModel:
    """The network that MODEL names; one whose batch size is fixed is refused."""
    from brittle.model.loading.load import load_model

    loaded = load_model(model, weights=weights)
    if loaded.fixed_batch is not None:
        raise ModelError(
            "fixed_batch",
            f"{model} was exported for batches of {loaded.fixed_batch}; export it with a dynamic batch dimension "
            f"(dynamic_shapes={{0: torch.export.Dim('batch')}})",
        )
    return loaded


def _sigmas_of(radius: Sequence[float], points: Points) -> tuple[float, ...]:
    """The standard deviation per coordinate of noise on spheres, for inputs as these points have them."""
    from brittle.noise import Sphere

    size = next(iter(points.batches(1))).inputs[0].numel()
    return tuple(Sphere.of_radius(each, size).sigma for each in radius)


def _check_used(choice: Choice, model: ModelOptions) -> None:
    """Raise where an option would silently change nothing."""
    options = choice.options
    if (options.sigma or options.radius or options.noise != "gaussian") and not choice.noisy:
        raise UsageError("unused_option", "--sigma, --radius and --noise are for scores under noise; none was chosen")
    if model.head is not None and not any(need.uses_features for score in choice.scores() for need in score.needs):
        raise UsageError("unused_option", "--head is for scores that need features; none was chosen")
