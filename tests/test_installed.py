"""The installed package: it is complete, works with its dependencies alone, and names its extras."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import requires
from pathlib import Path

import pytest
from helpers.documents import ROOT, pages, read
from helpers.processes import LIMIT
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from brittle.errors import ModelError
from brittle.model.loading.load import load_model

PROJECT = tomllib.loads(read("pyproject.toml"))["project"]
EXTRAS = {"all", "cloud", "demo", "hf", "onnx", "ray", "sklearn", "trees"}
"""Extras for users; `test`, `docs` and `dev` are for contributors."""

BUILD = "from setuptools import build_meta as build; print(build.build_sdist('dist'), build.build_wheel('dist'))"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel and a source archive in a copy of the repository, offline, and return their folder."""
    place = tmp_path_factory.mktemp("built")
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "tests/test_limit.py"):
        (place / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, place / name)
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    done = subprocess.run([sys.executable, "-c", BUILD], cwd=place, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return place / "dist"


def wheel(folder: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_holds_the_package_alone(built: Path) -> None:
    """Expect every module, template, style and script, and the mark of types; no test, no page of docs."""
    files = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "brittle").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {name for name in wheel(built).namelist() if ".dist-info/" not in name} == files


def test_the_source_archive_can_be_built_from_and_holds_no_tests(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO", "src/brittle/py.typed"} <= inside
    assert not [name for name in inside if name.startswith("tests")]


def test_the_metadata_are_whole(built: Path) -> None:
    """Read them as a registry does: valid, with a licence, a text in Markdown, and the documented extras."""
    folder = f"brittle-{PROJECT['version']}.dist-info"
    metadata = Metadata.from_email(wheel(built).read(f"{folder}/METADATA"), validate=True)
    assert (metadata.license_expression, metadata.license_files) == ("Apache-2.0", ["LICENSE"])
    assert (metadata.description_content_type, metadata.description) == ("text/markdown", read("README.md"))
    assert {*(metadata.provides_extra or [])} == EXTRAS | {"test", "docs", "dev"}
    assert "brittle = brittle.cli.commands:run" in wheel(built).read(f"{folder}/entry_points.txt").decode()


ALONE = """
import importlib.abc, json, re, sys
from importlib.metadata import packages_distributions
from pathlib import Path

asked_for = set(json.loads(sys.argv[1]))
plain = lambda name: re.sub(r"[-_.]+", "-", name).lower()
others = {top for top, names in packages_distributions().items() if not asked_for & {*map(plain, names)}}

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in others:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import numpy as np
Path("net.py").write_text("import torch\\nmake = lambda: torch.nn.Linear(4, 3)\\n")
np.savez("data.npz", x=np.random.default_rng(0).random((6, 4), dtype=np.float32), y=np.arange(6) % 3)

from brittle.cli.commands import main
for command in ("score ./net.py:make data.npz --out run --scores logit_margin", "report run", "show run"):
    assert main(command.split()) == 0
assert "sklearn" in others and main(["demo"]) == 2
"""


def asked_for() -> set[str]:
    """Return the distributions that a plain install brings."""
    distributions, pending = {"brittle"}, [Requirement(line) for line in PROJECT["dependencies"]]
    while pending:
        requirement = pending.pop()
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if applies and (name := canonicalize_name(requirement.name)) not in distributions:
            distributions.add(name)
            pending += map(Requirement, requires(name) or [])
    return distributions


def test_a_plain_install_scores_and_writes_the_report(tmp_path: Path) -> None:
    """Hide every package that is not a dependency."""
    command = [sys.executable, "-c", ALONE, json.dumps([*asked_for()])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "report.html").stat().st_size > 100_000


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [("onnxruntime", "net.onnx", "onnx"), ("skops", "forest.skops", "sklearn"), ("transformers", "bert", "hf")],
)
def test_what_is_not_installed_is_named_by_its_extra(
    package: str, name: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for loaded in [package, *(module for module in sys.modules if module.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, loaded, None)
    place = tmp_path / name
    if place.suffix:
        place.write_bytes(b"\x08")
    else:
        place.mkdir()
        (place / "config.json").write_text('{"architectures": ["BertForSequenceClassification"], "model_type": "bert"}')
        (place / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelError) as caught:
        load_model(place)
    assert caught.value.code == "not_installed"
    assert f"brittle[{extra}]" in str(caught.value)


def test_the_extras_that_pages_name_are_there() -> None:
    text = read("README.md") + read("llms.txt") + "".join(page.read_text(encoding="utf-8") for page in pages())
    extras = {name for names in re.findall(r"(?:brittle|'\.)\[([a-z,]+)\]", text) for name in names.split(",")}
    assert extras == EXTRAS


def test_the_version_is_one() -> None:
    versions = [
        read("CITATION.cff").split("\nversion: ")[1].split("\n")[0],
        read("CHANGELOG.md").split("\n## ")[1].split()[0],
    ]
    assert versions == [PROJECT["version"]] * 2
