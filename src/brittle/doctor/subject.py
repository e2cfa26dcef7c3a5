"""What the checks look at: a model with its declaration, the first points of the data, the scores that were chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import torch
from torch import Tensor, fx, nn
from torch.nn.parameter import is_lazy

from brittle.data.points import Batch, Points
from brittle.data.values import readable, usable
from brittle.doctor.reference import KEPT, Reference, changed_model
from brittle.doctor.rounding import Difference, excess, precision_of
from brittle.errors import DataError
from brittle.measure import Measurement
from brittle.model.classifier import Classifier, scores_of
from brittle.scores import NoiseScore, Score

LOOKED_AT = 64
"""Points that the checks send through the network."""

SIGMA_SHARE = 0.1
"""Noise of the noisy copies that are looked at, as a share of the range, where no score says what noise."""

OTHERS = 3
"""Inputs that a copy of the model sees before the first points."""

NOW = "now"
"""When points are looked at again."""

REPEATS = 5
"""Forward passes of the same points that must agree."""


@dataclass(frozen=True)
class Finding:
    """Something a user should know that does not stop a run.

    Attributes:
        code: short name, stable.
        sentence: what was seen, and what to do.
    """

    code: str
    sentence: str


@dataclass(frozen=True)
class FirstPass:
    """What the first pass of the points showed.

    Attributes:
        logits: `[V, C]`.
        overwritten: how many numbers of its input the model overwrote.
        returned: the tensor that the model returned, as it gave it: a later pass may overwrite it.
        content: a copy of `returned`, taken at once.
    """

    logits: Tensor
    overwritten: int
    returned: Tensor
    content: Tensor


@dataclass
class Subject:
    """What is examined. Passes through the network are taken when a check first needs them, and once.

    Attributes:
        classifier: what will be scored, in evaluation mode.
        batch: the first points, at least one.
        labels: all labels of the data, or None.
        scores: what will be computed.
        seed: seed of the run.
        rows: most rows in one pass through the network.
        points: all points, or None where only the first are at hand.
    """

    classifier: Classifier
    batch: Batch
    labels: Sequence[int] | None
    scores: Sequence[Score]
    seed: int
    rows: int
    points: Points | None = None

    @cached_property
    def inputs(self) -> Tensor:
        """Points that go through the network, `[V, *shape]`, on the classifier's device.

        Raises:
            DataError: none of the points can be read.
        """
        found = usable(self.batch)[: min(self.rows, LOOKED_AT)]
        if len(found) == 0:
            details = [detail for detail in self.batch.detail if detail]
            raise DataError(
                "no_usable_points",
                f"none of the first {len(self.batch)} points can be used: "
                f"{details[0] if details else 'NaN or infinite values'}; check the files and the range of the values",
            )
        return found.to(self.classifier.device)

    @cached_property
    def untouched(self) -> nn.Module | str:
        """A copy of the model as it was before its first pass here, which shares its weights; or why there is none."""
        model = self.classifier.model
        if not isinstance(model, nn.Module):
            return "a function cannot be copied"
        if isinstance(model, fx.GraphModule):
            return "an exported program keeps nothing but weights and buffers"
        if any(map(is_lazy, model.parameters())):
            return "a model without shapes cannot be copied"
        try:
            return deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})
        except Exception as error:  # noqa: BLE001 - whatever the model's own __deepcopy__ or state raises
            return f"the model cannot be copied: {type(error).__name__}: {str(error).partition(chr(10))[0]}"

    @cached_property
    def first_pass(self) -> FirstPass:
        """The first pass of `inputs`, with what the model was given and what it returned."""
        seen: list[tuple[Tensor, Tensor]] = []
        returned: list[tuple[Tensor, Tensor]] = []
        model = self.classifier.model

        def watched(inputs: Tensor) -> object:
            seen.append((inputs, inputs.clone()))
            output = model(inputs)
            scores = scores_of(output)[0].detach()
            returned.append((scores, scores.clone()))
            return output

        # A twin that is called through `watched`, so that the tensors the model gets and gives can be looked at.
        twin = copy(self.classifier)
        twin.model = watched
        with torch.no_grad():
            logits = twin(self.inputs)
        self.classifier.forward_passes, self.classifier.output_dtype = twin.forward_passes, twin.output_dtype
        self.classifier.taken = twin.taken
        given, before = seen[0]
        same = (given == before) | (given.isnan() & before.isnan())
        return FirstPass(logits, int((~same).sum()), *returned[0])

    @property
    def logits(self) -> Tensor:
        """Logits of `inputs`, `[V, C]`."""
        return self.first_pass.logits

    @cached_property
    def repeats(self) -> list[Tensor]:
        """Logits of `REPEATS` passes of the same points, `[V, C]` each."""
        with torch.no_grad():
            return [self.logits, *(self.classifier(self.inputs) for _ in range(REPEATS - 1))]

    @cached_property
    def scored(self) -> tuple[list[int], Tensor]:
        """The positions in the whole batch that get finite class scores, and these, `[S, C]`, on the CPU."""
        read = readable(self.batch).cpu()
        with torch.no_grad():
            logits = torch.cat([self.classifier(part).cpu() for part in self.batch.inputs[read].split(self.rows)])
        finite = logits.isfinite().all(dim=1)
        return read.nonzero().flatten()[finite].tolist(), logits[finite]

    @cached_property
    def confusion(self) -> Counter[tuple[int, int]]:
        """How many of them have each (label, predicted class); empty without labels."""
        if self.batch.labels is None:
            return Counter()
        rows, logits = self.scored
        labels = [int(self.batch.labels[row]) for row in rows]
        pairs = zip(labels, logits.argmax(dim=1).tolist(), strict=True)
        return Counter(pair for pair in pairs if 0 <= pair[0] < logits.shape[1])

    @property
    def right(self) -> tuple[int, int]:
        """How many of the labelled ones are predicted right, and how many there are."""
        correct = sum(count for (label, predicted), count in self.confusion.items() if label == predicted)
        return correct, sum(self.confusion.values())

    @property
    def finite(self) -> Tensor:
        """The rows of `logits` that are finite."""
        return self.logits[self.logits.isfinite().all(dim=1)]

    @property
    def precision(self) -> float:
        """Relative precision of the logits."""
        return precision_of(self.classifier)

    def excess(self, other: Tensor) -> Difference | None:
        """The clearest difference of `other`, logits of `inputs`, from `logits` that rounding does not explain."""
        return excess(self.classifier, self.inputs, self.logits, other)

    def check_same(self, where: str, logits: Tensor | None = None) -> Tensor:
        """Raise where the points get other logits than in the first pass; gives those that they get.

        Args:
            where: when or where they get them, in words.
            logits: what they get, `[V, C]`; those of a pass that is made for it by default.

        Raises:
            ModelError: they do.
        """
        if logits is None:
            with torch.no_grad():
                logits = self.classifier(self.inputs)
        found = self.excess(logits)
        if found is not None:
            raise changed_model(self.numbers[found.row], where, found)
        return logits

    def random_inputs(self, count: int, values: tuple[float, float] = (0.0, 1.0)) -> Tensor:
        """Inputs of the same shape, uniform in these shares of the bounds, the same ones every time."""
        low, high = self.classifier.bounds
        generator = torch.Generator().manual_seed(0)
        uniform = torch.rand(count, *self.inputs.shape[1:], generator=generator, dtype=torch.float32)
        return ((uniform * (values[1] - values[0]) + values[0]) * (high - low) + low).to(self.inputs)

    @cached_property
    def noisy(self) -> Tensor:
        """A noisy copy of each of `inputs`, with normal noise of the largest sigma that was chosen.

        Inside the bounds, with a tenth of their range for sigma, where no score sends anything beyond them.
        """
        low, high = self.classifier.bounds
        scores = [score for score in self.scores if isinstance(score, NoiseScore)]
        sigma = max((score.noise.sigma for score in scores), default=SIGMA_SHARE * (high - low))
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(self.inputs.shape, generator=generator, dtype=torch.float32)
        copies = self.inputs + sigma * noise.to(self.inputs)
        beyond = any(not getattr(score, "clip", False) for score in scores)
        return copies if beyond else copies.clamp(low, high)

    @cached_property
    def noisy_logits(self) -> Tensor:
        """Logits of `noisy`, `[V, C]`."""
        with torch.no_grad():
            return self.classifier(self.noisy)

    @cached_property
    def reordered(self) -> Tensor:
        """Logits of `inputs`, `[V, C]`, from a pass in which they stand in the order `order(0)`."""
        order = self.order(seed=0)
        with torch.no_grad():
            logits = self.classifier(self.inputs[order])
        return torch.empty_like(logits).index_copy_(0, order, logits)

    def order(self, seed: int) -> Tensor:
        """Another order of the points, `[V]`; the same one every time."""
        count = len(self.inputs)
        order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
        same = bool((order == torch.arange(count)).all())
        return (order.flip(0) if same else order).to(self.inputs.device)

    @property
    def kept(self) -> tuple[tuple[int, ...], Tensor]:
        """Rows in the data and inputs of the first points, which are looked at during the run: those of `KEPT` at most
        that can be read, among the first `LOOKED_AT`."""
        read = readable(self.batch)[:LOOKED_AT].nonzero().flatten()[: min(KEPT, self.rows)]
        return tuple(self.batch.rows[at] for at in read.tolist()), self.batch.inputs[read].to(self.classifier.device)

    @property
    def reference(self) -> Reference:
        """These points, with the logits of the first pass."""
        rows, inputs = self.kept
        return Reference(rows, inputs, self.logits[: len(rows)])

    def other_inputs(self) -> Tensor:
        """Inputs that have nothing to do with the points, for a model that is to see them first."""
        return self.random_inputs(min(self.rows, OTHERS), values=(0.5, 1.0))

    @property
    def numbers(self) -> list[int]:
        """The row of the data of each of `inputs`."""
        return [row for row, read in zip(self.batch.rows, readable(self.batch).tolist(), strict=True) if read]

    @property
    def needs(self) -> list[Measurement]:
        """The measurements that the chosen scores need, each once."""
        return list(dict.fromkeys(chain.from_iterable(score.needs for score in self.scores)))

    @property
    def streams(self) -> dict[Hashable, list[Measurement]]:
        """The needs by the passes that they share."""
        found: dict[Hashable, list[Measurement]] = {}
        for need in self.needs:
            found.setdefault((type(need), need.stream), []).append(need)
        return found
