"""Content of the study's page besides its verdicts, with all numbers of ours from the results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from studies.agreement import HALF, MOST
from studies.glance import Glance, Row
from studies.groups import ADVERSARIAL
from studies.margin_consistency.facts import NORMS
from studies.margin_consistency.reasons import gaps_of, nearer_than_counting, wide_of
from studies.margin_consistency.words import STRONG, by_dataset, frame_of, mean, strong, where
from studies.markdown import NOTHING, data_name, decimals, in_words, percent, table
from studies.study import Headline, Tables
from studies.tables import Frame

FILES = {
    "networks": "tau with its interval, accuracy, robust accuracy and detection of every network and norm",
    "epsilons": "detection by the logit margin at five quantiles of each network's margins",
    "scores": "tau and AUROC of every other score",
    "few": "robust accuracy by margins, by an attack, and from a part of the margins",
    "pseudo": "the pseudo-margin on the least consistent networks",
    "checked": "the check of the search by other means",
    "fab": "the margins beside those of FAB",
}
"""Content of each table."""


PAPER_GAP = 0.013
"""Mean difference of robust accuracy by margins and by an attack in the paper."""


def linf_of(tables: Tables) -> Frame:
    """Return the networks in Linf."""
    return where(frame_of(tables, "networks"), norm=NORMS[0])


def content(tables: Tables) -> Mapping[str, Any]:
    """Return the values of the template's names."""
    linf = linf_of(tables)
    taus = linf.groupby("dataset")["tau"]
    return {
        "question": (
            "The *input margin* of a point is the distance to the nearest input that the network decides differently. "
            "It is costly to find. The *logit margin*, the gap between the two largest outputs, is free. Does it put "
            "the points in the same order? Kendall's tau is one where it does, and zero for unrelated orders."
        ),
        "answer": answer(linf),
        "figure": "margin_consistency_tau",
        "seen": f"A row for each network, a dot at its tau and a dashed line at {STRONG:g}: "
        + "; ".join(f"{data_name(str(data))} {part.min():.2f} to {part.max():.2f}" for data, part in taus),
        "caption": (
            f"A dot for each network with its interval over points predicted right. The line is the smallest tau "
            f"of the paper's strongly consistent networks, {decimals(STRONG, 2)}."
        ),
        "rule": (
            f"A claim *agrees* where it holds in every case of its line, *does not agree* where in none, else *in "
            f"part*; a claim on nearly all networks *agrees* from {percent(MOST)} of them on and *does not* up to "
            f"{percent(HALF)}. Nothing agrees or not on data that the paper leaves out. "
            f"*Not refuted*: so few networks could show only a strong dependence. "
            f"`vnn21_cifar10_resnet2b`, the only adversarially trained one on exact images, stands in no line "
            f"of a data set."
        ),
        "uses": uses(tables),
        "differs": differs(linf, frame_of(tables, "few"), frame_of(tables, "pseudo")),
        "files": {f"margin_consistency/{name}.csv": caption for name, caption in FILES.items() if name in tables}
        | {
            "../images/studies/margin_consistency.svg": "input margin against logit margin, a panel for each network",
            "../images/studies/margin_consistency_epsilon.svg": "detection by epsilon",
            "../images/studies/margin_consistency_pseudo.svg": "tau of pseudo-margins",
            "../images/studies/margin_consistency_few.svg": "robust accuracy from half of the margins",
        },
    }


def reached(linf: Frame, dataset: str) -> str:
    """Adversarially trained networks of a data set that are strongly consistent."""
    networks = where(linf, group=ADVERSARIAL, dataset=dataset)
    return f"{int(strong(networks['tau_of_all']).sum()) if len(networks) else 0} of {len(networks)}"


def answer(linf: Frame) -> str:
    """Return the answer in one sentence."""
    return (
        f"On {data_name('cifar10')} it does so as well as the paper says ({reached(linf, 'cifar10')} adversarially "
        f"trained networks), on MNIST, which the paper leaves out, on fewer ({reached(linf, 'mnist')}), and other ways "
        f"of training do not stand in its way."
    )


def uses(tables: Tables) -> Sequence[str]:
    """Return the advice from the results."""
    return (
        "Use the logit margin to rank points or to find the fragile ones when `brittle.analysis.margin_consistency` on "
        "some hundred points of your own network says that it may.",
        "Use the first-order margin when a pass backward for each class is affordable: in the mean it follows the "
        "input "
        "margin better.",
        "Use a pseudo-margin when tau of the logit margin is weak and some thousand points have margins to learn from.",
        "For robust accuracy from few margins use `rectified` and its interval of `estimate_robust_accuracy`. "
        "Where the "
        "logit margin is a poor score Algorithm 1 itself is no better than counting.",
    )


