"""A score, a measurement and a noise family from outside the package work everywhere."""

from __future__ import annotations

import ast
import hashlib
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest
import torch
from checks.faults import contents
from helpers.documents import blocks
from helpers.extending import FILES, INSTALLED, PAGE, imported, write_page
from helpers.forks import forked
from helpers.laws import check_fields, check_identity, check_interval, check_passes, check_probability
from helpers.pages import Page, assert_inert
from helpers.problems import inputs, small_classifier

import brittle
from brittle import registry
from brittle.cli.commands import main
from brittle.data.formats import FORMATS
from brittle.decisions.kinds import DECISIONS
from brittle.errors import ParameterError, UsageError
from brittle.extensions.report.render import CHAPTERS
from brittle.measure.nearest.nearest import ATTACKS
from brittle.model.loading.load import SOURCES
from brittle.noise import Noise
from brittle.noise.named import NOISES
from brittle.scores import LogitMargin, Moments, MonteCarlo, Score
from brittle.scores.catalogue import CATALOGUE
from brittle.scores.choose import choose
from brittle.scores.outside import find_family, find_score
from brittle.user_code import digests

MOST_LINES = 40

REGISTRIES: dict[str, Mapping[str, object]] = {
    "score": CATALOGUE,
    "noise": NOISES,
    "decision": DECISIONS,
    "attack": ATTACKS,
    "format": FORMATS,
    "source": SOURCES,
    "chapter": CHAPTERS,
}
"""The parts of each kind that other packages add to."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder with the files of the page and data."""
    monkeypatch.chdir(tmp_path)
    return write_page(tmp_path)


