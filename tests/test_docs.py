"""README and docs are true: their tables come from the catalogue, their commands run, their examples are executed."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
import shutil
import struct
import sys
import tarfile
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.documents import ROOT, blocks, pages, read
from helpers.text_models import bert_folder, write_reviews
from PIL import Image

import brittle
from brittle.cli.commands import main
from brittle.estimate import Status
from brittle.scores.catalogue import CATALOGUE


def catalogue_table() -> str:
    rows = ["| name | what it is | value | passes per point | source |", "| --- | --- | --- | --- | --- |"]
    rows += [
        f"| `{name}` | {kind.title} | {kind.quantity.replace('_', ' ')} | {kind.cost} | {kind.reference} |"
        for name, kind in CATALOGUE.items()
    ]
    return "\n".join(rows)


def status_table() -> str:
    rows = ["| status | number | what it says |", "| --- | --- | --- |"]
    rows += [f"| `{member.slug}` | {'yes' if member.has_value else 'no'} | {member.sentence} |" for member in Status]
    return "\n".join(rows)


def test_the_page_of_scores_holds_the_catalogue() -> None:
    assert catalogue_table() in read("docs/reference/scores.md")


SHOWN = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", flags=re.DOTALL)
"""Pattern of an example and its output."""

NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-\d+)?")

PAGES = [page.relative_to(ROOT).as_posix() for page in (ROOT / "README.md", *pages()) if SHOWN.search(page.read_text())]


TRAINING = "docs/how-to/robust-training.md"
"""A page that trains nine networks."""


@pytest.mark.parametrize("page", [pytest.param(page, marks=[pytest.mark.slow] * (page == TRAINING)) for page in PAGES])
def test_an_example_prints_the_output_on_the_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a few points and hundredths of difference between processors and versions."""
    monkeypatch.chdir(tmp_path)
    ((example, shown),) = SHOWN.findall(read(page))
    with redirect_stdout(StringIO()) as printed, torch.random.fork_rng(devices=[]):
        exec(compile(example, page, "exec"), {})
    output = printed.getvalue()
    assert NUMBER.sub("", output).split() == NUMBER.sub("", shown).split()
    for number, expected_number in zip(NUMBER.findall(output), NUMBER.findall(shown), strict=True):
        assert abs(float(number) - float(expected_number)) <= (0.05 if "." in expected_number else 4)


def test_the_readme_is_read_in_a_minute() -> None:
    assert (ROOT / "README.md").stat().st_size <= 6144


def test_docs_hold_every_status() -> None:
    assert status_table() in read("docs/reference/run-folder.md")


def test_list_prints_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed and kind.reference in printed for name, kind in CATALOGUE.items())


@pytest.mark.usefixtures("nothing_drawn", "short_search")
def test_the_readers_own_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page's factory, data, commands and Python example, executed as they stand."""
    factory, example = blocks("docs/start.md", "python")
    commands = "".join(blocks("docs/start.md", "console")).splitlines()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("mynet.py").write_text(factory)
    torch.manual_seed(0)  # with the fixed inputs: enough brittle points for the detector
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    torch.save(network.state_dict(), "mynet.pt")
    x = np.random.default_rng(0).random((120, 64), dtype=np.float32)
    np.savez("mydata.npz", x=x, y=np.arange(120) % 10)
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "brittle"
        monkeypatch.setattr(sys, "argv", ["brittle", *arguments])
        assert main(arguments) == 0
    assert Path("myrun/report.html").is_file()
    assert Path("flags.csv").is_file()
    assert Path("average.json").is_file()
    exec(compile(example, "docs/start.md", "exec"), {})
    assert len(brittle.read_table("another-run").frame(whole=True)) == 120


def start_commands() -> list[str]:
    """Return the commands in the tables of data and commands."""
    tables = (
        read(page).split("| you have | you type |")[1].split("\n\n")[0] for page in ("README.md", "docs/start.md")
    )
    return [
        command for command in re.findall(r"\| `([^`]+)` \|$", "\n".join(tables), re.MULTILINE) if "(" not in command
    ]


