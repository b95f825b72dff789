"""Samplers with one mistake each, made from the package's source and from a correct Barker
proposal."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from support.runs.configured import component

BARKER = '''
import torch
from components.contracts.capabilities import LogJoint
from components.contracts.posteriors import HoldsDraws
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference
from components.inference.chains import advance, init_chains, to_draws
from components.inference.log_joint import value_and_gradient
from components.registry import register

@register("inference", "barker")
class Barker(Inference):
    """Barker proposal.

    Source: Livingstone and Zanella (2022), Algorithm 1."""
    requires = Requirements(kinds={"density"}, capabilities={LogJoint})
    provides = {HoldsDraws}
    chains: int
    scale: float

    def init(self, model, problem, rng):
        return init_chains(model, problem, self.requires.batch_kind, self.chains, rng)

    def step(self, state, batch, rng):
        theta = state.theta
        value, slope = value_and_gradient(state.model, theta, batch)
        jump = self.scale * torch.randn(theta.shape, generator=rng.noise, dtype=theta.dtype)
        u = torch.rand(theta.shape, generator=rng.noise, dtype=theta.dtype)
        jump = torch.where(u < torch.sigmoid(jump * slope), jump, -jump)
        proposed, back = value_and_gradient(state.model, theta + jump, batch)
        forth = torch.nn.functional.logsigmoid(jump * slope)
        hastings = (torch.nn.functional.logsigmoid(-jump * back) - forth).sum(1)
        u = torch.rand(len(theta), generator=rng.noise, dtype=theta.dtype)
        accept = u.log() < proposed - value + hastings
        return advance(state, torch.where(accept[:, None], theta + jump, theta), 0, 1), {}

    def posterior(self, state):
        return to_draws(state)
'''
# sampler, keys, expression of its source, wrong expression
BROKEN: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "barker: no Hastings correction": ("barker", {}, "+ hastings", ""),
    "barker: sign of the correction": ("barker", {}, "+ hastings", "- hastings"),
    "random_walk_mh: half the log ratio": (
        "random_walk_mh",
        {},
        "proposed, 0.0,",
        "proposed, 0.5 * (state.value - proposed),",
    ),
    "random_walk_mh: stale log density": (
        "random_walk_mh",
        {},
        "return self.settle(state, proposal, proposed, 0.0, rng.noise)",
        "moved, info = self.settle(state, proposal, proposed, 0.0, rng.noise)\n"
        "        return type(moved)(**vars(moved) | {'value': state.value}), info",
    ),
    "mala: no correction": ("mala", {}, "0.5 * (z.square()", "0.0 * (z.square()"),
    "mala: missing half": ("mala", {}, "correction = 0.5 *", "correction = 1.0 *"),
    "mala: stale gradient": ("mala", {}, "gradient=slope)", "gradient=state.gradient)"),
    "hmc: everything accepted": ("hmc", {"trajectory": "jittered"}, "< rate", "< 2.0 + rate"),
    "hmc: energy without momentum": (
        "hmc",
        {},
        "energy_error(proposed_energy, energy)",
        "energy_error(-proposed.value, -z.value)",
    ),
    "nuts: weights of the energy's root": (
        "nuts",
        {},
        "no_u_turn(dynamics, z,",
        "no_u_turn(dynamics, type(z)(z.theta, 0.5 * z.r, z.value, z.gradient),",
    ),
    "gibbs: blocks drawn from the old state": (
        "gibbs",
        {},
        "theta = model.draw_block(block, theta, batch, rng.noise)",
        "theta = torch.where(torch.arange(theta.shape[1]) == model.blocks.index(block), "
        "model.draw_block(block, state.theta, batch, rng.noise), theta)",
    ),
    "importance_sampling: no density of the proposal": (
        "importance_sampling",
        {},
        "lp - fit.log_prob(theta)",
        "lp",
    ),
    "importance_sampling: Sobol points, half of it": (
        "importance_sampling",
        {"points": "sobol", "chains": 128},
        "lp - fit",
        "lp - 0.5 * fit",
    ),
    "sgld: missing 2": ("sgld", {}, "(2 * eps) ** 0.5", "eps ** 0.5"),
    "sgld_r: attraction": (
        "sgld_r",
        {"chains": 4},
        "+ particles.correction()",
        "- particles.correction()",
    ),
    "sgld_r: noise without the kernel": (
        "sgld_r",
        {"chains": 4},
        "(2 * eps) ** 0.5 * noise",
        "(2 * eps) ** 0.5 * noise.new_empty(noise.shape).normal_(generator=rng.noise)",
    ),
    "sghmc: noise of half the friction": ("sghmc", {}, "2 * C - eps * V", "C - eps * V"),
    "sgd_momentum: cold momenta": ("sgd_momentum", {}, "xi + 0.5 * eps", "0.5 * xi + 0.5 * eps"),
    "sgdm_r: noise of half the friction": ("sgdm_r", {}, "(2 * damping) ** 0.5", "damping ** 0.5"),
    "psgld: noise without the preconditioner": (
        "psgld",
        {},
        "(2 * eps * G).sqrt()",
        "(2 * eps) ** 0.5",
    ),
    "psgld: missing 2": ("psgld", {}, "(2 * eps * G).sqrt()", "(eps * G).sqrt()"),
    "adam_noise: missing 2": ("adam_noise", {}, "2 / eps * M", "1 / eps * M"),
    "adam_nr: missing 2": ("adam_nr", {}, "(2 * L / eps * M)", "(L / eps * M)"),
    "santa: thermostat at twice the heat": (
        "santa",
        {},
        "u.square() - heat",
        "u.square() - 2 * heat",
    ),
    "recipe: drift twice": (
        "recipe",
        {"dynamics": "langevin"},
        "increment = eps * terms",
        "increment = 2 * eps * terms",
    ),
    "recipe: no Γ of the metric": (
        "recipe",
        {"dynamics": "langevin", "metric": "potential"},
        "potential_metric(value, gradient,",
        "potential_metric(value, 0 * gradient,",
    ),
    "svgd: attraction": ("svgd", {}, "+ particles.correction()", "- particles.correction()"),
    "svgd: no repulsion": ("svgd", {}, "+ particles.correction()", ""),
}


def broken_sampler(mistake: str) -> Any:
    """Sampler with a mistake; the correct Barker proposal for ``barker``."""
    name, keys, old, new = BROKEN.get(mistake, (mistake, {}, "", ""))
    source = BARKER
    title = "Barker"
    values = {"name": name, "chains": 20, "scale": 1.0}
    if name != "barker":
        original = component("inference", name, **keys)
        source = inspect.getsource(inspect.getmodule(type(original)))
        title = type(original).__name__
        values = dict(original)
    assert old in source, f"{mistake}: {old} is not in the source"
    module = ModuleType(f"broken_{name}")
    sys.modules[module.__name__] = module
    lines = source.replace(old, new).splitlines()
    text = "\n".join(line for line in lines if not line.startswith("@register("))
    exec(compile(text, f"{module.__name__}.py", "exec"), vars(module))
    return vars(module)[title](**values)
