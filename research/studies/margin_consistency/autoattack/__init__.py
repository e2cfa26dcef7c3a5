"""The standard set of AutoAttack in Linf, in a form of our own that shares no code with the library or with it."""
