"""Models that read texts, as the core knows them: how texts become inputs is of the extension `texts`."""

from typing import Any, Protocol

from brittle.registry import find_attribute

__getattr__ = find_attribute(__name__, "texts")


class TextReader(Protocol):
    """A reader of texts for a model that was loaded: points are the embeddings of their tokens."""

    perturb: str
    """The argument of the model that takes them."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest value of an embedding."""
        ...

    @property
    def words(self) -> str:
        """A description of the reading, for a person."""
        ...

    def of_characters(self, digest: str | None = None) -> Any:
        """Return the model as a function of texts, for noise that changes characters."""
        ...


def is_text_function(model: object) -> bool:
    """Tell whether a model is a function of texts, whose inputs are the codes of their characters."""
    return getattr(model, "reads_texts", False) is True
