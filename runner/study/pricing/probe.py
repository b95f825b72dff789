"""Measurement of a run in miniature.

A probe takes up to three miniatures: a small first one, which pays for imports, compilation and
caches; then two lengths n₁ < n₂, chosen so that the training of the last takes a share of
``seconds``.  What a miniature writes is in a temporary folder.
"""

from __future__ import annotations

import math
import resource
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from components.metrics.names import COST_PREFIX
from runner.record import usage
from runner.study.pricing.miniature import FEWEST_STEPS, can_shrink_steps, shrink_steps

if TYPE_CHECKING:
    from runner.compose.config import Job

TRAINING_SHARE = 0.4  # of a probe's seconds: training of its longest miniature
WHOLE_SHARE = 0.8  # of a probe's seconds: a training that is shorter is not shortened
# of a probe's seconds: figures, or an evaluation on the way, that take more are made once
ONCE_SHARE = 0.4
LEAST_PATIENCE = 15.0  # CPU seconds
PATIENCE = 6.0  # CPU time after the first miniature that a probe may take, over its seconds
LEAP = 32  # the second miniature has at most that many times the steps of the first
NO_TIME = 1e-7  # seconds
# growth of an evaluation, relative to itself, that is more than noise
GROWTH = 0.2
MIDDLE = 4  # the miniature in the middle trains for that part of the longest one's time
REPEATED = ("outcomes", "predictions")  # folders to which each replicate adds
FEW_REPLICATES = 4  # computed together: they are not shortened


@dataclass(frozen=True)
class Sample:
    """Measurements of one miniature."""

    steps: int
    replicates: int  # computed together, or 1
    usage: dict[str, float]  # of run.json
    disk: int  # bytes of its folder, without its lines, pictures and checkpoints
    pictures: int  # bytes of its figures
    repeated: int  # bytes among these that each replicate writes
    checkpoint: int  # bytes of its newest checkpoint
    kept: int  # checkpoints that a record keeps
    training_line: float  # mean bytes of a recorded line of training
    evaluation_line: float  # and of an evaluation, the last one included
    costs: dict[str, float]  # of a replicate's training, by kind
    figures: bool  # figures were drawn
    evaluations: int  # on the way


@dataclass
class Probe:
    """Measurements of a run's miniatures, the first with all that happens once in a process."""

    total: int = 0  # steps of the run
    vectorised: bool = False
    axis: str = "steps"  # what was shortened: steps | replicates | nothing
    start: float = 0.0  # CPU seconds from the start of a process to the first miniature
    base_mib: float = 0.0  # memory of imports that a fork does not count
    samples: list[Sample] = field(default_factory=list)
    error: str = ""
    late: str = ""  # it was stopped
    seconds: float = 0.0  # CPU seconds that the probe itself took


