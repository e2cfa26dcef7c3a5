"""Extensions: parts that the core finds by `brittle.registry`, each folder of which can be deleted."""
