"""The words for predictions that are right or wrong, by what the run decides."""

from __future__ import annotations

from dataclasses import dataclass

from brittle.analysis.text import by_number, share_of, verb_of

CHECK_LABELS = (
    "wrong, and no noise shows it: the network is sure of it, or its label is wrong",
    "wrong, and no noise shows it: the network is sure of them, or their labels are wrong",
)
NO_WRONG_LABEL = (
    "wrong, and it is not known to hold, so noise hints at no wrong label yet: look at it",
    "wrong, and none of them is known to hold, so noise hints at no wrong label yet: look at them",
)
CHECK_NUMBERS = (
    "wrong, and no noise shows it: check the number that the data say is right for it",
    "wrong, and no noise shows it: check the numbers that the data say are right for them",
)
NO_WRONG_NUMBER = (
    "wrong, and it is not known to hold, so noise hints at no wrong number in the data yet: look at it",
    "wrong, and none of them is known to hold, so noise hints at no wrong numbers in the data yet: look at them",
)
UNKNOWN = "so nothing is known of how many are right."


@dataclass(frozen=True)
class DecisionWords:
    """How a run speaks of what is right.

    Attributes:
        counted: what is counted, such as `label`.
        verbs: for one of them and for several, such as `is` and `are`.
        right: what those that are right are, such as `predicted right`.
        unlabelled: what is said where nothing says what is right.
        held_wrong: of one point and of several that are wrong and hold.
        none_held: of those that are wrong where none of them is known to hold.
        classes: whether the model's outputs are classes.
        accuracy: whether the share that is right is the accuracy of a classifier.
    """

    counted: str = "label"
    verbs: tuple[str, str] = ("is", "are")
    right: str = "predicted right"
    unlabelled: str = f"No point has a label, {UNKNOWN}"
    held_wrong: tuple[str, str] = CHECK_LABELS
    none_held: tuple[str, str] = NO_WRONG_LABEL
    classes: bool = False
    accuracy: bool = False

    def share(self, right: int, labelled: int) -> str:
        """How many are right, in a sentence."""
        if not labelled:
            return self.unlabelled
        return f"{share_of(right, labelled, self.counted)} {verb_of(right, labelled, *self.verbs)} {self.right}."

    def of(self, count: int) -> str:
        """So many of what is counted, such as `60 labels`."""
        return f"{count:,} {by_number(count, self.counted, f'{self.counted}s')}"


def words_of(decision: str | None) -> DecisionWords:
    """The words for a decision.

    Args:
        decision: as the record of a run holds it, such as `top:5`; None for the predicted class.
    """
    if decision is None:
        return DecisionWords(classes=True, accuracy=True)
    name, _, value = decision.partition(":")
    if name == "top":
        return DecisionWords(right=f"among the {value} classes that score highest", classes=True)
    if name == "multilabel":
        every = value in ("", "each")
        return DecisionWords("point", ("has", "have"), "every label predicted right") if every else DecisionWords()
    if name == "within":
        return DecisionWords(
            counted="prediction",
            right=f"right: within {value} of what the data say",
            unlabelled=f"The data do not say which number is right, {UNKNOWN}",
            held_wrong=CHECK_NUMBERS,
            none_held=NO_WRONG_NUMBER,
        )
    return DecisionWords(unlabelled=f"What the data say is not compared with a decision of your own, {UNKNOWN}")
