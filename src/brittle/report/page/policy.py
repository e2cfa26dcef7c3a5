"""What the page may do: its content security policy."""

from __future__ import annotations

import base64
import hashlib


def policy(style: str, script: str) -> str:
    """The content security policy of a page: this style, this script if any, images that it holds, and nothing else.

    Args:
        style: the text between the tags of the one `style` element, to the byte.
        script: that of the one `script` element that runs; empty for none.
    """
    rules = ["default-src 'none'", "img-src data:", f"style-src '{digest(style)}'"]
    rules += [f"script-src '{digest(script)}'"] if script else []
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def digest(text: str) -> str:
    """The digest of a text as a policy names it, such as `sha256-...`."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