def measure(config: dict[str, Any], experiment: str, seconds: float) -> Iterator[Probe]:
    """Measures miniatures of a run in this process; the probe after each of them."""
    import torch

    from runner.execution.assembly import load_problem, total_steps
    from runner.execution.rng import Streams
    from runner.study.pricing import preloaded

    base_mib = max(0.0, preloaded.MIB - usage.resident_mib())
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        config = config | {"output_dir": folder, "tracking": False, "keep_diff": False}
        job = _prepare(config, experiment)
        start = preloaded.START + usage.cpu_now()
        R = job.settings.replicates if job.is_vectorised else 1
        rng = Streams(job.settings.seed, 0, torch.device(job.settings.device))
        total = total_steps(job, load_problem(job, rng, R))
        axis = _axis(job, total)
        probe = Probe(total, job.is_vectorised, axis, start, base_mib)
        size = {"steps": FEWEST_STEPS, "replicates": max(1, R // 8)}.get(axis, total)
        whole = R if axis == "replicates" else total
        while size:
            probe.samples.append(_run(_shrink(config, axis, size, total, R), experiment))
            probe.seconds = usage.cpu_now()
            yield probe
            limit_cpu(patience(seconds))
            config = config | _without_costly(probe.samples, seconds)
            size = _next_size(probe.samples, whole, axis, seconds, job.settings.replicates > R)


def _prepare(config: dict[str, Any], experiment: str) -> Job:
    from omegaconf import OmegaConf

    from runner.compose.config import prepare

    cfg = OmegaConf.create(config)
    cfg.pop("experiment", None)
    return prepare(cfg, experiment, None)


def _axis(job: Job, total: int) -> str:
    """What of a run is shortened: steps, replicates that are computed together, or nothing."""
    from components.contracts.attackers import Injection

    if can_shrink_steps(total, isinstance(job.attacker, Injection)):
        return "steps"
    return (
        "replicates"
        if job.is_vectorised and job.settings.replicates > FEW_REPLICATES
        else "nothing"
    )


def _shrink(config: dict[str, Any], axis: str, size: int, total: int, R: int) -> dict[str, Any]:
    """Config of a miniature; ``size``: its steps or its replicates."""
    if axis == "steps":
        return shrink_steps(config, size, total) | {"replicates": R}
    return config | {"replicates": size if axis == "replicates" else R}


def _without_costly(done: list[Sample], seconds: float) -> dict[str, Any]:
    """Keys of the next miniature that leave out what is known and takes long: an evaluation on the
    way after the first miniature, figures after two of them."""
    small: dict[str, Any] = {}
    if done[-1].usage["evaluations"] > ONCE_SHARE * seconds:
        small["eval_every"] = None
    if len(done) > 1 and done[-1].usage["files"] > ONCE_SHARE * seconds:
        small["figures"] = False
    return small


def _next_size(done: list[Sample], whole: int, axis: str, seconds: float, again: bool) -> int:
    """Size of the next miniature; 0: enough is known.

    ``again``: replicates come one after the other, so that a second whole one is worth a measurement:
    it finds memory that the first one had to ask for.
    """
    last = done[-1]
    size = _size(last, axis)
    if size == whole:
        is_cheap = last.usage["cpu_seconds"] < max(seconds, LEAST_PATIENCE / 2)
        is_first = all(_size(sample, axis) < whole for sample in done[:-1])
        return whole if again and is_first and is_cheap else 0
    if len(done) > 2:
        return 0
    each = max(_rate(done, axis), NO_TIME)
    largest = min(whole, LEAP * size) if len(done) == 1 else whole
    if whole == largest and whole * each < seconds * WHOLE_SHARE:
        return whole
    target = seconds * TRAINING_SHARE / (MIDDLE if len(done) == 1 else 1)
    if len(done) == 2 and (size * each > target or not _is_worth(last, whole * each)):
        return 0
    chosen = max(int(target / each), 2 * size)
    return min(largest, chosen + chosen % 2)


def _size(sample: Sample, axis: str) -> int:
    return sample.replicates if axis == "replicates" else sample.steps


def _rate(done: list[Sample], axis: str) -> float:
    """CPU seconds of a training by its size, and of an evaluation if it has grown."""
    last = done[-1]
    phases = ("set_up", "training", "final") if axis == "replicates" else ("training",)
    rate = sum(last.usage[phase] for phase in phases) / _size(last, axis)
    if axis == "steps" and len(done) > 1:
        growth = last.usage["final"] - done[-2].usage["final"]
        if growth > GROWTH * last.usage["final"]:
            rate += growth / (last.steps - done[-2].steps)
    return rate


def _is_worth(sample: Sample, training: float) -> bool:
    """True if a further miniature tells more than it costs: the run trains for longer than it
    takes to set up and evaluate a miniature."""
    fixed = sum(sample.usage[phase] for phase in ("set_up", "evaluations", "final", "files"))
    return training > fixed / 2


def _run(config: dict[str, Any], experiment: str) -> Sample:
    """Runs a miniature from its record to its end, and removes what it wrote."""
    from components.errors import NumericalError
    from runner.execution.checkpoint import KEPT
    from runner.execution.execute import Run

    run = Run(_prepare(config | {"fresh": True}, experiment))
    try:
        run.go(signals=False)
    except NumericalError:  # scores of so few steps need not be finite
        if not run.record.facts["finished"]:
            raise
    folder = run.record.folder
    lines = (folder / "metrics.jsonl").read_bytes()
    pictures = usage.folder_bytes(folder / "figures")
    checkpoints = sorted((folder / "checkpoints").glob("r*.json"))
    files = [p for path in checkpoints for p in path.parent.glob(f"{path.stem}.*")]
    sizes = sum(path.stat().st_size for path in files)
    recorded = lines.splitlines(keepends=True)
    training = [line for line in recorded if b'"phase": "train"' in line]
    evaluations = [line for line in recorded if b'"phase": "train"' not in line]
    metrics = next(iter(run.record.facts["finished"].values()))
    sample = Sample(
        steps=config["steps"] or 1,
        replicates=run.settings.replicates,
        usage=run.record.facts["usage"],
        disk=usage.folder_bytes(folder) - len(lines) - pictures - sizes,
        pictures=pictures,
        repeated=sum(usage.folder_bytes(folder / name) for name in REPEATED),
        checkpoint=sizes // max(1, len(checkpoints)),
        kept=KEPT,
        training_line=_mean_length(training),
        evaluation_line=_mean_length(evaluations),
        costs=_costs(metrics),
        figures=run.settings.figures,
        evaluations=lines.count(b'"phase": "evaluation"'),
    )
    shutil.rmtree(folder)
    return sample


def _mean_length(lines: list[bytes]) -> float:
    return sum(map(len, lines)) / max(1, len(lines))


def _costs(metrics: dict[str, Any]) -> dict[str, float]:
    """Costs of a replicate's training among its scores, by kind."""
    costs = {
        k.removeprefix(COST_PREFIX): v for k, v in metrics.items() if k.startswith(COST_PREFIX)
    }
    return {kind: float(v[0] if isinstance(v, list) else v) for kind, v in costs.items()}


def patience(seconds: float) -> float:
    """CPU seconds that a probe may take after its first miniature."""
    return max(LEAST_PATIENCE, PATIENCE * seconds)


def limit_cpu(seconds: float) -> None:
    """Have this process killed when it has taken as many CPU seconds more."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    limit = math.ceil(spent.ru_utime + spent.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
