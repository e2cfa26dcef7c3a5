"""How a table, an estimate and a report show themselves in a notebook and in a terminal."""

from brittle.display.estimates import estimate_html
from brittle.display.tables import table_html, table_text

__all__ = ["estimate_html", "table_html", "table_text"]
