"""What benchmarks compare with: whether it is installed, and peers that need an environment of
their own."""
