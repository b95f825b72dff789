"""Runs of a study as jobs of a cluster: Slurm through submitit, or Ray."""
