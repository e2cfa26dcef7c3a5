"""The model and the data that a command names, each opened once and in the order in which they need each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from brittle.cli.options import DataOptions, ModelOptions
from brittle.errors import UsageError

if TYPE_CHECKING:
    from brittle.data import Points
    from brittle.model.classifier import Classifier
    from brittle.model.loading.load import LoadedModel
    from brittle.model.texts import TextForm


@dataclass(frozen=True)
class Opening:
    """MODEL and DATA of a command line. Data are opened without the model, unless it reads texts: its files say how
    these become points.

    Attributes:
        model: what was typed for MODEL.
        data: for DATA.
        declared: the options of the model.
        reading: those of the data.
    """

    model: str
    data: Path
    declared: ModelOptions
    reading: DataOptions

    @cached_property
    def reads_texts(self) -> bool:
        """Whether MODEL is a folder of a classifier of texts.

        Raises:
            ModelError: its description cannot be read.
        """
        from brittle.model.loading.hugging_face import reads_texts

        return reads_texts(self.model)

    def check_inputs(self) -> None:
        """Raise where the inputs of a model that reads texts were declared, which its files do.

        Raises:
            UsageError: they were.
        """
        own = ModelOptions()
        names = ("bounds", "mean", "std")
        given = [f"--{name}" for name in names if getattr(self.declared, name) != getattr(own, name)]
        if self.reads_texts and given:
            raise UsageError(
                f"{self.model} reads texts, and noise is on the embeddings of their tokens; leave out "
                f"{' and '.join(given)}",
            )

    def check(self) -> None:
        """Raise where either is not there, or MODEL cannot be one, before anything of the other is read.

        Raises:
            BrittleError: that is so.
        """
        from brittle.data.formats import check_there
        from brittle.model.loading.load import check_named

        check_named(self.model, self.declared.weights)
        check_there(self.data)

    @cached_property
    def texts(self) -> TextForm | None:
        """How texts become points, where the model reads texts; else None."""
        declared = self._loaded.declared if self.reads_texts else None
        return None if declared is None else declared.texts

    @cached_property
    def points(self) -> Points:
        """What DATA holds.

        Raises:
            BrittleError: it cannot be read, or the model that says how texts become points cannot.
        """
        if self.texts is not None:
            _ = self.classifier  # puts the model where it computes, and it embeds tokens there
        bounds, targets = self.declared.declared_bounds, self.declared.decides.targets
        return self.reading.open(self.data, bounds, targets, self.texts, self.model)

    @cached_property
    def classifier(self) -> Classifier:
        """The network that MODEL names, as it was declared.

        Raises:
            BrittleError: it cannot be opened.
        """
        return self.declared.classifier(self.model, self._loaded)

    @cached_property
    def _loaded(self) -> LoadedModel:
        return self.declared.loaded(self.model)
