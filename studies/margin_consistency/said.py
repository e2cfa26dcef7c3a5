"""What the study found, a line for each thing that the paper says, and for some that it does not."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy import stats

from studies.margin_consistency.facts import ADVERSARIAL, GROUPS, NORMS
from studies.markdown import NOTHING, between, decimals, percent
from studies.over_networks import mean_interval
from studies.study import Agreement, Finding, Tables
from studies.tables import Frame

PAPER = "Ngnawé et al. 2024"

STRONG = 0.68
"""The smallest tau of the networks that the paper calls strongly margin-consistent (table 1)."""

DETECTS = 0.9
"""AUROC that all of those are above (table 1)."""

ALIKE = 0.25
"""Deviation of the distances between classifiers over their mean up to which they count as one distance here."""

NEAR = 0.02
"""Error of the robust accuracy that most of the paper's networks stay within (figures 5, 10 and 11)."""

SURE = 0.05
"""Probability of a rank correlation by chance from which on it counts as none."""

SEVERAL = 4
"""Networks below which no rank correlation over networks is judged."""


def findings(tables: Tables) -> list[Finding]:
    """Every finding, from the results."""
    networks, epsilons, scores = (frame_of(tables, name) for name in ("networks", "epsilons", "scores"))
    few, checked, pseudo = (frame_of(tables, name) for name in ("few", "checked", "pseudo"))
    linf = networks[networks["norm"] == NORMS[0]]
    return [
        robust_networks(linf), other_networks(linf), detection_at_epsilon(linf), tau_and_detection(linf),
        other_epsilons(epsilons), robust_accuracy_and_tau(linf), euclidean(networks), from_few(few), sane(few),
        equidistant(linf), isometric(linf), learned(pseudo), other_scores(scores), search(checked),
    ]  # fmt: skip


def frame_of(tables: Tables, name: str) -> Frame:
    """A table of the results; without rows where nothing of it was measured."""
    return tables[name].to_pandas() if name in tables else pd.DataFrame()


def _of(frame: Frame, **wanted: object) -> Frame:
    for column, value in wanted.items():
        frame = frame[frame[column] == value] if len(frame) else frame
    return frame


def _numbers(values: Iterable[float]) -> np.ndarray:
    found = np.asarray([*values], dtype=np.float64)
    return found[np.isfinite(found)]


def mean_of(values: Iterable[float], places: int = 2) -> str:
    """The mean over networks with its interval, in words."""
    return between(*mean_interval(_numbers(values), 0), places)


def range_of(values: Iterable[float], places: int = 2) -> str:
    """The smallest and the largest number."""
    found = _numbers(values)
    return f"{decimals(found.min(), places)} to {decimals(found.max(), places)}" if len(found) else NOTHING


def share(right: Iterable[bool]) -> Agreement:
    """Whether it is so on all networks, on some or on none."""
    found = [*right]
    if not found:
        return Agreement.UNMEASURED
    return Agreement.AGREES if all(found) else Agreement.IN_PART if any(found) else Agreement.DIFFERS


def ranks(first: Frame, second: Frame) -> tuple[float, float, int]:
    """Spearman's correlation over networks, its probability by chance, and the networks."""
    there = np.isfinite(first) & np.isfinite(second)
    one, other = first[there], second[there]
    if len(one) < SEVERAL or one.nunique() < 2 or other.nunique() < 2:
        return np.nan, np.nan, len(one)
    found = stats.spearmanr(one, other)
    return float(found.statistic), float(found.pvalue), len(one)


def robust_networks(linf: Frame) -> Finding:
    """Table 1 and figure 2."""
    own = _numbers(_of(linf, group=ADVERSARIAL)["tau"])
    return Finding(
        "the logit margin follows the input margin on nearly all adversarially trained networks: Kendall's tau is 0.68 "
        "to 0.86, and 0.28 and 0.43 on two",
        f"{PAPER}, table 1 and figure 2",
        f"on {len(own)} networks with an adversarial training tau is {mean_of(own)} in the mean over networks, from "
        f"{range_of(own)}; {int((own >= STRONG).sum())} of them reach {decimals(STRONG, 2)}",
        share(own >= STRONG),
        "the networks and the data here are far smaller; a point at which the logit margin is large for its distance "
        "is one where the network is steep",
    )