def differs(linf: Frame, few_margins: Frame, pseudo: Frame) -> str:
    """Return the table of differences from the paper."""
    points = f"{int(linf['points'].max())} test points" if len(linf) else "-"
    compared = (
        f"its standard set, written anew, on {int(few_margins['tried'].max())} points; for Algorithm 1 a plain descent "
        f"on {int(few_margins['all'].max())}"
        if len(few_margins)
        else "-"
    )
    learned = f"{int(pseudo['learned'].max()):,} test points" if len(pseudo) else "-"
    return table(
        ("", "paper", "here"),
        [
            ("data", "CIFAR-10, CIFAR-100", in_words(map(data_name, linf["dataset"]))),
            ("networks", "ResNet-18 to WideResNet-34-10 and XCiT, all adversarially trained",
             f"{len(linf)} small ones, {int((linf['group'] == ADVERSARIAL).sum())} adversarially trained"),
            ("points for tau", "all 10,000 test samples", f"{points}; elsewhere those predicted right"),
            ("input margins", "FAB", f"`InputMargin(effort=\"{linf['effort'].iloc[0]}\")`, "
             f"{decimals(float(linf['passes'].mean()), 0)} passes a point"),
            ("robust accuracy", "AutoAttack on all test samples", compared),
            ("Algorithm 1", "500 of 10,000", "half of the points with margins, and all"),
            ("pseudo-margin", "from 5,000 training samples", f"from {learned}"),
            ("seeds", "one network each", seeds(linf)),
        ],
    )  # fmt: skip


def seeds(linf: Frame) -> str:
    """From how many seeds networks were trained."""
    again = int(linf["network"].str.contains(r"_seed\d+$").sum()) if len(linf) else 0
    return f"one training seed each, and {again} networks from further seeds" if again else "one training seed each"


def headlines(tables: Tables) -> list[Headline]:
    """Return the headlines of the front page."""
    linf, few_margins, pseudo = linf_of(tables), frame_of(tables, "few"), frame_of(tables, "pseudo")
    otherwise = linf[linf["group"] != ADVERSARIAL]
    wide = where(wide_of(pseudo), group=ADVERSARIAL)
    features = "pseudo-margin, features"
    helps = len(wide) and float(wide[features].mean()) > float(wide["logit_margin"].mean())
    attacked = where(few_margins, group=ADVERSARIAL)
    parts = {dataset: where(attacked, share=0.5, dataset=dataset) for dataset in ("cifar10", "mnist")}
    worst = float(parts["mnist"]["estimate_error"].max()) if len(parts["mnist"]) else math.nan
    apart = dict.fromkeys(("cifar10", "mnist"), NOTHING)
    for dataset in set(attacked["dataset"]):
        apart[dataset] = percent(float(gaps_of(where(attacked, dataset=dataset)).mean()), 1)
    tau_columns = {f"{name}, adversarial": networks["tau_of_all"] for name, networks in by_dataset(linf)}
    tau_columns["trained in other ways"] = otherwise["tau_of_all"]
    taus = {
        name: Row(column, f"{int(strong(column).sum())} of {len(column)}", STRONG)
        for name, column in tau_columns.items()
    }
    gaps = {name: gaps_of(networks) for name, networks in by_dataset(few_margins)}
    apart_by = {
        name: Row(differences, percent(float(differences.mean()), 1), PAPER_GAP) for name, differences in gaps.items()
    }
    off = {
        f"{words}, {data_name(dataset)}": Row(rows[name], f"median {percent(float(rows[name].median()), 1)}")
        for dataset, rows in parts.items()
        for name, words in (("estimate_error", "Algorithm 1"), ("counted_error", "counting"))
        if len(rows)
    }
    learned = {name.replace("_", " "): Row(wide[name], mean(wide[name])) for name in (features, "logit_margin")}
    return [
        Headline(
            f"The logit margin orders points as the input margin does (Kendall's tau 0.68 or more) on "
            f"{reached(linf, 'cifar10')} adversarially trained networks on {data_name('cifar10')} and on "
            f"{reached(linf, 'mnist')} on MNIST, which the paper leaves out; "
            f"{int(strong(otherwise['tau_of_all']).sum())} of {len(otherwise)} networks trained in other ways reach "
            f"the same.",
            "margin_consistency_tau",
            Glance("tau of the logit margin", taus, f"dots: networks, ticks: {STRONG:g}, the paper's least"),
        ),
        Headline(
            f"The robust accuracy by margins and that by AutoAttack are {apart['cifar10']} apart in the mean on "
            f"adversarially trained networks on {data_name('cifar10')}, {apart['mnist']} on MNIST; a paper has 1.3%.",
            "margin_consistency_few",
            Glance("margins and an attack differ by", apart_by, "dots: networks, ticks: mean of the paper", ".0%"),
        ),
        Headline(
            f"The robust accuracy that Algorithm 1 gives from few margins is nearer than counting the same few points "
            f"on {nearer_than_counting(parts['cifar10'])} networks on {data_name('cifar10')}, and on "
            f"{nearer_than_counting(parts['mnist'])} on MNIST, which the paper leaves out, where one is off by "
            f"{percent(worst, 1)}.",
            "margin_consistency_few",
            Glance("robust accuracy from few is off by", off, "dots: networks", ".0%"),
        ),
        Headline(
            f"A pseudo-margin learned from the features alone {'helps' if helps else 'does not help'} on the "
            f"{len(wide)} least consistent adversarially trained networks: its tau is {mean(wide[features])}, that of "
            f"the logit margin {mean(wide['logit_margin'])}.",
            "margin_consistency_pseudo",
            Glance("tau on adversarially trained networks", learned, "dots: networks"),
        ),
    ]
