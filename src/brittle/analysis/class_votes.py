"""Which classes do the noisy copies of a point become, and how often is it the class of its label?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.columns import check_column, class_name
from brittle.errors import DataError, ParameterError, listed
from brittle.intervals import clopper_pearson, paired_proportion, sequence_interval
from brittle.store.columns import Column, storable
from brittle.store.representative import typical
from brittle.store.schemas import ClassVotes, unpack_votes
from brittle.store.table import Table

LONGEST = 40
"""Characters of its name."""


def class_votes(table: Table, of: int | str | None = None, column: Column | None = None) -> pd.DataFrame:
    r"""Which classes the noisy copies of each point became, each with its share.

    $$\mathrm{share} = \frac{1}{n} \#\{j : \arg\max_c z_c(x + e_j) = c\}$$

    With `of="label"` it is the probability that a noisy copy gets the *label*: the robustness of what is right, where
    `p_robust` is that of what is predicted. They differ where the prediction is wrong. No further pass is made.

    Validity: counts, so unbiased and exact for every network, where all points have as many copies; where they stop
    once they are decided, the interval holds and the share has a bias. An interval holds for one class of one point. A
    copy whose largest logit is shared, or is not finite, votes for no class; the upper ends count it for each.

    Args:
        table: a run of classes.
        of: one class, by its index or its name, or `"label"` for the label of each point; by default every class that
            a point has votes for, the most frequent first, and its label.
        column: a flip probability by noisy copies; by default the one that speaks for the run.

    Returns:
        `point`, `class` (index), `copies` (of `draws` in all), `share`, `low`, `high`: a row for each point and class,
        in the order of the data. A point without copies, or without a label where `of` is the label, has none.

    Raises:
        DataError: no column has votes for classes: the decision is none, or no noisy copies were counted.
        ParameterError: `of` is no class of the run, or `column` no column.

    Example:
        >>> import brittle, torch
        >>> classifier = brittle.Classifier(lambda x: torch.cat([x, 0.1 - x], 1), bounds=(-1, 1))
        >>> table = brittle.score(classifier, torch.tensor([[0.5], [0.0]]), "monte_carlo", sigma=0.05, limit=None)
        >>> class_votes(table, of=0)[["point", "class", "copies", "draws"]].values.tolist()
        [['0', 0, 1000, 1000], ['1', 0, 148, 1000]]
    """
    column = _counted(table, column)
    votes = unpack_votes(column.votes)
    found = pd.DataFrame({"place": votes.place, "class": votes.index, "once": votes.once, "both": votes.both})
    asked = _asked(table, of)
    wanted = asked[votes.units[asked["place"]] > 0]
    found = found.merge(wanted, "right" if of is not None else "outer", on=["place", "class"]).fillna(0).astype("int64")
    low, high = _interval(column, votes, found, table.record.confidence)
    copies, draws = found["once"] + 2 * found["both"], votes.draws[found["place"]]
    numbers = {"copies": copies, "draws": draws, "share": copies / draws, "low": low, "high": high}
    points = np.array(column.rows.index, dtype=object)[found["place"]]
    shown = pd.DataFrame({"point": points, "class": found["class"], **numbers, "place": found["place"]})
    order = shown.sort_values(["place", "copies", "class"], ascending=[True, False, True])
    return order.drop(columns="place").reset_index(drop=True)


def confusions(table: Table, column: Column | None = None) -> pd.DataFrame:
    r"""What noise turns each class into: of the noisy copies of its points, the share that every other class gets.

    The mean over the points that are predicted as a class of their shares (`class_votes`); whether the prediction is
    right does not matter.

    Validity: as of `class_votes`; the shares of these points, without an interval.

    Args:
        table: a run of classes.
        column: as of `class_votes`.

    Returns:
        `class` and `becomes` (indices), `points` predicted so, `share`: a row for each pair of which a copy was seen,
        the largest share first.

    Raises:
        DataError: as of `class_votes`.

    Example:
        >>> import brittle, torch
        >>> classifier = brittle.Classifier(lambda x: torch.cat([x, 0.1 - x], 1), bounds=(-1, 1))
        >>> table = brittle.score(classifier, torch.tensor([[0.5], [0.0]]), "monte_carlo", sigma=0.05, limit=None)
        >>> confusions(table).values.tolist()
        [[1.0, 0.0, 1.0, 0.148]]
    """
    column = _counted(table, column)
    votes: Any = class_votes(table, column=column)
    classes: Any = table.points.select(["point", "predicted"]).to_pandas().set_index("point")["predicted"]
    votes["of"] = votes["point"].map(classes)
    points = classes[[one is not None for one in column.votes]].value_counts()
    shares = votes[votes["class"] != votes["of"]].groupby(["of", "class"])["share"].sum().rename("share").reset_index()
    shares["points"] = shares["of"].map(points)
    shares["share"] /= shares["points"]
    found = shares[shares["share"] > 0].rename(columns={"of": "class", "class": "becomes"})
    order = found.astype({"class": "int64"})[["class", "becomes", "points", "share"]]
    return order.sort_values(["share", "class", "becomes"], ascending=[False, True, True], ignore_index=True)


def votes_texts(table: Table) -> pd.Series:
    """What the noisy copies of each point are predicted, in a sentence, where not all of them are as the point is. By
    its id; empty for a run without votes for classes."""
    column = typical([one for one in table.columns if has_votes(one)])
    if column is None:
        return pd.Series(dtype=object)
    votes = class_votes(table, column=column)
    labels, predicted = (
        dict(zip(table.points["point"].to_pylist(), table.points[name].to_pylist(), strict=True))
        for name in ("label", "predicted")
    )
    kept = (votes["copies"] == votes["draws"]) & (votes["class"] == votes["point"].map(predicted.get))
    votes = pd.DataFrame(votes[(votes["copies"] > 0) & ~kept])
    texts: dict[str, list[str]] = {}
    draws = dict(zip(votes["point"], votes["draws"], strict=True))
    for point, number, copies in zip(votes["point"], votes["class"], votes["copies"], strict=True):
        own = ", its label" if labels[point] == number else ""
        texts.setdefault(point, []).append(f"{class_name(table, number)[:LONGEST]} ({copies:,}{own})")
    noise = "" if column.setting.sigma is None else f" of {column.setting}"
    said = {
        point: f"Its {draws[point]:,} copies with noise{noise} are predicted {listed(each)}."
        for point, each in texts.items()
    }
    return pd.Series(said, dtype=object)


def _counted(table: Table, column: Column | None) -> Column:
    """The column whose votes are read; refused where it has none."""
    check_column("column", column)
    column = column if column is not None else typical([one for one in table.columns if has_votes(one)])
    if column is None or not has_votes(column):
        raise DataError(
            "no_such_score", "no column has votes for classes; score the predicted class by monte_carlo or shrinkage"
        )
    return column


def has_votes(column: Column) -> bool:
    return any(column.votes)


def _asked(table: Table, of: int | str | None) -> pd.DataFrame:
    """The classes that are asked for, each with the `place` of its point: the label of each by default."""
    labels = table.points["label"].to_pandas()
    if of not in (None, "label"):
        classes = range(table.record.model.classes or 0)
        plain = dict(enumerate(map(storable, table.record.data.names)))
        known = ((one, (one, plain.get(one), class_name(table, one))) for one in classes)
        fits = [one for one, names in known if of in names and not isinstance(of, bool)]
        if len(fits) != 1:
            shown = listed([class_name(table, one) for one in classes])
            raise ParameterError(
                f"one class is asked for, by its name or its index from 0: {shown}; found {of!r:.60}, which is "
                f"{'none' if not fits else 'several'}"
            )
        labels = pd.Series(fits[0], index=labels.index)
    known = labels.notna()
    return pd.DataFrame({"place": np.flatnonzero(known), "class": labels[known].astype("int64")})


def _interval(column: Column, votes: ClassVotes, frame: pd.DataFrame, confidence: float) -> tuple[NDArray, NDArray]:
    """The interval of each row, by the way in which its copies were drawn."""
    place = frame["place"].to_numpy()
    units, once, both = votes.units[place], frame["once"].to_numpy(), frame["both"].to_numpy()
    silent = (votes.draws - np.bincount(votes.place, votes.copies, minlength=len(votes.units)).astype(np.int64))[place]
    any_at_most, both_at_most = np.minimum(once + both + silent, units), np.minimum(both + silent, units)
    single = sequence_interval if column.stops else clopper_pearson
    paired = votes.members[place] == 2
    low = np.where(paired, paired_proportion(once, both, units, confidence)[0], single(once, units, confidence)[0])
    high = paired_proportion(any_at_most - both_at_most, both_at_most, units, confidence)[1]
    return low, np.where(paired, high, single(any_at_most, units, confidence)[1])
