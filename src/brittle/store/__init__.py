"""Results of a run: its record, its table, its folder, and readers without trust."""