@pytest.fixture
def mine(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import the module of the page as a user does."""
    with imported(place) as module:
        yield module


@pytest.mark.parametrize("number", range(len(FILES)), ids=FILES)
def test_every_part_is_short(number: int) -> None:
    """Count lines without imports, docstrings and empty lines."""
    tree = ast.parse(blocks(PAGE, "python")[number])
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            kinds = (ast.Import, ast.ImportFrom, ast.Expr)
            node.body = [statement for statement in node.body if not isinstance(statement, kinds)] or [ast.Pass()]
    assert len([line for line in ast.unparse(tree).splitlines() if line.strip()]) < MOST_LINES


def test_the_page_is_executed(mine: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks(PAGE, "python")[len(FILES)], PAGE, "exec"), {"torch": torch})
    for command in blocks(PAGE, "console")[0].splitlines():
        program, *arguments = shlex.split(command)
        assert program == "brittle"
        assert main(arguments) == 0
    assert Path("salty/run.json").is_file()


def test_a_score_from_outside_obeys_the_laws(mine: ModuleType) -> None:
    for score in (mine.Jeffreys(sigma=0.2), mine.Jeffreys(noise=mine.Salt(0.2), prior=2.0)):
        estimate = score(small_classifier(), inputs(5))
        check_fields(estimate, 5)
        check_interval(estimate)
        check_probability(estimate)
        check_passes(small_classifier(), inputs(5), score)
        check_identity(score)


@pytest.mark.usefixtures("nothing_drawn")
def test_parts_of_the_page_work_in_runs_reports_and_comparisons(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Use one of each in one run, as the page promises."""
    command = ["score", "./mynet.py:make", "mydata.npz", "--sigma", "0.2", "--quiet"]
    command += ["--scores", "./mine.py:Jeffreys", "monte_carlo", "--draws", "60", "--noise", "./mine.py:Salt"]
    assert main([*command, "--out", "run1", "--seed", "1"]) == 0
    shared = [*command, "--out", "run0", "--workers", "1"]
    monkeypatch.setattr(sys, "argv", ["brittle", *shared])  # what workers are started by
    assert main([*command, "--out", "alone"]) == main(shared) == 0
    table = brittle.read_table("run0")
    assert table.scores.equals(brittle.read_table("alone").scores)
    label = "jeffreys(draws=60, noise=salt, prior=0.5, sigma=0.2)"
    assert f"{label}.p_robust" in table.frame(whole=True).columns
    assert table.points["label"].to_pylist() == [number % 4 for number in range(16)]
    assert main(["report", "run0", "--against", "run1"]) == 0
    page = Page(Path("run0/report.html").read_text())
    assert_inert(page)
    for words in ("Counts flips over single draws", "salt"):
        assert words in page.text
    assert main(["compare", "run0", "run1"]) == 0
    assert label in capsys.readouterr().out


def test_a_changed_file_is_refused_on_resume_by_name(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["score", "./mynet.py:make", "mydata.npz", "--out", "run", "--quiet"]
    command += ["--sigma", "0.2", "--scores", "moments", "--noise", "./mine.py:Salt", "--resume"]
    assert main(command) == main(command) == 0
    before = contents(Path("run"))
    Path("mine.py").write_text(Path("mine.py").read_text() + "\n# another\n")
    assert main(command) == 5
    assert "scores.code.mine.py " in capsys.readouterr().err
    assert contents(Path("run")) == before


def test_the_record_has_the_digests_of_outside_files_alone(mine: ModuleType) -> None:
    digest = hashlib.sha256(Path("mine.py").read_bytes()).hexdigest()
    chosen = [mine.Jeffreys(sigma=0.2), Moments(noise=mine.Salt(0.2), draws=4), Moments(sigma=0.2, draws=4)]
    table = brittle.score(small_classifier(), inputs(5), chosen)
    assert [score.code for score in table.record.scores] == [{"mine.py": digest}, {"mine.py": digest}, None]
    assert "code" not in table.record.data.reading


def test_files_of_one_name_are_told_apart(place: Path) -> None:
    kinds = []
    for folder in ("one", "two"):
        Path(folder).mkdir()
        Path(folder, "mine.py").write_text(Path("mine.py").read_text() + f"# {folder}\n")
        kinds.append(find_score(f"./{folder}/mine.py:Jeffreys"))
    hashes = sorted(hashlib.sha256(Path(folder, "mine.py").read_bytes()).hexdigest() for folder in ("one", "two"))
    assert digests(kinds) == {"mine.py": " ".join(hashes)}
    assert digests([kinds[0]]) != digests([kinds[1]])
    assert digests([dict, Score]) is None


@pytest.mark.parametrize(
    ("spec", "code", "sentence"),
    [
        ("./absent.py:Score", 2, "absent.py cannot be read: No such file or directory"),
        ("./mine.py:Jefreys", 2, "./mine.py has no Jefreys; it has Salt, FlipCount, Jeffreys"),
        ("./mine.py", 2, "./mine.py:CLASS"),
        ("./mine.py:Salt", 3, "./mine.py:Salt is the class Salt; expected a subclass of brittle.scores.Score"),
        ("./broken.py:Score", 3, "broken.py failed at line 2: ZeroDivisionError"),
        ("absent.module:Score", 3, "importing absent.module failed"),
        ("mine:Jeffreys", 3, "./mine.py:Jeffreys"),
    ],
)
def test_what_is_named_and_is_not_there(
    place: Path, capsys: pytest.CaptureFixture[str], spec: str, code: int, sentence: str
) -> None:
    Path("broken.py").write_text("\n1 / 0\n")
    assert main(["score", "./mynet.py:make", "mydata.npz", "--out", "run", "--scores", spec]) == code
    stderr = capsys.readouterr().err
    assert sentence in stderr
    assert stderr.count("\n") == 1


def test_no_file_is_run_that_is_not_named(place: Path) -> None:
    Path("mine.py").write_text("raise SystemExit(9)")
    assert main(["list"]) == 0
    assert main(["score", "./mynet.py:make", "mydata.npz", "--out", "run", "--scores", "softmax", "--quiet"]) == 0


@pytest.mark.parametrize(
    ("setting", "fact"),
    [
        ("prior=1", "NAME.FIELD=VALUE"),
        ("jeffreys.depth=1", "'depth'"),
        ("jeffreys.sigma=1", "'sigma'"),
        ("jeffreys.draws=1.5", "whole number; found '1.5'"),
        ("jeffreys.prior=much", "number; found 'much'"),
        ("mmse.draws=4", "changes nothing; chosen are jeffreys, gaussian"),
    ],
)
def test_settings_that_cannot_be_made(place: Path, setting: str, fact: str) -> None:
    with pytest.raises(UsageError, match=re.escape(fact)):
        choose(["./mine.py:Jeffreys"], [0.1], settings=[setting])


def test_fields_of_a_noise_family_can_be_set(place: Path) -> None:
    Path("speckle.py").write_text(
        "from dataclasses import dataclass\n"
        "from brittle.noise import Uniform\n"
        "@dataclass(frozen=True)\n"
        "class Speckle(Uniform):\n"
        "    grain: int = 2\n"
        "    name = 'speckle'\n"
    )
    (score,) = choose(["monte_carlo"], [0.1], "./speckle.py:Speckle", settings=["speckle.grain=3"])
    assert score.parameters == {"sigma": 0.1, "noise": "speckle", "grain": 3, "draws": 1000, "limit": 0.9}
    assert issubclass(find_family("./speckle.py:Speckle"), Noise)
    with pytest.raises(ParameterError, match=r"expected a subclass of brittle\.noise\.Noise"):
        find_family("./mine.py:Jeffreys")


def test_two_of_one_name_are_not_taken_for_one(place: Path, mine: ModuleType) -> None:
    Path("yours.py").write_text(Path("mine.py").read_text())
    with pytest.raises(ParameterError, match="Jeffreys is called 'jeffreys' like Jeffreys; rename one"):
        choose(["./mine.py:Jeffreys", "./yours.py:Jeffreys"], [0.1])
    with pytest.raises(ParameterError, match="jeffreys is asked for twice"):
        choose(["./mine.py:Jeffreys", "./mine.py:Jeffreys"], [0.1])
    salt = find_family("./yours.py:Salt")
    with pytest.raises(ParameterError, match="Salt is called 'salt' like Salt; rename one"):
        brittle.score(
            small_classifier(),
            inputs(2),
            [MonteCarlo(noise=family(0.1), draws=4, limit=None) for family in (mine.Salt, salt)],
        )


def test_an_option_reaches_no_field_of_another_kind(place: Path) -> None:
    Path("other.py").write_text(
        "from brittle.scores.one_pass import OnePassScore\n"
        "from dataclasses import dataclass\n"
        "@dataclass(frozen=True)\n"
        "class Other(OnePassScore):\n"
        "    effort: int = 2\n"
        "    name = title = quantity = reference = explanation = 'other'\n"
        "    def value(self, one_pass):\n"
        "        return one_pass.top[0]\n"
    )
    chosen = choose(["./other.py:Other", "input_margin"], [0.1], options={"effort": "fast"})
    assert [score.parameters for score in chosen] == [{"effort": 2}, {"norm": "l2", "effort": "fast"}]
    with pytest.raises(UsageError, match="--effort changes none of these scores; it is for input_margin"):
        choose(["./other.py:Other"], [0.1], options={"effort": "fast"})


PARTS = """
from dataclasses import dataclass
from typing import ClassVar

import torch
from brittle.data.files import file_digest
from brittle.data.points import InputRows
from brittle.data.reading import Format
from brittle.noise import Noise
from brittle.noise.named import NamedNoise

@dataclass(frozen=True)
class Coins(Noise):
    name: ClassVar[str] = "coins"

    def draw(self, generator, size):
        return torch.randn(size, generator=generator).sign()

def read(path, reading):
    values = torch.tensor([list(map(float, line.split())) for line in path.read_text().splitlines()])
    ids = [f"line {number}" for number in range(len(values))]
    record = reading.record(path, file_digest(path))
    return reading.points(record, ids, lambda start, stop: InputRows(values[start:stop]))

TENTHS = NamedNoise(lambda tenths, data: [Coins(0.1 * level) for level in tenths], example=2.0)
LINES = Format("lines", "numbers in lines, .lines", lambda path: path.suffix == ".lines", read)
"""

COMMANDS = """
from brittle.cli.commands import main

for noise in (["coins", "--sigma", "0.2"], ["tenths:2"]):
    command = ["score", "./mynet.py:make", "numbers.lines", "--scores", "monte_carlo", "--draws", "40", "--quiet"]
    assert main([*command, "--noise", *noise, "--out", noise[0][0]]) == 0
"""


def test_parts_of_another_package_are_found_by_its_entry_points(place: Path) -> None:
    """Find a noise by class and by a word with levels, and a format, in a process that does not import the package."""
    metadata = place / "coins-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: coins\nVersion: 1.0\n")
    entries = {"noise.coins": "Coins", "noise.tenths": "TENTHS", "format.lines": "LINES"}
    lines = [f"{name} = coins_and_lines:{attribute}" for name, attribute in entries.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[brittle.extensions]", *lines, ""]))
    (place / "coins_and_lines.py").write_text(PARTS)
    rows = inputs(4).flatten(1).tolist()
    (place / "numbers.lines").write_text("\n".join(" ".join(map(str, row)) for row in rows))
    done = forked(INSTALLED + COMMANDS, str(place))
    assert done.returncode == 0, done.stderr
    tables = [brittle.read_table(run) for run in ("c", "t")]
    assert tables[0].scores.equals(tables[1].scores)
    assert tables[0].points["point"].to_pylist() == [f"line {number}" for number in range(4)]
    assert [set(score.code or {}) for score in tables[1].record.scores] == [{"coins_and_lines.py"}]


def test_the_package_of_the_page_is_an_extension(place: Path) -> None:
    """Write its files and entry points as an installer would: a score, a noise, and a chapter of the report."""
    package, metadata = place / "my_package", place / "my_package-1.0.dist-info"
    package.mkdir()
    metadata.mkdir()
    score, _, chapter = blocks(PAGE, "python")
    files = {
        "__init__.py": "",
        "score.py": score,
        "chapter.py": chapter,
        "jeffreys.html.jinja": blocks(PAGE, "jinja")[0],
    }
    for name, text in files.items():
        (package / name).write_text(text)
    project = tomllib.loads(blocks(PAGE, "toml")[0])["project"]
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    parts = project["entry-points"]["brittle.extensions"].items()
    lines = ["[brittle.extensions]", *(f"{part} = {module}" for part, module in parts), ""]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    commands = [shlex.split(line)[1:] for line in blocks(PAGE, "text")[1].splitlines()]
    code = f"from brittle.cli.commands import main\nfor words in {commands!r}:\n    assert main([*words]) == 0"
    done = forked(INSTALLED + code, str(place))
    assert done.returncode == 0, done.stderr
    page = Page(Path("theirs/report.html").read_text())
    assert_inert(page)
    assert re.search(r"noise=salt.*: the prediction holds with \d+\.\d% on average", page.text)


@pytest.mark.parametrize(
    ("entries", "kind", "core", "facts"),
    [
        ([("score.mine", "one:A"), ("score.mine", "two:A")], "score", {}, ("one:A and two:A", "score.mine")),
        ([("score.laplacian", "one:A")], "score", {}, ("brittle and one:A", "score.laplacian")),
        ([("noise.gaussian", "one:A")], "noise", {"gaussian": 1}, ("brittle and one:A", "noise.gaussian")),
        ([("score.mine", "absent_package:A")], "score", {}, ("absent_package:A", "ModuleNotFoundError")),
        ([("scores.mine", "one:A")], "score", {}, ("one:A", "'scores.mine'", "score.mine?")),
        ([("anything", "one:A")], "score", {}, ("one:A", "'anything'", "score, ")),
    ],
)
def test_a_part_of_two_packages_is_refused_by_both_names(
    entries: list[tuple[str, str]],
    kind: str,
    core: dict[str, int],
    facts: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refuse_parts(entries, registry.Registry(kind, core), facts, monkeypatch)


@pytest.mark.parametrize("kind", list(REGISTRIES))
@pytest.mark.parametrize("value", ["os:O_RDWR", "os:PathLike"])
def test_a_part_of_another_type_is_refused(kind: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number, and a class that has nothing to do with the kind."""
    refuse_parts([(f"{kind}.mine", value)], REGISTRIES[kind], (value, f"{kind}.mine", "expected"), monkeypatch)


def refuse_parts(
    entries: list[tuple[str, str]],
    parts: Mapping[str, object],
    facts: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With these entry points the parts cannot be listed; the error names the facts."""
    points = [EntryPoint(name, value, registry.GROUP) for name, value in entries]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    caches = [function for function in vars(registry).values() if hasattr(function, "cache_clear")]
    try:
        for function in caches:
            function.cache_clear()
        with pytest.raises(ParameterError) as caught:
            list(parts.items())
    finally:
        for function in caches:
            function.cache_clear()
    assert all(fact in str(caught.value) for fact in facts)


def test_what_a_class_says_of_all_its_scores_is_no_field() -> None:
    """Refuse such a field: a score would get the name of another."""

    @dataclass(frozen=True)
    class Renamed(LogitMargin):
        name: str = "renamed"  # type: ignore[misc]

    with pytest.raises(ParameterError, match="field name"):
        brittle.score(small_classifier(), inputs(2), [Renamed(name="logit_margin")])
