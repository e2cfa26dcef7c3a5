"""The worst case of a table: robust accuracy by distance, consistent margins, and `brittle robust-accuracy`."""
