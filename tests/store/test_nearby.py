"""What was meant by a path at which there is nothing."""

from __future__ import annotations

from pathlib import Path

from brittle.store.nearby import nearby


def test_close_names_come_first_and_others_are_listed(tmp_path: Path) -> None:
    for name in ("weights.safetensors", "data.npz", "x.npz", "a.npz", "b.npz"):
        (tmp_path / name).touch()
    arrays = lambda path: path.suffix == ".npz"  # noqa: E731
    assert nearby(tmp_path / "dta.npz", arrays) == f"; did you mean {tmp_path / 'data.npz'}?"
    assert nearby(tmp_path / "qqqq.npz", arrays) == f"; {tmp_path.name} holds a.npz, b.npz, data.npz and 1 more"
    assert nearby(tmp_path / "qqqq", lambda path: path.is_dir()) == ""
    assert nearby(tmp_path / "no" / "x.npz", arrays) == f"; there is no folder {tmp_path / 'no'}"