def other_networks(linf: Frame) -> Finding:
    """The same networks trained in other ways."""
    parts = []
    for group in GROUPS[1:]:
        own = _numbers(_of(linf, group=group)["tau"])
        if len(own):
            high = int((own >= STRONG).sum())
            parts.append(
                f"{group}: {mean_of(own)}, from {range_of(own)}, {high} of {len(own)} reach {decimals(STRONG, 2)}"
            )
    return Finding(
        "is it adversarial training that makes margins consistent?",
        "",
        f"tau of networks trained otherwise: {'; '.join(parts) or NOTHING}",
        Agreement.UNSAID,
        "the paper measures adversarially trained networks alone; what was trained plainly serves as the comparison "
        "that it leaves out",
    )


def detection_at_epsilon(linf: Frame) -> Finding:
    """Table 1, the detection."""
    own = _of(linf, group=ADVERSARIAL)
    own = own[np.isfinite(own["auroc"])]
    consistent = own[own["tau"] >= STRONG]
    return Finding(
        "a small logit margin finds the points that are not robust at one epsilon: AUROC 0.93 to 0.98, FPR at 95% TPR "
        "0.13 to 0.33, but on the two networks of weak consistency",
        f"{PAPER}, table 1",
        f"at the epsilon of their training AUROC is {mean_of(own['auroc'])} over {len(own)} adversarially trained "
        f"networks with enough points of both kinds, from {range_of(own['auroc'])}; FPR at {percent(0.95)} TPR is "
        f"{mean_of(own['fpr95'])}; where tau reaches {decimals(STRONG, 2)} AUROC is "
        f"{range_of(consistent['auroc'])}",
        share(own["auroc"] >= DETECTS),
        "few points are on the rarer side, so that a single network's numbers have wide intervals",
    )


def tau_and_detection(linf: Frame) -> Finding:
    """Theorem 1, as far as it speaks of degrees."""
    found, chance, count = ranks(linf["tau"], linf["auroc_middle"])
    return Finding(
        "the more consistent the margins, the better the detection",
        f"{PAPER}, theorem 1 and table 1",
        f"rank correlation of tau with the AUROC at each network's median margin: {decimals(found, 2)} over {count} "
        f"networks",
        Agreement.UNMEASURED
        if not np.isfinite(found)
        else Agreement.AGREES
        if found > 0 and chance < SURE
        else Agreement.DIFFERS,
        "both count pairs of points in the right order; AUROC only those on two sides of the median",
    )


def other_epsilons(epsilons: Frame) -> Finding:
    """Figure 9."""
    own = _of(epsilons, norm=NORMS[0], group=ADVERSARIAL)
    parts, least = [], []
    for level in sorted(set(own["level"])) if len(own) else []:
        found = _numbers(_of(own, level=level)["auroc"])
        if len(found):
            parts.append(f"{mean_of(found)} where {percent(level)} break")
            least.append(float(found.mean()))
    return Finding(
        "detection stays good over a range of epsilons",
        f"{PAPER}, appendix B.2 and figure 9",
        f"AUROC over adversarially trained networks is {'; '.join(parts) or NOTHING}",
        share(one >= DETECTS for one in least),
        "epsilon is set at quantiles of each network's margins, so that there are points of both kinds",
    )


def robust_accuracy_and_tau(linf: Frame) -> Finding:
    """Figure 4."""
    own = _of(linf, group=ADVERSARIAL)
    found, chance, count = ranks(own["tau"], own["robust"])
    everywhere, _, all_ = ranks(linf["tau"], linf["robust"])
    return Finding(
        "how consistent the margins are does not depend on the robust accuracy",
        f"{PAPER}, section 3.2 and figure 4",
        f"rank correlation of the two: {decimals(found, 2)} over {count} adversarially trained networks, "
        f"{decimals(everywhere, 2)} over all {all_}",
        Agreement.UNMEASURED if not np.isfinite(found) else Agreement.AGREES if chance >= SURE else Agreement.DIFFERS,
        "so few networks could show a strong dependence alone",
    )


