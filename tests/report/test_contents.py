"""What a page is made from: which noise levels stand side by side."""

from __future__ import annotations

from brittle.report.contents import MAX_PANELS, spread
from brittle.store.columns import Setting


def test_at_most_so_many_panels_with_the_ends_and_the_chosen() -> None:
    available = [Setting(float(sigma), "gaussian") for sigma in range(1, 12)]
    for chosen in available:
        kept = spread(available, chosen)
        assert len(kept) == MAX_PANELS
        assert {available[0], available[-1], chosen} <= set(kept)
        assert list(kept) == sorted(kept)
    assert spread(available[:2], None) == tuple(available[:2])
