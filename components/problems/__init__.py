"""Kinds of problems: data, batches, scores and figures of a posterior."""
