"""Checks of the passes: the model takes the points, and gives a row the same logits at any time and beside any rows.

Where it does not take them it may take another shape, another number of rows, or fewer columns.

The points, and noisy copies of them, go through again, in another order, in pieces of many sizes, beside other inputs
and through a copy of the model that saw other inputs first, and every row is compared with that in the first batch.
"""

import math
import re
from collections.abc import Iterator
from copy import copy
from itertools import chain, cycle

import scipy
import torch
from torch import Tensor

from brittle.doctor.rounding import allowed, differences, excess, precision_of
from brittle.doctor.subject import COST, OTHERS, Finding, Subject
from brittle.errors import BrittleError, DataError, ModelError
from brittle.model.classifier import CLEAN_PASSES

REPEATS, FEW_REPEATS = 5, 3  # passes of the same points that must agree; few where a call costs more, as of trees

SIZES = (1, 1, 3, 5, 2, 7, 11, 13)  # of pieces of the points, again and again, after half of the largest batch
NOISY_SIZES, FEW_SIZES = (2, 1, 6, 17, 1, 4, 23), (1, 63)  # of noisy copies; few where a call costs more
BRIGHT, DARK = (0.75, 1.0), (0.0, 0.25)  # ranges of the inputs that stand beside the points, as shares of the bounds

COARSE = 1e-5  # relative precision of 16 bits at least
SAME_BATCH = 16.0  # how much smaller differences are there in the same batch: `allowed` would excuse dropout
DRAWN, ROWS_DRAWN = 64, 32  # passes, and rows of each, that tell whether a random model draws for each row
SHARED = 1e-6  # how often the F test of that errs
LEFT_OUT = "left out: the model draws at random, as was declared"

MIXES = (
    "the model mixes the rows of a batch (an LSTM without batch_first, batch norm without running statistics, "
    "attention across rows, one scale of a batch for 8 bits), make it treat each row alone, or give each a pass of its "
    "own: --batch-size 1 (batch_size=1)"
)


def check_forward(subject: Subject) -> Iterator[Finding | str]:
    """Check that the model takes the inputs and returns class scores, of single precision or better."""
    classifier = subject.classifier
    try:
        logits = subject.logits
    except BrittleError as error:
        explained = _explained(error, subject)
        if explained is error:
            raise
        raise explained from error
    dtypes = [dtype for dtype in (classifier.dtype, classifier.output_dtype) if dtype is not None]
    kinds = ", ".join(sorted({str(dtype).removeprefix("torch.") for dtype in dtypes}))
    if any(dtype.itemsize < 4 for dtype in dtypes):
        rounding = f"rounds logits to about {precision_of(classifier):.1g} of their size"
        advice = "score in float32 to tell small margins apart"
        yield Finding("low_precision", f"the model computes in {kinds}, and {rounding}; {advice}")
    source = "" if classifier.taken is None else f", taken from {classifier.taken}"
    yield f"{list(subject.inputs.shape)} gave {list(logits.shape)}, {kinds}{source}, on {classifier.device}"


def check_repeatable(subject: Subject) -> Iterator[Finding | str]:
    """Check that the same rows give the same logits every time."""
    classifier, inputs = subject.classifier, subject.inputs[subject.repeated]
    if classifier.random:
        return (yield _drawn(subject))
    logits = subject.logits if len(inputs) == len(subject.inputs) else _logits(subject, inputs, subject.repeated)
    passes = REPEATS if subject.forward_only is None else FEW_REPEATS
    repeats = [subject.logits_of(inputs, subject.repeated) for _ in range(passes - 1)]
    precision = precision_of(classifier)
    explained = allowed(logits, precision) / (SAME_BATCH if precision > COARSE else 1.0)
    for again in repeats:
        gap = excess(classifier, inputs, logits, again, explained, subject.take_extra(len(inputs), subject.repeated))
        if gap is not None:
            raise ModelError(
                "nondeterministic_model",
                f"{passes} passes of the same {len(logits)} rows differ by up to {gap}; switch off dropout and "
                f"other randomness (before an export: model.eval()), and let forward() not count or average; "
                f"or declare that the model draws at random: --random-model (random=True)",
            )
    worst = max(float(differences(logits, again).max()) for again in repeats)
    yield f"{passes} passes differ by at most {worst:.3g} in the logits"


