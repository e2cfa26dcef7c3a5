"""Ensembles of trees: files of their libraries, and the exact nearest input with another prediction."""
