"""Contrast of colours, and what the style of the page makes of them."""

from __future__ import annotations

import re
from importlib import resources

STYLE = (resources.files("brittle.extensions.report") / "page" / "style.css").read_text(encoding="utf-8")


def variables(dark: bool) -> dict[str, str]:
    """The colours that the page names, on its light or on its dark ground."""
    rules = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", rules[0]))
    return found | dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", rules[1])) if dark else found


LIGHT, DARK = (variables(dark)["ground"] for dark in (False, True))


def turned(colour: str) -> str:
    """What a colour of a drawing is on the dark ground."""
    found = re.search(rf'\.drawing \[fill="{colour}"\][^{{]*\{{ fill: var\(--([\w-]+)\); \}}', STYLE)
    return variables(True)[found[1]] if found else colour


def contrast(colour: str, ground: str, opacity: float = 1.0) -> float:
    """Contrast after WCAG 2, section 1.4.11, of a colour laid over a ground."""
    over, under = _channels(colour), _channels(ground)
    mixed = [opacity * one + (1.0 - opacity) * other for one, other in zip(over, under, strict=True)]
    bright, dark = sorted((_luminance(mixed), _luminance(under)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _channels(colour: str) -> list[float]:
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    return [int(digits[place : place + 2], 16) / 255.0 for place in (0, 2, 4)]


def _luminance(channels: list[float]) -> float:
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
