"""Python interface: ``from runner import run, load, runs, compare``."""
