"""Compiled sweeps of the structural Gibbs sampler."""
