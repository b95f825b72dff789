"""Chains as a tensor dimension: where they start, which of their states are kept, and what is handed back.

Every sampler's state is a dict with, beside what its own step needs,

    model   the built model (a LogJoint)           theta   where the chains are now [C, P]
    t       steps done                             start   where they began [C, P]
    kept    list of [C, P] on the CPU              stats   name -> list of [C] on the CPU, one for each kept state
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.roles import NumericalTrouble, Rng
from components.inference.log_joint import log_joint, value_and_gradient
from components.posteriors.draws import Draws
from components.trouble import Misfit

State = dict[str, Any]


def first_batch(problem: Any, rng: Rng) -> Any:
    """What the first step will see; all there is, where batches are whole.  None: there are no data."""
    return None if problem is None else next(iter(problem.batches(rng, 0, 1)))[1]


def started(
    model: LogJoint, problem: Any, chains: int, rng: Rng, start: Tensor | None = None, gradient: bool = True
) -> State:
    """The state of C chains that begin at ``start`` [C, P]; None: where the model says, by ``sample_start`` if it has
    one, otherwise at draws from its prior.

    ``gradient`` False asks for no gradient, so that the model need not be differentiable.
    Raises NumericalTrouble when the log joint, or its gradient, is not finite where a chain begins."""
    begin = getattr(model, "sample_start", model.sample_prior)
    theta = begin(chains, rng.init) if start is None else start  # [C, P]
    batch = first_batch(problem, rng)
    if gradient:
        value, slope = value_and_gradient(model, theta, batch)
        wrong = ~(torch.isfinite(value) & torch.isfinite(slope).all(1))
    else:
        value = log_joint(model, theta, batch).detach()
        wrong = ~torch.isfinite(value)
    if wrong.any():
        lost = wrong.nonzero().flatten().tolist()
        raise NumericalTrouble(
            f"log density{' or its gradient' if gradient else ''} is not finite where chains {lost} start "
            f"(first: {float(value[lost[0]]):g})",
            "change where the dataset or the prior of the model starts chains, or seed",
        )
    return {"model": model, "t": 0, "start": theta, "theta": theta, "kept": [], "stats": {}}


def untrained(model: LogJoint, problem: Any, chains: int, rng: Rng) -> State:
    """The state of C chains where training begins: at ``initial`` of a model that has it, as networks do whose training
    does not begin where samplers start; otherwise as ``started`` has it."""
    begin = getattr(model, "initial", None)
    return started(model, problem, chains, rng, None if begin is None else begin(chains, rng.init).to(problem.train.x))


def whole(batch: Any) -> None:
    """Refuses a minibatch: an exact sampler needs the log joint itself, not an estimate of it.

    Raises Misfit."""
    if batch is not None and batch.scale != 1.0:
        raise Misfit("dataset.batch_size: this sampler needs the whole training set at each step; use null")


def moved(
    state: State,
    theta: Tensor,
    burn_in: int,
    thinning: int,
    stats: dict[str, Tensor] | None = None,
    mend: str = "lower inference.step_size",
) -> State:
    """One step further, at θ [C, P]: after ``burn_in`` steps every ``thinning``-th state is kept, with its stats [C].

    Raises NumericalTrouble when a chain has left the finite numbers."""
    t = state["t"] + 1
    lost: list[int] = []
    if not math.isfinite(float(theta.sum())):  # one pass; a sum that merely overflows has lost no chain
        lost = (~torch.isfinite(theta).all(1)).nonzero().flatten().tolist()
    if lost:
        raise NumericalTrouble(f"chains {lost} left the finite numbers", mend)
    if t > burn_in and (t - burn_in) % thinning == 0:
        state["kept"].append(theta.cpu())  # collected draws would fill an accelerator
        for name, value in (stats or {}).items():
            state["stats"].setdefault(name, []).append(value.detach().cpu())
    return state | {"t": t, "theta": theta}


def collected(state: State) -> Draws:
    """What the chains have kept so far."""
    model, theta, kept = state["model"], state["theta"], state["kept"]
    draws = torch.stack(kept, 1).to(theta.device) if kept else theta.unsqueeze(1)[:, :0]  # [C, N, P]
    stats = {name: torch.stack(values, 1).to(theta.device) for name, values in state["stats"].items()}
    return Draws(draws, state["start"], list(model.names), model, stats, theta)
