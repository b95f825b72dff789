"""Semi-implicit variational inference and its comparators: draws that are easy, densities that are
integrals."""
