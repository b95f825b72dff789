"""``python -m scripts.benchmarks NAME``: run a benchmark with its options."""

from __future__ import annotations

import argparse
import sys

from scripts.benchmarks.harness import read_table, run

parser = argparse.ArgumentParser(prog="python -m scripts.benchmarks", add_help=False)
parser.add_argument("name", choices=read_table())
run(parser.parse_args(sys.argv[1:2]).name, sys.argv[2:])
