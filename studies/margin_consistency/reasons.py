"""What the study found about robust accuracy from few points, heads and features, stand-ins, and the search."""

from __future__ import annotations

import numpy as np

from studies.agreement import judged
from studies.groups import ADVERSARIAL
from studies.margin_consistency.descent import NEARER
from studies.margin_consistency.facts import NORMS
from studies.margin_consistency.words import (
    ALIKE,
    GAP,
    NEAR,
    PAPER,
    STRONG,
    WEAK,
    numbers,
    unmeasured,
    where,
)
from studies.markdown import NOTHING, decimals, percent
from studies.over_networks import mean_of
from studies.study import Agreement, Finding
from studies.tables import Frame

MAJORITY = 0.5
"""Share of the networks above which something holds on most of them."""


def from_few(few: Frame) -> Finding:
    """Figures 5, 10 and 11."""
    claim = (
        "the logit margin and the input margins of 500 points give the robust accuracy of 10,000; with 300 the mean "
        "error is below 2 points on most networks"
    )
    own, whole = where(few, share=0.5, group=ADVERSARIAL), where(few, share=1.0, group=ADVERSARIAL)
    if not len(own):
        return unmeasured(claim)
    first, last = own.iloc[0], whole.iloc[0]
    attacked = percent(float(whole["estimate_error"].mean()), 1)
    worst = own.sort_values("estimate_error").iloc[-1]
    worst = f"`{worst['network']}` ({percent(worst['estimate_error'], 1)})"
    within = int((own["estimate_error"] <= NEAR).sum())
    errors = {name: percent(float(own[f"{name}_error"].mean()), 1) for name in ("estimate", "counted", "rectified")}
    return Finding(
        claim,
        f"{PAPER}, section 2.4 and figures 5, 10 and 11",
        f"with {int(first['size'])} of {int(first['among'])} points the mean error is {errors['estimate']} over "
        f"adversarially trained networks, and at most {percent(NEAR)} on {within} of "
        f"{len(own)}; the share of the subset itself, without any logit margin, is off by {errors['counted']}, the "
        f"library's corrected estimate by {errors['rectified']}; the algorithm errs most on "
        f"{worst}; {int(last['size'])} margins give the share of "
        f"{int(last['among'])} points that withstands a plain attack to {attacked}",
        judged(float((one["estimate_error"] <= NEAR).mean()) > MAJORITY for one in (own, whole)),
        "the verdict asks whether the error is that small on most networks, both for the margins and for the attack; "
        "fewer margins are known than in the paper; what counts is whether the logit margin does better than "
        "counting robust points in the subset alone, which the paper does not set beside it; where the logit margin "
        "is a poor score the algorithm's threshold, which has to find most fragile points, takes many robust ones "
        "with them, and the estimate is too low",
    )


def sane(few: Frame) -> Finding:
    """Figure 8."""
    own = where(few, share=1.0)
    signed = numbers(own["by_margins"] - own["by_attack"] if len(own) else [])
    gaps, lower, higher = np.abs(signed), int((signed < 0).sum()), int((signed > 0).sum())
    return Finding(
        "margins above epsilon and an attack at epsilon give one robust accuracy: they differ by 1.3 points in the "
        "mean and 6.1 at most on CIFAR-10, by 0.48 and 0.75 on CIFAR-100",
        f"{PAPER}, section 3.1 and figure 8",
        f"the share right with a margin above epsilon and the share that withstands a plain descent differ by "
        f"{percent(float(gaps.mean()) if len(gaps) else np.nan, 1)} in the mean over {len(gaps)} networks and "
        f"{percent(float(gaps.max()) if len(gaps) else np.nan, 1)} at most; by margins fewer points are robust on "
        f"{lower} networks, more on {higher}",
        judged([] if not len(gaps) else [bool(gaps.max() <= GAP[0]), bool(gaps.mean() <= GAP[1])]),
        "the verdict asks for both of the paper's numbers for CIFAR-10; both robust accuracies are upper bounds, so "
        "the lower one is nearer; the inputs found by the library are confirmed below, so "
        "that it is the plain descent that misses some; the paper's attack, AutoAttack, is a stronger one",
    )


def equidistant(linf: Frame) -> Finding:
    """Figure 13."""
    own = where(linf, group=ADVERSARIAL)
    variation = numbers(own.get("variation", []))
    return Finding(
        "the rows of the last layer are equidistant, so that the logit margin is the margin in feature space up to a "
        "factor",
        f"{PAPER}, section 2.1, appendix B.5 and figure 13",
        f"the deviation of their distances over the mean is {mean_of(variation)} over {len(variation)} adversarially "
        f"trained networks and {mean_of(linf.get('variation', []))} over all",
        judged(variation <= ALIKE),
        f"up to {decimals(ALIKE, 2)} counts as one distance here; the paper gives box plots and no number",
    )


