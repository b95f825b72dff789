"""Developers' scripts: benchmarks, and the peers they compare with."""
