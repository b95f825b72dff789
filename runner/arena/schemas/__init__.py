"""JSON Schemas of experiments, studies, suites and outputs."""
