"""Chapters from outside, by name: of installed packages, and of files of the user's."""

from __future__ import annotations

import inspect
from typing import Any

from brittle.model.loading.named_code import find_named, kind_of, refused, unknown
from brittle.model.loading.user_code import offered
from brittle.report.chapter import Chapter, check_names

GROUP = "brittle.chapters"
"""Entry point group in which an installed package offers chapters."""


def find_chapter(name: str) -> Chapter[Any]:
    """The chapter that `name` stands for, as `brittle.model.loading.named_code` finds it.

    Raises:
        UsageError: there is none.
        ParameterError: its code fails, or it is no chapter that can be used.
    """
    found = find_named(name, GROUP)
    if found is None:
        raise unknown("chapter", name, list(offered(GROUP)))
    return check_chapter(found, name)


def check_chapter(kind: object, where: str) -> Chapter[Any]:
    """A chapter of the class `kind`, if it is one.

    Args:
        kind: what was found.
        where: how it was named, for the message.

    Raises:
        ParameterError: it is no class of chapters, leaves something unsaid, or cannot be made without arguments.
    """
    if not (isinstance(kind, type) and issubclass(kind, Chapter)):
        raise refused(where, f"is {kind_of(kind)}; expected a subclass of brittle.report.Chapter")
    if inspect.isabstract(kind):
        raise refused(where, f"leaves out {', '.join(sorted(kind.__abstractmethods__))}; write it")
    unsaid = [one for one in ("name", "title") if not isinstance(text := getattr(kind, one, None), str) or not text]
    unsaid += [] if getattr(kind, "template", None) else ["template"]
    if unsaid:
        raise refused(where, f"does not say its {', '.join(unsaid)}; expected a text for each")
    try:
        made = kind()
    except Exception as error:
        raise refused(where, f"cannot be made without arguments: {type(error).__name__}: {error}") from error
    check_names([made])
    return made
