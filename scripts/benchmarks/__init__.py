"""Benchmarks, run by ``python -m scripts.benchmarks NAME``, all on one thread."""

import os

for library in ("OMP", "MKL", "OPENBLAS", "RAYON"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