def _drawn(subject: Subject) -> Finding:
    """Return the note about a random model; an error where its passes, or the rows of one, share what they draw: the
    ranks of the logits of one point, or of their distances from the mean, vary more between passes than within them."""
    logits, rows = subject.logits, min(ROWS_DRAWN, subject.rows)
    apart = differences(logits, subject.logits_of(subject.inputs)).amax(dim=1)
    if not bool((apart > 0).any()):
        sentence = f"declared as random, the model gives {len(logits)} rows the same logits twice"
        raise ModelError("nondeterministic_model", f"{sentence}: leave out --random-model")
    point = apart.argmax().expand(rows)
    drawn = torch.cat([subject.logits_of(subject.inputs[point], point).double() for _ in range(DRAWN)]).cpu()
    drawn = torch.cat((drawn, (drawn - drawn.mean(dim=0)).abs()), dim=1)
    order = torch.randperm(len(drawn), generator=torch.Generator().manual_seed(0))  # by which ties are broken
    ranks = drawn[order].argsort(dim=0).argsort(dim=0)[order.argsort()].double().view(DRAWN, rows, -1)
    between, within = rows * ranks.mean(dim=1).var(dim=0), ranks.var(dim=1, correction=min(1, rows - 1)).mean(dim=0)
    ratio = (between / within).numpy()
    if rows > 1 and (scipy.stats.f.sf(ratio, DRAWN - 1, DRAWN * (rows - 1)) * len(ratio) < SHARED).any():
        raise ModelError(
            "batch_dependent",
            f"{DRAWN} passes of {rows} times row {subject.numbers[int(point[0])]} differ more than their rows: the "
            f"model draws once for a pass, so the points in it would not be independent; draw for each row, or give "
            f"each a pass of its own: --batch-size 1 (batch_size=1)",
        )
    return Finding(
        "nondeterministic_model",
        f"the model draws at random, as declared: a prediction is the class that wins most of {CLEAN_PASSES} clean "
        f"passes, it is kept or not over noise and draws together, and no check asks for the same logits again",
    )


def check_rows_apart(subject: Subject) -> Iterator[Finding | str]:
    """Check that a row gives the same logits alone and among others, in any order and in batches of any size."""
    largest = 0.0
    if subject.classifier.random:
        return (yield LEFT_OUT)
    for how, inputs, expected, logits in regroup_inputs(subject):
        beside = subject.take_extra(len(inputs), subject.repeated)
        difference = excess(subject.classifier, inputs, expected, logits, extra_inputs=beside)
        if difference is not None:
            # The first batch again: a network that changes by itself is reported as such.
            subject.check_same("now", torch.arange(len(subject.inputs)))
            row = f"row {subject.numbers[int(subject.repeated[difference.row])]} {how}"
            first_batch = f"in the first batch of {len(subject.inputs)}"
            raise ModelError("batch_dependent", f"{row} and {first_batch} differ by {difference}; {MIXES}")
        largest = max(largest, float(differences(expected, logits).max()))
    rows = f"{len(subject.repeated)} rows and their noisy copies, alone and in batches of up to {subject.rows}"
    yield f"{rows}, differ by at most {largest:.3g} in the logits"


