"""The pseudo-margin: input margins learned from features, for networks whose logit margin does not follow them."""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import safetensors
import safetensors.torch
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from brittle.classifier import Classifier
from brittle.data import Points
from brittle.detector.identity import Identity, Source
from brittle.errors import ArtefactError, DataError, ModelError, ParameterError, StorageError
from brittle.estimate import Estimate, Status
from brittle.head import Head
from brittle.measure import Features, Measurement, Observed
from brittle.models import state_digest
from brittle.norms import DUAL_ORDER, check_norm
from brittle.scores.base import Score, clean_status, finish, mark
from brittle.strict_json import FormatProblem, dump, parse
from brittle.table import Table, parameters_json

LAYERS, WIDTH = 5, 512
"""Hidden layers and their width, as in the paper."""

HELD_OUT = 0.2
"""Share of the points that decides when to stop."""

EPOCHS, PATIENCE, BATCH, RATE = 200, 20, 128, 1e-3
"""Most passes over the points, passes without improvement before it stops, points in a step, and Adam's step size."""

SCALE_QUANTILE = 0.99
"""The margin scale is this quantile of the finite margins, so that one far point does not flatten the others."""

FEWEST = 20
"""Points below which nothing is learned."""

TINY = 1e-12
"""Distance between the rows of two classes below which they count as equal."""

MOST_BYTES = 2**28
"""Size of the largest file that is read."""


@dataclass(frozen=True)
class Recipe:
    """How a pseudo-margin came about.

    Attributes:
        features: size `d` of a feature vector.
        classes: classes of the head whose margins are read too, `C`; 0 where the features alone are.
        layers: hidden layers.
        width: of each.
        scale: margin at which the output saturates, in the units of the margins.
        seed: of the split, the first weights and the order of the points.
        epochs: most passes over the points.
        batch: points in a step.
        rate: Adam's step size.
        best_epoch: the pass whose weights were kept.
        validation_loss: mean of `((prediction - margin) / scale)^2` over the held-out points at that pass.
        points: points learned from, the held-out ones included.
        dropped: points left out because their margin or a feature is not a number.
        clipped: points whose margin is infinite or beyond the scale, and counts as the scale.
        norm: of the margins, or None where it was not said.
        model: sha256 of the weights of the network whose features they are, or None where it was not said.
        data: where the points come from, or None where their ids are not known.

    Raises:
        ParameterError: a field has no such value.
    """

    features: int
    classes: int
    layers: int
    width: int
    scale: float
    seed: int
    epochs: int
    batch: int
    rate: float
    best_epoch: int
    validation_loss: float
    points: int
    dropped: int
    clipped: int
    norm: str | None
    model: str | None
    data: Source | None

    def __post_init__(self) -> None:
        for name in ("features", "layers", "width", "epochs", "batch"):
            if getattr(self, name) < 1:
                raise ParameterError(name, f"{name} must be at least 1; found {getattr(self, name)}")
        for name in ("scale", "rate"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise ParameterError(name, f"{name} must be a positive number; found {getattr(self, name)}")
        if self.classes < 0 or self.classes == 1:
            raise ParameterError("classes", f"classes must be 0, or at least 2; found {self.classes}")
        if self.seed < 0:
            raise ParameterError("seed", f"the seed must be at least 0; found {self.seed}")
        if self.norm is not None:
            check_norm(self.norm)


class Regressor(nn.Module):
    """Features `[B, d]` to margins `[B]`, double precision; NaN for features that are not finite.

    `scale * sigmoid(W_6 relu(W_5 ... relu(W_1 (u - mean) / std)))`, biases left out of the formula. `u` are the
    features `h` and, where the head of the network was given, beside them its margins in feature space in increasing
    order, `(z_t - z_j) / ||w_t - w_j||_q` for every class `j != t`: functions of `h` that few points do not suffice to
    learn.
    """

    head_weight: Tensor
    head_bias: Tensor
    lengths: Tensor
    mean: Tensor
    std: Tensor
    scale: Tensor

    def __init__(self, features: int, classes: int, layers: int, width: int) -> None:
        super().__init__()
        read = features + max(0, classes - 1)
        sizes = [read] + [width] * layers
        hidden = [part for pair in pairwise(sizes) for part in (nn.Linear(*pair), nn.ReLU())]
        self.body = nn.Sequential(*hidden, nn.Linear(width, 1))
        self.register_buffer("head_weight", torch.zeros(classes, features, dtype=torch.float64))
        self.register_buffer("head_bias", torch.zeros(classes, dtype=torch.float64))
        self.register_buffer("lengths", torch.ones(classes, classes, dtype=torch.float64))
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(read))
        self.register_buffer("std", torch.ones(read))

    def read(self, features: Tensor) -> Tensor:
        """What the perceptron reads, `[B, d]` or `[B, d + C - 1]`, single precision."""
        if not len(self.head_bias):
            return features.float()
        logits = features.double() @ self.head_weight.mT + self.head_bias
        own = logits.argmax(dim=1, keepdim=True)
        gaps = logits.gather(1, own) - logits
        margins = gaps / self.lengths[own[:, 0]].clamp_min(TINY)
        ordered = margins.scatter(1, own, torch.inf).sort(dim=1).values[:, :-1]
        return torch.cat((features.float(), ordered.float()), dim=1)

    def share(self, read: Tensor) -> Tensor:
        """The prediction as a share of the scale, `[B]`, for what was `read`."""
        return self.body((read - self.mean) / self.std).squeeze(1).sigmoid()

    def forward(self, features: Tensor) -> Tensor:
        """See the class."""
        margins = self.scale * self.share(self.read(features)).double()
        return torch.where(features.isfinite().all(dim=1), margins, torch.nan)


