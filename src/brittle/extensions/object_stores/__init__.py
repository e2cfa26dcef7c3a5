"""Data and copies of runs in object stores such as S3."""
