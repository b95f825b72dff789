"""Checks of a component that depend on its role: the law of a sampler, the size of an attack, and
inputs that stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from components.contracts.attackers import Contamination, Evasion
from components.contracts.posteriors import Predicts
from components.contracts.sequences import Clean
from components.evaluation.security.curves import build_victim
from components.evaluation.security.threat import Threat
from components.series.sequence import Sequence
from runner.conformance.outcomes import NonConformanceError, NotCheckedError
from runner.conformance.rehearsal import Rehearsal, begin, find_difference
from runner.conformance.stationarity import check_stationarity
from runner.conformance.step_checks import StepTrial

# checks of a security evaluation that depend on the victim and on reference attacks, or on the
# chance of a few test rows
VICTIM_CHECKS = frozenset(
    {
        "an iterative attack is no weaker than one step",
        "more steps and restarts do not help the defender",
        "noise is weaker than the gradient",
        "the loss rises during the attack",
        "an unbounded attack reaches chance",
        "the gradient is not zero",
        "accuracy falls as ε grows",
        "the target is reached more often as ε grows",
        "no certified label is broken",
        "the filter attacked is the run's own",
    }
)


def tensors_of(thing: object, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """Tensors and arrays of numbers in data, each with its path."""
    if isinstance(thing, Tensor):
        yield path, thing
    elif isinstance(thing, np.ndarray) and thing.dtype.kind in "biuf":
        yield path, torch.from_numpy(thing)
    elif is_dataclass(thing):
        # a name with an underscore is a cache
        for one in (one for one in fields(thing) if not one.name.startswith("_")):
            yield from tensors_of(getattr(thing, one.name, None), f"{path}.{one.name}")
    elif isinstance(thing, Mapping):
        for key, value in thing.items():
            yield from tensors_of(value, f"{path}.{key}")
    elif isinstance(thing, list | tuple):
        for number, value in enumerate(thing):
            yield from tensors_of(value, f"{path}.{number}")


def copy_tensors(thing: object) -> dict[str, Tensor]:
    """Copies of all tensors of data, by path."""
    return {path.lstrip("."): value.detach().clone() for path, value in tensors_of(thing)}


def find_change(before: dict[str, Tensor], thing: object) -> str | None:
    """Path of the first tensor that has changed since ``copy_tensors``; None: none has."""
    return find_difference(("", before), ("", copy_tensors(thing)))


def check_inference_inputs(trial: StepTrial) -> str:
    """Steps leave batches and data as they are, and a posterior leaves the state."""
    rehearsal = begin(trial.make_job())
    inference = rehearsal.job.inference
    problem = rehearsal.problem
    data = copy_tensors(problem)
    stop = trial.count_steps(rehearsal)
    for _, batch in problem.batches(inference.requires.batch_kind, rehearsal.rng, 0, stop):
        given = copy_tensors(batch)
        rehearsal.state, _ = inference.step(rehearsal.state, batch, rehearsal.rng)
        if name := find_change(given, batch):
            raise NonConformanceError(_changed("a step", f"its batch ({name or 'x'})", trial))
    if name := find_change(data, problem):
        raise NonConformanceError(_changed("a step", f"the data ({name})", trial))
    state = rehearsal.state_content
    rehearsal.posterior()
    # agents of games remember the equilibria that they have solved
    name = problem.kind != "game" and find_difference(state, rehearsal.state_content)
    if name:
        raise NonConformanceError(_changed("posterior", f"the state ({name})", trial))
    return "batches, data and state are unchanged"


def _changed(subject: str, thing: str, trial: StepTrial) -> str:
    return f"{subject} changes {thing} in place; work on a copy, x.clone() ({trial.where})"


def check_attack(trial: StepTrial) -> str:
    """Checks of a security evaluation, but for those of the victim."""
    checks = trial.run().assessment().checks
    own = [check for check in checks if check.name not in VICTIM_CHECKS]
    if not own:
        raise NotCheckedError("the attacker has no sizes ε")
    for check in own:
        if check.passed is False:
            raise NonConformanceError(f"{check.name}: {check.detail} ({trial.where})")
    return f"{len(own)} checks of the security evaluation"


def check_attack_inputs(trial: StepTrial) -> str:
    """An attack leaves inputs, labels, data and the victim as they are."""
    rehearsal = trial.run()
    state = rehearsal.state_content
    data = copy_tensors(rehearsal.problem)
    given = _attack_once(rehearsal)
    rehearsal.assess()
    if name := find_change(given[0], given[1]):
        raise NonConformanceError(_changed("the attack", f"its inputs ({name})", trial))
    if name := find_change(data, rehearsal.problem):
        raise NonConformanceError(_changed("the attack", f"the data ({name})", trial))
    if name := find_difference(state, rehearsal.state_content):
        raise NonConformanceError(_changed("the attack", f"the victim ({name})", trial))
    return "inputs, labels, data and victim are unchanged"


def _attack_once(rehearsal: Rehearsal) -> tuple[dict[str, Tensor], object]:
    """Copies of the inputs of one attack, and the inputs after it."""
    attacker = rehearsal.job.attacker
    problem = rehearsal.problem
    rng = rehearsal.rng
    given: object = None
    before: dict[str, Tensor] = {}
    if isinstance(attacker, Contamination) and isinstance(problem, Sequence):
        observations = problem.observations if problem.clean is None else problem.clean
        given = Clean(observations.clone(), problem.means, problem.states)
        before = copy_tensors(given)
        attacker.corrupt(given, rng)
    elif isinstance(attacker, Evasion) and isinstance(threat := rehearsal.job.threat, Threat):
        test = problem.test
        y = torch.where(test.mask, test.y, -1)
        given = {"x": test.x.clone(), "y": y}
        before = copy_tensors(given)
        ready = attacker.with_problem(problem, rng)
        victim = build_victim(problem, cast(Predicts, rehearsal.posterior()), ready)
        with torch.no_grad():
            ready.perturb(victim, given["x"], y, rng, max(threat.sizes))
    return before, given


ROLE_CHECKS: dict[str, dict[str, Callable[[StepTrial], str]]] = {
    "inference": {
        "inputs": check_inference_inputs,
        "stationarity": lambda trial: check_stationarity(trial.make_job().inference, trial.where),
    },
    "attacker": {"inputs": check_attack_inputs, "attack": check_attack},
}
