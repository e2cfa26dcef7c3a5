"""The subject of the checks: a model with its declaration, the first points of the data, and the chosen scores."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from itertools import chain
from typing import Any

import torch
from torch import Tensor, fx, nn

from brittle.data.points import Batch, Points, readable
from brittle.doctor.rounding import Reference, changed_model, excess
from brittle.errors import BrittleError, DataError, ModelError, ParameterError, first_line
from brittle.measure import Clean, Measurement, Passes
from brittle.measure.base import by_stream
from brittle.measure.forward import Widest
from brittle.model.classifier import Classifier
from brittle.model.inputs import ExtraInputs
from brittle.noise import Gaussian, Stream
from brittle.scores import NoiseScore, Score
from brittle.store.record import Finding as Finding

LOOKED_AT = 64  # points that the checks send through the network

FEWEST, WAYS = 16, 25  # points that go through again in other ways, and their usual passes
COST = 0.02  # share of the run's passes up to which more points do
KEPT, OTHERS = 8, 3  # points whose logits are compared during a run, and inputs that a worker sees before them
CURVED_AT = 8  # points at which a measurement is tried out, to know what it costs


class Subject:
    """Subject of an examination. A check that first needs a pass through the network takes it, and all others reuse it.

    The classifier is in evaluation mode, and is called for its numbers, whatever it decides. `points` is None, and
    `provenance` empty, where only the first are at hand, `batch`. `numbers` are the rows of the data of `inputs`;
    points may be `chosen` by their ids, perhaps for what is predicted. `untouched` is a copy of the model before its
    first pass here, which shares its weights; or why there is none.
    """

    def __init__(
        self,
        classifier: Classifier,
        batch: Batch,
        labels: Sequence[int] | None,
        scores: Sequence[Score],
        seed: int,
        rows: int,
        points: Points | None = None,
        expected_accuracy: float | None = None,
    ) -> None:
        if expected_accuracy is not None and not 0.0 < expected_accuracy <= 1.0:
            raise ParameterError(f"the expected accuracy must lie in (0, 1], 0.9 for 90%; found {expected_accuracy:g}")
        self.decision, self.classifier = classifier.decision, classifier.undecided
        self.batch, self.labels, self.scores, self.seed, self._most = batch, labels, scores, seed, rows
        self.points, self.expected_accuracy = points, expected_accuracy
        self._read = readable(batch)[:LOOKED_AT].nonzero().flatten()[:rows]
        self.numbers = [batch.rows[at] for at in self._read.tolist()]
        self._ids = tuple(f"doctor {row}" for row in range(len(self.numbers)))
        extra = batch.extra_inputs
        self.extra_inputs = extra and extra.only(self._read.cpu()).to(classifier.device)
        self.provenance: Mapping[str, Any] = {} if points is None else points.provenance
        self.chosen = self.provenance.get("ids_sha256") is not None
        self.needs: list[Measurement] = list(dict.fromkeys(chain.from_iterable(score.needs for score in scores)))
        self.differentiates = any(need.differentiates for need in self.needs)
        self.untouched = untouched_copy(classifier.model)
        self.findings: list[Finding] = []
        self._seconds = math.inf

    @cached_property
    def inputs(self) -> Tensor:
        """Points that go through the network, `[V, *shape]`, on the classifier's device."""
        if not self.numbers:
            detail = next((detail for detail in self.batch.detail if detail), "NaN or infinite values")
            count = min(len(self.batch), LOOKED_AT)
            sentence = f"none of the first {count} points can be used: {detail}; check the files and their values"
            raise DataError("no_usable_points", sentence)
        return self.batch.inputs[self._read].to(self.classifier.device)

    @cached_property
    def logits(self) -> Tensor:
        """Logits of `inputs`, `[V, C]`, from the first pass."""
        return self._first[0]

    @property
    def rows(self) -> int:
        return self._first[1]

    @cached_property
    def _first(self) -> tuple[Tensor, int]:
        with Widest(len(self.inputs)) as widest:
            return self.logits_of(self.inputs), widest.fitting(self._most, self.classifier.device)

    @cached_property
    def repeated(self) -> Tensor:
        """Positions of the `inputs` that go through again in other ways, `[R]`, evenly spaced; all in a long run."""
        count = int(min(len(self.inputs), max(FEWEST, COST / WAYS * self.passes_of_run)))
        return torch.arange(count, device=self.inputs.device) * len(self.inputs) // count

    @property
    def passes_of_run(self) -> float:
        """Passes of the chosen scores over all points; infinite where only the first points are at hand."""
        return math.inf if self.points is None else len(self.points) * self.passes_per_point.total

    @property
    def seconds_per_point(self) -> float:
        """Estimated seconds of the passes of a point, by the fastest pass so far; a backward one counts as two."""
        return (self.passes_per_point.forward + 2 * self.passes_per_point.backward) * self._seconds

    @cached_property
    def seconds_to_read(self) -> float:
        """Estimated seconds to read a point, by reading the first points again."""
        if self.points is None:
            return 0.0
        started = time.perf_counter()
        count = len(next(self.points.batches(LOOKED_AT)))
        return (time.perf_counter() - started) / count

    @property
    def forward_only(self) -> str | None:
        return self.classifier.forward_only

    @property
    def own_probability(self) -> bool:
        return self.classifier.own_probability

    @cached_property
    def passes_per_point(self) -> Passes:
        """Passes of the chosen scores for a point, by their own account, with the clean pass, without certificates."""
        cost = Passes(self.classifier.clean_passes, 0)
        for needs in by_stream(need for need in self.needs if not need.certifies):
            cost += max((need.cost(self) for need in needs), key=lambda passes: passes.total)
        return cost

    def logits_of(self, inputs: Tensor, rows: Tensor | None = None) -> Tensor:
        """Logits of inputs of the same shape, `[N, C]`, from one pass; for gradients where `inputs` ask for them. Extra
        inputs are those of the points `rows`, `[N]`, by default in order, repeated."""
        started = time.perf_counter()
        with torch.set_grad_enabled(inputs.requires_grad):
            logits = self.classifier(inputs, self.take_extra(len(inputs), rows))
        if len(inputs) >= len(self.inputs):
            logits[:1].detach().cpu()  # so that the device is done
            self._seconds = min(self._seconds, (time.perf_counter() - started) / len(inputs))
        return logits

    def take_extra(self, count: int, rows: Tensor | None = None) -> ExtraInputs | None:
        places = torch.arange(count) % len(self.inputs) if rows is None else rows
        return self.extra_inputs and self.extra_inputs.only(places)

    @property
    def classes(self) -> int:
        return self.logits.shape[1]

    @property
    def dimension(self) -> int:
        return self.inputs[0].numel()

    def try_out(self, need: Measurement) -> Any:
        """Take a measurement at a few points; None where it fails."""
        inputs = self.inputs[:CURVED_AT]
        extra_inputs = self.take_extra(len(inputs))
        extra_inputs = extra_inputs and extra_inputs.around(inputs)
        try:
            logits = self.logits_of(inputs)
            clean = Clean(inputs, self._ids[:CURVED_AT], self.seed, logits, self.rows, extra_inputs=extra_inputs)
            return need(self.classifier, clean)
        except BrittleError:
            return None

    def check_same(self, place: str, positions: Tensor, classifier: Classifier | None = None) -> None:
        """Raise where the points at `positions`, `[R]`, get other logits than in the first pass; `place` is where."""
        inputs, extra_inputs = self.inputs[positions], self.take_extra(len(positions), positions)
        with torch.no_grad():
            logits = (classifier or self.classifier)(inputs, extra_inputs)
        difference = excess(self.classifier, inputs, self.logits[positions], logits, extra_inputs=extra_inputs)
        if difference is not None:
            raise changed_model(self.numbers[int(positions[difference.row])], place, difference)

    @cached_property
    def predicted(self) -> tuple[list[int], Tensor]:
        """The rows of the batch that get finite class scores, and what is decided from, `[S, ...]`, on the CPU."""
        read = readable(self.batch).cpu().nonzero().flatten()
        extra = self.batch.extra_inputs
        places, inputs = read.split(self.rows), self.batch.inputs
        with torch.no_grad():
            parts = [self.classifier.read(inputs[at.to(inputs.device)], extra and extra.only(at)) for at in places]
        outputs = torch.cat([part.cpu() for part in parts])
        finite = outputs.flatten(1).isfinite().all(dim=1)
        return read[finite].tolist(), outputs[finite]

    @property
    def right(self) -> tuple[int, int]:
        """Numbers of correct predictions and of labels among these points."""
        rows, outputs = self.predicted
        labels, targets = self.batch.labels, self.batch.targets
        labels = None if labels is None else torch.tensor(labels)[rows]
        targets = None if targets is None else targets[rows]
        outcomes = self.decision.right(self.decision.decide(outputs), labels, targets)
        return outcomes.count(True), len(outcomes) - outcomes.count(None)

    # Other inputs than the points, the same ones every time.

    @cached_property
    def is_unrestricted(self) -> bool:
        """True where the model accepts values that do not occur among the points, as strict categories do not."""
        inputs = self.inputs
        try:
            self.logits_of(self.classifier.bounds.closed(inputs).sample(tuple(inputs.shape), inputs, (0.0, 1.0)))
        except ModelError:
            return False
        return True

    def random_inputs(self, count: int, values: tuple[float, float] = (0.0, 1.0)) -> Tensor:
        """Return inputs of the same shape, uniform in these shares of the bounds, `[count, *shape]`.

        Without bounds, where scores see nothing but what noise that is not added makes of the points, or the model
        takes no others, each coordinate is that of a random point, of these shares of its values in order: the model
        may never see others, of a category say.
        """
        bounds, shape = self.classifier.bounds.closed(self.inputs), (count, *self.inputs.shape[1:])
        added = [score.noise.added for score in self.scores if isinstance(score, NoiseScore)]
        if any(added) or self.differentiates or self.classifier.bounds.finite or (not added and self.is_unrestricted):
            return bounds.sample(shape, self.inputs, values)
        shares = torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        shares = shares.to(self.inputs.device) * (values[1] - values[0]) + values[0]
        place = (shares * len(self.inputs)).long().clamp(0, len(self.inputs) - 1)
        return self.inputs.sort(dim=0).values.gather(0, place)

    @cached_property
    def random_logits(self) -> Tensor:
        """Logits of as many random inputs as there are points, each beside the other tensors of one, `[V, C]`."""
        return self.logits_of(self.random_inputs(len(self.inputs)).flip(0))  # the points may be the same numbers

    @cached_property
    def noisy(self) -> Tensor:
        """A noisy copy of each of `inputs`, with the noise of the largest sigma, in pixels first, inside the bounds if
        no score goes beyond them; else normal, of a tenth of the range of a coordinate."""
        inputs, bounds, varies = self.inputs, self.classifier.bounds, self.extra_inputs and self.extra_inputs.varies
        drawing = [score for score in self.scores if isinstance(score, NoiseScore)]
        noise = max((score.noise for score in drawing), key=lambda noise: (noise.in_pixels, noise.sigma), default=None)
        if noise is None and not self.differentiates and not bounds.finite and not self.is_unrestricted:
            return self.random_inputs(len(inputs)).flip(0)
        stream = Stream(noise or Gaussian(1.0), inputs, self._ids, self.seed, "doctor", varies)
        if noise is None:
            low, high = bounds.closed(inputs).ends(inputs)
            return bounds.clip(inputs + 0.1 * (high - low) * stream.draw(1)[:, 0])
        copies = stream.copies(1)[:, 0, 0]
        return copies if any(not getattr(score, "clip", False) for score in drawing) else bounds.clip(copies)

    @cached_property
    def noisy_logits(self) -> Tensor:
        return self.logits_of(self.noisy)

    # What is looked at again during the run.

    def reference(self, *, others_first: bool = False) -> Reference:
        """Return the first `KEPT` points with their logits: of the first pass, or of one now, after other inputs, by
        which a network that sets itself up from what it is given first is another one."""
        rows, inputs = tuple(self.numbers[:KEPT]), self.inputs[:KEPT]
        extra_inputs = self.take_extra(len(inputs))
        if not others_first:
            return Reference(rows, inputs, self.logits[: len(rows)], extra_inputs)
        self.send_other_inputs(self.classifier)
        return Reference(rows, inputs, self.classifier.numbers(inputs, extra_inputs), extra_inputs)

    def send_other_inputs(self, classifier: Classifier) -> None:
        """Send a few inputs through `classifier` that have nothing to do with the points."""
        inputs = self.random_inputs(min(self._most, OTHERS), values=(0.5, 1.0))
        classifier.read(inputs, self.take_extra(len(inputs)))


def untouched_copy(model: Callable[[Tensor], Any]) -> nn.Module | str:
    """Return a copy of `model` that shares its weights and no other state; or why there is none."""
    if not isinstance(model, nn.Module):
        return "a function cannot be copied"
    if isinstance(model, fx.GraphModule):
        return "an exported program keeps nothing but weights and buffers"
    try:
        return deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})
    except Exception as error:  # noqa: BLE001 - whatever the model's own __deepcopy__ or state raises
        return f"the model cannot be copied: {type(error).__name__}: {first_line(error)}"
