"""Check that a sampler keeps the law of exact draws.

Many chains start at independent draws of a density; a correct sampler leaves their law as it is,
at every step.  The chains advance until they have forgotten their starts, so that a wrong
sampler has the time to go elsewhere.  Then means, squares, a product and a distribution function
are compared with those of N(0, I), to which the draws are mapped.

Source: Geweke (2004), section 3; Gandy and Scott (2021), section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.contracts.capabilities import missing
from components.contracts.posteriors import HoldsDraws
from components.contracts.roles import Inference
from components.errors import NumericalError
from components.metrics.reference_moments import standard_error
from runner.conformance.exact_targets import CorrelatedGaussian, ExactTarget, NormalGamma
from runner.conformance.outcomes import NonConformanceError, NotCheckedError
from runner.execution.rng import Streams

CHAINS = 2000  # independent draws of a test
RUNS = 100  # runs of a method that has no key ``chains``
MOST_STEPS = 6400  # of many chains together
MOST_RUN_STEPS = 200  # of each of many runs
PARTICLE_STEPS = 400  # of particles, which do not forget their starts
FIRST_STEPS = 150
FIRST_RUN_STEPS = 50
SURE_STEPS = 1000  # after which memory is extrapolated
FORGOTTEN = 0.3  # largest correlation of first and last draws
# standard errors; 28 functions of two targets have a false alarm in 30,000 tests of normal means
LARGEST_Z = 5.0
FASTER = 16.0  # factor of the step size where chains do not forget their starts
SLOWER = 0.25  # and where a bias or a divergence may be due to it
TRIALS = 5
SAME = 0.7  # ratio of deviations above which a smaller step has not made a bias smaller
QUANTILES = (-1.28, -0.52, 0.52, 1.28)
# values of keys that a method has
KEYS: dict[str, Any] = {"warmup": 100, "burn_in": 100, "thinning": 10, "superchains": None}


@dataclass(frozen=True)
class Deviation:
    """The largest deviation of a function's mean from its expectation."""

    name: str
    value: float
    z: float
    share: float  # the deviation in standard deviations of the function

    def is_allowed(self, most: float) -> bool:
        """True if it may be Monte-Carlo error, or a bias of so many standard deviations."""
        return abs(self.z) <= LARGEST_Z or abs(self.share) <= most

    def __str__(self) -> str:
        return (
            f"{self.name} off by {self.value:+.2g} (|z| {abs(self.z):.3g}, {LARGEST_Z:g} allowed)"
        )


def check_stationarity(method: Inference[Any, Any, Any, Any], where: str) -> str:
    """Test a sampler on a correlated Gaussian and on a skewed density.

    Raises:
        NonConformanceError: its draws have another law.
        NotCheckedError: the method is no sampler of densities, or too slow.
    """
    if "density" not in method.requires.kinds:
        raise NotCheckedError("it samples no densities")
    if not method.mixes and method.draw_bias is None:
        raise NotCheckedError("its draws are those of a fit")
    kinds = (CorrelatedGaussian, NormalGamma)
    return "; ".join(_check_target(method, kind, where) for kind in kinds)


def _check_target(
    method: Inference[Any, Any, Any, Any], kind: type[ExactTarget], where: str
) -> str:
    """Test on one density, at another step size where the one of the method decides nothing.

    Chains that do not forget their starts take larger steps.  A declared bias has to vanish with
    smaller ones, and so has a divergence.
    """
    bias = method.draw_bias
    factor = 1.0
    failure = ""
    share = math.inf  # the deviation at the last step size
    for _ in range(TRIALS):
        trial = Trial(method, kind, factor)
        try:
            forgotten = trial.advance()
            deviation = trial.find_deviation()
        except NumericalError as error:
            failure = f"from exact draws of {kind.title} it diverges{trial.size}: {error}"
            is_final = False
            share = math.inf
        else:
            place = f"after {trial.steps} steps{trial.size}"
            if deviation.is_allowed(0.0 if bias is None else bias.most):
                if forgotten:
                    return f"{kind.title}: {deviation}, {place}"
                if failure:
                    break
            else:
                failure = f"exact draws of {kind.title} have another law {place}: {deviation}"
            # a bias of the step size falls with it
            is_final = bool(failure) and (bias is None or abs(deviation.share) > SAME * share)
            share = abs(deviation.share) if failure else math.inf
        if is_final or "step_size" not in type(method).model_fields:
            break
        factor *= SLOWER if failure else FASTER
    if failure:
        raise NonConformanceError(f"{failure} ({where})")
    raise NotCheckedError(
        f"on {kind.title} chains still depend on their starts {place}; give a larger step size"
    )


