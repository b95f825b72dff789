"""Exact batched solvers for matrix games."""
