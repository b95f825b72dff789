"""Costs of checkpoints for a run that keeps everything: 100,000 draws of HMC on a mixture.

    python -m scripts.benchmarks saving --draws 5000

A checkpoint every 500 steps, against the same run without any; both must keep the same draws, and
the last checkpoint must restore them.  Ratios: the share of the training thread's wall-clock time
that saving leaves to the sampler, in the whole run and its extremes over the tenths; CPU seconds of
the process, writing in the background included; and the share of draws in all bytes written."""

from __future__ import annotations

import tempfile
from argparse import Namespace

import numpy as np

from runner.execution import checkpoint
from scripts.benchmarks.harness import Report
from scripts.benchmarks.saved_run import (
    Sampler,
    assert_equal,
    prepare_job,
    sample_and_save,
)

PARTS = 10
TIME, SHARE = "time left to the sampler", "draws among the bytes written"


def measure(options: Namespace, report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        job = prepare_job(options.draws, folder)
        plain, _, cpu_without = Sampler(job).run([])
        state, seconds, cpu, saving, written = sample_and_save(job, Sampler(job))
        assert_equal(plain, state)
        newest = checkpoint.load_newest(job.folder / "checkpoints", job.signature)
        facts, tensors, complaints = newest or ({}, {}, [])
        assert not complaints
        assert_equal(plain, checkpoint.restore(facts, tensors, Sampler(job).start)[0])
    parts = zip(np.array_split(saving, PARTS), np.array_split(seconds, PARTS), strict=True)
    shares = [1 - float(saved.sum() / total.sum()) for saved, total in parts]
    report.set_ratio(TIME, 1 - sum(saving) / sum(seconds), min(shares), max(shares))
    report.record("CPU", [cpu_without / cpu])
    history = [state.kept.rows, *(trace.rows for trace in state.stats.values())]
    report.record(SHARE, [sum(rows.nbytes for rows in history) / written])
