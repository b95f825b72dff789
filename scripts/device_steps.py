"""``python -m scripts.device_steps``: measure milliseconds per step on CPU and GPU, and
synchronisations of CPU and GPU per step.

A step ends when the GPU is idle.  Rows of ``TIMED`` are timed, and rows of ``COUNTED`` counted, on
small problems without data files."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import yaml

from components.attackers.attacked import Attacked
from components.attackers.evasion.loop import Ascent, ascend
from runner.compose.compose import compose
from runner.compose.job import prepare
from runner.execution.assembly import build_model, hide_truth, load_problem
from runner.execution.rng import Streams
from scripts.peers.attacked_networks import ALPHA, STEPS, build_ours, draw_images, train_networks

Step = Callable[[], Any]
TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
TIMED: dict[str, list[str]] = TABLE["timed"]
COUNTED: dict[str, list[str]] = TABLE["counted"]
WARM = 3  # warm-up steps


def make_step(folder: Path, device: str, overrides: list[str]) -> Step:
    """Function that takes a training step of a run: batch and ``inference.step``."""
    keys = [f"output_dir={folder}", f"data_dir={folder}", "tracking=false", "offline=true"]
    job = prepare(compose([*keys, *overrides, f"device={device}", "steps=1000"]))
    rng = Streams(0, 0, torch.device(device))
    problem = load_problem(job, rng, job.settings.replicates if job.is_vectorised else 1)
    model = build_model(job, problem, rng)
    inference = job.method
    state = inference.init(model, hide_truth(problem, inference), rng)
    batches: Iterator[Any] = iter(problem.batches(inference.requires.batch_kind, rng, 0, 1000))

    def step() -> None:
        nonlocal state
        state, _ = inference.step(state, next(batches)[1], rng)

    return step


def make_attack(device: str, rows: int) -> Step:
    """PGD with 40 steps on images [rows, 784] of a network with two convolutions, in float32."""
    generator = torch.Generator().manual_seed(0)
    network = train_networks(generator)["CNN"]
    x, y = (part.to(device) for part in draw_images(rows, generator))
    network[0].seen = network[0].seen.to(device)
    victim = Attacked(build_ours(network.to(device)), (0.0, 1.0))
    ascent = Ascent("linf", STEPS, ALPHA)
    return lambda: ascend(victim, x, y[:, None], torch.Generator(device), 0.1, ascent)


def wait(device: str) -> None:
    """Wait until the device is idle."""
    if device != "cpu":
        torch.get_device_module(torch.device(device).type).synchronize()


def time_steps(step: Step, device: str, count: int) -> float:
    """Median milliseconds per step."""
    for _ in range(WARM):
        step()
    wait(device)
    milliseconds = []
    for _ in range(count):
        start = time.perf_counter()
        step()
        wait(device)
        milliseconds.append(1e3 * (time.perf_counter() - start))
    return statistics.median(milliseconds)


@contextmanager
def count_waits() -> Iterator[Counter[str]]:
    """Context that counts synchronisations with a CUDA GPU by source line."""
    counter: Counter[str] = Counter()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield counter
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for warning in caught:
        if "synchroniz" in str(warning.message):
            counter[f"{'/'.join(Path(warning.filename).parts[-2:])}:{warning.lineno}"] += 1


def count_waits_of_steps(step: Step, count: int = 10) -> tuple[float, Counter[str]]:
    """Synchronisations per step, and their source lines."""
    for _ in range(WARM):
        step()
    with count_waits() as counter:
        for _ in range(count):
            step()
    return sum(counter.values()) / count, counter


def report(device: str, threads: list[int], repeats: int, count: int) -> None:
    """Print all rows."""
    makers: dict[str, Callable[[Path, str], Step]] = {
        name: lambda folder, where, keys=keys: make_step(folder, where, keys)
        for name, keys in TIMED.items()
    }
    makers |= {
        f"PGD, 40 steps, CNN, {rows:,} images, float32": lambda _, where, rows=rows: make_attack(
            where, rows
        )
        for rows in (100, 1000)
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, make in makers.items():
            places = [(f"cpu, {k} threads", "cpu", k) for k in threads] + [(device, device, 1)]
            for place, where, k in places:
                torch.set_num_threads(k)
                step = make(Path(folder), where)
                times = [time_steps(step, where, count) for _ in range(repeats)]
                print(f"{name} | {place} | {', '.join(f'{ms:.2f}' for ms in times)} ms", flush=True)
        torch.set_num_threads(1)
        for name, keys in COUNTED.items():
            waits, counter = count_waits_of_steps(make_step(Path(folder), device, keys))
            places_text = ", ".join(f"{where} {n / 10:.1f}" for where, n in counter.most_common(8))
            print(f"waits per step | {name} | {waits:.1f} | {places_text}", flush=True)


def main() -> None:
    """Parse the options and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument(
        "--threads", type=int, nargs="+", default=[1], help="numbers of CPU threads"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10, help="number of timed steps per repeat")
    arguments = parser.parse_args()
    report(arguments.device, arguments.threads, arguments.repeats, arguments.steps)


if __name__ == "__main__":
    main()
