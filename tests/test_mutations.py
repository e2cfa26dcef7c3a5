"""The list of safeguards that `make test-mutations` takes out is that of the tree as it stands."""

from __future__ import annotations

import re

import pytest
from checks.mutations import MUTATIONS, main
from checks.taken_out import ROOT, Mutation


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


def test_the_command_says_what_it_does_and_whom_it_knows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    said = capsys.readouterr().out
    assert all(words in said for words in ("Takes safeguards out one at a time", "NAME", "--file", "--list"))
    first, *_, last = MUTATIONS
    assert main(["--list", first.name, last.name]) == 0
    assert [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()] == [first.name, last.name]
    assert main(["--list", "--file", first.test]) == 0
    assert first.name in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "said"), [(["no such"], "called no such"), (["--file", "no/such"], "'no/such'")])
def test_safeguards_that_are_not_there_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert said in capsys.readouterr().err
