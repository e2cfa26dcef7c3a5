"""Classes of the noisy copies of a point, and how often they are the class of its label."""

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

LONGEST = 40  # characters of its name


def class_votes(table: Table, of: int | str | None = None, column: Column | None = None) -> pd.DataFrame:
    r"""Return the classes that the noisy copies of each point became, with the share of each class.

    $$\mathrm{share} = \frac{1}{n} \#\{j : \arg\max_c z_c(x + e_j) = c\}$$

    With `of="label"` it is the probability that a noisy copy gets the *label*: the robustness of what is right, where
    `p_robust` is that of what is predicted. No further pass is made.

    Validity: counts, so unbiased and exact for every network, where all points have as many copies; where they stop
    once they are decided, the interval holds and the share has a bias. An interval holds for one class of one point. A
    copy whose largest logit is shared, or is not finite, votes for no class; the upper ends count it for each.

    Args:
        table: a run of classes.
        of: one class, by its index or its name, or `"label"`; by default every class with votes and the label.
        column: a flip probability by noisy copies; by default the one that speaks for the run.

    Returns:
        `point`, `class` (index), `copies` (of `draws` in all), `share`, `low`, `high`: a row for each point and class,
        the most frequent first, in the order of the data. A point without copies or the label that is asked has none.

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
    column = _votes_column(table, column)
    votes = unpack_votes(column.votes)
    counts = pd.DataFrame({"place": votes.place, "class": votes.index, "once": votes.once, "both": votes.twice})
    requested = _requested_classes(table, of)
    rows = requested[votes.units[requested["place"]] > 0]
    counts = counts.merge(rows, "right" if of is not None else "outer", on=["place", "class"]).fillna(0).astype("int64")
    low, high = _interval(column, votes, counts, table.record.confidence)
    copies, draws = counts["once"] + 2 * counts["both"], votes.draws[counts["place"]]
    numbers = {"copies": copies, "draws": draws, "share": copies / draws, "low": low, "high": high}
    points = np.array(column.rows.index, dtype=object)[counts["place"]]
    shown = pd.DataFrame({"point": points, "class": counts["class"], **numbers, "place": counts["place"]})
    order = shown.sort_values(["place", "copies", "class"], ascending=[True, False, True])
    return order.drop(columns="place").reset_index(drop=True)


def confusions(table: Table, column: Column | None = None) -> pd.DataFrame:
    r"""Return, for each class, the share of the noisy copies of its points that every other class gets.

    The mean over the points that are predicted as a class, right or wrong, of their shares (`class_votes`), without an
    interval; the arguments and errors are those of `class_votes`.

    Returns:
        `class` and `becomes` (indices), `points` predicted so, `share`: a row for each pair of which a copy was seen,
        the largest share first.

    Example:
        >>> import brittle, torch
        >>> classifier = brittle.Classifier(lambda x: torch.cat([x, 0.1 - x], 1), bounds=(-1, 1))
        >>> table = brittle.score(classifier, torch.tensor([[0.5], [0.0]]), "monte_carlo", sigma=0.05, limit=None)
        >>> confusions(table).values.tolist()
        [[1.0, 0.0, 1.0, 0.148]]
    """
    column = _votes_column(table, column)
    votes: Any = class_votes(table, column=column)
    classes: Any = table.points.select(["point", "predicted"]).to_pandas().set_index("point")["predicted"]
    votes["of"] = votes["point"].map(classes)
    points = classes[[cell is not None for cell in column.votes]].value_counts()
    shares = votes[votes["class"] != votes["of"]].groupby(["of", "class"])["share"].sum().rename("share").reset_index()
    shares["points"] = shares["of"].map(points)
    shares["share"] /= shares["points"]
    transitions = shares[shares["share"] > 0].rename(columns={"of": "class", "class": "becomes"})
    order = transitions.astype({"class": "int64"})[["class", "becomes", "points", "share"]]
    return order.sort_values(["share", "class", "becomes"], ascending=[False, True, True], ignore_index=True)


def votes_texts(table: Table) -> pd.Series:
    """Return what the noisy copies of each point are predicted, in a sentence by its id, where some differ."""
    column = typical(list(filter(has_votes, table.columns)))
    if column is None:
        return pd.Series(dtype=object)
    votes = class_votes(table, column=column)
    ids, names = table.points["point"].to_pylist(), ("label", "predicted")
    labels, predicted = (dict(zip(ids, table.points[name].to_pylist(), strict=True)) for name in names)
    is_unanimous = (votes["copies"] == votes["draws"]) & (votes["class"] == votes["point"].map(predicted.get))
    votes = pd.DataFrame(votes[(votes["copies"] > 0) & ~is_unanimous])
    texts: dict[str, list[str]] = {}
    draws = dict(zip(votes["point"], votes["draws"], strict=True))
    for point, number, copies in zip(votes["point"], votes["class"], votes["copies"], strict=True):
        label_note = ", its label" if labels[point] == number else ""
        texts.setdefault(point, []).append(f"{class_name(table, number)[:LONGEST]} ({copies:,}{label_note})")
    noise = "" if column.setting.sigma is None else f" of {column.setting}"
    texts_by_point = {
        point: f"Its {draws[point]:,} copies with noise{noise} are predicted {listed(parts)}."
        for point, parts in texts.items()
    }
    return pd.Series(texts_by_point, dtype=object)


def _votes_column(table: Table, column: Column | None) -> Column:
    """Return the column whose votes are read; raise where it has none."""
    check_column("column", column)
    column = column if column is not None else typical(list(filter(has_votes, table.columns)))
    if column is None or not has_votes(column):
        raise DataError("no_such_score", "no column has votes for classes; score by monte_carlo or shrinkage")
    return column


def has_votes(column: Column) -> bool:
    return any(column.votes)


def _requested_classes(table: Table, of: int | str | None) -> pd.DataFrame:
    """Return the requested classes, each with the `place` of its point; by default, the label of each point."""
    labels = table.points["label"].to_pandas()
    if of not in (None, "label"):
        classes = range(table.record.model.classes or 0)
        plain = dict(enumerate(map(storable, table.record.data.names)))
        names_by_class = ((index, (index, plain.get(index), class_name(table, index))) for index in classes)
        fits = [index for index, names in names_by_class if of in names and not isinstance(of, bool)]
        if len(fits) != 1:
            shown = listed([class_name(table, index) for index in classes])
            fault = "several of these" if fits else "none of these"
            raise ParameterError(f"give one class by its name or index: {shown}; found {of!r:.60}, which is {fault}")
        labels = pd.Series(fits[0], index=labels.index)
    names_by_class = labels.notna()
    return pd.DataFrame({"place": np.flatnonzero(names_by_class), "class": labels[names_by_class].astype("int64")})


def _interval(column: Column, votes: ClassVotes, frame: pd.DataFrame, confidence: float) -> tuple[NDArray, NDArray]:
    """Return the interval of each row, by the way in which its copies were drawn."""
    place = frame["place"].to_numpy()
    units, once, twice = votes.units[place], frame["once"].to_numpy(), frame["both"].to_numpy()
    silent = (votes.draws - np.bincount(votes.place, votes.copies, minlength=len(votes.units)).astype(np.int64))[place]
    any_at_most, both_at_most = np.minimum(once + twice + silent, units), np.minimum(twice + silent, units)
    single = sequence_interval if column.stops else clopper_pearson
    paired = votes.members[place] == 2
    low = np.where(paired, paired_proportion(once, twice, units, confidence)[0], single(once, units, confidence)[0])
    high = paired_proportion(any_at_most - both_at_most, both_at_most, units, confidence)[1]
    return low, np.where(paired, high, single(any_at_most, units, confidence)[1])