def euclidean(networks: Frame) -> Finding:
    """L2, which the paper leaves out."""
    both = networks.pivot_table(index=["network", "group"], columns="norm", values="tau").reset_index()
    own = _of(both, group=ADVERSARIAL)
    absent = not set(NORMS) <= set(both.columns)
    differences = _numbers([] if absent else own[NORMS[1]] - own[NORMS[0]])
    return Finding(
        "does the same hold for distances in L2?",
        "",
        f"tau in L2 is {mean_of([] if absent else own[NORMS[1]])} over adversarially trained networks and "
        f"{mean_of([] if absent else both[NORMS[1]])} over all; less tau in Linf that is {mean_of(differences)} for "
        f"the former",
        Agreement.UNSAID,
        "the networks were trained against changes in Linf; the logit margin is the same for both norms",
    )


def from_few(few: Frame) -> Finding:
    """Figures 5, 10 and 11."""
    middle = _of(few, share=0.5)
    own, others = _of(middle, group=ADVERSARIAL), middle[middle["group"] != ADVERSARIAL] if len(middle) else middle
    if not len(own):
        return unmeasured("the logit margin and the input margins of a few points give the robust accuracy of all")
    size, everything = int(own["size"].max()), int(own["all"].max())
    return Finding(
        "the logit margin and the input margins of 500 points give the robust accuracy of 10,000; with 300 the mean "
        "error is below 2 points on most networks",
        f"{PAPER}, section 2.4 and figures 5, 10 and 11",
        f"with {size} of {everything} points the mean error is {percent(float(own['estimate_error'].mean()), 1)} on "
        f"adversarially trained networks ({percent(float(others['estimate_error'].mean()), 1)} on the others); it is at "
        f"most {percent(NEAR)} on {int((own['estimate_error'] <= NEAR).sum())} of {len(own)}; the share of the subset "
        f"itself, without any logit margin, is off by {percent(float(own['counted_error'].mean()), 1)}, the library's "
        f"corrected estimate by {percent(float(own['rectified_error'].mean()), 1)}",
        Agreement.AGREES
        if (own["estimate_error"] <= NEAR).mean() > 0.5
        else Agreement.IN_PART
        if (own["estimate_error"] < own["counted_error"]).mean() > 0.5
        else Agreement.DIFFERS,
        "the subset is far smaller than the paper's, and what counts is whether the logit margin is better than "
        "counting robust points in the subset alone, which the paper does not set beside it",
    )


def sane(few: Frame) -> Finding:
    """Figure 8."""
    own = _of(few, share=1.0)
    gaps = _numbers((own["by_margins"] - own["by_attack"]).abs() if len(own) else [])
    return Finding(
        "margins above epsilon and an attack at epsilon give one robust accuracy: they differ by 1.3 points in the mean "
        "and 6.1 at most",
        f"{PAPER}, section 3.1 and figure 8",
        f"the share right with a margin above epsilon and the share that withstands our plain descent differ by "
        f"{percent(float(gaps.mean()) if len(gaps) else np.nan, 1)} in the mean over {len(gaps)} networks and "
        f"{percent(float(gaps.max()) if len(gaps) else np.nan, 1)} at most",
        share(gaps <= 0.061),
        "both are upper bounds: the lower one is the better; the descent has few steps",
    )


def equidistant(linf: Frame) -> Finding:
    """Figure 13."""
    own = _of(linf, group=ADVERSARIAL)
    variation = _numbers(own["variation"] if "variation" in own else [])
    return Finding(
        "the rows of the last layer are equidistant, so that the logit margin is the margin in feature space",
        f"{PAPER}, section 2.1, appendix B.5 and figure 13",
        f"the deviation of their distances over the mean is {mean_of(variation)} over {len(variation)} adversarially "
        f"trained networks and {mean_of(linf['variation'] if 'variation' in linf else [])} over all",
        share(variation <= ALIKE),
        f"up to {decimals(ALIKE, 2)} counts as one distance here; the paper gives box plots and no figure",
    )


