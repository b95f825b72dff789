"""One step of a discrete variational auto-encoder against Pyro and Storchastic.

    python -m scripts.bench_dvae                  # 784-200-200, 32 rows, 4 draws of each, one JSON line
    python -m scripts.bench_dvae --repeats 100

Two layers of 200 binary variables, affine maps, a prior fixed at ½.  All ways use the networks of
one module of ours.  Ours are VarGrad, and Reinforce with the other draws as baseline, which is the
same; both are shown with Adam, whole steps of ``inference=vi``.  Pyro: ``SVI`` with ``Trace_ELBO``
(score function, particles at once, or one by one as it does unless told otherwise) and
``TraceGraph_ELBO`` with its running-average baselines, Pyro's own Adam, validation on as Pyro has
it; beside these, without a goal, its estimator alone with torch's fused Adam in the place of its
optimizer, which is the faster. Storchastic: the score function with the other draws' mean as
baseline, torch's fused Adam; it has no sampling method for a second variable of the same draws, so
that one of four lines stands here.

Before a time is printed, means of −ELBO and of gradients, projected on a fixed direction, are
asserted to be the same within four standard errors.  Steps are interleaved, seconds are of the
process's own CPU, on one thread; the ratio is the median of those of neighbouring steps."""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import yaml
from torch import Tensor

import conf
from components import registry
from components.contracts.problems import Rows
from components.models.latent.dvae import BinaryAutoEncoder
from components.problems.unlabelled import Unlabelled
from runner.execution.memory import keep_freed_memory
from runner.execution.rng import Streams
from scripts.peers.installed import peer_imports

GOALS = {  # least ratio of the peer's time to that of VarGrad
    "Pyro Trace_ELBO": 2.0,
    "Pyro Trace_ELBO, particles one by one": 2.0,
    "Pyro TraceGraph_ELBO with baselines": 4.0,
    "Storchastic leave-one-out": 2.0,
}
PIXELS, UNITS, ROWS, S, INK = 784, 200, 32, 4, 0.1
LR = 1e-6  # small: all ways share the parameters


@dataclass
class Way:
    """A way to a step: the whole of it, and −ELBO of a row with the gradients that it leaves in
    ``grad``, nothing moved."""

    step: Callable[[], Any]
    estimate: Callable[[], float]


def component(role: str, name: str, **keys: Any) -> Any:
    """A component with the defaults of its YAML, but for ``keys``."""
    with open(os.path.join(os.path.dirname(str(conf.__file__)), role, f"{name}.yaml")) as file:
        return registry.get(role, name).model_validate(yaml.safe_load(file) | keys)


def ours(module: BinaryAutoEncoder, problem: Unlabelled, name: str) -> Way:
    """Steps of ``inference=vi``."""
    batch, rng = Rows(problem.train.x, 1.0), Streams(1)
    gradient = component("gradient", name, n_samples=S)
    vi = component("inference", "vi", gradient=gradient, n_samples=S, lr=LR)
    state = vi.init(module, problem, rng)

    def estimate() -> float:
        gradients, terms, _ = gradient.estimate(module, batch, rng, None)
        for parameter, g in zip(module.parameters(), gradients, strict=True):
            parameter.grad = -g
        return -float(terms["elbo"]) / ROWS

    return Way(lambda: vi.step(state, batch, rng), estimate)


def adam(module: BinaryAutoEncoder) -> torch.optim.Adam:
    return torch.optim.Adam(list(module.parameters()), LR, fused=True)


