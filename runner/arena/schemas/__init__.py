"""JSON Schemas of experiments, studies and suites."""