class Trial:
    """A method on one density, in many chains that start at exact draws."""

    def __init__(
        self, method: Inference[Any, Any, Any, Any], kind: type[ExactTarget], factor: float
    ) -> None:
        fields = type(method).model_fields
        bias = method.draw_bias
        keys = {**KEYS, **({} if bias is None else bias.settings)}
        values = vars(method)
        update = {key: value for key, value in keys.items() if key in fields}
        self.size = ""
        if factor != 1:
            update["step_size"] = factor * values["step_size"]
            self.size = f" at step_size={update['step_size']:g}"
        self.steps = 0
        self.bias = bias
        replicates = 1
        self.most = MOST_STEPS
        if "chains" not in fields:
            self.most = MOST_RUN_STEPS
        elif "density" in method.folds_replicates:
            replicates = -(-CHAINS // values["chains"])
        else:
            update["chains"] = CHAINS
        self.method = method.model_copy(update=update)
        self.target = kind(replicates)
        if lacks := missing(self.target, self.method.required_capabilities("density")):
            raise NotCheckedError(f"it requires {', '.join(lacks)} of a model")
        self.streams = [Streams(r) for r in range(1 if "chains" in fields else RUNS)]
        problem = self.target.problem
        self.states = [self.method.init(self.target, problem, rng) for rng in self.streams]

    def advance(self) -> bool:
        """Take steps until the chains have forgotten their starts; False if they do not."""
        if self.bias is not None and self.bias.most > 0:
            self._advance(PARTICLE_STEPS)
            return True
        stop = FIRST_STEPS if len(self.states) == 1 else FIRST_RUN_STEPS
        while True:
            self._advance(stop)
            correlation = self._measure_memory()
            if correlation < FORGOTTEN:
                return True
            needed = stop * math.log(FORGOTTEN) / math.log(min(correlation, 1 - 1e-9))
            if stop == self.most or (stop > SURE_STEPS and needed > 2 * self.most):
                return False
            stop = min(2 * stop, self.most)

    def _advance(self, stop: int) -> None:
        method = self.method
        batches = self.target.problem.batches
        for r, rng in enumerate(self.streams):
            for _, batch in batches(method.requires.batch_kind, rng, self.steps, stop):
                self.states[r], _ = method.step(self.states[r], batch, rng)
        self.steps = stop

    def _posteriors(self) -> list[HoldsDraws]:
        posteriors = [self.method.posterior(state) for state in self.states]
        draws = [one for one in posteriors if isinstance(one, HoldsDraws)]
        if len(draws) < len(posteriors) or draws[0].values.shape[2:] != (2,):
            raise NotCheckedError("its posterior holds no draws of the parameters")
        return draws

    def _measure_memory(self) -> float:
        """The largest correlation of the first and the last draws of the chains; 1 without draws."""
        posteriors = self._posteriors()
        if posteriors[0].log_weights is not None:
            return 0.0
        if posteriors[0].n_draws < 2:
            return 1.0
        values = torch.cat([one.values for one in posteriors])
        first, last = (self.target.whiten(values[:, n]).T for n in (0, -1))
        both = torch.stack([first, last], 1)  # [2, 2, C]
        return max(abs(float(torch.corrcoef(rows)[0, 1])) for rows in both)

    def find_deviation(self) -> Deviation:
        """The largest deviation of the last draws, or of the means of many runs."""
        posteriors = self._posteriors()
        first = posteriors[0]
        if not first.n_draws:
            raise NotCheckedError(f"it keeps no draw within {self.steps} steps")
        z = [self.target.whiten(one.values) for one in posteriors]  # [C, N, 2] each
        if first.log_weights is not None:
            f = _features(z[0])
            mean = first.expectation(f.flatten(0, 1))
            error = standard_error(first, f)
        else:
            late = [each[:, each.shape[1] // 2 :] for each in z]
            f = (
                _features(z[0][:, -1])
                if len(z) == 1
                else torch.stack([_features(each).mean((0, 1)) for each in late])
            )
            mean = f.mean(0)
            error = f.std(0) / math.sqrt(len(f))
        away = mean - EXPECTED
        scores = torch.where(away == 0, 0.0, away / error)
        particles = self.bias is not None and self.bias.most > 0
        j = int((away / SD if particles else scores).abs().argmax())
        return Deviation(NAMES[j], float(away[j]), float(scores[j]), float(away[j] / SD[j]))


def _features(z: Tensor) -> Tensor:
    """Functions of whitened draws z [..., 2] that are compared with their expectations [..., K]."""
    below = [(z < q).to(z.dtype) for q in QUANTILES]
    return torch.cat([z, z.square(), z[..., :1] * z[..., 1:], *below], -1)


NAMES = [
    *("mean of z1", "mean of z2", "mean of z1²", "mean of z2²", "mean of z1 z2"),
    *(f"P(z{j} < {q})" for q in QUANTILES for j in (1, 2)),
]
SHARES = torch.special.ndtr(torch.tensor(QUANTILES, dtype=torch.float64)).repeat_interleave(2)
EXPECTED = torch.cat([SHARES.new_tensor([0, 0, 1, 1, 0]), SHARES])
SD = torch.cat([SHARES.new_tensor([1, 1, 2, 2, 1]), SHARES * (1 - SHARES)]).sqrt()
