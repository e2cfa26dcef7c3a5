"""What a run leaves: its record, its table, its folder, and readers without trust."""