def isometric(linf: Frame) -> Finding:
    """Figure 6."""
    own = _of(linf, group=ADVERSARIAL)
    return Finding(
        "features keep distances up to a factor: the way to the nearest other prediction is as long among the features "
        "as among the inputs",
        f"{PAPER}, section 3.2 and figure 6",
        f"rank correlation of the two lengths over points: {mean_of(own['moved'])} over adversarially trained networks, "
        f"{mean_of(linf[linf['group'] != ADVERSARIAL]['moved'])} over the others; the upper quartile of the factor is "
        f"{mean_of(own['spread'])} and {mean_of(linf[linf['group'] != ADVERSARIAL]['spread'])} times the lower",
        share(_numbers(own["moved"]) >= STRONG),
        "distances among features are in the same norm; of a linear network the features are the inputs",
    )


def learned(pseudo: Frame) -> Finding:
    """Table 2."""
    claim = (
        "where consistency is weak a pseudo-margin learned from the features of 5,000 points does better: tau from 0.28 "
        "and 0.43 to 0.57 and 0.62"
    )
    if not len(pseudo):
        return unmeasured(claim)
    wide = pseudo.pivot_table(index="network", columns="score", values="tau", sort=False)
    logit, paper, both = (
        wide[name] for name in ("logit_margin", "pseudo-margin, features", "pseudo-margin, features and head")
    )
    parts = [
        f"`{name}`: logit margin {decimals(logit[name], 2)}, learned from features {decimals(paper[name], 2)}, from "
        f"features and the head's margins {decimals(both[name], 2)}"
        + (f", feature margin {decimals(wide['feature_margin'][name], 2)}" if "feature_margin" in wide else "")
        for name in wide.index
    ]
    points = int(pseudo["learned"].max())
    return Finding(
        claim,
        f"{PAPER}, section 3.3 and table 2",
        f"tau on the networks with the smallest ones, learned from {points} points: {'; '.join(parts)}",
        share((paper > logit).tolist()),
        "far fewer points were learned from than in the paper; the head's margins are known without learning",
    )


def other_scores(scores: Frame) -> Finding:
    """Other stand-ins."""
    own = _of(scores, norm=NORMS[0])
    parts = [
        f"{name.replace('_', ' ')} {mean_of(part['tau'])}"
        for name, part in (own.groupby("score", sort=False) if len(own) else [])
    ]
    return Finding(
        "does another score of few passes follow the input margin better?",
        "",
        f"tau in Linf, mean over all networks: {'; '.join(parts) or NOTHING}",
        Agreement.UNSAID,
        "the first-order margin divides each gap by its gradient, for a pass backward a class; the others take one pass",
    )


def search(checked: Frame) -> Finding:
    """Our own search."""
    own = checked[np.isfinite(checked["exact_mean"])] if len(checked) else checked
    total = int(checked["points"].sum()) if len(checked) else 0
    exact = (
        f"; on affine networks they are {decimals(float(own['exact_mean'].mean()), 4)} times the exact ones in the mean, "
        f"{decimals(float(own['exact_most'].max()), 4)} at most"
        if len(own)
        else ""
    )
    return Finding(
        "are the input margins that the library finds right?",
        "",
        f"of {total} inputs found in two norms {int(checked['there'].sum()) if total else 0} are what they are said to "
        f"be; within {decimals(0.95, 2)} of the distance a plain descent of our own found something nearer at "
        f"{total - int(checked['held'].sum()) if total else 0}{exact}",
        Agreement.UNSAID,
        "a margin from a search is an upper bound: the check can refute it and never prove it",
    )


def unmeasured(claim: str) -> Finding:
    """A claim that nothing was measured for."""
    return Finding(claim, PAPER, NOTHING, Agreement.UNMEASURED, "")
