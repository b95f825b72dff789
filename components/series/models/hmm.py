"""Hidden Markov model of a categorical series, with the states summed out."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities import CategoricalSeries
from components.contracts.predictive import Categorical
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.sequences import Series
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.bijectors import Simplex
from components.registry import register
from components.series.maths.dirichlet import draw_simplex, log_dirichlet
from components.series.sequence import Sequence


def log_product(left: Tensor, right: Tensor) -> Tensor:
    """log Σ_j exp(L_ij + R_jk) of log matrices [..., S, S]: the logarithm of a matrix product."""
    return torch.logsumexp(left.unsqueeze(-1) + right.unsqueeze(-3), -2)


def log_chain(matrices: Tensor) -> Tensor:
    """The logarithm of M_1 M_2 ⋯ M_T from log M_t [K, T, S, S] -> [K, S, S], in their order."""
    while (times := matrices.shape[1]) > 1:
        pairs = log_product(matrices[:, 0 : times - 1 : 2], matrices[:, 1:times:2])
        matrices = torch.cat([pairs, matrices[:, times - 1 :]], 1) if times % 2 else pairs
    return matrices[:, 0]


def forward(log_start: Tensor, log_transition: Tensor, log_seen: Tensor) -> Tensor:
    """log p(x_1:T, z_T = j) by the forward algorithm, for each last state j.

        α_1(j) = π_j p(x_1 | j),   α_t(j) = Σ_i α_{t−1}(i) A_ij p(x_t | j)

    log π [K, S] or [S], log A [K, S, S], log p(x_t | z_t = j) [K, T, S], 0 if missing -> [K, S].

    Source: Rabiner (1989), eqs. (19), (20)."""
    first = log_start + log_seen[:, 0]  # α_1  # [K, S]
    if log_seen.shape[1] == 1:
        return first
    # log A_ij p(x_t | j)  # [K, T − 1, S, S]
    onward = log_transition.unsqueeze(1) + log_seen[:, 1:].unsqueeze(2)
    return torch.logsumexp(first.unsqueeze(-1) + log_chain(onward), -2)  # eq. (20)


def ahead(log_weights: Tensor, log_transition: Tensor, horizon: int) -> Tensor:
    """log Pr(z_{T+h} | x_1:T), h = 1 … H, from α_T [K, S], up to a factor -> [K, H, S]."""
    now = log_weights.log_softmax(-1)
    log_probs = []
    for _ in range(horizon):
        now = torch.logsumexp(now.unsqueeze(-1) + log_transition, -2)
        log_probs.append(now)
    return torch.stack(log_probs, 1)


SIMPLEX = Simplex()


class HiddenMarkovModule(nn.Module):
    """``LogJoint`` of the probabilities of a hidden Markov model, and ``ForecastsSeries``.

    θ [K, S(S − 1) + S(C − 1)] holds the rows of A, then the rows of B, by stick breaking;
    they represent S² + SC probabilities.
    """

    like: Tensor

    def __init__(self, states: int, classes: int, transition: float, emission: float, like: Tensor):
        super().__init__()
        self.states = states
        self.classes = classes
        self.concentrations = (transition, emission)  # of the rows of A and of B
        self.sizes = (states, classes)  # probabilities in a row of each
        self.dim = sum(states * (size - 1) for size in self.sizes)
        self.names = [
            f"{word}/{i}{j}"
            for word, size in zip(("transition", "emission"), self.sizes, strict=True)
            for i in range(states)
            for j in range(size)
        ]
        self.register_buffer("like", like.new_empty(0))

    def _rows(self, theta: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Logarithms of A [K, S, S] and of B [K, S, C], and the log-Jacobian of each [K]."""
        lengths = [self.states * (size - 1) for size in self.sizes]
        return [
            (log_x, jacobian.sum(-1))
            for part in theta.split(lengths, 1)
            for log_x, jacobian in [SIMPLEX.log_forward(part.unflatten(1, (self.states, -1)))]
        ]

    def constrain(self, theta: Tensor) -> Tensor:
        # [K, S² + SC]
        return torch.cat([log_x.exp().flatten(1) for log_x, _ in self._rows(theta)], 1)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        samples = [
            SIMPLEX.inverse(draw_simplex((n, self.states, size), concentration, generator)).flatten(
                1
            )
            for size, concentration in zip(self.sizes, self.concentrations, strict=True)
        ]
        return torch.cat(samples, 1).to(self.like)

    def log_prior(self, theta: Tensor) -> Tensor:
        total = theta.new_zeros(len(theta))
        for (log_x, jacobian), concentration in zip(
            self._rows(theta), self.concentrations, strict=True
        ):
            total = total + log_dirichlet(log_x, concentration).sum(1) + jacobian
        return total  # [K]

    def _filter(self, theta: Tensor, series: Series) -> tuple[Tensor, Tensor, Tensor]:
        """log p(x_1:T, z_T) [K, S], log A and log B."""
        (log_a, _), (log_b, _) = self._rows(theta)
        x = series.y[0, :, 0]  # [T]
        is_observed = ~x.isnan()
        # missing observations carry no information  # [K, T, S]
        log_emission = log_b[:, :, x.nan_to_num(0.0).long()].mT * is_observed.unsqueeze(1)
        start = log_a.new_zeros(self.states).log_softmax(0)
        return forward(start, log_a, log_emission), log_a, log_b

    def log_likelihood(self, theta: Tensor, series: Series) -> Tensor:
        # log Σ_z p(x, z | θ)  # [K, 1]
        return torch.logsumexp(self._filter(theta, series)[0], 1, keepdim=True)

    def forecast(self, theta: Tensor, series: Series, horizon: int) -> Categorical:
        weights, log_a, log_b = self._filter(theta, series)
        states = ahead(weights, log_a, horizon)  # [K, H, S]
        logits = torch.logsumexp(states.unsqueeze(-1) + log_b.unsqueeze(1), 2)  # [K, H, C]
        return Categorical(logits.unsqueeze(2))


