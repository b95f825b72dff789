"""Auto-encoders with our networks, trained by Pyro, by Storchastic and by our methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.contracts.problems import Rows
from components.models.latent.dvae import BinaryAutoEncoder
from components.problems.unlabelled import Unlabelled
from runner.execution.rng import Streams
from scripts.benchmarks.workloads import component
from scripts.peers.installed import peer_imports

BINARY_ROWS = 32
ROWS = 100
S = 4  # number of draws of the binary layers
LR = 1e-6  # small, because all ways share the parameters
PYRO = "Pyro TraceMeanField_ELBO"


@dataclass
class Way:
    """An implementation of a step: the complete step, and −ELBO per row with gradients in ``grad``
    but without an update."""

    step: Callable[[], Any]
    estimate: Callable[[], float]
    scale: float = 1.0  # ratio of the gradient to the gradient of one row


def build_ours(module: Any, problem: Unlabelled, gradient: Any, n_samples: int = 1) -> Way:
    """Steps of ``inference=vi`` with a gradient estimator."""
    batch = Rows(problem.train.x, 1.0)
    rng = Streams(1)
    vi = component("inference", "vi", gradient=gradient, n_samples=n_samples, lr=LR)
    state = vi.init(module, problem, rng)

    def estimate() -> float:
        gradients, terms, _ = gradient.estimate(module, batch, rng, None)
        for parameter, g in zip(module.parameters(), gradients, strict=True):
            parameter.grad = -g
        return -float(terms["elbo"]) / len(batch.x)

    return Way(lambda: vi.step(state, batch, rng), estimate, 1 / len(batch.x))


def draw_problem(rows: int, ink: float, rng: Streams) -> Unlabelled:
    """Independent binary pixels [rows, 784]."""
    x = torch.bernoulli(torch.full((rows, 784), ink), generator=rng.data)
    return Unlabelled("bench", "binary", Rows(x, 1.0), Rows(x, 1.0), None)


def draw_estimates(
    ways: dict[str, Way], module: Any, parts: list[list[Any]], first: int, draws: int
) -> dict[str, list[list[float]]]:
    """Estimates of −ELBO per row, and of its gradient along the mean gradient of the first way, for
    each part of the parameters."""
    parameters = list(module.parameters())

    def gradient() -> Tensor:
        return torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])

    towards = torch.zeros(sum(p.numel() for p in parameters))
    for _ in range(first):
        next(iter(ways.values())).estimate()
        towards += gradient()
    directions = []
    for part in parts:
        mask = [torch.full((p.numel(),), float(any(p is q for q in part))) for p in parameters]
        directions.append(torch.nn.functional.normalize(towards * torch.cat(mask), dim=0))
    return {
        name: [
            [way.estimate(), *(float(gradient() @ v) * way.scale for v in directions)]
            for _ in range(draws)
        ]
        for name, way in ways.items()
    }


def build_adam(module: Any) -> torch.optim.Adam:
    return torch.optim.Adam(list(module.parameters()), LR, fused=True)


def descend_after(estimate: Callable[[], float], optimizer: torch.optim.Adam) -> Callable[[], None]:
    """Step of an optimizer with the gradients of an estimate."""

    def step() -> None:
        estimate()
        optimizer.step()

    return step


def import_pyro() -> Any:
    with peer_imports(), warnings.catch_warnings(action="ignore"):
        import pyro
        import pyro.infer
        import pyro.optim
    return pyro


def build_svi(
    model: Any, guide: Any, bound: Any, module: Any, x: Tensor, fused: bool = False
) -> Way:
    """Steps of Pyro's ``SVI`` with its Adam, or with torch's fused Adam."""
    pyro = import_pyro()
    svi = pyro.infer.SVI(model, guide, pyro.optim.Adam({"lr": LR}), bound)

    def estimate() -> float:
        module.zero_grad()
        return float(bound.loss_and_grads(model, guide, x)) / len(x)

    adam_step = descend_after(estimate, build_adam(module)) if fused else lambda: svi.step(x)
    return Way(adam_step, estimate, 1 / len(x))


def build_binary_pyro(module: BinaryAutoEncoder, x: Tensor) -> dict[str, Way]:
    """Pyro's gradient estimators."""
    pyro = import_pyro()

    def sample(name: str, logits: Tensor, **keys: Any) -> Tensor:
        return pyro.sample(name, pyro.distributions.Bernoulli(logits=logits).to_event(1), **keys)

    def model(x: Tensor) -> None:
        pyro.module("up", module.up)
        pyro.module("visible", module.visible)
        with pyro.plate("rows", len(x)):
            z1 = sample("z1", module.up[0](sample("z2", module.prior_logits.expand(len(x), -1))))
            sample("x", module.visible.network(z1), obs=x)

    def way(bound: Any, fused: bool = False, **infer: Any) -> Way:
        def guide(x: Tensor) -> None:
            pyro.module("down", module.down)
            with pyro.plate("rows", len(x)):
                z1 = sample("z1", module.down[0](x), infer=infer)
                sample("z2", module.down[1](z1), infer=infer)

        return build_svi(model, guide, bound, module, x, fused)

    one_by_one = pyro.infer.Trace_ELBO(num_particles=S, max_plate_nesting=1)
    keys = {"num_particles": S, "vectorize_particles": True, "max_plate_nesting": 1}
    baseline = {"use_decaying_avg_baseline": True}
    graph = pyro.infer.TraceGraph_ELBO(**keys)
    return {
        "Pyro Trace_ELBO": way(pyro.infer.Trace_ELBO(**keys)),
        "Pyro Trace_ELBO, particles one by one": way(one_by_one),
        "Pyro TraceGraph_ELBO with baselines": way(graph, baseline=baseline),
        "Pyro Trace_ELBO, torch's fused Adam": way(pyro.infer.Trace_ELBO(**keys), fused=True),
    }


