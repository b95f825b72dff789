"""Semi-implicit variational inference and its comparators: easy draws, densities as integrals."""
