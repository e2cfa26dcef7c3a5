"""The commands of the detector: from a run with margins to flags, and their refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from helpers.problems import inputs, small_network

import brittle
from brittle.cli.commands import main
from brittle.extensions.detector.flags import POINT_FIELDS

pytestmark = pytest.mark.usefixtures("nothing_drawn", "short_search")  # words are what counts here

FACTORY = """
import sys
sys.path.insert(0, {tests!r})
from helpers.problems import small_network
def make():
    return small_network()
def other():
    return small_network(seed=1)
"""
POINTS = 160


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with `net.py`, `data.npz` and a run with margins."""
    folder = tmp_path_factory.mktemp("detector")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("net.py").write_text(FACTORY.format(tests=str(Path(__file__).parents[2])))
        np.savez("data.npz", x=inputs(POINTS).numpy(), y=np.arange(POINTS) % 4)
        scores = ["--scores", "input_margin", "logit_margin", "feature_margin", "--norm", "linf", "--effort", "fast"]
        assert main(["score", "./net.py:make", "data.npz", "--out", "run", *scores, "--quiet"]) == 0
    return folder


@pytest.fixture(autouse=True)
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def epsilon() -> str:
    """Return the median margin of the run."""
    wide = brittle.read_table("run").frame(whole=True)
    return repr(float(wide["input_margin(effort=fast, norm=linf)"].median()))  # pyright: ignore[reportArgumentType] a cell, a column or a frame


