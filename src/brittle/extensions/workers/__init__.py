"""Runs that several processes, machines or later runs share: workers, a Ray cluster, parts, `brittle join`."""