def pyro_ways(module: BinaryAutoEncoder, x: Tensor) -> dict[str, Way]:
    """Pyro's estimators of the model's gradient."""
    with peer_imports(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyro
        from pyro import distributions as laws
        from pyro.infer import SVI, Trace_ELBO, TraceGraph_ELBO
        from pyro.optim import Adam

    def coins(logits: Tensor) -> Any:
        return laws.Bernoulli(logits=logits).to_event(1)

    def pair(infer: dict[str, Any]) -> tuple[Callable[[Tensor], None], Callable[[Tensor], None]]:
        def model(x: Tensor) -> None:
            pyro.module("up", module.up)
            pyro.module("visible", module.visible)
            with pyro.plate("rows", ROWS):
                z2 = pyro.sample("z2", coins(module.prior_logits.expand(ROWS, -1)))
                z1 = pyro.sample("z1", coins(module.up[0](z2)))
                pyro.sample("x", coins(module.visible.network(z1)), obs=x)

        def guide(x: Tensor) -> None:
            pyro.module("down", module.down)
            with pyro.plate("rows", ROWS):
                z1 = pyro.sample("z1", coins(module.down[0](x)), infer=infer)
                pyro.sample("z2", coins(module.down[1](z1)), infer=infer)

        return model, guide

    def way(bound: Any, infer: dict[str, Any], own_optimizer: bool = True) -> Way:
        model, guide = pair(infer)
        optimizer = adam(module)
        svi = SVI(model, guide, Adam({"lr": LR}), bound)

        def estimate() -> float:
            optimizer.zero_grad()
            return float(bound.loss_and_grads(model, guide, x)) / ROWS

        def step() -> None:
            estimate()
            optimizer.step()

        return Way((lambda: svi.step(x)) if own_optimizer else step, estimate)

    at_once: dict[str, Any] = {
        "num_particles": S,
        "vectorize_particles": True,
        "max_plate_nesting": 1,
    }
    baseline = {"baseline": {"use_decaying_avg_baseline": True}}
    return {
        "Pyro Trace_ELBO": way(Trace_ELBO(**at_once), {}),
        "Pyro Trace_ELBO, particles one by one": way(
            Trace_ELBO(num_particles=S, max_plate_nesting=1), {}
        ),
        "Pyro TraceGraph_ELBO with baselines": way(TraceGraph_ELBO(**at_once), baseline),
        "Pyro Trace_ELBO, torch's fused Adam": way(Trace_ELBO(**at_once), {}, own_optimizer=False),
    }


def storchastic(module: BinaryAutoEncoder, x: Tensor) -> Way:
    """Storchastic's score function with the mean of the other draws as baseline."""
    with peer_imports(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import storch
        from storch.method import ScoreFunction
        from storch.sampling import MonteCarlo
    from torch.distributions import Bernoulli

    class Beside(MonteCarlo):  # type: ignore[misc]
        """One value of a second variable for each draw of the first."""

        def on_plate_already_present(self, plate: Any) -> None: ...

        def sample(self, law: Any, parents: Any, plates: Any, requires_grad: bool) -> Any:
            plate = next(plate for plate in plates if plate.name == self.plate_name)
            with storch.ignore_wrapping():
                value = law.sample()
            value = value._tensor if isinstance(value, storch.Tensor) else value
            return storch.StochasticTensor(
                value, parents, plates, plate.name, plate.n, law, requires_grad
            ), plate

    optimizer = adam(module)

    def estimate() -> float:
        optimizer.zero_grad()
        rows = storch.denote_independent(x, 0, "rows")
        first, second = (
            ScoreFunction("z", sampling_method=kind("z", S), baseline_factory="batch_average")
            for kind in (MonteCarlo, Beside)
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

    def step() -> None:
        estimate()
        optimizer.step()

    return Way(step, estimate)


def checked(module: BinaryAutoEncoder, ways: dict[str, Way], draws: int) -> None:
    """Asserts that all ways have the mean −ELBO and the mean gradient of the first, the latter
    along its own direction."""
    parameters = list(module.parameters())

    def gradient(per: float) -> Tensor:
        return torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]) / per

    towards = torch.zeros(())
    for _ in range(50):
        next(iter(ways.values())).estimate()
        towards = towards + gradient(50 * ROWS)
    guide = torch.cat(
        [
            torch.full((p.numel(),), float(any(p is q for q in module.down.parameters())))
            for p in parameters
        ]
    )
    directions = [
        torch.nn.functional.normalize(towards * part, dim=0) for part in (guide, 1 - guide)
    ]
    estimates = {}
    for name, way in ways.items():
        samples = []
        for _ in range(draws):
            bound = way.estimate()
            # it takes the mean over the rows
            g = gradient(1.0 if name.startswith("Storchastic") else ROWS)
            samples.append([bound, *(float(g @ v) for v in directions)])
        values = torch.tensor(samples, dtype=torch.float64)
        estimates[name] = values.mean(0), values.std(0) / draws**0.5
        print(
            f"{name:40s} "
            + "  ".join(f"{m:9.3f} ± {e:.3f}" for m, e in zip(*estimates[name], strict=True))
        )
    first, error = next(iter(estimates.values()))
    for name, (mean, std_error) in estimates.items():
        z = (mean - first).abs() / (error.square() + std_error.square()).sqrt().clamp_min(1e-12)
        assert float(z.max()) < 4, f"{name}: not the same mean, |z| {z.tolist()}"


def clocked(step: Callable[[], Any]) -> float:
    start = time.process_time()
    step()
    return (time.process_time() - start) * 1e3


def quantiles(values: list[float]) -> list[float]:
    """Median and quartiles."""
    return [
        round(float(v), 3)
        for v in torch.tensor(values, dtype=torch.float64).quantile(
            torch.tensor([0.5, 0.25, 0.75]).double()
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=60, help="timed steps of each")
    parser.add_argument(
        "--draws", type=int, default=150, help="estimates behind the means that are compared"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    rng = Streams(0)
    torch.manual_seed(0)
    x = torch.bernoulli(torch.full((ROWS, PIXELS), INK), generator=rng.data)
    problem = Unlabelled("bench", "binary", Rows(x, 1.0), Rows(x, 1.0), None)
    module = component("model", "dvae", units=UNITS).build(problem, rng)
    ways = {name: ours(module, problem, name) for name in ("vargrad", "reinforce")}
    ways |= pyro_ways(module, x) | {"Storchastic leave-one-out": storchastic(module, x)}
    print("mean −ELBO of a row, gradient of the guide, of the model along one direction each:")
    checked(module, ways, arguments.draws)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(arguments.repeats + 10):
        for name, way in ways.items():
            milliseconds = clocked(way.step)
            if repeat >= 10:
                times[name].append(milliseconds)
    ratios = {}
    for name, values in times.items():
        ratios[name] = quantiles([b / a for a, b in zip(times["vargrad"], values, strict=True)])
        print(f"{name:40s} {quantiles(values)[0]:8.2f} ms   ratio {ratios[name][0]:.2f}")
    del ratios["vargrad"]
    print(
        json.dumps(
            {
                "benchmark": "dvae",
                "peer": "Pyro 1.9; Storchastic 0.3",
                "ratios": ratios,
                "goals": GOALS,
            }
        )
    )


if __name__ == "__main__":
    main()
