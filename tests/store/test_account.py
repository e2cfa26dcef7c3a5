"""What became of points: accounts add up, whatever the shards, and come back from a manifest."""

from __future__ import annotations

import json

import pytest
from helpers.tables import make_table

from brittle.store.account import FIRST_ROWS, SHOWN, Account
from brittle.store.strict_json import FormatProblem, convert, dump

PARTS = [
    Account(points=3, failed=1, failed_early=1, labelled=3, correct=2, passes=30, failures=("a",)),
    Account(points=5, check_passes=7, turned=2),
    Account(points=2, failed=2, passes=4, failures=("b", "c")),
    Account(points=1, failed=1, failures=("d",)),
]


def test_shards_add_up_in_any_grouping() -> None:
    one, two, three, four = PARTS
    whole = ((one + two) + three) + four
    assert whole == one + (two + (three + four))
    assert whole.points == 11
    assert whole.failed == 4
    assert whole.failures == ("a", "b", "c")
    assert len(whole.failures) == SHOWN
    assert whole + Account() == whole


@pytest.mark.parametrize("account", PARTS, ids=range(len(PARTS)))
def test_an_account_comes_back_from_a_manifest(account: Account) -> None:
    content = json.loads(dump(account))
    assert convert(Account, content) == account
    with pytest.raises(FormatProblem, match="unknown"):
        convert(Account, content | {"unknown": 1})


def test_every_point_of_a_table_is_counted_once() -> None:
    table = make_table(points=30, scores=("moments", "logit_margin"))
    account = Account.of(table.points, table.scores, 77, turned=3, check_passes=5)
    missing = {row["point"] for row in table.scores.to_pylist() if row["value"] is None}
    assert (account.points, account.failed) == (30, len(missing))
    assert (account.passes, account.turned, account.check_passes) == (77, 3, 5)
    assert account.failed_early == account.failed
    assert FIRST_ROWS > 30
