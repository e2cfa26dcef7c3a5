"""What the study found about consistency and detection, a line for each thing; `reasons` holds the rest."""

from __future__ import annotations

import numpy as np

from brittle.analysis.detection import TPR
from studies.agreement import judged
from studies.groups import ADVERSARIAL, GROUPS
from studies.margin_consistency.facts import NORMS
from studies.margin_consistency.reasons import equidistant, from_few, isometric, learned, other_scores, sane, search
from studies.margin_consistency.words import (
    DETECTS,
    PAPER,
    SEVERAL,
    STRONG,
    SURE,
    frame_of,
    numbers,
    range_of,
    ranks,
    strong,
    where,
)
from studies.markdown import NOTHING, decimals, percent
from studies.over_networks import mean_of
from studies.study import Agreement, Finding, Tables
from studies.tables import Frame


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


def robust_networks(linf: Frame) -> Finding:
    """Table 1 and figure 2."""
    attacked = where(linf, group=ADVERSARIAL)
    own = numbers(attacked["tau"])
    every = numbers(attacked.get("tau_of_all", []))
    return Finding(
        "the logit margin follows the input margin on nearly all adversarially trained networks: Kendall's tau is 0.68 "
        "to 0.86 (0.85 in the table), and 0.28 and 0.43 on two",
        f"{PAPER}, table 1 and figure 2",
        f"on {len(own)} networks with an adversarial training tau is {mean_of(own)} in the mean over networks, from "
        f"{range_of(own)}; {int(strong(own).sum())} of them reach {decimals(STRONG, 2)}; with the points that are "
        f"predicted wrong it is {mean_of(every)}, and {int(strong(every).sum())} reach it",
        judged(strong(own)),
        "networks and data are far smaller here; where a network is steep at a point, its logit margin is large "
        "for its distance",
    )


def other_networks(linf: Frame) -> Finding:
    """The same networks trained in other ways."""
    own, others = where(linf, group=ADVERSARIAL), linf[linf["group"] != ADVERSARIAL]
    ordered = linf.dropna(subset="tau").sort_values("tau")
    most = f"`{ordered['network'].iloc[-1]}` ({decimals(ordered['tau'].iloc[-1], 2)})" if len(ordered) else NOTHING
    parts = []
    for group, dataset in [(group, dataset) for group in GROUPS[1:] for dataset in sorted(set(linf["dataset"]))]:
        taus = numbers(where(linf, group=group, dataset=dataset)["tau"])
        if len(taus):
            high = int(strong(taus).sum())
            reached = f"{high} of {len(taus)} reach {decimals(STRONG, 2)}"
            parts.append(f"{group}, {dataset}: {mean_of(taus)}, from {range_of(taus)}, {reached}")
    return Finding(
        "is it adversarial training that makes margins consistent?",
        "",
        f"tau of networks trained otherwise: {'; '.join(parts) or NOTHING}; the largest of all is on {most}; the "
        f"quartiles of the margins lie {mean_of(own['width'])} of their median apart on adversarially trained "
        f"networks and {mean_of(others['width'])} on the rest",
        Agreement.UNSAID,
        "the paper measures adversarially trained networks alone; margins that hardly differ are harder to order",
    )


def detection_at_epsilon(linf: Frame) -> Finding:
    """Table 1, the detection."""
    own = where(linf, group=ADVERSARIAL)
    own = own[np.isfinite(own["auroc"])]
    consistent = own[strong(own["tau"])]
    return Finding(
        "a small logit margin finds the points that are not robust at one epsilon: AUROC 0.93 to 0.98, FPR at 95% TPR "
        "0.12 to 0.33, but on the two networks of weak consistency",
        f"{PAPER}, table 1",
        f"at the epsilon of their training AUROC is {mean_of(own['auroc'])} over {len(own)} adversarially trained "
        f"networks with enough points of both kinds, from {range_of(own['auroc'])}; FPR at {percent(TPR)} TPR is "
        f"{mean_of(own['fpr95'])}; where tau reaches {decimals(STRONG, 2)} AUROC is "
        f"{range_of(consistent['auroc'])}",
        judged(own["auroc"] >= DETECTS),
        f"few points are on the rarer side, so that the numbers of a single network vary widely; the verdict asks for "
        f"an AUROC of {decimals(DETECTS, 1)} on each",
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
        else Agreement.DIFFERS
        if found <= 0
        else Agreement.AGREES
        if chance < SURE
        else Agreement.IN_PART,
        "both count pairs of points in the right order; AUROC only those on two sides of the median; the verdict "
        "asks for a correlation that chance hardly gives",
    )


def other_epsilons(epsilons: Frame) -> Finding:
    """Figure 9."""
    own = where(epsilons, norm=NORMS[0], group=ADVERSARIAL)
    parts, least = [], []
    for level in sorted(set(own["level"])) if len(own) else []:
        found = numbers(where(own, level=level)["auroc"])
        if len(found):
            parts.append(f"{mean_of(found)} where epsilon reaches {percent(level)} of the points")
            least.append(float(found.mean()))
    return Finding(
        "detection stays good over a range of epsilons",
        f"{PAPER}, appendix B.2 and figure 9",
        f"AUROC over adversarially trained networks is {'; '.join(parts) or NOTHING}",
        judged(one >= DETECTS for one in least),
        f"epsilon is set at quantiles of each network's margins, so that there are points of both kinds; good means "
        f"here: {decimals(DETECTS, 1)} in the mean over networks",
    )


def robust_accuracy_and_tau(linf: Frame) -> Finding:
    """Figure 4."""
    own = where(linf, group=ADVERSARIAL)
    columns = ["tau", "robust"]
    within = own[columns].rank() if own.empty else own.groupby("dataset")[columns].rank(pct=True)
    rank, chance, count = ranks(within["tau"], within["robust"])
    together, _, _ = ranks(own["tau"], own["robust"])
    everywhere, _, all_ = ranks(linf["tau"], linf["robust"])
    return Finding(
        "how consistent the margins are does not depend on the robust accuracy",
        f"{PAPER}, section 3.2 and figure 4",
        f"rank correlation of the two over {count} adversarially trained networks, ranked within their data sets: "
        f"{decimals(rank, 2)} (by chance with probability {decimals(chance, 2)}); with no regard to data sets "
        f"{decimals(together, 2)}, over all {all_} networks {decimals(everywhere, 2)}",
        Agreement.UNMEASURED if not np.isfinite(rank) else judged([chance >= SURE]),
        f"agreement means that no dependence shows within data sets; with so few networks only a strong one could, and "
        f"below {SEVERAL} nothing is said; data sets differ in both numbers, which shows where they are taken together",
    )


def euclidean(networks: Frame) -> Finding:
    """L2, which the paper leaves out."""
    both = networks.pivot_table(index=["network", "group"], columns="norm", values="tau").reset_index()
    own = where(both, group=ADVERSARIAL)
    absent = not set(NORMS) <= set(both.columns)
    differences = numbers([] if absent else own[NORMS[1]] - own[NORMS[0]])
    return Finding(
        "does the same hold for distances in L2?",
        "",
        f"tau in L2 is {mean_of([] if absent else own[NORMS[1]])} over adversarially trained networks and "
        f"{mean_of([] if absent else both[NORMS[1]])} over all; on the former tau in L2 "
        f"less tau in Linf is {mean_of(differences)}",
        Agreement.UNSAID,
        "the networks were trained against changes in Linf; the logit margin is the same for both norms",
    )
