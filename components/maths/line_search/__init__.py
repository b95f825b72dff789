"""Limited-memory BFGS and its line search."""
