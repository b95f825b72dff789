"""What benchmarks compare with, and whether it is installed."""
