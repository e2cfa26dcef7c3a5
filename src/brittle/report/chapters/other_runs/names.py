"""How runs, and the noise at which they are compared, are named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from brittle.analysis.columns import sampled_columns
from brittle.analysis.label_flips import FLIPS
from brittle.report.contents import Contents
from brittle.store.settings import Setting

THIS = "this run"


def distinct(names: Sequence[str]) -> list[str]:
    """Names told apart by their place where several are alike."""
    times = Counter(names)
    return [f"{name} ({place + 1})" if times[name] > 1 else name for place, name in enumerate(names)]


def flips_setting(contents: Contents) -> Setting | None:
    """The noise setting whose flips are shown: the one that the page speaks of, or the noisiest."""
    known = sampled_columns(contents.columns, FLIPS)
    chosen = contents.chosen.setting if contents.chosen is not None else None
    return chosen if chosen in known else next(reversed(known), None)
