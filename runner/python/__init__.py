"""What the machine is for those who write Python: ``from runner import run, load, runs, compare``."""
