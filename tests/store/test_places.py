"""Local paths, and the message about stores where no extension reaches them."""

from __future__ import annotations

from pathlib import Path

import pytest

from brittle import registry
from brittle.errors import DataError
from brittle.store.places import is_stored, located


def test_a_local_path_is_no_store(tmp_path: Path) -> None:
    for form in ("{}", "file://{}", "local://{}", "file:{}"):
        path = located(form.format(tmp_path))
        assert path == tmp_path
        assert not is_stored(path)


def test_a_store_needs_its_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.PARTS, "place.store", "vanished.places:STORE")
    with pytest.raises(DataError) as caught:
        located("s3://bucket/data.parquet")
    assert caught.value.code == "not_installed"
    assert "s3://bucket/data.parquet is of the extension vanished" in str(caught.value)
