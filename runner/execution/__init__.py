"""Execution of a run: training loop, random streams, checkpoints, artefacts."""
