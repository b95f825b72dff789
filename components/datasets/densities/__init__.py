"""Target densities whose moments are known."""
