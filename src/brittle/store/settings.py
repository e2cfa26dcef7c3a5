"""The noise that a robustness refers to, as tables and reports name it."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from brittle.estimate import Parameter

GAUSSIAN = "gaussian"  # the noise family of a column whose parameters name none
DECIBELS = "dB"  # the unit of a level that is a ratio of the noise to the point: `-20 log10(sigma)` of them
UNIT, FUNCTION = "\u2009in\u2009", "\u2009(function)"  # marks behind a family: a unit that is no pixels, a function


class Setting(NamedTuple):
    """The noise that a robustness refers to: its level in pixel units and its family.

    A level in another unit has that behind the family, `rotation in degrees`, with thin spaces, which no family's own
    name has by chance; a function of the user's has its parameters in brackets behind it, and no level.
    """

    sigma: float | None
    noise: str

    def __str__(self) -> str:
        if self.sigma is None or self.in_pixels:
            sigma = "no noise level" if self.sigma is None else f"sigma {self.sigma:g}"
            return sigma if self.noise == GAUSSIAN else f"{sigma}, {self.noise}"
        if self.noise.endswith(FUNCTION):
            return self.noise.removesuffix(FUNCTION)
        level = f"{self.level} {self.unit}"
        alone = self.unit == DECIBELS or self.family.replace("_", " ") in self.unit
        return level if alone else f"{self.family} {level}"

    @property
    def family(self) -> str:
        """The noise family, or the function with its parameters."""
        return self.noise.removesuffix(FUNCTION).partition(UNIT)[0]

    @property
    def unit(self) -> str:
        """The unit of the level, such as `degrees`; empty where that is in pixel units."""
        return self.noise.partition(UNIT)[2]

    @property
    def level(self) -> str:
        """The level in its unit; empty where there is none."""
        if self.sigma is None:
            return ""
        return f"{-20.0 * math.log10(self.sigma):.4g}" if self.unit == DECIBELS else f"{self.sigma:g}"

    @property
    def in_pixels(self) -> bool:
        """True where the level is in pixel units."""
        return self.sigma is not None and UNIT not in self.noise and not self.noise.endswith(FUNCTION)


NO_NOISE = Setting(None, GAUSSIAN)  # the setting of a score that knows no noise


def setting_of(parameters: Mapping[str, Parameter]) -> Setting:
    sigma = parameters.get("sigma")
    family = [str(parameters.get("noise", GAUSSIAN))]
    family += [str(parameters["action"])] if "action" in parameters else []
    words = " ".join(family)
    if "unit" in parameters:
        words += f"{UNIT}{parameters['unit']}"
    elif "code" in parameters:
        words += FUNCTION
    return Setting(float(sigma) if isinstance(sigma, int | float) else None, words)