def fit_detector() -> None:
    fit = ["detector", "fit", "run", "--epsilon", epsilon(), "--tpr", "0.9", "--out", "detector.json", "--overwrite"]
    assert main(fit) == 0


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_fit_and_apply(suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    fit_detector()
    output = capsys.readouterr().out
    assert "verdict on the score: " in output
    assert "verdict on the threshold: " in output
    assert output.rstrip().endswith("detector.json")
    out = f"flags{suffix}"
    assert main(["detector", "apply", "detector.json", "./net.py:make", "data.npz", "--out", out]) == 0
    flags = (pq.read_table if suffix == ".parquet" else csv.read_csv)(out).to_pandas()
    rule = brittle.Detector.load("detector.json")
    scores = brittle.read_table("run").frame(whole=True)["logit_margin"]
    assert flags["brittle"].tolist() == rule.flag(scores.to_numpy()).tolist()
    assert f"{int(flags['brittle'].sum())} of {POINTS} predictions are flagged as brittle at" in capsys.readouterr().err


def test_another_model_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detector", "fit", "run", "--epsilon", epsilon(), "--tpr", "0.9", "--out", "own.json"]) == 0
    apply = ["detector", "apply", "own.json", "./net.py:other", "data.npz", "--quiet", "--out"]
    assert main([*apply, "refused.csv"]) == 3
    assert "other_model" in capsys.readouterr().err
    assert not Path("refused.csv").exists()


def test_too_few_points_and_wrong_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    fit = ["detector", "fit", "run", "--out", "never.json", "--epsilon"]
    assert main([*fit, epsilon(), "--tpr", "0.99"]) == 3
    assert "too_few_points" in capsys.readouterr().err
    assert main([*fit, "1e-9"]) == 3
    assert "too_few_points" in capsys.readouterr().err
    assert main([*fit, "8/0"]) == 3
    assert "epsilon must be a positive number or a fraction as 8/255" in capsys.readouterr().err


def test_a_pseudo_margin_from_run_to_flags(capsys: pytest.CaptureFixture[str]) -> None:
    """Learned on a data set, then calibrated on a second and applied to a third."""
    learned = "learned.safetensors"
    learn = ["surrogate", "fit", "run", "./net.py:make", "data.npz", "--out", learned, "--overwrite"]
    assert main(learn) == 0
    np.savez("fresh.npz", x=inputs(POINTS, seed=1).numpy())
    np.savez("third.npz", x=inputs(50, seed=2).numpy())
    scores = [
        "--scores",
        "input_margin",
        "--norm",
        "linf",
        "--effort",
        "fast",
        "--pseudo-margin",
        "learned.safetensors",
    ]
    assert main(["score", "./net.py:make", "fresh.npz", "--out", "fresh", *scores, "--quiet"]) == 0
    fit = ["detector", "fit", "fresh", "--epsilon", epsilon(), "--tpr", "0.9", "--score", "pseudo_margin"]
    assert main([*fit, "--out", "unread.json"]) == 3
    assert "needs the file of the one that computed it" in (capsys.readouterr().err)
    stand_in = ["--pseudo-margin", "learned.safetensors"]
    assert main([*fit, *stand_in, "--out", "learned.json"]) == 0
    assert brittle.Detector.load("learned.json").counts.learned_from == 0
    apply = ["detector", "apply", "learned.json", "./net.py:make", "third.npz", "--out", "third.csv", "--quiet"]
    assert main(apply) == 3
    assert "pseudo-margin" in capsys.readouterr().err
    assert main([*apply, *stand_in]) == 0
    assert len(csv.read_csv("third.csv")) == 50


@pytest.mark.parametrize(("form", "classes"), [("head", 4), ("paper", 0)])
def test_the_form_of_the_paper_reads_the_features_alone(form: str, classes: int) -> None:
    learn = ["surrogate", "fit", "run", "./net.py:make", "data.npz", "--form", form, "--overwrite"]
    assert main(learn) == 0
    assert brittle.Surrogate.load("surrogate.safetensors").recipe.classes == classes


def test_points_without_a_score(capsys: pytest.CaptureFixture[str]) -> None:
    fit_detector()
    x = inputs(POINTS).numpy()
    x[7, 0, 0, 0] = np.nan
    np.savez("broken.npz", x=x)
    apply = ["detector", "apply", "detector.json", "./net.py:make", "broken.npz", "--out", "broken.csv", "--quiet"]
    capsys.readouterr()
    assert main(apply) == 4
    errors = capsys.readouterr().err
    assert f"1 of {POINTS} points got no score" in errors
    assert "point 7: nonfinite_input: The input holds NaN" in errors
    assert csv.read_csv("broken.csv")["brittle"].to_pylist()[7] is True


def test_a_detector_of_the_average_case_from_run_to_flags(capsys: pytest.CaptureFixture[str]) -> None:
    """The same commands flag predictions that are kept with a smaller probability than the limit, by one pass."""
    scores = ["--scores", "monte_carlo", "logit_margin", "entropy", "--sigma", "0.3"]
    run = ["score", "./net.py:make", "data.npz", "--out", "noisy", *scores, "--limit", "0.8", "--draws", "60"]
    assert main([*run, "--skip-doctor", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["detector", "fit", "noisy", "--limit", "0.8", "--tpr", "0.8", "--out", "noisy.json"]) == 0
    output = capsys.readouterr().out
    assert "a probability below 0.8, by monte_carlo(draws=60, limit=0.8, sigma=0.3)" in output
    assert "verdict on the score: " in output
    rule, table = brittle.Detector.load("noisy.json"), brittle.read_table("noisy")
    states = brittle.analysis.decide(table, 0.8)["state"].tolist()
    counts = rule.counts
    assert (counts.brittle, counts.robust, counts.undecided) == tuple(
        states.count(state) for state in ("breaks", "holds", "undecided")
    )
    apply = ["detector", "apply", "noisy.json", "data.npz", "--quiet", "--out"]
    assert main([*apply[:3], "./net.py:make", *apply[3:], "noisy.csv"]) == 0
    values = table[rule.score].value.to_numpy() * (-1 if rule.score == "entropy" else 1)
    assert csv.read_csv("noisy.csv")["brittle"].to_pylist() == rule.flag(values).tolist()


def test_a_surrogate_of_noise_from_run_to_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    """With --alpha the probabilities of the run are learned, and what they are worth is printed."""
    run = ["score", "./net.py:make", "data.npz", "--out", "counted", "--scores", "monte_carlo", "--limit", "none"]
    assert main([*run, "--sigma", "0.2", "--draws", "100", "--skip-doctor", "--quiet"]) == 0
    capsys.readouterr()
    learn = ["surrogate", "fit", "counted", "./net.py:make", "data.npz", "--alpha", "0.1", "--form", "margins"]
    assert main([*learn, "--out", "noise.safetensors"]) == 0
    learned = brittle.Surrogate.load("noise.safetensors")
    assert all(str(target) in capsys.readouterr().out for target in learned.worth)
    assert [target.target for target in learned.worth] == ["monte_carlo(draws=100, sigma=0.2)"]
    assert main([*learn[:6], "0.6", "--out", "other.safetensors"]) == brittle.errors.ParameterError.exit_code
    assert main([*learn, "--norm", "l2", "--out", "other.safetensors"]) == brittle.errors.ParameterError.exit_code
    x = inputs(POINTS, seed=1).numpy()
    x[3] = np.nan
    np.savez("new.npz", x=x, y=np.arange(POINTS) % 4)
    apply = ["surrogate", "apply", "noise.safetensors", "./net.py:make"]
    capsys.readouterr()
    assert main([*apply, "new.npz", "--out", "new.parquet", "--quiet"]) == 4
    assert "point 3: nonfinite_input" in capsys.readouterr().err
    frame = learned.apply(small_network(), (x, None))
    table = pq.read_table("new.parquet").to_pandas()
    assert table.columns.tolist() == [*POINT_FIELDS, "p_robust", "bound", "status"]
    assert table["predicted"].isna().tolist() == [row == 3 for row in range(POINTS)]
    assert table["bound"].tolist() == pytest.approx(frame["bound"].tolist(), abs=1e-6)
    assert table["label"].tolist() == [row % 4 for row in range(POINTS)]
    assert main([*apply, "data.npz", "--out", "old.csv"]) == 0
    assert f"{POINTS} of {POINTS} points are those of the fit" in capsys.readouterr().err
    margins = ["surrogate", "fit", "run", "./net.py:make", "data.npz", "--out", "margins.safetensors"]
    assert main(margins) == 0
    assert main(["surrogate", "apply", "margins.safetensors", *apply[3:], "new.npz", "--out", "never.csv"]) == 3


def test_no_file_is_replaced_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    fit = ["detector", "fit", "run", "--epsilon", epsilon(), "--tpr", "0.9", "--out", "kept.json"]
    apply = ["detector", "apply", "kept.json", "./net.py:make", "data.npz", "--quiet", "--out", "kept.csv"]
    learn = ["surrogate", "fit", "run", "./net.py:make", "data.npz", "--out", "kept.safetensors"]
    for command, path in ((fit, "kept.json"), (apply, "kept.csv"), (learn, "kept.safetensors")):
        Path(path).write_text("kept")
        assert main(command) == 7
        errors = capsys.readouterr().err
        assert f"exists: {path} is there already; choose another file, or replace it with --overwrite" in errors
        assert Path(path).read_text() == "kept"
        assert main([*command, "--overwrite"]) == 0
        assert Path(path).read_bytes() != b"kept"
    assert main([*learn[:-1], "kept.pt"]) == 3
    assert "must end in .safetensors" in capsys.readouterr().err
    assert main([*fit[:-1], "absent/kept.json"]) == 7
    assert "its folder must exist" in capsys.readouterr().err


def test_bad_options_are_refused_before_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    fit_detector()
    apply = ["detector", "apply", "detector.json", "./absent.py:make", "data.npz", "--quiet", "--out"]
    for out, code, message in (("flags.txt", 3, ".csv, .parquet"), ("absent/flags.csv", 7, "folder must exist")):
        assert main([*apply, out]) == code
        assert message in capsys.readouterr().err
    assert main(["detector", "fit", "run", "--epsilon", "0.1", "--norm", "l2", "--out", "unread.json"]) == 3
    assert "norm=linf" in capsys.readouterr().err
