"""Columns of a table: their order, their settings, and the representative one."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from helpers.tables import make_table, score_record, with_scores, with_value

from brittle.analysis.columns import Setting, named_column
from brittle.errors import DataError
from brittle.estimate import parameters_json
from brittle.store.representative import preferred, settings, typical
from brittle.store.schemas import SCORES


def test_a_value_with_a_failed_status_is_ignored() -> None:
    table = make_table(points=4, scores=("taylor",), sigmas=(0.1,), broken=2)
    assert with_value(table, "taylor(sigma=0.1)", [0.5] * 4)["taylor(sigma=0.1)"].value.isna().tolist() == [
        True,
        True,
        False,
        False,
    ]


def test_only_several_variants_have_parameters_in_their_names() -> None:
    table = make_table(points=3, scores=("softmax", "taylor"), sigmas=(0.1, 0.2))
    softmax = score_record("softmax", {"temperature": 2.0})
    columns = with_scores(table, [*table.record.scores, softmax]).columns
    assert [c.variant for c in columns] == ["softmax(temperature=1)", "taylor", "taylor", "softmax(temperature=2)"]


@pytest.mark.parametrize(
    ("scores", "budgets", "label"),
    [
        (("softmax", "taylor", "mmse", "moments", "monte_carlo"), (10, 200), "monte_carlo(draws=200, sigma=0.1)"),
        (("softmax", "taylor", "mmse", "moments", "monte_carlo"), (10, 198), "moments(draws=198, sigma=0.1)"),
        (("softmax", "taylor", "mmse_mvs", "mmse"), (10, 20), "mmse(draws=20, sigma=0.1)"),
        (("softmax", "taylor", "mmse_mvs"), (10, 20), "mmse_mvs(draws=20, sigma=0.1)"),
        (("softmax", "taylor"), (10,), "taylor(sigma=0.1)"),
        (("softmax", "monte_carlo"), (10,), "monte_carlo(draws=10, sigma=0.1)"),
        (("softmax",), (10,), "softmax(temperature=1)"),
    ],
)
def test_preference(scores: tuple[str, ...], budgets: tuple[int, ...], label: str) -> None:
    columns = make_table(points=5, scores=scores, budgets=budgets, sigmas=(0.1,)).columns
    best = preferred(columns, settings(columns)[0])
    assert best is not None
    assert best.label == label


def test_the_typical_column_is_nearest_to_the_typical_robustness() -> None:
    columns = make_table(points=200, sigmas=(0.01, 0.2, 30.0), scores=("taylor",)).columns
    means = {c.setting.sigma: c.p_robust.mean() for c in columns}
    best = typical(columns)
    assert best is not None
    assert best.setting.sigma == min(means, key=lambda sigma: abs(means[sigma] - 0.7)) == 0.2


def test_noise_families_are_separate_settings() -> None:
    table = make_table(points=3, scores=("taylor",), sigmas=(0.1,))
    parameters = {"noise": "uniform", "sigma": 0.1}
    uniform = score_record("taylor", parameters)
    rows = table.long().assign(parameters=parameters_json(parameters))
    scores = pa.concat_tables([table.scores, pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False)])
    merged = replace(with_scores(table, [*table.record.scores, uniform]), scores=scores)
    assert settings(merged.columns) == (Setting(0.1, "gaussian"), Setting(0.1, "uniform"))
    assert [str(setting) for setting in settings(merged.columns)] == ["sigma 0.1", "sigma 0.1, uniform"]


def test_a_name_means_the_column_at_the_representative_noise() -> None:
    table = make_table(points=40, scores=("moments", "logit_margin", "input_margin"), norms=("l2", "linf"))
    representative = typical(table.columns)
    assert representative is not None
    column = named_column(table.columns, "moments")
    assert (column.setting, column.draws) == (representative.setting, 400)
    assert named_column(table.columns, "moments(draws=10, sigma=0.05)").draws == 10
    assert named_column(table.columns, "logit_margin").score == "logit_margin"
    with pytest.raises(DataError, match="input_margin is one of 2 columns"):
        named_column(table.columns, "input_margin")
    with pytest.raises(DataError, match="expected a score of this run, found taylor"):
        named_column(table.columns, "taylor")