@register("model", "hmm")
class Hmm(Model[Sequence, HiddenMarkovModule]):
    """Hidden Markov model: S states, observations of C classes, Dirichlet priors.

    The probabilities are unknown.

        p(x, z, θ) = Π_t B_{z_t x_t} Π_{t>1} A_{z_{t−1} z_t} p(z_1) p(θ),
        A_i ~ Dir(a 1_S), B_i ~ Dir(b 1_C), p(z_1) = 1/S

    The states z are summed out by the forward algorithm, in logarithms, for K parameter sets at a
    time; θ of S(S − 1) + S(C − 1) coordinates are the rows by stick breaking, and the prior has the
    Jacobian. A missing observation adds no information. The series is single, log p(x | θ) [K, 1].

    Raises ConfigMismatchError if the observations are not class numbers, or for several series.

    Source: Gallego (2021), eq. (2.14) and section 2.4.2; Rabiner (1989), eqs. (19), (20).
    """

    requires = Requirements(kinds={"sequence"}, simulated={CategoricalSeries})

    states: PositiveInt
    transition_concentration: PositiveFloat
    emission_concentration: PositiveFloat

    def build(self, problem: Sequence, rng: Rng) -> HiddenMarkovModule:
        problem.check_single(f"model={self.name}")
        y = problem.observations
        assert isinstance(problem.system, CategoricalSeries)  # one of its assumptions
        classes = problem.system.n_classes
        symbols = y[~y.isnan()]
        if bool(((symbols != symbols.round()) | (symbols < 0) | (symbols >= classes)).any()):
            raise ConfigMismatchError(
                f"model={self.name}: requires observations that are class numbers 0 to "
                f"{classes - 1}, unlike those in dataset={problem.name}"
            )
        return HiddenMarkovModule(
            self.states, classes, self.transition_concentration, self.emission_concentration, y
        )