def regroup_inputs(subject: Subject) -> Iterator[tuple[str, Tensor, Tensor, Tensor]]:
    """Send the points and noisy copies of them in other orders, batch sizes and company, and yield this in words, the
    `repeated` inputs, `[R, *shape]`, and their logits in the first batch and now, `[R, C]` each."""
    repeated = subject.repeated
    points, noisy = (subject.inputs[repeated], subject.logits[repeated]), subject.noisy[repeated]
    # Before the others: a model that does not take such values says so.
    noisy_logits = subject.logits_of(noisy, repeated)
    yield "in another order", *points, _in_pieces(subject, points[0], (len(points[0]),), seed=0)
    if len(points[0]) > subject.rows // 2:  # else it is the whole batch again
        yield "in a batch of another size", *points, _in_pieces(subject, points[0], (subject.rows // 2, *SIZES))
    if subject.rows > 1:
        size = min(subject.rows, 2 * len(points[0]))
        largest = int(min(subject.rows, max(2 * len(subject.inputs), COST * subject.passes_of_run)))
        yield "beside bright inputs", *points, _beside(subject, points[0], BRIGHT, largest, last=True)
        yield "beside dark inputs", *points, _beside(subject, points[0], DARK, size, last=False)
    sizes = NOISY_SIZES if subject.forward_only is None else FEW_SIZES
    yield "with noise, in a batch of another size", noisy, noisy_logits, _in_pieces(subject, noisy, sizes)


def _in_pieces(subject: Subject, inputs: Tensor, sizes: tuple[int, ...], seed: int = 1) -> Tensor:
    """Logits of `inputs`, `[V, C]`, from batches of these sizes in another order, one size after another."""
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(seed))
    order = (order.flip(0) if torch.equal(order, torch.arange(len(order))) else order).to(inputs.device)
    remaining, parts = order, []
    for size in chain(filter(None, sizes), cycle(filter(None, sizes))):
        if not len(remaining):
            break
        rows = remaining[: min(size, subject.rows)]
        parts.append(_logits(subject, inputs[rows], subject.repeated[rows]))
        remaining = remaining[size:]
    logits = torch.cat(parts)
    return torch.empty_like(logits).index_copy_(0, order, logits)


def _beside(subject: Subject, inputs: Tensor, values: tuple[float, float], size: int, *, last: bool) -> Tensor:
    """Return logits of the `repeated` inputs, `[R, C]`, from batches of `size` rows, at most half of them these."""
    parts = []
    for rows in torch.arange(len(inputs), device=inputs.device).split(size // 2):
        part = inputs[rows]
        strangers = subject.random_inputs(size - len(part), values)
        beside = torch.arange(len(strangers), device=rows.device) % len(subject.inputs)
        numbers = subject.repeated[rows]
        columns = ((strangers, part), (beside, numbers)) if last else ((part, strangers), (numbers, beside))
        logits = _logits(subject, *map(torch.cat, columns))
        parts.append(logits[len(strangers) :] if last else logits[: len(part)])
    return torch.cat(parts)


def _logits(subject: Subject, inputs: Tensor, rows: Tensor) -> Tensor:
    """Return the logits of a batch, beside the other tensors of the points `rows`; a model that took the first batch
    and fails on this one looks at its size."""
    size = len(subject.inputs)
    try:
        return subject.logits_of(inputs, rows)
    except ModelError as error:
        if error.code not in WRONG_SIZE or len(inputs) == size:
            raise
        if _is_only(subject, size):
            raise _fixed_batch(size, len(inputs), error) from error
        if error.code != "model_failed" or _fails_in(subject, inputs, rows, size):
            raise
        reason = str(error.__cause__ or error.args[0]).strip().partition("\n")[0]
        sentence = f"the model takes a batch of {size} rows and fails on one of {len(inputs)} ({reason})"
        raise ModelError("batch_dependent", f"{sentence}; {MIXES}") from error


def _fails_in(subject: Subject, inputs: Tensor, rows: Tensor, size: int) -> bool:
    """Return whether the model fails on these inputs in batches of `size` rows, too: by their values."""
    try:
        for places in torch.arange(-(-len(inputs) // size) * size, device=inputs.device).split(size):
            subject.logits_of(inputs[places % len(inputs)], rows[places % len(inputs)])
    except ModelError:
        return True
    return False


def check_history(subject: Subject) -> Iterator[Finding | str]:
    """Check that a copy of the model that saw other inputs first gives the same logits, as the model does last."""
    if subject.classifier.random:
        return (yield LEFT_OUT)
    subject.check_same("now", subject.repeated)
    if isinstance(subject.untouched, str):
        yield subject.untouched
        return
    twin = copy(subject.classifier)
    twin.model = subject.untouched
    with torch.no_grad():
        subject.send_other_inputs(twin)
    subject.check_same("in a copy of the model that saw other inputs first", subject.repeated, twin)
    yield f"{OTHERS} other inputs first change nothing"


WRONG_SHAPE = ("model_failed", "input_shape", "parameter")  # codes that inputs of another layout end with
WRONG_SIZE = ("model_failed", "output_shape")  # and batches of the wrong size
USUAL = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128, 200, 250, 256, 500, 512, 1000, 1024)
"""Numbers of rows that people write into a network, tried where it does not take the first batch."""


def _explained(error: BrittleError, subject: Subject) -> BrittleError:
    """`error`, which the model gave on the points, or one that names what it takes instead."""
    inputs, points = subject.inputs, subject.points
    provenance = subject.provenance
    if provenance.get("format") == "table" and provenance.get("label_column") is None and inputs.dim() == 2:
        width = inputs.shape[1]
        max_extra = min(64 if subject.decision.targets else 1, width - 1)
        extra = next((count for count in range(1, max_extra + 1) if _runs(subject, inputs[:, : width - count])), 0)
        if extra:
            return DataError(
                "labels",
                f"the model takes {width - extra} numbers a row and {provenance['path']} has {width} columns of "
                f"features: name {'that' if extra == 1 else f'the {extra}'} of what is right for a row with "
                f"--label-column NAME (label_column='NAME'), several with commas between them",
            )
    unbatched = error.code == "output_shape" and inputs.dim() == 3  # layers of images take one without points, too
    if error.code in WRONG_SHAPE or unbatched:
        for changed, advice in _other_forms(inputs, len(inputs) if points is None else len(points)):
            if changed.shape != inputs.shape and _runs(subject, changed):
                mismatch = f"the model takes inputs of shape {list(changed.shape)}, found {list(inputs.shape)}"
                return ModelError("layout", f"{mismatch}; {advice}")
    if error.code in WRONG_SIZE:
        sizes_in_error = [int(number) for number in re.findall(r"\d+", str(error.__cause__ or error))]
        for size in dict.fromkeys((*sizes_in_error, *USUAL)):
            possible = 0 < size <= 2**24 // inputs[0].numel() and size != len(inputs)
            if possible and not _fails(subject, size):
                return _fixed_batch(size, len(inputs), error) if _is_only(subject, size) else error
    return error


def _runs(subject: Subject, inputs: Tensor) -> bool:
    try:
        with torch.no_grad():
            return len(subject.classifier(inputs)) == len(inputs)
    except BrittleError:
        return False


def _fails(subject: Subject, size: int) -> bool:
    """Return whether the model fails on `size` points by their number."""
    try:
        subject.logits_of(subject.inputs[torch.arange(size) % len(subject.inputs)])
    except ModelError as error:
        return error.code in WRONG_SIZE
    return False


def _is_only(subject: Subject, size: int) -> bool:
    """Return whether the model fails on one row more and less than `size`, on half and on twice as many."""
    return all(_fails(subject, neighbour) for neighbour in {size - 1, size + 1, size // 2, 2 * size} - {0})


def _fixed_batch(size: int, failing_size: int, error: BrittleError) -> ModelError:
    """Return the error for a model that takes `size` rows alone, where a batch of `failing_size` rows gave `error`."""
    reason = str(error.__cause__ or error.args[0]).strip().partition("\n")[0]
    sentence = f"the model takes batches of {size} rows and no others ({failing_size} rows: {reason})"
    advice = f"take the number of the input, x.flatten(1) in place of x.view({size}, -1), and give buffers and first"
    return ModelError("fixed_batch", f"{sentence}; {advice} states no axis of {size} rows")


def _other_forms(inputs: Tensor, count: int) -> Iterator[tuple[Tensor, str]]:
    """Other forms of the inputs, and what to do where the model takes them."""
    axes, shape = inputs.dim(), inputs.shape
    colours = "the model wants colours: use --mode RGB (mode='RGB') for image files, or give"
    if axes == 4:
        channels_last = "the data look channels-last: use --layout nhwc (layout='nhwc'), or give x.permute(0, 3, 1, 2)"
        grey = "the model wants grey images: use --mode L (mode='L') for image files, or give x.mean(1, keepdim=True)"
        yield inputs.permute(0, 3, 1, 2), channels_last
        wrapper = "wrap it in a module that begins with x = x.permute(0, 2, 3, 1)"
        yield inputs.permute(0, 2, 3, 1), f"the model wants channels last: {wrapper}"
        if shape[1] == 1:
            yield inputs[:, 0], "the model takes grey images without an axis of channels: give x[:, 0]"
            yield inputs.expand(-1, 3, -1, -1), f"{colours} x.repeat(1, 3, 1, 1)"
        if shape[1] == 3:
            yield inputs.mean(dim=1, keepdim=True), grey
    if axes == 3:
        yield inputs[:, None], "give each grey image an axis of channels: x[:, None]"
    if axes in (2, 3) and count == len(inputs) and (axes == 2 or count <= 4):  # no more channels
        yield inputs[None], "the data seem to be one input without an axis of points: give x[None], and one label"
    if axes == 2:
        for channels in (1, 3):  # square images, grey or of three channels
            side = math.isqrt(shape[1] // channels)
            form = (channels, side, side)
            if side > 1 and channels * side**2 == shape[1]:
                yield inputs.reshape(-1, *form), f"the model wants images: give x.reshape{(-1, *form)}, if they lie so"
    if axes == 3:
        yield inputs[:, None].expand(-1, 3, -1, -1), f"{colours} x[:, None].repeat(1, 3, 1, 1)"
        yield inputs.mT, "the two axes of a point look swapped: give x.permute(0, 2, 1)"
    if axes > 2:
        flat = "the model takes rows of numbers: give x.reshape(len(x), -1), or begin it with torch.nn.Flatten()"
        yield inputs.flatten(1), flat
