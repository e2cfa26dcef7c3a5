"""Findings on robust accuracy from few points, heads and features, proxies, and the search."""

from __future__ import annotations

from studies.agreement import judged
from studies.groups import ADVERSARIAL, PUBLISHED
from studies.margin_consistency.facts import NORMS
from studies.margin_consistency.words import ALIKE, GAP, NEAR, STRONG, WEAK, by_dataset, mean, numbers, of_paper, where
from studies.markdown import decimals, percent
from studies.study import Agreement, Finding
from studies.tables import Frame

ROUNDED = 9
"""Digits of errors that are means of hundredths."""

MAJORITY = 0.5
"""Share of the networks above which something holds on most of them."""


def from_few(few_margins: Frame) -> list[Finding]:
    """Figures 5, 10 and 11."""
    lines = []
    for name, rows in by_dataset(few_margins):
        for share, words in ((0.5, "half"), (1.0, "all, against an attack")):
            part = where(rows, share=share)
            errors = part["estimate_error"].round(ROUNDED)
            lines.append(Finding(
                "Algorithm 1 gives the robust accuracy from a few margins, mostly to 2 points",
                "section 2.4, figures 5, 10, 11",
                f"from {words}: median {percent(errors.median(), 1)}, worst {percent(errors.max(), 1)}; counting "
                f"these {percent(part['counted_error'].median(), 1)}",
                of_paper(name, judged([float((errors <= NEAR).mean()) > MAJORITY])),
                on=name,
            ))  # fmt: skip
    return lines


def nearer_than_counting(half: Frame) -> str:
    """On how many networks Algorithm 1 is nearer to the robust accuracy than counting the same points."""
    return f"{int((half['estimate_error'] < half['counted_error']).sum()) if len(half) else 0} of {len(half)}"


def gaps_of(rows: Frame) -> Frame:
    """How far the two robust accuracies differ on networks attacked in training at the epsilon that is asked about."""
    rows = where(rows, share=1.0)
    rows = rows[~rows["network"].isin(PUBLISHED)]
    return (rows["by_margins"] - rows["by_attack"]).abs()


def sane(few_margins: Frame) -> list[Finding]:
    """Figure 8."""
    lines = []
    for name, rows in by_dataset(few_margins):
        gaps = gaps_of(rows)
        worst, middle = float(gaps.max()), float(gaps.mean())
        lines.append(Finding(
            "margins above epsilon and AutoAttack at epsilon give one robust accuracy: on CIFAR-10 they differ by 1.3 "
            "points in the mean and 6.1 at most",
            "section 3.1, figure 8",
            f"by {percent(middle, 1)} in the mean and {percent(worst, 1)} at most on {len(gaps)} networks",
            of_paper(name, judged([worst <= GAP[0], middle <= GAP[1]])),
            on=name,
        ))  # fmt: skip
    return lines


def equidistant(linf: Frame) -> Finding:
    """Figure 13."""
    variation = numbers(where(linf, group=ADVERSARIAL).get("variation", []))
    return Finding(
        "the rows of the last layer are equidistant",
        "section 2.1, appendix B.5, figure 13",
        f"their distances deviate by {mean(variation)} of the mean on {len(variation)} adversarially trained networks",
        judged(variation <= ALIKE),
    )


def isometric(linf: Frame) -> list[Finding]:
    """Figure 6."""
    return [
        Finding(
            "features keep distances up to a factor",
            "section 3.2, figure 6",
            f"rank correlation {mean(rows['moved'])} in the mean, {decimals(rows['moved'].min(), 2)} at least",
            of_paper(name, judged(numbers(rows["moved"]) >= STRONG)),
            on=name,
        )
        for name, rows in by_dataset(linf)
    ]


def wide_of(pseudo: Frame) -> Frame:
    """Return the taus of each network, a column for each score."""
    if not len(pseudo):
        return pseudo
    return pseudo.pivot_table(index=["group", "network"], columns="score", values="tau", sort=False).reset_index()


def learned(pseudo: Frame) -> Finding:
    """Table 2."""
    wide = wide_of(pseudo)
    weak = wide[wide["logit_margin"] < WEAK] if len(wide) else wide
    better = weak["pseudo-margin, features"] > weak["logit_margin"] if len(weak) else []
    taus = [mean(weak[score]) if len(weak) else "-" for score in ("logit_margin", "pseudo-margin, features")]
    return Finding(
        "where consistency is weak a pseudo-margin learned from the features does better: tau from 0.28 to 0.57 on one "
        "network",
        "section 3.3, table 2",
        f"tau from {taus[0]} to {taus[1]} in the mean of {len(weak)} weak networks, none of them adversarially trained",
        judged(better),
    )


def learned_where_strong(pseudo: Frame) -> Finding:
    """Judge the same on adversarially trained networks, none of which is weak here."""
    wide = where(wide_of(pseudo), group=ADVERSARIAL)
    taus = [mean(wide[score]) if len(wide) else "-" for score in ("logit_margin", "pseudo-margin, features")]
    return Finding(
        "does it help on the least consistent adversarially trained networks, too?",
        "",
        f"mean tau {taus[1]}, with the logit margin {taus[0]}, on {len(wide)} networks",
        Agreement.UNSAID,
    )


def other_scores(scores: Frame) -> Finding:
    """Other stand-ins."""
    in_linf = where(scores, norm=NORMS[0])
    taus = [
        mean(where(in_linf, score=score)["tau"] if len(in_linf) else [])
        for score in ("first_order_margin", "logit_margin")
    ]
    return Finding(
        "does another score of few passes follow the input margin better?",
        "",
        f"the first-order margin: mean tau {taus[0]} over all networks, the logit margin {taus[1]}",
        Agreement.UNSAID,
    )


def beside_fab(fab: Frame) -> Finding:
    """Judge the attack that the paper takes its input margins from."""
    total, nearer, further = (int(fab[column].sum()) if len(fab) else 0 for column in ("points", "nearer", "further"))
    return Finding(
        "are they nearer than FAB's, which the paper takes?",
        "",
        f"nearer at {nearer} and further at {further} of {total} points",
        Agreement.UNSAID if total else Agreement.UNMEASURED,
        on=f"{len(fab)} networks",
    )


def search(checked: Frame) -> Finding:
    """Our own search."""
    total = int(checked["points"].sum()) if len(checked) else 0
    confirmed, held = (int(checked[column].sum()) if total else 0 for column in ("there", "held"))
    return Finding(
        "are the input margins that the library finds right?",
        "",
        f"all but {total - confirmed} of {total} are; a plain descent found something clearly nearer at {total - held}",
        Agreement.UNSAID,
    )
