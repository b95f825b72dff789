"""Benchmark tables of one file each, with a simulation where the file cannot be had."""
