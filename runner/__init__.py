"""The machine: composition, the loop, records, tracking, sweeps and reports."""

from pathlib import Path

# The YAML beside this package, by path: a user's own folder named conf on PYTHONPATH would shadow the package of that name.
CONF = Path(__file__).resolve().parent.parent / "conf"
