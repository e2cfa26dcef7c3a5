"""Detectors of scikit-learn's classifiers belong to the fitted state, and apply the rule to their probabilities."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import brittle
from brittle.cli.commands import main
from brittle.decisions.function_code import estimator_digest
from brittle.errors import DataError, ModelError
from brittle.extensions.detector.detector import Detector
from brittle.extensions.detector.surrogate import Surrogate
from brittle.scores import LogitMargin, MonteCarlo, Softmax

pytest.importorskip("sklearn")

from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

X = np.random.default_rng(0).random((300, 4))
Y = np.array(["ant", "bee", "cat"])[(3 * X[:, 0]).astype(int)]

ESTIMATORS = {
    "forest": lambda: RandomForestClassifier(20, min_samples_leaf=25, random_state=0),
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "neighbours": lambda: KNeighborsClassifier(9, algorithm="kd_tree"),
    "one against the rest": lambda: OneVsRestClassifier(LogisticRegression()),
}


def _fitted(kind: str) -> Any:
    return ESTIMATORS[kind]().fit(X, Y)


def _detector(estimator: Any, score: str = "logit_margin") -> Detector:
    points = torch.from_numpy(np.random.default_rng(2).random((200, 4)))
    scores = [MonteCarlo(0.1, draws=100, limit=None), LogitMargin(), Softmax()]
    table = brittle.score(brittle.Classifier(estimator), points, scores, skip_doctor=True)
    return Detector.fit(table, limit=0.7, tpr=0.8, score=score)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_identity_is_that_of_the_fitted_state(kind: str) -> None:
    """It survives predictions, a pickle, skops and `n_jobs`, and changes with the data."""
    skops = pytest.importorskip("skops.io")
    estimator = _fitted(kind)
    digest = estimator_digest(estimator)
    estimator.predict_proba(X)
    content = skops.dumps(estimator)
    again = skops.loads(content, trusted=skops.get_untrusted_types(data=content))
    parallel = pickle.loads(pickle.dumps(estimator))
    for step in (parallel, *(step for _, step in getattr(parallel, "steps", ()))):
        if "n_jobs" in step.get_params():
            step.set_params(n_jobs=2)
    for same in (estimator, again, parallel, _fitted(kind)):
        assert estimator_digest(same) == digest
    refitted = ESTIMATORS[kind]().fit(X[1:], Y[1:])
    assert estimator_digest(refitted) != digest


@pytest.mark.slow
def test_the_identity_is_the_same_in_every_process(tmp_path: Path) -> None:
    estimator = _fitted("forest")
    estimator.columns_ = {"a", "b", "c", "d", "e"}
    (tmp_path / "forest.pickle").write_bytes(pickle.dumps(estimator))
    code = "import pickle; from brittle.decisions.function_code import estimator_digest as digest\n"
    code += "print(digest(pickle.load(open('forest.pickle', 'rb'))))"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert digests == {f"{estimator_digest(estimator)}\n".encode()}


@pytest.mark.parametrize("score", ["logit_margin", "softmax"])
@pytest.mark.parametrize("kind", ["forest", "pipeline", "one against the rest"])
def test_it_is_the_rule_on_the_estimators_own_numbers(kind: str, score: str, tmp_path: Path) -> None:
    """Arrays give arrays, tensors give tensors, and `apply` flags the same points."""
    estimator = _fitted(kind)
    rule = Detector.load(_detector(estimator, score).save(tmp_path / "detector.json"))
    wrapped = rule.wrap(estimator)
    x = np.random.default_rng(1).random((500, 4))
    logits, values, flags = wrapped(x)
    raw = (
        estimator.decision_function(x)
        if kind != "forest"
        else np.log(estimator.predict_proba(x).clip(float(np.finfo(np.float32).eps)))
    )
    ordered = np.sort(raw, axis=1)
    shares = np.take_along_axis(estimator.predict_proba(x), raw.argmax(axis=1)[:, None], axis=1)[:, 0]
    truth = ordered[:, -1] - ordered[:, -2] if score == "logit_margin" else shares - 1.0
    assert values == pytest.approx(truth, rel=1e-9, abs=1e-12)
    clear = abs(truth - rule.threshold) > 1e-9
    assert (flags[clear] == (~(truth >= rule.threshold) | (ordered[:, -1] == ordered[:, -2]))[clear]).all()
    assert (estimator.classes_[logits.argmax(axis=1)] == estimator.predict(x))[ordered[:, -1] > ordered[:, -2]].all()
    assert 0 < flags.sum() < 500
    assert np.array_equal(wrapped(torch.from_numpy(x))[2].numpy(), flags)
    applied = rule.apply(brittle.Classifier(estimator), torch.from_numpy(x))
    assert applied["score"].to_numpy() == pytest.approx(values, abs=1e-12)
    assert np.array_equal(applied["brittle"], flags)


def test_it_fails_closed_and_belongs_to_one_estimator() -> None:
    estimator = _fitted("pipeline")
    rule = _detector(estimator)
    safe = np.tile([0.02, 0.5, 0.5, 0.5], (3, 1))
    assert not rule.wrap(estimator)(safe)[2].any()
    safe[0, 1], safe[1, 1] = 1.5, -0.5
    assert rule.wrap(estimator)(safe)[2].tolist() == [True, True, False]
    with pytest.raises(ModelError, match="state_sha256") as caught:
        rule.wrap(ESTIMATORS["pipeline"]().fit(X[1:], Y[1:]))
    assert caught.value.code == "other_model"


def test_whole_numbers_reach_it_with_all_digits() -> None:
    """Even numbers of four bytes, which single precision cannot hold."""
    x = 1_600_000_000 + np.random.default_rng(0).integers(0, 400, (200, 2))
    estimator = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, x.sum(axis=1) > 3_200_000_400)
    scores = [MonteCarlo(20.0, draws=100, limit=None), LogitMargin()]
    subject = brittle.Classifier(estimator, bounds="none")
    table = brittle.score(subject, torch.from_numpy(x.astype(float)), scores, skip_doctor=True)
    wrapped = Detector.fit(table, limit=0.7, tpr=0.8).wrap(estimator)
    for kind in (np.int32, np.int64, np.uint32, np.float64):
        logits, values, _ = wrapped(x.astype(kind))
        assert np.array_equal(logits[:, 1], estimator.decision_function(x))
        assert np.array_equal(values, np.abs(logits[:, 1]))
    for wrong in (x.astype(object), x.astype(complex), x.tolist()):
        with pytest.raises(DataError) as caught:
            wrapped(wrong)
        assert caught.value.code == "dtype"


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_rows_that_it_refuses_are_flagged_and_no_rows_give_none(kind: str) -> None:
    """NaN and infinity, as `apply` flags them, and numbers beyond single precision, which trees read."""
    estimator = _fitted(kind)
    subject = brittle.Classifier(estimator, bounds="none")
    scores = [MonteCarlo(0.1, draws=100, limit=None), LogitMargin()]
    rule = Detector.fit(brittle.score(subject, torch.from_numpy(X), scores, skip_doctor=True), limit=0.7, tpr=0.8)
    x, wrapped = X[:60].copy(), rule.wrap(estimator)
    alone = wrapped(x[4:])
    x[:4, 2] = np.nan, np.inf, -np.inf, 1e39
    logits, values, flags = wrapped(x)
    assert flags[:4].all()
    assert np.isnan(logits[:4]).all()
    assert all(np.array_equal(output[4:], part) for output, part in zip((logits, values, flags), alone, strict=True))
    applied = rule.apply(subject, torch.from_numpy(np.delete(x, 3, axis=0)))
    assert np.array_equal(applied["brittle"], np.delete(flags, 3))
    assert [part.shape for part in wrapped(x[:0])] == [(0, 3), (0,), (0,)]
    assert all(len(part) == 0 for part in wrapped(torch.from_numpy(x[:0])))
    with pytest.raises(ModelError) as caught:
        wrapped(x[4:, :3])
    assert caught.value.code == "model_failed"


CATEGORIES = {"text": np.array(["red", "blue", "green"]), "numbers": np.array([10, 20, 30])}


@pytest.mark.parametrize("kind", CATEGORIES)
def test_fitted_on_a_frame_it_takes_frames_alone(kind: str) -> None:
    """A row of a frame means the same in any batch; codes in an array would mean other categories."""
    rng = np.random.default_rng(0)
    colours = CATEGORIES[kind][rng.integers(0, 3, 400)]
    frame = pd.DataFrame({"a": rng.random(400), "c": pd.Categorical(colours)})
    encoder = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    estimator = make_pipeline(encoder, LogisticRegression()).fit(
        frame, frame.a + (colours == CATEGORIES[kind][0]) > 0.8
    )
    subject = brittle.Classifier(estimator, bounds="none")
    table = brittle.score(subject, frame, [MonteCarlo(0.1, draws=100, limit=None), LogitMargin()], skip_doctor=True)
    rule = Detector.fit(table, limit=0.7, tpr=0.8)
    wrapped = rule.wrap(estimator)
    raw, flags = estimator.decision_function(frame), rule.apply(subject, (frame, None))["brittle"].to_numpy()
    for rows in (slice(None), slice(7, 8), slice(0, 0), colours == colours[0]):
        logits, _, brittle_rows = wrapped(frame[rows])
        assert logits[:, 1] == pytest.approx(raw[rows], rel=1e-12)
        assert np.array_equal(brittle_rows, flags[rows])
    codes = np.c_[frame.a, frame.c.cat.codes]
    for wrong in (codes, torch.from_numpy(codes), frame.to_numpy(), frame[["c", "a"]], frame[["a"]]):
        with pytest.raises(DataError) as caught:
            wrapped(wrong)
        assert caught.value.code == "columns"


FOREST = """import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
def make():
    x = np.random.default_rng(0).random((300, 2))
    return RandomForestClassifier(9, max_depth=4, random_state=0).fit(x, (x.sum(axis=1) > 1).astype(int))
