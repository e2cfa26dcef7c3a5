"""Some of the points of any data, chosen by their ids or by chance, and files of ids."""

import csv
import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path

import numpy as np

from brittle.data.files import path_text
from brittle.data.points import ListedPoints, Points, SomePoints
from brittle.errors import DataError, ParameterError, listed
from brittle.store.export import text_of

MOST_BYTES = 1 << 28  # bytes of a file of ids at most: more than a hundred for each of two million points
COLUMN = "point"  # name of the first column of a table of points


def choose_points(points: Points, ids: Iterable[str]) -> SomePoints:
    """Choose the points with these ids, in the order of the data; a repeated id counts once.

    Each keeps its row, id, name and label. The noise of a point is keyed by its id, so its scores are those of a run
    over all points, except as a network rounds differently in another batch.

    Args:
        points: the points of any format.
        ids: some of their ids, as the column `point` of a run holds them.

    Raises:
        ParameterError: no id is given, one is no text, or one is not among the points.
    """
    requested = [ids] if isinstance(ids, str) or not isinstance(ids, Iterable) else list(ids)
    if isinstance(ids, str) or not requested or not all(isinstance(id_, str) for id_ in requested):
        raise ParameterError(f"expected a list of ids, each a text such as '17', at least one; found {ids!r:.60}")
    all_ids, requested_ids = _ids_of(points), dict.fromkeys(requested)
    rows = tuple(row for row, id_ in enumerate(all_ids) if id_ in requested_ids)
    chosen = tuple(all_ids[row] for row in rows)
    chosen_ids = set(chosen)
    if missing := [id_ for id_ in requested_ids if id_ not in chosen_ids]:
        source = points.provenance.get("path") or "the data"
        missing_text, examples = (listed([f"{id_!r:.60}" for id_ in group]) for group in (missing, all_ids[:5]))
        raise ParameterError(
            f"{len(missing):,} of {len(requested_ids):,} ids are not in {source}: {missing_text}; its {len(all_ids):,} "
            f"ids, the column point of a run, look like {examples}"
        )
    facts = {
        "points": len(rows),
        "chosen_from": points.provenance.get("chosen_from", len(all_ids)),
        "ids_sha256": hashlib.sha256(json.dumps(chosen).encode()).hexdigest(),
    }
    provenance = {name: value for name, value in points.provenance.items() if name != "sample_seed"}
    return SomePoints.of(points, rows, ids=chosen, provenance=provenance | facts)


def sample_points(points: Points, count: int, seed: int = 0) -> Points:
    """`count` of `points` drawn at random, in the order of the data; all where there are no more.

    Every point is as likely as any other, and a class with a share `s` of the labels gets `s count` of them, rounded up
    or down (a systematic sample of the points in the order of their labels, shuffled in each class). So a share or a
    mean over them estimates that over all. Each keeps its row, id, name and label, as with `choose_points`.

    Args:
        points: the points of any format.
        count: how many, at least 1.
        seed: of the draw, at least 0.

    Source: W. Cochran, Sampling Techniques, third edition (1977), chapters 5 and 8.

    Example:
        >>> import torch
        >>> from brittle.data import array_points
        >>> points = array_points(torch.rand(60, 4), [0] * 20 + [1] * 40)
        >>> list(sample_points(points, 3).labels)
        [0, 1, 1]
    """
    if type(count) is not int or type(seed) is not int or count < 1 or seed < 0:
        raise ParameterError(f"a sample has at least 1 point and a seed from 0; found {count!r:.40} and {seed!r:.40}")
    total, drawn = len(points), np.random.default_rng(seed)
    if count >= total:
        return points
    labels = np.zeros(total) if points.labels is None else np.asarray(points.labels)
    by_class = np.lexsort((drawn.random(total), labels))
    places = ((drawn.random() + np.arange(count)) * total / count).astype(int).clip(max=total - 1)
    rows = np.sort(by_class[places]).tolist()
    if "chosen_from" in points.provenance:  # it speaks for these alone, and which they are is known by their ids
        all_ids = _ids_of(points)
        return choose_points(points, [str(all_ids[row]) for row in rows])
    facts = {"points": count, "chosen_from": total, "sample_seed": seed}
    return SomePoints.of(points, tuple(rows), provenance={**points.provenance, **facts})


def _ids_of(points: Points) -> Sequence[str]:
    """Return the ids of all points; where nothing but their batches holds them, all are read for it."""
    if isinstance(points, SomePoints) and points.ids is None:
        all_ids = _ids_of(points.points)
        return [all_ids[row] for row in points.rows]
    stored_ids = points.ids if isinstance(points, ListedPoints | SomePoints) else None
    return stored_ids or tuple(id_ for batch in points.batches(256) for id_ in batch.ids)


def read_ids(path: Path) -> tuple[str, ...]:
    r"""Return the ids in a text file, one a line; in a table whose first column is `point`, the ids are that column."""
    file = path_text(path)
    if not path.exists():
        raise DataError("no_such_path", f"{file} does not exist")
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it is no regular file of at most {MOST_BYTES:,} bytes")
        text = path.read_bytes().decode("utf-8-sig")
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        if lines[0].partition(",")[0] in (COLUMN, f'"{COLUMN}"'):
            header, *rows = filter(None, csv.reader(StringIO(text, newline=""), strict=True))
            odd = next((row for row in rows if len(row) != len(header)), None)
            if odd is not None:
                raise ValueError(f"it begins as a table of {len(header)} columns and has {len(odd)} in {odd!r:.60}")
            lines = [row[0] for row in rows]
            with suppress(UnicodeDecodeError):  # a table that brittle did not write
                lines = [text_of(line) for line in lines] if len(header) > 1 else lines
        ids = tuple(line for line in lines if line.strip(" \t"))
        if not ids or "\0" in text:
            raise ValueError("it holds zero bytes, or no id")
    except (OSError, ValueError, csv.Error) as error:
        raise DataError("ids", f"{file} cannot be read as a text file of ids in UTF-8, one a line: {error}") from error
    return ids
