"""Interfaces between the parts of a run.

They are roles, capabilities, posteriors, problems and random streams.
"""
