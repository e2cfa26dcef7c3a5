"""Why two runs are not compared by some of their scores, and what to run so that they are."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from brittle.analysis.columns import typical
from brittle.errors import listed
from brittle.estimate import Parameter, parameters_json
from brittle.store.columns import Column, Scored

NAMED = 3
"""Labels of a run that are named at most."""

OPTIONS = ("sigma", "noise", "limit", "precision", "most-draws")
"""Parameters that are options of every run, by their names there; the others are fields of one score."""


def unpaired(first: Scored, second: Scored) -> list[str]:
    """Why `compare` leaves scores out, in a sentence, and how to score the second run to have one more row, in another.

    A score is paired with itself at the same parameters. Scores with fewer draws than another of the same run that
    differs by nothing else are not named. A command names the scores of brittle; what a noise family or a score of
    other people is opened by stands in the command of its run.

    Args:
        first: a run.
        second: another.

    Returns:
        no line where every score of either run is in the other.
    """
    keys = [{_key(column) for column in run.columns} for run in (first, second)]
    alone = [
        _largest(column for column in run.columns if _key(column) not in others)
        for run, others in ((first, keys[1]), (second, keys[0]))
    ]
    if not any(alone):
        return []
    sides = zip(alone, ("first", "second"), strict=True)
    named = [f"{listed([one.label for one in some], NAMED)} only in the {place}" for some, place in sides if some]
    reasons = dict.fromkeys(_reason(one, others) for one, others in _beside(alone, (first, second)))
    why = "not compared, as a row needs one score with the same parameters in both runs"
    return [f"{why}: {', '.join(named)} ({'; '.join(reasons)})", _advice(alone)]


def _key(column: Column) -> tuple[str, str]:
    return column.score, parameters_json(column.parameters)


def _largest(columns: Iterable[Column]) -> list[Column]:
    """Of columns that differ by their draws alone that with the most."""
    best: dict[tuple[str, str], Column] = {}
    for column in columns:
        key = column.score, parameters_json({k: v for k, v in column.parameters.items() if k != "draws"})
        if key not in best or (column.most_draws or 0) > (best[key].most_draws or 0):
            best[key] = column
    return list(best.values())


def _beside(alone: Sequence[Sequence[Column]], runs: Sequence[Scored]) -> Iterable[tuple[Column, Sequence[Column]]]:
    """Each column without a partner, with the columns of the other run."""
    return ((one, run.columns) for some, run in zip(alone, reversed(runs), strict=True) for one in some)


def _reason(column: Column, others: Sequence[Column]) -> str:
    """Why none of `others` is the partner of a column, by the one that is the most like it."""
    differing = [_differing(column.parameters, one.parameters) for one in others if one.score == column.score]
    if not differing:
        return "the score differs"
    fewest = min(differing, key=len)
    return f"{' and '.join(fewest)} differ{'s' * (len(fewest) == 1)}"


def _differing(one: Mapping[str, Parameter], other: Mapping[str, Parameter]) -> list[str]:
    return [key for key in sorted({**one, **other}) if one.get(key) != other.get(key)]


def _advice(alone: Sequence[Sequence[Column]]) -> str:
    """How to score one of the runs by a score of the other: by what speaks for its robustness, or else the first."""
    source, target = ("first", "second") if alone[0] else ("second", "first")
    columns = alone[0] or alone[1]
    options = shlex.join(_options(typical(columns) or columns[0]))
    return f"score the {target} as the {source}: brittle score MODEL DATA --out RUN {options}"


def _options(column: Column) -> list[str]:
    """The options of `brittle score` that give a column."""
    own = dict(column.parameters)
    options = ["--scores", column.score]
    options += ["--until", "decided"] * ("limit" in own)
    if own.keys() & {"limit", "precision"}:
        own["most-draws"] = own.pop("draws")
    for name, value in own.items():
        written = str(value).lower() if isinstance(value, bool) else str(value)
        options += [f"--{name}", written] if name in OPTIONS else ["--set", f"{column.score}.{name}={written}"]
    return options
