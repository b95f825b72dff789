"""One run: the loop, its random streams, checkpoints, artefacts."""