def build_storchastic(module: BinaryAutoEncoder, x: Tensor) -> Way:
    """Storchastic's score function with the mean of the other draws as baseline."""
    with peer_imports(), warnings.catch_warnings(action="ignore"):
        import storch
        from storch.method import ScoreFunction
        from storch.sampling import MonteCarlo
    from torch.distributions import Bernoulli

    class OneDraw(MonteCarlo):  # type: ignore[misc]
        """Sampling of one value of a second variable for each draw of the first."""

        def on_plate_already_present(self, plate: Any) -> None: ...

        def sample(self, law: Any, parents: Any, plates: Any, requires_grad: bool) -> Any:
            plate = next(plate for plate in plates if plate.name == self.plate_name)
            with storch.ignore_wrapping():
                value = law.sample()
            value = value._tensor if isinstance(value, storch.Tensor) else value
            return storch.StochasticTensor(
                value, parents, plates, plate.name, plate.n, law, requires_grad
            ), plate

    optimizer = build_adam(module)

    def estimate() -> float:
        optimizer.zero_grad()
        rows = storch.denote_independent(x, 0, "rows")
        first, second = (
            ScoreFunction("z", sampling_method=kind("z", S), baseline_factory="batch_average")
            for kind in (MonteCarlo, OneDraw)
        )
        q1 = Bernoulli(logits=module.down[0](rows))
        z1 = first(q1)
        q2 = Bernoulli(logits=module.down[1](z1))
        z2 = second(q2)
        joint = Bernoulli(logits=module.prior_logits).log_prob(z2).sum(-1)
        joint = joint + Bernoulli(logits=module.up[0](z2)).log_prob(z1).sum(-1)
        joint = joint + Bernoulli(logits=module.visible.network(z1)).log_prob(rows).sum(-1)
        storch.add_cost(q1.log_prob(z1).sum(-1) + q2.log_prob(z2).sum(-1) - joint, "nelbo")
        return float(storch.backward())

    return Way(descend_after(estimate, optimizer), estimate)


def build_pyro(module: Any, x: Tensor) -> dict[str, Way]:
    """Pyro's bounds for the same model and guide."""
    pyro = import_pyro()
    laws = pyro.distributions

    def model(x: Tensor) -> None:
        pyro.module("up", module.generative)
        prior = laws.Normal(x.new_zeros(len(x), 10), x.new_ones(len(x), 10)).to_event(1)
        with pyro.plate("rows", len(x)):
            logits = module.generative.network(pyro.sample("z", prior))
            pyro.sample("x", laws.Bernoulli(logits=logits).to_event(1), obs=x)

    def guide(x: Tensor) -> None:
        pyro.module("down", module.guide)
        with pyro.plate("rows", len(x)):
            pyro.sample("z", laws.Normal(*module.guide(x)).to_event(1))

    bounds = {PYRO: pyro.infer.TraceMeanField_ELBO(), "Pyro Trace_ELBO": pyro.infer.Trace_ELBO()}
    return {name: build_svi(model, guide, bound, module, x) for name, bound in bounds.items()}
