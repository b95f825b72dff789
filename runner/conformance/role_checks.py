"""Checks that depend on the role: distribution of a sampler's draws, size of an attack, unchanged
inputs."""

from __future__ import annotations

import torch

from components.contracts.attackers import Evasion
from components.evaluation.security.curves import build_victim
from runner.conformance.outcomes import NonConformanceError, NotCheckedError
from runner.conformance.rehearsal import Content, begin, content_of, find_difference
from runner.conformance.stationarity import check_stationarity
from runner.conformance.step_checks import StepCheck, StepTrial

# checks of a security evaluation that depend on the victim, on reference attacks or on a few random
# test rows
VICTIM_CHECKS = frozenset(
    {
        "an iterative attack is not weaker than one step",
        "more steps and restarts do not help the defender",
        "noise is weaker than the gradient",
        "the loss rises during the attack",
        "an unbounded attack reaches chance",
        "the gradient is not zero",
        "accuracy falls as ε grows",
        "the target is reached more often as ε grows",
        "no certified label is broken",
        "the attacked filter is the run's own",
    }
)


def require_same(before: Content, thing: object, subject: str, trial: StepTrial) -> None:
    """Raise NonConformanceError if an object differs from the copy of its content."""
    if name := find_difference(before, content_of(thing)):
        raise NonConformanceError(
            f"{subject} ({name.removeprefix('state.')}) in place; modify a copy, x.clone() ({trial.where})"
        )


def check_inference_inputs(trial: StepTrial) -> str:
    """Check that steps do not change batches and that a posterior does not change the state."""
    rehearsal = begin(trial.make_job())
    method = rehearsal.job.inference
    rng = rehearsal.rng
    problem = rehearsal.problem
    state = rehearsal.state
    kind = method.requires.batch_kind
    if problem.kind not in ("supervised", "unlabelled", "density"):
        raise NotCheckedError(f"does not apply to {problem.kind} problems")
    for _, batch in problem.batches(kind, rng, 0, trial.count_steps(rehearsal)):
        try:
            given = content_of(batch)
        except TypeError:
            raise NotCheckedError("batches are not tensors") from None
        state, _ = method.step(state, batch, rng)
        require_same(given, batch, "a step changes its batch", trial)
    given = content_of(state)
    method.posterior(state)
    require_same(given, state, "posterior changes the state", trial)
    return "batches and state are unchanged"


def check_attack(trial: StepTrial) -> str:
    """Checks of a security evaluation that do not depend on the victim, and unchanged inputs."""
    rehearsal = trial.run()
    checks = rehearsal.assessment().checks
    own_checks = [check for check in checks if check.name not in VICTIM_CHECKS]
    if not own_checks:
        raise NotCheckedError("the attacker has no sizes ε")
    for check in own_checks:
        if check.passed is False:
            raise NonConformanceError(f"{check.name}: {check.detail} ({trial.where})")
    job = rehearsal.job
    if isinstance(job.attacker, Evasion) and job.threat is not None:
        test = rehearsal.problem.test
        attacker = job.attacker.with_problem(rehearsal.problem, rehearsal.rng)
        victim = build_victim(rehearsal.problem, rehearsal.posterior(), attacker)  # type: ignore[arg-type]
        inputs = {"x": test.x.clone(), "y": torch.where(test.mask, test.y, -1)}
        contents = [content_of(inputs), content_of(rehearsal.state)]
        with torch.no_grad():
            size = max(job.threat.sizes)
            attacker.perturb(victim, inputs["x"], inputs["y"], rehearsal.rng, size)
        require_same(contents[0], inputs, "the attack changes its inputs", trial)
        require_same(contents[1], rehearsal.state, "the attack changes the victim", trial)
    return f"{len(own_checks)} checks of the security evaluation"


ROLE_CHECKS: dict[str, dict[str, StepCheck]] = {
    "inference": {
        "inputs": check_inference_inputs,
        "stationarity": lambda trial: check_stationarity(trial.make_job().inference, trial.where),
    },
    "attacker": {"attack": check_attack},
}