FACTORIES = {
    "mynet": "make = lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))",
    "myconv": "make = lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 2))",
    "weather": "make = lambda: torch.nn.Linear(2, 3)",
    "price": "make = lambda: torch.nn.Linear(2, 1)",
    "guard": "judge = lambda texts: [[0.1, 0.9] if 'bad' in text else [0.8, 0.2] for text in texts]",
    "mynoise": "def brighten(x, generator):\n    return x + 0.1 * torch.rand(1, generator=generator)",
    "forest": "from sklearn.ensemble import RandomForestClassifier as Forest\n"
    "make = lambda: Forest(9, random_state=0).fit([[13.0, 1.5], [12.0, 700.0]] * 9, ['red', 'white'] * 9)",
}


def write_start_files() -> None:
    """Write small files under the names of the table."""
    for name, code in FACTORIES.items():
        Path(f"{name}.py").write_text(f"import torch\ntorch.manual_seed(0)\n{code}\n", encoding="utf-8")
    generator = np.random.default_rng(0)
    np.savez("mydata.npz", x=generator.random((6, 64), dtype=np.float32), y=np.arange(6))
    for number in range(4):
        Path(f"photos/{number % 2}").mkdir(parents=True, exist_ok=True)
        Image.new("L", (20 + number, 30), 60 * number).save(f"photos/{number % 2}/{number}.png")
    with tarfile.open("test-000000.tar", "w") as tar:
        tar.add("photos/0/0.png", "0.png")
    Path("wine.csv").write_text("alcohol,proline,kind\n13,1.5,red\n12,700,white\n", encoding="utf-8")
    Path("weather.csv").write_text("a,b,rain,snow,fog\n0.5,1,1,0,0\n0.25,0,0,1,1\n", encoding="utf-8")
    Path("houses.csv").write_text("a,b,price\n0.5,1,1.5\n0.25,0,-0.25\n", encoding="utf-8")
    Path("messages.csv").write_text("text,label\na bad one,1\nanother,0\n", encoding="utf-8")
    Path("mnist").mkdir()
    digits = generator.integers(0, 256, 4 * 64, dtype=np.uint8).tobytes()
    Path("mnist/t10k-images-idx3-ubyte").write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, 4, 8, 8) + digits)
    Path("mnist/t10k-labels-idx1-ubyte").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, 4) + bytes(range(4)))


