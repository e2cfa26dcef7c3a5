"""Colours in the style of the page, and their contrast."""

from __future__ import annotations

import re
from importlib import resources

STYLE = (resources.files("brittle.extensions.report") / "page" / "style.css").read_text(encoding="utf-8")


def variables(dark: bool) -> dict[str, str]:
    """Return the colours that the page names, on its light or on its dark ground."""
    rules = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", rules[0]))
    return colours | dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", rules[1])) if dark else colours


LIGHT, DARK = (variables(dark)["ground"] for dark in (False, True))


def turned(colour: str) -> str:
    """Return the colour on the dark ground that replaces a colour of a drawing."""
    match = re.search(rf'\.drawing \[fill="{colour}"\][^{{]*\{{ fill: var\(--([\w-]+)\); \}}', STYLE)
    return variables(True)[match[1]] if match else colour


def contrast(colour: str, ground: str, opacity: float = 1.0) -> float:
    """Return the contrast of a colour laid over a ground (WCAG 2, section 1.4.11)."""
    over, under = _channels(colour), _channels(ground)
    mixed = [opacity * upper + (1.0 - opacity) * lower for upper, lower in zip(over, under, strict=True)]
    bright, dark = sorted((_luminance(mixed), _luminance(under)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _channels(colour: str) -> list[float]:
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    return [int(digits[place : place + 2], 16) / 255.0 for place in (0, 2, 4)]


def _luminance(channels: list[float]) -> float:
    linear = [channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
