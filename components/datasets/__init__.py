"""Datasets by what they load."""