def write_network() -> None:
    """Write `network.onnx`, a linear layer."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    names = {"input_names": ["x"], "output_names": ["z"], "dynamic_axes": {"x": {0: "n"}, "z": {0: "n"}}}
    torch.onnx.export(torch.nn.Linear(64, 10), (torch.rand(2, 64),), "network.onnx", dynamo=False, **names)


SHOWN_AND_REPORTED = ("brittle score MODEL DATA --out RUN", "brittle show RUN", "brittle report RUN")
"""Commands of the README that run on each row of the table."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize("number", range(13))
def test_the_commands_for_each_model_and_data_run(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_start_files()
    commands = start_commands()
    assert len(commands) == 13
    if commands[number].startswith("bert"):
        bert_folder(Path("bert"))
        write_reviews()
    if commands[number].startswith("network.onnx"):
        write_network()
    for command in SHOWN_AND_REPORTED:
        assert main(shlex.split(command.replace("MODEL DATA", commands[number]))[1:]) == 0


ELSEWHERE = {
    "make demo": "`brittle demo` for half a minute: tests/extensions/demo/test_demo.py runs it on fewer points",
    "make test": "this suite",
    "make docs": "the tutorials of the site take minutes; tests/test_docs.py runs the examples of its pages",
    "pip install .": "tests/test_installed.py builds its wheel, and runs it with all that it does not ask for away",
    "pip install '.[hf]'": "downloads; tests/test_installed.py compares the extras",
    "pip install brittle": "not on PyPI yet",
    "uvx 'brittle[demo]' demo": "not on PyPI yet",
    "brittle demo": "tests/extensions/demo/test_demo.py",
    "brittle check": "tests/test_docs.py runs the gates of docs/how-to/pipeline.md",
    "brittle list": "tests/test_docs.py prints the catalogue",
}
"""Commands of the README that do not run on the rows of its table, with the test that runs them or a reason."""


def test_every_command_of_the_readme_is_run_or_named() -> None:
    text = read("README.md")
    commands = {re.sub(r" +#.*", "", line) for line in "".join(blocks("README.md", "console")).splitlines()}
    commands |= set(re.findall(r"`((?:brittle|make|pip|uvx) [^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))
    assert commands == {*SHOWN_AND_REPORTED, *ELSEWHERE}
    assert all((ROOT / name).is_file() for why in ELSEWHERE.values() for name in re.findall(r"[\w/-]+\.(?:py|md)", why))


def write_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a classifier of texts into a cache of the Hub, used without a network, and write `reviews.csv`."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(Path("hub").absolute()))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    commit, repository = "0" * 40, Path("hub/models--owner--name")
    (repository / "refs").mkdir(parents=True)
    (repository / "refs/main").write_text(commit)
    bert_folder(repository / "snapshots" / commit)
    write_reviews()


def write_fitted(kind: str, file: str, **options: Any) -> None:
    """Write a fitted classifier to `file`, and to `flowers.npz` some of its training data."""
    library, _, name = kind.rpartition(".")
    x = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64) + (x[:, 1] > 1)
    np.savez("flowers.npz", x=x[:8], y=y[:8])
    model = getattr(pytest.importorskip(library), name)(**options).fit(x, y)
    if file.endswith(".skops"):
        pytest.importorskip("skops.io").dump(model, file)
    else:
        getattr(model, "booster_", model).save_model(file, **({"format": "json"} if "catboost" in kind else {}))


FLOWERS = "flowers.npz --noise per-feature --sigma 0.1"
TREES = {"n_estimators": 3, "verbose": 0}
EXTRAS: dict[tuple[str, str], Callable[[pytest.MonkeyPatch], object]] = {
    ("hf", "hf:owner/name reviews.csv --text-column text --label-column label --noise relative:0.5"): write_hub,
    ("onnx", "network.onnx mydata.npz"): lambda _: (write_start_files(), write_network()),
    ("sklearn", f"regression.skops {FLOWERS}"): lambda _: write_fitted(
        "sklearn.linear_model.LogisticRegression", "regression.skops"
    ),
    ("trees", f"xgboost.json {FLOWERS}"): lambda _: write_fitted(
        "xgboost.XGBClassifier", "xgboost.json", n_estimators=3
    ),
    ("trees", f"lightgbm.txt {FLOWERS}"): lambda _: write_fitted("lightgbm.LGBMClassifier", "lightgbm.txt", **TREES),
    ("trees", f"catboost.json {FLOWERS}"): lambda _: write_fitted(
        "catboost.CatBoostClassifier", "catboost.json", allow_writing_files=False, **TREES
    ),
}
"""Uses of an extra in the README, as a command behind `brittle score`, and the function that writes its files."""

OTHER_EXTRAS = {
    "demo": "tests/extensions/demo/test_demo.py",
    "ray": "tests/extensions/workers/test_cluster.py starts a cluster here, in seconds",
    "all": "those together",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("extra", "command"), EXTRAS)
def test_an_extra_opens_the_models_of_the_readme(
    extra: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    EXTRAS[extra, command](monkeypatch)
    assert main(["score", *shlex.split(command), "--out", "RUN"]) == 0


def test_every_extra_of_the_readme_is_run_or_named() -> None:
    paragraph = read("README.md").split("## Install")[1].split("Nothing is on PyPI")[0]
    extras = set(re.findall(r"`(\w+)`|\[(\w+)\]", paragraph))
    assert {"".join(name) for name in extras} == {extra for extra, _ in EXTRAS} | set(OTHER_EXTRAS)


def test_the_scores_of_the_readme_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their evidence is in exports with `--whole`."""
    monkeypatch.chdir(tmp_path)
    write_start_files()
    scores = re.findall(r"\| `(\w+)` \|$", read("README.md").split("| you want | take |")[1], re.MULTILINE)
    assert len(scores) == 5
    assert main(["score", "./mynet.py:make", "mydata.npz", "--out", "RUN", "--draws", "40", "--scores", *scores]) == 0
    assert main(["export", "RUN", "run.csv", "--whole"]) == 0
    columns = Path("run.csv").read_text(encoding="utf-8").splitlines()[0]
    assert all(score in columns for score in (*scores, "evidence"))


@pytest.mark.parametrize(
    "page",
    [
        "explanation/attacks",
        "explanation/groups",
        "how-to/notebook",
        "how-to/texts",
        "reference/data",
        "reference/models",
    ],
)
def test_the_example_of_the_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for example in blocks(f"docs/{page}.md", "python"):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            exec(compile(example, f"docs/{page}.md", "exec"), {})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """Execute the example of the page about sharing, and return its folder and its names."""
    (example,) = blocks("docs/how-to/share.md", "python")
    place, names = tmp_path_factory.mktemp("shared"), dict[str, object]()
    with chdir(place), torch.random.fork_rng(devices=[]):
        exec(compile(example, "docs/how-to/share.md", "exec"), names)
    return place, names


@pytest.mark.parametrize("recipe", blocks("docs/how-to/tools.md", "python"), ids=lambda recipe: recipe.split()[1])
def test_a_recipe_for_another_tool(
    recipe: str, shared: tuple[Path, dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the recipe on the table of the page before, if the tool is installed."""
    pytest.importorskip(re.findall(r"^(?:import|from) (\w+)", recipe, flags=re.MULTILINE)[0])
    place, names = shared
    monkeypatch.chdir(place)
    exec(compile(recipe, "docs/how-to/tools.md", "exec"), dict(names))


def test_the_commands_of_the_page_on_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mynet.py").write_text("import torch\nmake = lambda: torch.nn.Linear(3, 2)\n", encoding="utf-8")
    Path("table.csv").write_text("a,b,c,species\n0.5,1,-1,ant\n0.25,2,3,bee\n", encoding="utf-8")
    Path("myconv.py").write_text(
        "import torch\nmake = lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 2))\n",
        encoding="utf-8",
    )
    Path("classes.txt").write_text("bee\nant\n", encoding="utf-8")
    np.save("x.npy", np.random.default_rng(0).random((5, 3), dtype=np.float32))
    np.save("y.npy", np.arange(5) % 2)
    Path("photos").mkdir()
    for number in range(4):
        Image.new("RGB", (4, 4), (60 * number, 0, 0)).save(f"photos/{number}.png")
    Path("mixed/ant").mkdir(parents=True)
    Image.new("L", (8, 5), 200).save("mixed/ant/0.png")
    Image.new("RGB", (4, 7), (9, 90, 200)).save("mixed/ant/1.ppm")
    np.save("classes.npy", np.arange(4) % 2)
    Path("shards").mkdir()
    for archive in ("test-000000.tar", "shards/test-000000.tar", "shards/train-000000.tar"):
        with tarfile.open(archive, "w") as tar:
            tar.add("photos/0.png", "0.png")
    for command in "".join(blocks("docs/reference/data.md", "console")).splitlines():
        assert main(shlex.split(command)[1:]) == 0


def test_the_commands_of_the_page_on_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A small network replaces those of papers, whose functions exist."""
    page = "docs/how-to/checkpoints.md"
    functions = re.findall(r"`\./research/studies/architectures\.py:(\w+)`", read(page))
    assert len(functions) == 6
    assert all(
        re.search(rf"^def {name}\(", read("research/studies/architectures.py"), re.MULTILINE) for name in functions
    )
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 3))
        images = torch.rand(12, 3, 4, 4)
    code = "make = lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 3))\n"
    Path("mynet.py").write_text(f"import torch\n{code}", encoding="utf-8")
    numbers = {
        "module.mu": torch.tensor([0.4914, 0.4822, 0.4465]),
        "module.sigma": torch.tensor([0.2471, 0.2435, 0.2616]),
    }
    state = torch.nn.DataParallel(network).state_dict() | numbers
    torch.save({"state_dict": state, "ema": network.state_dict()}, "both.pt")
    torch.save({"state_dict": state, "ema": {}}, "theirs.pt")
    np.savez("mydata.npz", x=images.numpy(), y=network(images).argmax(1).numpy())
    ((command,), (expected_text,)) = (blocks(page, language) for language in ("console", "text"))
    assert main(shlex.split(command)[1:]) == 0
    assert expected_text in capsys.readouterr().err
    questions = re.findall(r"\| `((?:score|robust-accuracy) MODEL .*)` \|$", read(page), re.MULTILINE)
    assert len(questions) == 4
    for question in questions:
        command_line = question.replace("MODEL", "./mynet.py:make").replace("DATA", "mydata.npz --weights theirs.pt")
        assert main(shlex.split(command_line)) == 0
    assert abs(3**0.5 * 0.0181129 - 8 / 255) < 1e-7
    (keep,) = blocks(page, "shell")
    Path("both.pt").replace("theirs.pt")
    exec(shlex.split(keep)[2])
    assert torch.load("ema.pt", weights_only=True).keys() == network.state_dict().keys()


def test_the_gate_of_the_page_on_pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the commands of both snippets; each run is compared with itself, which decides no rule for so few points."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text("import torch\ntorch.manual_seed(0)\nnet = torch.nn.Linear(3, 2)\nmake = lambda: net\n")
    np.savez("data.npz", x=np.random.default_rng(0).random((12, 3), dtype=np.float32), y=np.arange(12) % 2)
    (rules,) = blocks("docs/how-to/pipeline.md", "toml")
    Path("rules.toml").write_text(rules.replace("old-run", "run"), encoding="utf-8")
    for snippet in blocks("docs/how-to/pipeline.md", "yaml"):
        score, gate = re.findall(r"- (?:run: )?brittle (.*?)(?: && .*)?$", snippet, flags=re.MULTILINE)
        shutil.rmtree("run", ignore_errors=True)
        assert main(shlex.split(score)) == 0
        assert main(shlex.split(gate)) in (1, 10)
    assert Path("brittle.xml").is_file()
    assert Path("brittle.md").is_file()


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
"""A long option, whole: `--draw` is none of `--draws`."""


def test_readme_options_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with_help = ""
    commands = (
        "",
        "--install-completion",
        "demo",
        "score",
        "report",
        "show",
        "list",
        "compare",
        "check",
        "export",
        "doctor",
        "more",
    )
    commands += ("detector fit", "detector apply", "surrogate fit", "surrogate apply", "robust-accuracy")
    for command in commands:
        assert main([*command.split(), "--help"]) == 0
        with_help += capsys.readouterr().out
    offered = set(OPTION.findall(with_help))
    text = read("README.md") + "".join(document.read_text() for document in pages())
    text = re.sub(r"\b(?:ray (?:start|get)|pip install)[^`\n]*|#SBATCH .*", "", text)  # those of Ray, pip and Slurm
    for option in set(OPTION.findall(text)) - {"--help", "--debug", "--sigam"}:  # the last is a mistake that is shown
        assert option in offered, option


def test_readme_targets_exist() -> None:
    makefile = read("Makefile")
    for document in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", read(document), flags=re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_named_documents_exist() -> None:
    for document in [*ROOT.glob("*.md"), *pages()]:
        for name in re.findall(r"`((?:docs/|tests/|scores/|measure/|data/)?[\w/-]+\.(?:md|py))`", document.read_text()):
            if name in ("net.py", "nett.py", "mynet.py", "myconv.py", "mine.py", "chapter.py"):  # the reader's own
                continue
            folders = ("", "src/brittle", "src/brittle/extensions", "docs")
            places = [ROOT / folder / name for folder in folders]
            assert any(place.exists() for place in places), f"{document.name}: {name}"
    for source in MODULES.values():
        for name in re.findall(r"docs/[\w/-]+\.md", source.read_text("utf-8")):
            assert (ROOT / name).exists(), f"{source.name}: {name}"


def test_architecture_names_every_room() -> None:
    drawing, package = read("docs/architecture.md"), ROOT / "src" / "brittle"
    rooms = [path.name for path in package.iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert [room for room in rooms if f"{room}/" not in drawing] == []


MODULES = {".".join(path.with_suffix("").parts): ROOT / "src" / path for path in sorted(
    path.relative_to(ROOT / "src") for path in (ROOT / "src" / "brittle").rglob("*.py"))}  # fmt: skip


@pytest.mark.parametrize("name", [name for name, path in MODULES.items() if ">>> " in path.read_text("utf-8")])
def test_doctests(name: str) -> None:
    with torch.random.fork_rng(devices=[]):
        result = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert result.failed == 0
    assert result.attempted > 0
