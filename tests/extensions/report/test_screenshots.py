"""The pictures of the report in README and documentation are of the page as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("playwright")

from checks.screenshots import KEY, page_digest

IMAGES = Path(__file__).parents[3] / "docs" / "images"


@pytest.mark.parametrize("name", ["report.png", "report-point.png"])
def test_the_pictures_are_of_the_page_as_it_is(name: str) -> None:
    """Where it fails, templates, style or script changed since: `make screenshots` takes the pictures anew."""
    with Image.open(IMAGES / name) as picture:
        assert picture.info[KEY] == page_digest()
