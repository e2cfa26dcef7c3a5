"""The list of safeguards that `make test-mutations` takes out is that of the tree as it stands."""

from __future__ import annotations

import re

import pytest
from checks.mutations import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_safeguard_stands_where_the_list_says(mutation: Mutation) -> None:
    content = (ROOT / mutation.path).read_text(encoding="utf-8")
    assert mutation.applied(content) != content
    file, _, name = mutation.test.partition("::")
    assert re.search(rf"^def {re.escape(name.partition('[')[0])}\(", (ROOT / file).read_text(encoding="utf-8"), re.M)


def test_names_are_unique() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_a_text_that_is_absent_or_there_twice_is_refused() -> None:
    for content, times in (("", 0), ("x x", 2)):
        with pytest.raises(ValueError, match=f"'x' stands {times} times in src/brittle/folder.py"):
            Mutation("name", "folder.py", (("x", "y"),), "tests/test_x.py").applied(content)
