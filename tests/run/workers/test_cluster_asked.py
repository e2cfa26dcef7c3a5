"""What is asked of a cluster is refused before a node is looked for, where it cannot be given."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from brittle.cli import main
from brittle.errors import BrittleError
from brittle.run.workers.cluster import Cluster


@pytest.fixture
def no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home without a token, and no settings of Ray."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def cluster(address: str, **options: Any) -> Cluster:
    return Cluster(address, [], print, **options)


def refused(address: str, **options: Any) -> BrittleError:
    with pytest.raises(BrittleError) as caught:
        list(cluster(address, **options).shards([0]))
    return caught.value


@pytest.mark.parametrize("address", ["auto", "10.0.0.1:6379", "[::1]:6379"])
def test_an_address_without_a_token_is_refused(address: str, no_token: Path) -> None:
    error = refused(address)
    assert error.code == "insecure_cluster"
    assert address in error.args[0]
    assert "--insecure-cluster" in error.args[0]
    cluster(address, insecure=True)
    cluster("local")


def test_where_a_token_may_lie(no_token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    cluster("auto")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert refused("auto").code == "insecure_cluster"
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(no_token / "token"))
    assert refused("auto").code == "insecure_cluster"
    (no_token / "token").write_text("secret")
    cluster("auto")
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH")
    assert refused("auto").code == "insecure_cluster"
    (no_token / ".ray").mkdir()
    (no_token / ".ray" / "auth_token").write_text("")
    assert refused("auto").code == "insecure_cluster"
    (no_token / ".ray" / "auth_token").write_text("secret")
    cluster("auto")


@pytest.mark.parametrize(
    "address", ["", "ray://head:10001", "head", "head:", ":6379", "head:port", "http://head:80", "head:99999", "head:²"]
)
def test_what_is_no_address(address: str) -> None:
    assert refused(address, insecure=True).code == "parameter"


@pytest.mark.parametrize("size", [0, -1, 5000])
def test_how_many(size: int) -> None:
    assert refused("local", size=size).code == "parameter"


@pytest.mark.parametrize("gpus", [-0.5, 1.5, float("nan"), float("inf")])
def test_shares_of_gpus(gpus: float) -> None:
    assert refused("local", gpus=gpus).code == "parameter"


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    error = refused("local")
    assert error.code == "cluster"
    assert "pip install 'brittle[ray]'" in error.args[0]


def test_a_ray_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setattr(ray, "__version__", "2.51.2")
    assert "found 2.51.2" in refused("local").args[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--insecure-cluster"], "is for --cluster"),
        (["--cluster", "local", "--device", "cuda:1"], "give --device cuda"),
        (["--cluster", "head:6379"], "no token is set here"),
    ],
)
def test_options_that_do_not_fit(
    options: list[str], said: str, no_token: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are refused before the model is opened: there is none."""
    code = main(["score", "no.py:make", "no.npz", "--out", str(no_token / "run"), *options])
    assert code in (2, 3)
    assert said in capsys.readouterr().err
    assert not (no_token / "run").exists()


def test_a_cluster_that_others_reach_is_refused() -> None:
    """Where a version of Ray does not bind to the address that it is told."""
    ray = SimpleNamespace(__version__="9.9", get_runtime_context=lambda: SimpleNamespace(gcs_address="192.0.2.2:6379"))
    with pytest.raises(
        BrittleError, match=r"Ray 9\.9 listens at 192\.0\.2\.2:6379, where other machines reach it"
    ) as caught:
        cluster("local")._check_at_home(ray)
    assert caught.value.code == "cluster"
    cluster("10.0.0.1:6379", insecure=True)._check_at_home(ray)
