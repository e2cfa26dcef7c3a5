"""Pictures of the report in README and documentation match the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("playwright")

from checks.screenshots import KEY, page_digest

IMAGES = Path(__file__).parents[3] / "docs" / "images"


@pytest.mark.parametrize("name", ["report.png", "report-point.png"])
def test_the_pictures_match_the_page(name: str) -> None:
    """Templates, style and script are unchanged since `make screenshots` took the pictures."""
    with Image.open(IMAGES / name) as picture:
        assert picture.info[KEY] == page_digest()
