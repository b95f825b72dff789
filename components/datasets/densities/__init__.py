"""Target densities with known moments."""
