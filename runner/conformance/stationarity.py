"""Check that a sampler keeps the law of exact draws.

Many chains start at independent draws of a density; a correct sampler leaves their law as it is,
at every step.  The chains advance until they have forgotten their starts, so that a wrong
sampler has the time to go elsewhere.  Then moments and a distribution function of the whitened
draws z are compared with those of N(0, I).

Source: Geweke (2004), section 3; Gandy and Scott (2021), section 2.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from components.contracts.capabilities import missing
from components.contracts.posteriors import HoldsDraws
from components.contracts.roles import Inference
from components.errors import NumericalError
from components.metrics.reference_moments import standard_error
from runner.conformance.exact_targets import SKEW, ExactTarget
from runner.conformance.outcomes import NonConformanceError, NotCheckedError
from runner.execution.rng import Streams

CHAINS = 2000  # independent draws of a test
FIRST_STEPS = 150
MOST_STEPS = 4800
PARTICLE_STEPS = 400  # of particles, which do not forget their starts
FORGOTTEN = 0.3  # largest correlation of first and last draws
# standard errors; 22 functions of two targets have a false alarm in 40,000 tests
LARGEST_Z = 5.0
FASTER = 16.0  # factor of the step size where chains do not forget their starts
SLOWER = 0.25  # and where a bias or a divergence may be due to it
TRIALS = 5
SAME = 0.7  # ratio of deviations above which a smaller step has not made a bias smaller
# values of keys that a method has
KEYS: dict[str, Any] = {"warmup": 100, "burn_in": 100, "thinning": 10, "superchains": None}
QUANTILES = (-1.28, -0.52, 0.52, 1.28)
NAMES = ["mean of z1", "mean of z2", "mean of z1²", "mean of z2²", "mean of z1 z2"]
NAMES += [f"P(z{j} < {q})" for q in QUANTILES for j in (1, 2)]


def check_stationarity(method: Inference[Any, Any, Any, Any], where: str) -> str:
    """Test a sampler on a correlated Gaussian and on a skewed density.

    Raises:
        NonConformanceError: its draws have another law.
        NotCheckedError: the method is no sampler of densities, or too slow.
    """
    keys = type(method).model_fields
    if "density" not in method.requires.kinds or not (method.mixes or method.draw_bias):
        raise NotCheckedError("it samples no densities")
    if "chains" not in keys:
        raise NotCheckedError("it has no key chains, the number of parallel chains")
    return "; ".join(_check_target(method, title, where) for title in SKEW)


def _check_target(method: Inference[Any, Any, Any, Any], title: str, where: str) -> str:
    """Test on one density, at another step size where the one of the method decides nothing.

    Chains that do not forget their starts take larger steps.  A declared bias has to vanish with
    smaller ones, and so has a divergence.
    """
    bias = method.draw_bias
    factor = 1.0
    failure = ""
    last = math.inf  # the deviation at the last step size
    for _ in range(TRIALS):
        trial = KernelTrial(method, title, factor)
        is_final = False
        try:
            forgotten = trial.advance()
            name, z, deviation = trial.find_deviation()
        except NumericalError as error:
            failure = f"it diverges from exact draws of {title}{trial.size}: {error}"
        else:
            place = f"after {trial.steps} steps{trial.size}"
            detail = f"|z| {z:.3g} of the {name}, {LARGEST_Z:g} allowed, {place}"
            if z <= LARGEST_Z or deviation <= (bias.most if bias else 0.0):
                if forgotten:
                    return f"{title}: {detail}"
                is_final = bool(failure)
            else:
                failure = f"exact draws of {title} have another law: {detail}"
                # a bias of the step size falls with it
                is_final = bias is None or trial.particles or deviation > SAME * last
                last = deviation
        if is_final or "step_size" not in type(method).model_fields:
            break
        factor *= SLOWER if failure else FASTER
    if failure:
        raise NonConformanceError(f"{failure} ({where})")
    raise NotCheckedError(f"{title}: chains depend on their starts {place}; raise the step size")


class KernelTrial:
    """A method on one density, in many chains that start at exact draws."""

    def __init__(self, method: Inference[Any, Any, Any, Any], title: str, factor: float) -> None:
        values = vars(method)
        bias = method.draw_bias
        update = {"chains": CHAINS, **KEYS, **(bias.settings if bias else {})}
        replicates = 1
        if "density" in method.folds_replicates:
            replicates = -(-CHAINS // values["chains"])
            del update["chains"]
        self.size = ""
        if factor != 1:
            update["step_size"] = factor * values["step_size"]
            self.size = f" at step_size={update['step_size']:g}"
        update = {key: value for key, value in update.items() if key in values}
        self.method = method.model_copy(update=update)
        self.particles = bool(bias and bias.most)
        self.steps = 0
        self.target = ExactTarget(title, replicates)
        if lacks := missing(self.target, method.required_capabilities("density")):
            raise NotCheckedError(f"it requires {', '.join(lacks)} of a model")
        self.rng = Streams(0)
        self.state = self.method.init(self.target, self.target.problem, self.rng)

    def advance(self) -> bool:
        """Take steps until the chains have forgotten their starts; False if they do not."""
        stop = PARTICLE_STEPS if self.particles else FIRST_STEPS
        while self.steps < MOST_STEPS:
            for _ in range(self.steps, stop):
                self.state, _ = self.method.step(self.state, None, self.rng)
            self.steps = stop
            if self.particles or self._is_forgotten():
                return True
            stop = 2 * stop
        return False

    def _draws(self) -> HoldsDraws:
        posterior = self.method.posterior(self.state)
        if not isinstance(posterior, HoldsDraws) or posterior.values.shape[2:] != (2,):
            raise NotCheckedError("its posterior holds no draws of the parameters")
        return posterior

    def _is_forgotten(self) -> bool:
        draws = self._draws()
        if draws.log_weights is not None or draws.n_draws < 2:
            return draws.log_weights is not None
        ends = self.target.whiten(draws.values[:, [0, -1]])  # [C, 2, 2]
        correlations = [torch.corrcoef(ends[..., j].T)[0, 1] for j in (0, 1)]
        return max(map(abs, map(float, correlations))) < FORGOTTEN

    def find_deviation(self) -> tuple[str, float, float]:
        """The function whose mean deviates most, in standard errors and in standard deviations."""
        draws = self._draws()
        if not draws.n_draws:
            raise NotCheckedError(f"it keeps no draw within {self.steps} steps")
        f = _features(self.target.whiten(draws.values))  # [C, N, K]
        if draws.log_weights is None:
            f = f[:, -1]
            mean = f.mean(0)
            error = f.std(0) / len(f) ** 0.5
        else:
            mean = draws.expectation(f.flatten(0, 1))
            error = standard_error(draws, f)
        below = torch.special.ndtr(f.new_tensor(QUANTILES)).repeat_interleave(2)
        away = (mean - torch.cat([f.new_tensor([0, 0, 1, 1, 0]), below])).abs()
        z = away / error
        share = away / f.std(0) if self.particles else z / CHAINS**0.5
        j = int((share if self.particles else z).nan_to_num(0.0).argmax())
        return NAMES[j], float(z[j]), float(share[j])


def _features(z: Tensor) -> Tensor:
    """Functions of whitened draws z [..., 2] that are compared with their expectations [..., K]."""
    below = [(z < q).to(z.dtype) for q in QUANTILES]
    return torch.cat([z, z.square(), z[..., :1] * z[..., 1:], *below], -1)
