"""Models that read texts, as the core knows them: how texts become inputs is of the extension `texts`."""

from typing import Any, TypeAlias

from brittle.registry import find_attribute

TextReader: TypeAlias = Any  # a form of texts, with `perturb`, `bounds`, `words` and `of_characters` of the extension

__getattr__ = find_attribute(__name__, "texts")


def is_text_function(model: object) -> bool:
    """Tell whether a model is a function of texts, whose inputs are the codes of their characters."""
    return getattr(model, "reads_texts", False) is True
