"""Encoded images in WebDataset shards, `.tar`."""