def isometric(linf: Frame) -> Finding:
    """Figure 6."""
    own, others = where(linf, group=ADVERSARIAL), linf[linf["group"] != ADVERSARIAL]
    return Finding(
        "features keep distances up to a factor: the way to the nearest other prediction is as long among the features "
        "as among the inputs",
        f"{PAPER}, section 3.2 and figure 6",
        f"rank correlation of the two lengths over points: {mean_of(own['moved'])} over adversarially trained "
        f"networks, {mean_of(others['moved'])} over the others; the upper quartile of the factor is "
        f"{mean_of(own['spread'])} and {mean_of(others['spread'])} times the lower",
        judged(numbers(own["moved"]) >= STRONG),
        "distances among features are measured in the same norm; of a linear network the features are the inputs; the "
        "verdict asks for a rank correlation as high as the paper's smallest strong tau",
    )


def learned(pseudo: Frame) -> Finding:
    """Table 2."""
    claim = (
        "where consistency is weak a pseudo-margin learned from the features of 5,000 points does better: tau from "
        "0.28 and 0.43 to 0.57 and 0.62"
    )
    if not len(pseudo):
        return unmeasured(claim)
    wide = pseudo.pivot_table(index=["group", "network"], columns="score", values="tau", sort=False).reset_index()
    weak = wide[wide["logit_margin"] < WEAK]
    attacked, rest = wide[wide["group"] == ADVERSARIAL], wide[wide["group"] != ADVERSARIAL]
    points = int(pseudo["learned"].max())
    return Finding(
        claim,
        f"{PAPER}, section 3.3 and table 2",
        f"tau, learned from {points} points, on the adversarially trained networks where that of the logit margin is "
        f"smallest: {_learned_taus(attacked)}; on the other networks where it is smallest: {_learned_taus(rest)}",
        judged((weak["pseudo-margin, features"] > weak["logit_margin"]).tolist()),
        f"the verdict asks the {len(weak)} of these with a tau below {decimals(WEAK, 1)}, of which "
        f"{int((weak['group'] == ADVERSARIAL).sum())} are adversarially trained, as the paper's are; where the logit "
        f"margin follows well there is little to win; far fewer points were learned from than in the paper; the head's "
        f"margins are known without learning",
    )


def _learned_taus(wide: Frame) -> str:
    """The taus of each network, by what they are of."""
    names = {
        "logit_margin": "logit margin", "pseudo-margin, features": "learned from features",
        "pseudo-margin, features and head": "from features and the head's margins", "feature_margin": "feature margin",
    }  # fmt: skip
    parts = [
        f"`{one['network']}`: "
        + ", ".join(f"{said} {decimals(one[name], 2)}" for name, said in names.items() if name in wide)
        for one in wide.to_dict("records")
    ]
    return "; ".join(parts) or NOTHING


def other_scores(scores: Frame) -> Finding:
    """Other stand-ins."""
    own = where(scores, norm=NORMS[0])

    def of_robust(name: str) -> str:
        found = where(own, group=ADVERSARIAL, score=name)
        return mean_of(found["tau"] if len(found) else [])

    parts = [
        f"{name.replace('_', ' ')} {mean_of(part['tau'])}"
        for name, part in (own.groupby("score", sort=False) if len(own) else [])
    ]
    return Finding(
        "does another score of few passes follow the input margin better?",
        "",
        f"tau in Linf, mean over all networks: {'; '.join(parts) or NOTHING}; on adversarially trained networks alone "
        f"the first-order one has {of_robust('first_order_margin')} and the logit margin {of_robust('logit_margin')}",
        Agreement.UNSAID,
        "the first-order margin divides each gap by its gradient, for a pass backward a class; the rest take one pass",
    )


def search(checked: Frame) -> Finding:
    """Our own search."""
    own = checked[np.isfinite(checked["exact_mean"])] if len(checked) else checked
    total = int(checked["points"].sum()) if len(checked) else 0
    nearer = checked[checked["held"] < checked["points"]]["network"] if len(checked) else []
    where_nearer = f" ({', '.join(f'`{name}`' for name in dict.fromkeys(nearer))})" if len(nearer) else ""
    exact = (
        f"; on affine networks they are {decimals(float(own['exact_mean'].mean()), 4)} times the exact ones in the "
        f"mean, {decimals(float(own['exact_most'].max()), 4)} at most"
        if len(own)
        else ""
    )
    return Finding(
        "are the input margins that the library finds right?",
        "",
        f"of {total} inputs found in two norms {int(checked['there'].sum()) if total else 0} are what they are said to "
        f"be; within {decimals(NEARER, 2)} of the distance a plain descent of our own found something nearer at "
        f"{total - int(checked['held'].sum()) if total else 0}{where_nearer}{exact}",
        Agreement.UNSAID,
        "a margin from a search is an upper bound: a nearer input refutes it at that point, and nothing proves it; the "
        "plain descent is mostly the weaker search (see the robust accuracy under attack), so that it misses others",
    )
