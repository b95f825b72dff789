"""Runs of a study as cluster jobs: Slurm through submitit, or Ray."""
