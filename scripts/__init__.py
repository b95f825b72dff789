"""Scripts for developers: benchmarks with their peers, results, pages, mutation tests."""
