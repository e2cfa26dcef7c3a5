"""Rules that a run has to keep: each passes, fails, or is undecided, by intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from brittle.analysis.columns import class_name, class_of, margin_columns
from brittle.analysis.comparison import mean_difference
from brittle.analysis.decisions import column_for
from brittle.analysis.expected_robustness import expected_robustness as mean_over_sizes
from brittle.analysis.mean_interval import MeanInterval
from brittle.analysis.overview import overview
from brittle.analysis.overview_text import chosen_sentence, draw_more
from brittle.errors import DataError, ModelError, ParameterError, printable
from brittle.estimate import LIMIT
from brittle.intervals import check_share, clopper_pearson
from brittle.store.columns import BREAKS, HOLDS, Column
from brittle.store.columns import UNDECIDED as OPEN
from brittle.store.table import Table
from brittle.text import aligned, as_json, by_number, in_markdown, number, parse_epsilon, span

PASSES, FAILS, UNDECIDED = "passes", "fails", "undecided"  # results of a rule, and of a check
MOST_POINTS = 10_000_000  # no more points are asked for; a rule that needs more lies at the truth


@dataclass(frozen=True)
class Verdict:
    """Result of a rule.

    Attributes:
        rule, words: its name, such as `holds`, and what it asks for.
        state: `passes`, where the whole interval keeps it, `fails`, where the whole interval breaks it, or `undecided`.
        minimum: smallest value that keeps it.
        value, low, high: the value over these points, and its interval for all such points.
        points: how many were looked at.
        remedy, command: what would decide it; empty where it is decided.
        parts: what became of it for each class, where it asks the same of all.
    """

    rule: str
    words: str
    state: str
    minimum: float
    value: float
    low: float
    high: float
    points: int
    remedy: str = ""
    command: str = ""
    parts: tuple[Verdict, ...] = ()

    @property
    def finding(self) -> str:
        """The value with its interval, and what would decide the rule."""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{', '.join(self._cells)} for all such points{remedy}"

    @property
    def _cells(self) -> tuple[str, str]:
        return number(self.value), span(self.low, self.high)


@dataclass(frozen=True)
class Checked:
    """The rules of a check and what became of them.

    Attributes:
        verdicts: of each rule, in the order of the arguments of `check`.
        confidence: with which all intervals hold together.
        remark: how the points were chosen out of more; empty where they were not.
    """

    verdicts: tuple[Verdict, ...]
    confidence: float
    remark: str = ""

    @property
    def state(self) -> str:
        """`fails` where a rule fails, else `undecided` where one is, else `passes`."""
        states = {verdict.state for verdict in self.verdicts}
        return next((state for state in (FAILS, UNDECIDED) if state in states), PASSES)

    def __str__(self) -> str:
        rows = [[verdict.state, verdict.rule, number(verdict.minimum), *verdict._cells] for verdict in self.verdicts]
        lines = aligned([["", "rule", "at least", "found", "interval"], *rows])
        for verdict in self.verdicts:
            lines += [f"  {verdict.rule}: {verdict.words}{f'; {verdict.remedy}' if verdict.remedy else ''}"]
            lines += [f"    {verdict.command}"] if verdict.command else []
        return "\n".join([*filter(None, [self.remark]), f"{self.state}: {self._counts}", *lines])

    @property
    def _counts(self) -> str:
        states = [verdict.state for verdict in self.verdicts]
        passed, failed, open_ones = map(states.count, (PASSES, FAILS, UNDECIDED))
        summary = f"{passed} of {len(self.verdicts)} rules {by_number(passed, 'passes', 'pass')}, {failed} "
        summary += f"{by_number(failed, 'fails', 'fail')}, {open_ones} {by_number(open_ones, 'is', 'are')} undecided"
        return f"{summary}; all intervals hold together at {100 * self.confidence:.4g}%"

    def json(self) -> str:
        """Return the check as JSON: `format`, `state`, `confidence` and `verdicts`, the fields of each."""
        return as_json(state=self.state, **asdict(self)) + "\n"

    def junit(self) -> str:
        """Return the check as the XML of JUnit: a rule that fails is a failure, one that is undecided is skipped.

        A rule that asks the same of all classes is a case for each.
        """
        cases = [part for verdict in self.verdicts for part in verdict.parts or (verdict,)]
        counts = {"failures": FAILS, "skipped": UNDECIDED}
        tally = {name: str(sum(verdict.state == state for verdict in cases)) for name, state in counts.items()}
        root = ElementTree.Element("testsuites")
        tally |= {"name": "brittle", "tests": str(len(cases)), "errors": "0"}
        suite = ElementTree.SubElement(root, "testsuite", tally)
        for verdict in cases:
            case = ElementTree.SubElement(suite, "testcase", classname="brittle.check", name=printable(verdict.rule))
            message = printable(f"{verdict.words}: {verdict.finding}")
            if verdict.state != PASSES:
                ElementTree.SubElement(case, "failure" if verdict.state == FAILS else "skipped", message=message)
            ElementTree.SubElement(case, "system-out").text = message
        return ElementTree.tostring(root, "unicode", xml_declaration=True) + "\n"

    def markdown(self) -> str:
        """Return the check as a table in Markdown, for a pull request."""
        rows = [[verdict.state, verdict.words, *verdict._cells] for verdict in self.verdicts]
        head = ["|  | rule | found | interval |", "| --- | --- | --- | --- |"]
        lines = [*head, *(f"| {' | '.join(map(in_markdown, row))} |" for row in rows)]
        return "\n".join([f"**brittle: {self.state}**. {self._counts}.", "", *lines]) + "\n"

    def github(self) -> str:
        """Return the check as annotations of a GitHub action: errors, warnings for what is undecided, notices."""
        kinds = {FAILS: "error", UNDECIDED: "warning", PASSES: "notice"}
        lines = []
        for verdict in self.verdicts:
            text = printable(f"{verdict.words}: {verdict.finding}").replace("%", "%25")
            lines.append(f"::{kinds[verdict.state]} title=brittle: {verdict.rule}::{text}")
        return "\n".join(lines)


def check(
    table: Table,
    *,
    holds: float | None = None,
    every_class: float | None = None,
    limit: float | None = None,
    accuracy: float | None = None,
    robust_accuracy: float | None = None,
    expected_robustness: float | None = None,
    epsilon: float | str | None = None,
    norm: str | None = None,
    against: Table | None = None,
    no_worse_than: float | None = None,
    detector: Any = None,
    detector_tpr: float | None = None,
) -> Checked:
    r"""Check whether a run keeps rules, each of which asks for a share of at least so much.

    A rule passes where the whole interval of its share keeps it, fails where the whole interval breaks it, and is
    undecided else. With `m` rules each interval is at the confidence `1 - a / m`, `a` one less that of the run, and
    that of a class at `1 - a / (m K)`, `K` classes (Bonferroni). So no rule fails that all such points keep, with
    probability `1 - a / 2` or more, and likewise none passes that they break.

    Validity: the points are drawn independently from those that the rules are about. The share that holds counts points
    whose whole interval lies on one side of the limit, corrected for what these miss (`probabilistic_accuracy`).
    `robust_accuracy` and `expected_robustness` are those of the inputs which the search found: upper bounds. `against`
    compares means of `p_robust`, with the bias of the estimator, if it has one.

    Args:
        table: a run.
        holds: share of the predictions that are kept with probability `limit` or more.
        every_class: the same for each class that points have: of the label or, without labels, of the prediction.
        limit: of `holds` and `every_class`; by default the one that points were drawn for, else 0.9.
        accuracy: share of the labelled points that are predicted right.
        robust_accuracy: share of the labelled points that are right and no other prediction was found within `epsilon`.
        expected_robustness: the same, averaged over the sizes from 0 to `epsilon`; without labels every prediction
            counts as right. The margins that are masked or missing stay open.
        epsilon: size of the perturbation, a number or a fraction such as `"8/255"`.
        norm: of the margins, where the run has them in several.
        against: another run over the same points.
        no_worse_than: how much less the mean of `p_robust` may be than in that run; 0 by default.
        detector: a fitted `brittle.Detector`, whose rate on held-out points is looked at.
        detector_tpr: share of the brittle points that it has to flag.

    Returns:
        the rules in this order, and what became of each.

    Raises:
        ParameterError: no rule is given, a number is not between 0 and 1, or one of two that belong together is not.
        DataError: the run lacks a score or labels that a rule needs.

    Example:
        >>> import brittle, torch
        >>> from brittle import check
        >>> x = torch.linspace(0, 1, 400)[:, None]
        >>> classifier = brittle.Classifier(lambda x: torch.cat([x, 0.1 - x], 1))
        >>> check(brittle.score(classifier, x, "monte_carlo", sigma=0.01), holds=0.8).state
        'passes'
    """
    shares = {"holds": holds, "every_class": every_class, "accuracy": accuracy}
    shares |= {"robust_accuracy": robust_accuracy, "expected_robustness": expected_robustness}
    shares |= {"detector_tpr": detector_tpr, "no_worse_than": no_worse_than}
    _check_arguments(table, shares, limit, epsilon, against, detector)
    rules: list[Callable[[float], Verdict]] = []
    if holds is not None:
        rules.append(lambda rate: _holds(table, holds, limit, rate))
    if every_class is not None:
        rules.append(lambda rate: _every_class(table, every_class, limit, rate))
    if accuracy is not None:
        rules.append(lambda rate: _accuracy(table, accuracy, rate))
    if robust_accuracy is not None and epsilon is not None:
        rules.append(lambda rate: _robust_accuracy(table, robust_accuracy, parse_epsilon(epsilon), norm, rate))
    if expected_robustness is not None and epsilon is not None:
        rules.append(lambda rate: _expected_robustness(table, expected_robustness, parse_epsilon(epsilon), norm, rate))
    if against is not None:
        rules.append(lambda rate: _compare_means(table, against, no_worse_than or 0.0, rate))
    if detector_tpr is not None:
        rules.append(lambda rate: _detector(table, detector, detector_tpr, rate))
    if not rules:
        raise ParameterError("no rule is given; name one, such as holds=0.9 (--holds 0.9)")
    confidence = table.record.confidence
    remark = chosen_sentence(len(table.points), table.record.data).strip()
    return Checked(tuple(rule((1.0 - confidence) / len(rules)) for rule in rules), confidence, remark)


def _check_arguments(table: Any, shares: dict[str, Any], limit: Any, epsilon: Any, against: Any, detector: Any) -> None:
    """Raise where an argument of `check` is of another kind, outside its range, or without the one it needs."""
    for name, argument in (("table", table), ("against", against)):
        if not isinstance(argument, Table) and (name == "table" or argument is not None):
            raise ParameterError(f"{name} must be a table, such as brittle.read_table('RUN'); found {argument!r:.60}")
    for name, share in shares.items():
        if share is not None and not (isinstance(share, Real) and 0.0 <= float(share) <= 1.0):
            raise ParameterError(f"{name} must be a share from 0 to 1; found {share!r:.40}")
    check_share("limit", limit)
    partners = {"robust_accuracy": "epsilon", "expected_robustness": "epsilon", "detector_tpr": "detector"}
    for partner, value in (("epsilon", epsilon), ("detector", detector)):
        names = [name for name in partners if partners[name] == partner]
        if all(shares[name] is None for name in names) != (value is None):
            raise ParameterError(f"{' or '.join(names)} and {partner} belong together; give both")
    if detector is not None and not hasattr(detector, "true_positives"):
        raise ParameterError(f"detector must be a brittle.Detector; found {detector!r:.60}")
    if shares["no_worse_than"] is not None and against is None:
        raise ParameterError("no_worse_than needs another run: give against, too")


def _state(low: float, high: float, minimum: float) -> str:
    return PASSES if low >= minimum else FAILS if high < minimum else UNDECIDED


def _share(
    rule: str, words: str, minimum: float, counts: tuple[int, int, int], error_rate: float, wrong: float = 0.0
) -> Verdict:
    """Return the verdict on a share; `counts` has the points surely in it, those that may be, and all.
    `wrong` is the probability with which a point is counted on the other side than it belongs."""
    sure, possible, points = counts
    low = float(clopper_pearson(sure, points, 1.0 - error_rate)[0]) if points else 0.0
    high = float(clopper_pearson(possible, points, 1.0 - error_rate)[1]) if points else 1.0
    low, high = max(0.0, (low - wrong) / (1.0 - wrong)), min(1.0, high / (1.0 - wrong))
    value = sure / points if points else math.nan
    state, remedy = _state(low, high, minimum), ""
    if state == UNDECIDED:
        more = _enough(sure / points, possible / points, minimum, error_rate, wrong, points) if points else None
        remedy = "more points like these do not decide it"
        remedy = f"about {more:,} points like these would decide it" if more else remedy
    return Verdict(rule, words, state, minimum, value, low, high, points, remedy)


def _enough(sure: float, possible: float, minimum: float, error_rate: float, wrong: float, points: int) -> int | None:
    """Return how many points with these shares decide, half as many again at a time; None where none do."""
    while points < MOST_POINTS:
        points = math.ceil(1.5 * points)
        low = float(clopper_pearson(round(sure * points), points, 1.0 - error_rate)[0])
        high = float(clopper_pearson(round(possible * points), points, 1.0 - error_rate)[1])
        if (low - wrong) / (1.0 - wrong) >= minimum or high / (1.0 - wrong) < minimum:
            return _two_digits(points)
    return None


def _two_digits(points: int) -> int:
    """`points` rounded up to two digits."""
    unit = 10 ** max(0, len(str(points)) - 2)
    return -(-points // unit) * unit


def _column_and_limit(table: Table, limit: float | None) -> tuple[Column, float]:
    """Return the column that says which points hold, and at which limit; refused where no noisy copies were counted."""
    column = column_for(table, limit)
    if not column.is_decisive:
        raise DataError("no_such_score", f"{column.shown} counts no noisy copies; add shrinkage or monte_carlo")
    return column, limit if limit is not None else column.limit if column.limit is not None else LIMIT


def _hold(column: Column, limit: float) -> str:
    """Say under which noise and how surely predictions are to hold."""
    noise = "" if column.setting.sigma is None else f" under noise of {column.setting}"
    return f"hold{noise}, kept with probability {limit:.12g} or more"


def _counts(states: Any) -> tuple[int, int, int]:
    return int((states == HOLDS).sum()), len(states) - int((states == BREAKS).sum()), len(states)


def _holds(table: Table, minimum: float, limit: float | None, error_rate: float) -> Verdict:
    column, at = _column_and_limit(table, limit)
    states = column.states(at)
    words = f"at least {minimum:.4g} of the predictions {_hold(column, at)}"
    wrong, (sure, possible, points) = (1.0 - table.record.confidence) / 2.0, _counts(states)
    verdict = _share("holds", words, minimum, (sure, possible, points), error_rate, wrong)
    if verdict.state != UNDECIDED or sure == possible:
        return verdict
    # More copies decide the rule where it is decided once each open point is on the side of its value.
    settled = sure + int(((column.p_robust >= at) & (states == OPEN)).sum())
    likely = _share("holds", words, minimum, (settled, settled, points), error_rate, wrong)
    if likely.state == UNDECIDED:
        return replace(verdict, remedy=likely.remedy.replace("points like these", "points like these, none undecided,"))
    remedy = f"{possible - sure:,} points are undecided: draw more copies of these"
    return replace(verdict, remedy=remedy, command=draw_more(overview(table, limit=limit)))


def _every_class(table: Table, minimum: float, limit: float | None, error_rate: float) -> Verdict:
    column, at = _column_and_limit(table, limit)
    states: Any = column.states(at)
    by, classes = class_of(table)
    groups = {int(name): group for name, group in states.groupby(classes.reindex(states.index))}
    if not groups:
        raise DataError("labels", "no point has a class; leave out every_class (--every-class)")
    wrong, rate = (1.0 - table.record.confidence) / 2.0, error_rate / len(groups)
    share, hold = f"at least {minimum:.4g} of the predictions of", _hold(column, at)
    verdicts = {}
    for name, group in groups.items():
        called = class_name(table, name)
        verdict = _share(f"every class: {called}", f"{share} {called} {hold}", minimum, _counts(group), rate, wrong)
        verdicts[name] = replace(verdict, remedy=verdict.remedy.replace("points", "points of that class"))
    order = (FAILS, UNDECIDED, PASSES)
    worst = min(verdicts, key=lambda name: (order.index(verdicts[name].state), verdicts[name].low))
    states_of = [verdict.state for verdict in verdicts.values()]
    called = printable(class_name(table, worst))
    worst_text = f"the worst is {called}, by {by}; {states_of.count(FAILS)} of {len(verdicts)} fail"
    summary = f"{share} every class {hold}; {worst_text}, {states_of.count(UNDECIDED)} are undecided"
    return replace(verdicts[worst], rule="every class", words=summary, parts=tuple(verdicts.values()))


def _right(table: Table) -> pd.DataFrame:
    """Return, for each labelled point, whether it is `right` for certain, and `open` without a prediction."""
    points = table.points.select(["point", "label", "target", "correct"]).to_pandas().set_index("point")
    points = points[points.notna().any(axis=1)]
    if not len(points):
        raise DataError("labels", "no point has a label, so how many are right is not known; score with labels")
    return pd.DataFrame({"right": points["correct"].eq(True), "open": points["correct"].isna()})


def _accuracy(table: Table, minimum: float, error_rate: float) -> Verdict:
    rows = _right(table)
    sure, unknown = int(np.count_nonzero(rows["right"])), int(np.count_nonzero(rows["open"]))
    words = f"at least {minimum:.4g} of the labelled points are predicted right"
    return _share("accuracy", words, minimum, (sure, sure + unknown, len(rows)), error_rate)


def _margin(table: Table, norm: str | None) -> Column:
    margins = [column for column in margin_columns(table) if norm in (None, column.parameters.get("norm"))]
    if len(margins) != 1:
        held = ", ".join(str(column.parameters.get("norm")) for column in margin_columns(table)) or "none"
        raise DataError("no_such_score", f"the rule needs input_margin in one norm; the run has {held}; name it (norm)")
    return margins[0]


def _robust_accuracy(table: Table, minimum: float, epsilon: float, norm: str | None, error_rate: float) -> Verdict:
    margin, outcomes = _margin(table, norm), _right(table)
    distance = margin.value.reindex(outcomes.index)
    sure = int(np.count_nonzero(outcomes["right"] & (distance > epsilon)))
    unknown = int(np.count_nonzero(outcomes["open"] | (outcomes["right"] & distance.isna())))
    words = (
        f"at least {minimum:.4g} of the labelled points are right, and no other prediction was found within "
        f"{epsilon:.4g} ({margin.parameters.get('norm')}) by the search"
    )
    return _share("robust accuracy", words, minimum, (sure, sure + unknown, len(outcomes)), error_rate)


def _expected_robustness(table: Table, minimum: float, epsilon: float, norm: str | None, error_rate: float) -> Verdict:
    margin = _margin(table, norm)
    expected = mean_over_sizes(table, margin, epsilon, 1.0 - error_rate)
    words = (
        f"at least {minimum:.4g} of the {'labelled points are right' if expected.labelled else 'predictions stay'} and "
        f"no other prediction was found, averaged over distances up to {epsilon:.4g} ({margin.parameters.get('norm')})"
    )
    verdict = _mean("expected robustness", words, minimum, expected.interval, expected.points)
    if verdict.state != UNDECIDED or expected.open_points <= abs(verdict.value - minimum) * expected.points:
        return verdict
    return replace(verdict, remedy=f"{expected.open_points:,} margins are masked or missing: search with more effort")


def _compare_means(table: Table, rival: Table, loss: float, error_rate: float) -> Verdict:
    """Return the verdict that the mean `p_robust` is at most `loss` below that of a rival run."""
    score, points, difference = mean_difference(table, rival, 1.0 - error_rate)
    words = f"the mean of p_robust by {printable(score)} is at most {loss:.4g} below that of the other run"
    if not points:
        return Verdict("against", words, UNDECIDED, -loss, math.nan, -1.0, 1.0, 0, "no point has a value in both runs")
    return _mean("against", words, -loss, difference, points)


def _mean(rule: str, words: str, minimum: float, interval: MeanInterval, points: int) -> Verdict:
    """Return the verdict on a mean; more points narrow its interval by the root of their number."""
    state, remedy = _state(interval.low, interval.high, minimum), ""
    if state == UNDECIDED:
        gap, half_width = abs(interval.mean - minimum), (interval.high - interval.low) / 2.0
        remedy = "more points would not tell"
        if gap > half_width * math.sqrt(points / MOST_POINTS):
            enough = _two_digits(math.ceil(points * (half_width / gap) ** 2))
            remedy = f"about {enough:,} points like these would decide it"
    return Verdict(rule, words, state, minimum, *interval, points, remedy)


def _detector(table: Table, detector: Any, minimum: float, error_rate: float) -> Verdict:
    if table.record.model.state_sha256 != detector.model.state_sha256:
        fault = "the detector was fitted for another model than that of the run"
        raise ModelError("other_model", f"{fault}; fit one for this model")
    rate = replace(detector.true_positives, confidence=1.0 - error_rate)
    words = f"the detector flags at least {minimum:.4g} of the brittle predictions held out from its fit"
    state, value = _state(rate.low, rate.high, minimum), math.nan if rate.value is None else rate.value
    remedy = "fit the detector on a run with more brittle points" if state == UNDECIDED else ""
    return Verdict("detector", words, state, minimum, value, rate.low, rate.high, rate.points, remedy)
