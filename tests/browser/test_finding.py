"""Where no browser is installed, tests that need one say so: they are skipped, or fail where they must run."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import browser
from helpers.browser import NAMED, NO_BROWSER, REQUIRED, find_browser, miss


def test_the_named_browser_goes_before_the_installed_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("google-chrome", "chromium"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(NAMED, raising=False)
    assert find_browser() == tmp_path / "chromium"
    monkeypatch.setenv(NAMED, str(tmp_path / "google-chrome"))
    assert find_browser() == tmp_path / "google-chrome"
    monkeypatch.setenv(NAMED, str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match=f"{NAMED} is '.*none', which is no file"):
        find_browser()


def test_without_a_browser_the_tests_are_skipped_or_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(NAMED, raising=False)
    monkeypatch.delenv(REQUIRED, raising=False)
    assert find_browser() is None
    for value, outcome in (("", pytest.skip.Exception), ("0", pytest.skip.Exception), ("1", pytest.fail.Exception)):
        monkeypatch.setenv(REQUIRED, value)
        with pytest.raises(outcome, match="no browser is installed: install Chromium"):
            miss(NO_BROWSER)


def test_without_axe_its_law_is_not_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(browser, "AXE", tmp_path / "axe.min.js")
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="axe-core is not installed: make page-tools"):
        browser.Opened(page=None).violations()  # pyright: ignore[reportArgumentType]