@dataclass(frozen=True, eq=False)
class PseudoMargin:
    r"""A small network from the features of a classifier to its input margins.

    $$\min_\theta \sum_i \bigl(\sigma(f_\theta((h_i - \mu) / s)) - \min(d_i / c, 1)\bigr)^2$$

    with features `h_i` (and the margins of the head to every class there, see `Regressor`), input margins `d_i`,
    `sigma` the sigmoid, `f` a perceptron with `LAYERS` hidden layers of `WIDTH` and ReLU, `c` the scale
    (`SCALE_QUANTILE` of the finite margins), `mu` and `s` mean and standard deviation of each feature over the training
    share. Adam; the weights of the pass with the smallest squared error on a held-out share of `HELD_OUT` are kept.

    Validity: for points like those it was trained on, of the network whose features they are. It ranks points; its
    value is no bound on their margin. It may only be calibrated on points that it was not trained on.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 3.3 and appendix B.4, https://arxiv.org/abs/2406.18451
        Addressing failure prediction by learning model confidence, Charles Corbière et al., 2019,
        https://arxiv.org/abs/1910.04851

    Attributes:
        recipe: how it came about.
        regressor: the network, in evaluation mode.
        points: ids of the points it was trained on, where they were given; `recipe.data` says of which data.
    """

    recipe: Recipe
    regressor: Regressor
    points: tuple[str, ...] = ()

    @classmethod
    def fit(
        cls,
        features: Tensor | ArrayLike,
        margins: Tensor | ArrayLike,
        seed: int = 0,
        *,
        head: Head | None = None,
        points: Sequence[str] = (),
        layers: int = LAYERS,
        width: int = WIDTH,
        epochs: int = EPOCHS,
        batch: int = BATCH,
        rate: float = RATE,
        norm: str | None = None,
        model: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> PseudoMargin:
        """Learn `margins` from `features`; the same arguments give the same weights, whatever the number of threads.

        Args:
            features: `[n, d]`.
            margins: `[n]`, in pixel units; infinite ones count as the scale, a point with NaN or None is dropped.
            seed: of the split, the first weights and the order of the points.
            head: the last linear layer of the network: its margins to every class are read as well, in the dual of
                `norm` (L2 where that is not said).
            points: ids of the points, `[n]`, so that a detector is not calibrated on them; `data` must be given too.
            layers: hidden layers.
            width: of each.
            epochs: most passes over the points.
            batch: points in a step.
            rate: Adam's step size.
            norm: of the margins.
            model: sha256 of the classifier's weights, for the record.
            data: provenance of the data that the ids are of (`brittle.data.Points.provenance`).

        Raises:
            DataError: fewer than `FEWEST` points can be used, or no margin is finite and positive.
            ParameterError: the arrays do not fit each other, or a parameter is outside its range.
        """
        seen, distance = _arrays(features, margins, points)
        if len(points) and data is None:
            raise ParameterError("data", "ids of points say nothing without their data; give their provenance too")
        usable = np.isfinite(seen).all(axis=1) & ~np.isnan(distance)
        finite = distance[usable & np.isfinite(distance)]
        if usable.sum() < FEWEST:
            raise DataError("too_few_points", f"a pseudo-margin needs {FEWEST} points; found {usable.sum()}")
        scale = float(np.quantile(finite, SCALE_QUANTILE)) if finite.size else 0.0
        if scale <= 0.0:
            raise DataError("no_margins", f"none of {finite.size} finite margins is positive; nothing can be learned")
        recipe = Recipe(
            features=seen.shape[1],
            classes=0 if head is None else len(head.weight),
            layers=layers,
            width=width,
            scale=scale,
            seed=seed,
            epochs=epochs,
            batch=batch,
            rate=rate,
            best_epoch=0,
            validation_loss=0.0,
            points=int(usable.sum()),
            dropped=int((~usable).sum()),
            clipped=int((distance[usable] > scale).sum()),
            norm=norm,
            model=model,
            data=Source.of(data) if len(points) and data is not None else None,
        )
        shares = np.clip(distance[usable] / scale, 0.0, 1.0)
        with _one_thread():
            regressor, best, loss = _train(recipe, head, seen[usable], shares)
        done = Recipe(**(vars(recipe) | {"best_epoch": best, "validation_loss": loss}))
        used = tuple(point for point, one in zip(points, usable.tolist(), strict=False) if one)
        return cls(done, regressor, used)

    @classmethod
    def fit_run(
        cls, table: Table, classifier: Classifier, points: Points, norm: str = "linf", seed: int = 0, **settings: Any
    ) -> PseudoMargin:
        """Learn the input margins of a run from the features of the same points and the head's margins there.

        Masked margins are left out. `head=None` reads the features alone, as the paper does.

        Args:
            table: a run with one `input_margin` in `norm`.
            classifier: the model of the run.
            points: the data of the run; points that the run does not hold are left out.
            norm: of the margins.
            seed: as `fit`.
            settings: the other arguments of `fit`.

        Raises:
            DataError: the run holds no such margins, too few points, or is of other data than `points`.
            ModelError: `classifier` is another model or preprocesses otherwise, or has no last linear layer.
        """
        model = Identity.of_run(table.provenance)
        differing = model.differences(Identity.of_classifier(classifier))
        if differing:
            raise ModelError("pseudo_margin_model", f"the run is of another model or preprocessing: {differing}")
        ours, theirs = Source.of(table.provenance["data"]), Source.of(points.provenance)
        if not ours.same(theirs):
            raise DataError("other_points", f"the run is of the data {ours}; found {theirs}; give those of the run")
        known = _margins(table, check_norm(norm))
        ids, features = _observe(classifier, points, known)
        margins = [known[point] for point in ids]
        known_facts = {"norm": norm, "model": model.state_sha256, "data": points.provenance, "head": classifier.head}
        return cls.fit(features, margins, seed, points=ids, **(known_facts | settings))

    def learned_from(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        """Ids that it was trained on, as far as they are of `data`, the provenance of some points."""
        source = self.recipe.data
        return self.points if source is not None and source.may_share(Source.of(data)) else ()

    def check_model(self, model: str | None) -> None:
        """Raise where it is known to be learned from another model than the one of the digest `model`.

        Raises:
            ModelError: it was.
        """
        if self.recipe.model not in (None, model):
            raise ModelError(
                "pseudo_margin_model",
                f"the pseudo-margin was learned from the features of the model {self.recipe.model}; found {model}; "
                f"learn one for this model",
            )

    def predict(self, features: Tensor | ArrayLike) -> Tensor:
        """The pseudo-margins of `features` `[B, d]`: `[B]`, double precision, NaN where a feature is not finite.

        Raises:
            ParameterError: the features have another size than those it was trained on.
        """
        rows = features if isinstance(features, Tensor) else torch.from_numpy(np.asarray(features, np.float32))
        if rows.dim() != 2 or rows.shape[1] != self.recipe.features:
            raise ParameterError("features", f"[B, {self.recipe.features}] is needed; found {list(rows.shape)}")
        with torch.no_grad():
            return self.regressor(rows.to(self.regressor.mean.device))

    @cached_property
    def digest(self) -> str:
        """The sha256 of its weights."""
        return state_digest(self.regressor)

    @property
    def score(self) -> PseudoMarginScore:
        """The pseudo-margin as a score that `brittle.score` computes."""
        return PseudoMarginScore(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write weights, recipe and points to the `.safetensors` file `path`, and give that path.

        Raises:
            StorageError: it cannot be written.
        """
        path = Path(path)
        weights = {name: tensor.contiguous() for name, tensor in self.regressor.state_dict().items()}
        ids = json.dumps(self.points).encode()
        weights["points"] = torch.from_numpy(np.frombuffer(ids, np.uint8).copy())
        try:
            path.write_bytes(safetensors.torch.save(weights, {"recipe": dump(self.recipe)}))
        except OSError as error:
            raise StorageError("unwritable", f"{path} cannot be written ({error.strerror}); choose another") from error
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PseudoMargin:
        """Read a pseudo-margin; nothing in the file is run.

        Raises:
            ArtefactError: the file holds anything else.
            ModelError: it cannot be read.
        """
        path = Path(path)
        try:
            with path.open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise ModelError("pseudo_margin_missing", f"{path} cannot be read: {error.strerror or error}") from error
        try:
            return _decode(content)
        except (FormatProblem, safetensors.SafetensorError) as error:
            raise ArtefactError(
                "pseudo_margin_format", f"{path} is not a pseudo-margin: {error}; train it again"
            ) from error


@dataclass(frozen=True)
class PseudoMarginScore(Score):
    """A pseudo-margin as a score: `PseudoMargin.predict` of the features of the clean pass, in pixel units.

    Validity: that of the pseudo-margin. The interval has no width.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 3.3.

    Attributes:
        learned: the pseudo-margin.
    """

    learned: PseudoMargin

    name: ClassVar[str] = "pseudo_margin"
    title: ClassVar[str] = "Pseudo-margin"
    quantity: ClassVar[str] = "distance"
    cost: ClassVar[str] = "1"
    reference: ClassVar[str] = "Ngnawé et al. (NeurIPS 2024), section 3.3"

    @property
    def needs(self) -> tuple[Features]:
        """The features of the clean pass."""
        return (Features(),)

    @property
    def parameters(self) -> dict[str, Any]:
        """The digest of the weights and, where it is known, the norm of the margins learned."""
        norm = self.learned.recipe.norm
        return {"sha256": self.learned.digest} | ({} if norm is None else {"norm": norm})

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """See the class."""
        observed: Observed = measured[Features()]
        margin = self.learned.predict(observed.features).to(observed.features.device)
        status = mark(clean_status(observed.clean), ~margin.isfinite(), Status.NONFINITE_LOGITS)
        return finish(margin, margin, margin, status, observed.clean.passes)


def _train(
    recipe: Recipe, head: Head | None, features: NDArray[np.float64], shares: NDArray[np.float64]
) -> tuple[Regressor, int, float]:
    """The regressor with the smallest held-out error, the pass that gave it, and that error."""
    generator = torch.Generator().manual_seed(recipe.seed)
    regressor = _blank(recipe)
    _attach(regressor, head, recipe.norm)
    x, y = regressor.read(torch.from_numpy(features)), torch.from_numpy(shares).float()
    order = torch.randperm(len(x), generator=generator)
    held_out, training = order.tensor_split([max(1, round(HELD_OUT * len(x)))])
    _initialise(regressor, x[training], recipe.scale, generator)
    optimiser = torch.optim.Adam(regressor.parameters(), lr=recipe.rate)
    best, best_loss, kept = 0, math.inf, copy.deepcopy(regressor.state_dict())
    for epoch in range(1, recipe.epochs + 1):
        for rows in training[torch.randperm(len(training), generator=generator)].split(recipe.batch):
            optimiser.zero_grad()
            (regressor.share(x[rows]) - y[rows]).square().mean().backward()
            optimiser.step()
        with torch.no_grad():
            loss = float((regressor.share(x[held_out]) - y[held_out]).double().square().mean())
        if loss < best_loss:
            best, best_loss, kept = epoch, loss, copy.deepcopy(regressor.state_dict())
        if epoch - best >= PATIENCE:
            break
    if not math.isfinite(best_loss):
        raise DataError("diverged", f"the error is not finite after {recipe.epochs} passes; use a smaller rate")
    regressor.load_state_dict(kept)
    return regressor.requires_grad_(False).eval(), best, best_loss


def _blank(recipe: Recipe) -> Regressor:
    """A regressor without numbers yet; none are drawn from the program's own random stream."""
    with torch.device("meta"):
        regressor = Regressor(recipe.features, recipe.classes, recipe.layers, recipe.width)
    return regressor.to_empty(device="cpu")


def _attach(regressor: Regressor, head: Head | None, norm: str | None) -> None:
    """Write the head and the distances between its rows into `regressor`."""
    if head is None:
        return
    weight = head.weight.detach().cpu().double()
    if weight.shape != regressor.head_weight.shape:
        found = f"{list(weight.shape)}, features of size {regressor.head_weight.shape[1]}"
        raise ParameterError("head", f"the head must take the features; found weights of shape {found}")
    order = float(DUAL_ORDER[norm or "l2"])
    regressor.head_weight.copy_(weight)
    regressor.head_bias.copy_(torch.zeros(len(weight)) if head.bias is None else head.bias.detach().cpu())
    regressor.lengths.copy_(torch.cdist(weight, weight, p=order, compute_mode="donot_use_mm_for_euclid_dist"))


def _initialise(regressor: Regressor, features: Tensor, scale: float, generator: torch.Generator) -> None:
    """He's uniform weights (He et al. 2015), no biases, the scale, and the standardisation of `features`."""
    with torch.no_grad():
        for layer in regressor.body:
            if isinstance(layer, nn.Linear):
                bound = math.sqrt(6.0 / layer.in_features)
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.zero_()
        # The last layer starts near 0, so that the sigmoid starts in the middle and not where its slope vanishes.
        regressor.body[-1].weight.mul_(0.1)  # type: ignore[operator]
        regressor.scale.fill_(scale)
        std = features.std(dim=0, correction=0)
        regressor.mean.copy_(features.mean(dim=0))
        regressor.std.copy_(torch.where(std > 0, std, 1.0))


def _arrays(
    features: Tensor | ArrayLike, margins: Tensor | ArrayLike, points: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features `[n, d]` and margins `[n]`, float64, checked to fit each other."""
    seen, distance = (
        np.asarray(part.detach().cpu().double() if isinstance(part, Tensor) else part, dtype=np.float64)
        for part in (features, margins)
    )
    if seen.ndim != 2 or distance.shape != seen.shape[:1] or len(points) not in (0, len(seen)):
        raise ParameterError(
            "shape",
            f"features [n, d], margins [n] and n points are needed; found {list(seen.shape)}, "
            f"{list(distance.shape)} and {len(points)} points",
        )
    return seen, distance


def _margins(table: Table, norm: str) -> dict[str, float]:
    """Margin of each point of a run that has one, the masked ones left out."""
    fitting = [
        entry
        for entry in table.provenance["scores"]
        if entry["score"] == "input_margin" and entry["parameters"].get("norm") == norm
    ]
    if len(fitting) != 1:
        labels = ", ".join(entry["label"] for entry in fitting) or "none"
        raise DataError("no_such_score", f"the run must hold one input_margin in {norm}; found {labels}")
    frame = table.long()
    parameters = parameters_json(fitting[0]["parameters"])
    wanted = (frame["score"] == "input_margin") & (frame["parameters"] == parameters)
    rows = frame[wanted & frame["value"].notna() & (frame["status"] != Status.MASKED.slug)]
    return dict(zip(rows["point"], rows["value"], strict=True))


def _observe(
    classifier: Classifier, points: Points, known: Mapping[str, float], rows: int = 64
) -> tuple[list[str], Tensor]:
    """Ids and features `[n, d]` of those points that `known` names."""
    ids, features = [], []
    with classifier.evaluating(), torch.no_grad():
        for batch in points.batches(rows):
            wanted = [position for position, point in enumerate(batch.ids) if point in known]
            if wanted:
                ids += [batch.ids[position] for position in wanted]
                features.append(classifier.observe(batch.inputs[wanted])[1].double().cpu())
    if not ids:
        raise DataError("other_points", "none of the points has a margin in the run; give the data of the run")
    return ids, torch.cat(features)


def _decode(content: bytes) -> PseudoMargin:
    """The pseudo-margin in the bytes of a file.

    Raises:
        FormatProblem: they hold anything else.
        safetensors.SafetensorError: they are no sound safetensors file.
    """
    if len(content) > MOST_BYTES:
        raise FormatProblem(f"it has more than {MOST_BYTES:,} bytes")
    weights = safetensors.torch.load(content)
    recipe = parse(Recipe, _metadata(content).get("recipe", ""))
    _check_shapes(recipe, weights)
    points = _ids(weights.pop("points").numpy().tobytes())
    if points and recipe.data is None:
        raise FormatProblem("it does not say which data its points are of")
    regressor = _blank(recipe)
    regressor.load_state_dict(weights)
    return PseudoMargin(recipe, regressor.requires_grad_(False).eval(), points)


def _ids(content: bytes) -> tuple[str, ...]:
    """The ids in a JSON list.

    Raises:
        FormatProblem: `content` is anything else.
    """
    try:
        found = json.loads(content.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise FormatProblem("the ids of its points are not JSON") from error
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise FormatProblem("the ids of its points are not a list of strings")
    return tuple(found)


def _metadata(content: bytes) -> dict[str, str]:
    """The metadata of a safetensors file that was found sound: a JSON header after its length in 8 bytes."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]).get("__metadata__") or {}


def _check_shapes(recipe: Recipe, weights: Mapping[str, Tensor]) -> None:
    """Raise unless `weights` are those of the network that `recipe` describes."""
    with torch.device("meta"):
        largest = max(recipe.width * recipe.features, recipe.classes * max(recipe.features, recipe.classes))
        sound = recipe.layers <= len(weights) and largest <= MOST_BYTES
        network = (recipe.features, recipe.classes, recipe.layers, recipe.width)
        expected = Regressor(*network).state_dict() if sound else {}
    shapes = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in expected.items()}
    found = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in weights.items() if name != "points"}
    if found != shapes:
        differing = sorted(name for name in found | shapes if found.get(name) != shapes.get(name))
        raise FormatProblem(f"its weights are not those of its recipe: {', '.join(differing[:5])!r:.200}")
    if "points" not in weights or weights["points"].dtype != torch.uint8 or weights["points"].dim() != 1:
        raise FormatProblem("it does not say which points it was trained on")
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise FormatProblem(f"{name} holds NaN or infinite values")
    if not bool((weights["std"] > 0).all()):
        raise FormatProblem("std holds values that are not positive")
    if float(weights["scale"]) != recipe.scale:
        raise FormatProblem(f"its scale {float(weights['scale'])} is not that of its recipe, {recipe.scale}")


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread inside the block, because sums over several depend on how many there are."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
