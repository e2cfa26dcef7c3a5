"""Findings on consistency and detection, a line each; `reasons` has the others."""

from __future__ import annotations

import numpy as np

from studies.agreement import judged, judged_by_share
from studies.groups import ADVERSARIAL
from studies.margin_consistency.facts import NORMS
from studies.margin_consistency.reasons import (
    beside_fab,
    equidistant,
    from_few,
    isometric,
    learned,
    learned_where_strong,
    other_scores,
    sane,
    search,
)  # fmt: skip
from studies.margin_consistency.words import (
    DETECTS,
    STRONG,
    SURE,
    by_dataset,
    frame_of,
    mean,
    numbers,
    of_paper,
    ranks,
    strong,
    where,
)  # fmt: skip
from studies.markdown import decimals
from studies.study import Agreement, Finding, Tables
from studies.tables import Frame


def findings(tables: Tables) -> list[Finding]:
    """Return every finding, from the results."""
    networks, epsilons, scores = (frame_of(tables, name) for name in ("networks", "epsilons", "scores"))
    few_margins, checked, pseudo = (frame_of(tables, name) for name in ("few", "checked", "pseudo"))
    linf = networks[networks["norm"] == NORMS[0]]
    return [
        *robust_networks(linf), other_networks(linf), *detection_at_epsilon(linf), tau_and_detection(linf),
        *other_epsilons(epsilons), robust_accuracy_and_tau(linf), euclidean(networks),
        *from_few(few_margins), *sane(few_margins), equidistant(linf), *isometric(linf),
        learned(pseudo), learned_where_strong(pseudo), other_scores(scores),
        search(checked), beside_fab(frame_of(tables, "fab")),
    ]  # fmt: skip


def robust_networks(linf: Frame) -> list[Finding]:
    """Table 1 and figure 2."""
    return [
        Finding(
            "the logit margin follows the input margin on nearly all adversarially trained networks: tau is 0.68 or "
            "more",
            "table 1, figure 2",
            f"{int(strong(rows['tau_of_all']).sum())} of {len(rows)} networks reach it, "
            f"{int(strong(rows['tau']).sum())} without points predicted wrong",
            of_paper(name, judged_by_share(strong(rows["tau_of_all"]))),
            on=name,
        )
        for name, rows in by_dataset(linf)
    ]


def other_networks(linf: Frame) -> Finding:
    """Judge the same networks trained in other ways."""
    taus = numbers(linf[linf["group"] != ADVERSARIAL]["tau_of_all"])
    return Finding(
        "does it take adversarial training?",
        "",
        f"no: {int(strong(taus).sum())} of {len(taus)} networks trained in other ways reach {decimals(STRONG, 2)}",
        Agreement.UNSAID,
    )


def detection_at_epsilon(linf: Frame) -> list[Finding]:
    """Table 1, the detection."""
    lines = []
    for name, rows in by_dataset(linf):
        aurocs = numbers(rows["auroc"])
        lines.append(Finding(
            "a small logit margin finds the points that are not robust: AUROC is above 0.9 on nearly all",
            "table 1",
            f"{mean(aurocs)} in the mean, and above that on {int((aurocs >= DETECTS).sum())} of {len(aurocs)} networks",
            of_paper(name, judged_by_share(aurocs >= DETECTS)),
            on=name,
        ))  # fmt: skip
    return lines


def tau_and_detection(linf: Frame) -> Finding:
    """Theorem 1, as far as it speaks of degrees."""
    correlation, chance, count = ranks(linf["tau"], linf["auroc_middle"])
    judgement = Agreement.AGREES if chance < SURE else Agreement.IN_PART
    return Finding(
        "the more consistent the margins, the better the detection",
        "theorem 1, table 1",
        f"rank correlation of tau and AUROC {decimals(correlation, 2)} over {count} networks",
        Agreement.UNMEASURED if not np.isfinite(correlation) else Agreement.DIFFERS if correlation <= 0 else judgement,
    )


def other_epsilons(epsilons: Frame) -> list[Finding]:
    """Figure 9."""
    lines = []
    for name, rows in by_dataset(where(epsilons, norm=NORMS[0])):
        means = rows.groupby("level")["auroc"].mean().dropna()
        lines.append(Finding(
            "detection stays good over a range of epsilons",
            "appendix B.2, figure 9",
            f"mean AUROC {decimals(means.min(), 2)} to {decimals(means.max(), 2)} over {len(means)} epsilons",
            of_paper(name, judged(means.round(2) >= DETECTS)),
            on=name,
        ))  # fmt: skip
    return lines


def robust_accuracy_and_tau(linf: Frame) -> Finding:
    """Figure 4."""
    robust = where(linf, group=ADVERSARIAL)
    columns = ["tau", "robust"]
    within = robust[columns].rank() if robust.empty else robust.groupby("dataset")[columns].rank(pct=True)
    rank, chance, count = ranks(within["tau"], within["robust"])
    judgement = Agreement.NOT_REFUTED if chance >= SURE else Agreement.DIFFERS
    return Finding(
        "how consistent the margins are does not depend on the robust accuracy",
        "section 3.2, figure 4",
        f"rank correlation within data sets {decimals(rank, 2)} over {count} adversarially trained networks, by chance "
        f"with probability {decimals(chance, 2)}",
        judgement if np.isfinite(rank) else Agreement.UNMEASURED,
    )


def euclidean(networks: Frame) -> Finding:
    """L2, which the paper leaves out."""
    robust = where(networks, group=ADVERSARIAL)
    return Finding(
        "does the same hold for distances in L2?",
        "",
        f"about as well: mean tau {mean(where(robust, norm=NORMS[1])['tau'])} in L2 and "
        f"{mean(where(robust, norm=NORMS[0])['tau'])} in Linf on adversarially trained networks",
        Agreement.UNSAID,
    )
