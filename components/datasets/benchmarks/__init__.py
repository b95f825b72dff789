"""Benchmark tables of one file each, with a simulation if the file is unavailable."""