"""


def test_the_commands_fit_apply_and_refuse_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("forest.py").write_text(FOREST, encoding="utf-8")
    np.save("data.npy", np.random.default_rng(2).random((200, 2)))
    run = (
        "score forest.py:make data.npy --scores monte_carlo logit_margin --sigma 0.1 --draws 400 --limit 0.7 --out run"
    )
    assert main(run.split()) == 0
    assert main(["detector", "fit", "run", "--limit", "0.7", "--tpr", "0.8"]) == 0
    apply = "detector apply detector.json {}.py:make data.npy --out {}.parquet"
    assert main(apply.format("forest", "flags").split()) == 0
    Path("other.py").write_text(FOREST.replace("> 1", "> 1.1"), encoding="utf-8")
    assert main(apply.format("other", "other").split()) == ModelError.exit_code


def test_an_estimator_has_no_features_for_a_pseudo_margin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("forest.py").write_text(FOREST, encoding="utf-8")
    np.save("data.npy", X[:20, :2])
    command = "score forest.py:make data.npy --pseudo-margin learned.safetensors --out run"
    Surrogate.fit(torch.from_numpy(X), X[:, 0], norm="l2", epochs=1).save("learned.safetensors")
    assert main(command.split()) == ModelError.exit_code
    assert "no_head" in capsys.readouterr().err
