"""Times one training step of the project's mMDGP against the same model assembled from GPyTorch's
DeepGP classes.

    python -m scripts.bench_mdgp                  # the comparison at S = 1 and S = 10, one JSON line
    python -m scripts.bench_mdgp --table          # also: milliseconds per step against B, M, T and S

Both models get the same parameters, the same noise and the same padded rows of each task; their
bounds and gradients are asserted equal before anything is timed.  A step is the bound, its gradient
and fused Adam.  Timings are interleaved, so that what else the machine does falls on both alike;
the ratio is the median of the ratios of neighbouring steps."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gpytorch
import torch
from gpytorch.models.deep_gps import DeepGPLayer
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from torch import Tensor, nn

from components.contracts.problems import Batch
from components.models.deep_gp.build import TaskSpecificProcesses, build_shared_and_specific
from components.models.deep_gp.layer import GPLayer
from components.models.deep_gp.layout import Layout
from components.models.deep_gp.module import DGPNoise, MultiTaskDGP
from components.models.deep_gp.settings import DeepGPSettings
from components.problems.supervised import Supervised
from runner.execution.rng import Streams

JITTER = 1e-8  # GPyTorch also adds it to the variance at the data; small, so that the two bounds agree to 1e-6


class PeerLayer(DeepGPLayer):
    """GPyTorch's layer of a deep GP: whitened q(u), Matérn-5/2, one kernel and one Z for each
    process."""

    def __init__(self, ours: GPLayer, output_dims: int | None):
        batch = torch.Size(ours.inducing.shape[:1])
        M, D = ours.inducing.shape[1:]
        q = CholeskyVariationalDistribution(M, batch_shape=batch)
        strategy = VariationalStrategy(
            self, ours.inducing.detach().clone(), q, learn_inducing_locations=True
        )
        super().__init__(strategy, D, output_dims)
        ard = ours.log_lengthscale.shape[1]
        self.mean_module = gpytorch.means.ZeroMean(batch_shape=batch)
        base = gpytorch.kernels.MaternKernel(
            2.5, batch_shape=batch, ard_num_dims=ard if ard > 1 else None
        )
        self.covar_module = gpytorch.kernels.ScaleKernel(base, batch_shape=batch)
        self.to(ours.inducing)
        base.lengthscale = ours.log_lengthscale.detach().exp().unsqueeze(1)
        self.covar_module.outputscale = ours.log_variance.detach().exp()
        q.variational_mean.data = ours.q_mean.detach().squeeze(1).clone()
        q.chol_variational_covar.data = ours.q_tril.detach().squeeze(1).clone()
        strategy.variational_params_initialized.fill_(1)

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Peer(nn.Module):
    """mMDGP from GPyTorch's classes, on the same padded rows."""

    def __init__(self, ours: MultiTaskDGP):
        super().__init__()
        layers = ours.layers()
        self.shared = PeerLayer(layers["shared 1"], layers["shared 1"].inducing.shape[0])
        self.specific = PeerLayer(layers["specific 1"], None)
        self.top = PeerLayer(layers["top"], None)
        T = ours.n_tasks
        constraint = gpytorch.constraints.GreaterThan(1e-6)
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood(
            batch_shape=torch.Size([T]), noise_constraint=constraint
        )
        self.to(layers["top"].inducing)
        self.likelihood.noise = ours.likelihood.noise_variance.detach().unsqueeze(-1)

    def elbo(self, batch: Batch, noise: DGPNoise) -> Tensor:
        layout = noise.layout
        shared = self.shared(batch.x)  # [S, B, P]
        g = shared.mean + shared.variance.sqrt() * noise.levels[0][0]
        specific = self.specific(batch.x[layout.rows])  # [S, T, n]
        h = specific.mean + specific.variance.sqrt() * noise.levels[0][1].squeeze(-1)
        features = torch.cat([g[:, layout.rows], h.unsqueeze(-1)], -1)  # [S, T, n, P + 1]
        f = self.top(features, are_samples=True)
        expected = self.likelihood.expected_log_prob(layout.labels(batch.y), f)
        kl = sum(
            layer.variational_strategy.kl_divergence().sum()
            for layer in (self.shared, self.specific, self.top)
        )
        return (expected * layout.weight).sum() * (batch.scale / expected.shape[0]) - kl


GOALS = {"S=1": 1.8, "S=10": 2.3}  # least ratio of the peer's time to ours


def settings(M: int, P: int, jitter: float) -> DeepGPSettings:
    return DeepGPSettings(
        inner_dim=P, depth=1, tied=False, inner_kernel="matern52", inner_ard=False, inner_lengthscale=10.0,
        inner_variance=1.0, inner_mean="zero", inner_q_scale=0.5, inner_q_mean=1.0, top_kernel="matern52",
        top_lengthscale=3.0, top_variance=1.0, top_mean="zero", top_q_scale=0.5, pass_inputs=False, n_inducing=M,
        inducing="rows", inducing_by_task=True, noise_variance=0.1, link="probit", quadrature_nodes=20, jitter=jitter,
    )  # fmt: skip


def built(
    B: int, M: int, P: int, T: int, D: int, dtype: torch.dtype, jitter: float = JITTER
) -> tuple[MultiTaskDGP, Batch]:
    """Our mMDGP and a batch of B rows with one random label each."""
    rng = Streams(0)
    x = torch.randn(B, D, generator=rng.data, dtype=dtype)
    label = torch.randint(T, (B,), generator=rng.data)
    y = torch.randn(B, T, generator=rng.data, dtype=dtype)
    batch = Batch(x, y, nn.functional.one_hot(label, T).bool(), 2.0)
    problem = Supervised("bench", "real", batch, batch, None, task_names=[str(t) for t in range(T)])
    return build_shared_and_specific(
        settings(M, P, jitter), problem, rng, P, TaskSpecificProcesses(1, 10.0, 0.5)
    ), batch


def relative(a: Tensor, b: Tensor) -> float:
    return float(((a - b).norm() / b.norm()).detach())


def gradients_agree(ours: MultiTaskDGP, peer: Peer, batch: Batch, noise: DGPNoise) -> float:
    """Largest relative difference between the gradients, parameter by parameter, and between the
    bounds."""
    ours.zero_grad(), peer.zero_grad()
    a, b = ours.elbo(batch, noise)["elbo"], peer.elbo(batch, noise)
    a.backward(), b.backward()
    differences = [relative(a, b)]
    for layer, other in zip(
        ours.layers().values(), (peer.shared, peer.specific, peer.top), strict=True
    ):
        q = other.variational_strategy._variational_distribution
        base, scale = other.covar_module.base_kernel, other.covar_module
        # Chain rules of the two parameterisations: ours are logarithms, theirs are softplus.
        pairs = [
            (layer.inducing.grad, other.variational_strategy.inducing_points.grad),
            (layer.q_mean.grad.squeeze(1), q.variational_mean.grad),
            (layer.q_tril.grad.squeeze(1), q.chol_variational_covar.grad.tril()),
            (
                layer.log_lengthscale.grad / layer.log_lengthscale.exp(),
                (base.raw_lengthscale.grad / torch.sigmoid(base.raw_lengthscale)).squeeze(1),
            ),
            (
                layer.log_variance.grad / layer.log_variance.exp(),
                scale.raw_outputscale.grad / torch.sigmoid(scale.raw_outputscale),
            ),
        ]
        differences += [relative(p, r) for p, r in pairs]
    p, r = ours.likelihood.raw_noise.grad, peer.likelihood.noise_covar.raw_noise.grad.squeeze(-1)
    return max([*differences, relative(p, r)])


def trainer(bound: Callable[[], Tensor], module: nn.Module) -> Callable[[], None]:
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        (-bound()).backward()
        optimizer.step()

    return step


def clocked(step: Callable[[], None]) -> float:
    start = time.perf_counter()
    step()
    return (time.perf_counter() - start) * 1e3


def quantile(values: list[float], q: float) -> float:
    return float(torch.tensor(values, dtype=torch.float64).quantile(q))


def compare(S: int, repeats: int, dtype: torch.dtype) -> dict[str, float]:
    """Ours against the peer at B = 500, M = 100, 10 + 7 inner processes, D = 21, T = 7."""
    ours, batch = built(500, 100, 10, 7, 21, dtype)
    noise = ours.sample_layer_noise(
        batch.x, Layout.of(batch.mask, dtype), S, torch.Generator().manual_seed(1)
    )
    peer = Peer(ours)
    generator = torch.Generator().manual_seed(2)
    with (
        gpytorch.settings.variational_cholesky_jitter(JITTER, JITTER, JITTER),
        gpytorch.settings.num_likelihood_samples(S),
    ):
        difference = gradients_agree(ours, peer, batch, noise)
        assert difference < (1e-5 if dtype == torch.float64 else 0.05), (
            f"gradients differ by {difference:.1e}"
        )
        mine = trainer(lambda: ours.elbo(batch, ours.draw_noise(batch, S, generator))["elbo"], ours)
        # The peer's layout is found once, outside the clock; ours is found at every step, as in training.
        theirs = trainer(
            lambda: peer.elbo(batch, ours.sample_layer_noise(batch.x, noise.layout, S, generator)),
            peer,
        )
        for _ in range(3):
            mine(), theirs()
        times = [(clocked(mine), clocked(theirs)) for _ in range(repeats)]
    ratios = [b / a for a, b in times]
    return {
        "S": S,
        "ours_ms": quantile([a for a, _ in times], 0.5),
        "peer_ms": quantile([b for _, b in times], 0.5),
        "ratio": quantile(ratios, 0.5),
        "ratio_q1": quantile(ratios, 0.25),
        "ratio_q3": quantile(ratios, 0.75),
        "largest_relative_gradient_difference": difference,
    }


def growth(repeats: int, dtype: torch.dtype) -> list[tuple[str, float]]:
    """Median milliseconds per step around B = 500, M = 100, T = 7, S = 1, one of them changed at a
    time."""
    start = {"B": 500, "M": 100, "T": 7, "S": 1}
    cases = [("B", b) for b in (100, 250, 500, 1000, 2000)] + [("M", m) for m in (25, 50, 100, 200)]
    cases += [("T", t) for t in (1, 3, 7, 14)] + [("S", s) for s in (1, 5, 10, 20)]
    rows = []
    for name, value in cases:
        c = start | {name: value}
        ours, batch = built(c["B"], min(c["M"], c["B"]), 10, c["T"], 21, dtype)
        generator = torch.Generator().manual_seed(0)
        step = trainer(
            lambda: ours.elbo(batch, ours.draw_noise(batch, c["S"], generator))["elbo"],  # noqa: B023
            ours,
        )
        for _ in range(2):
            step()
        rows.append((f"{name} = {value}", quantile([clocked(step) for _ in range(repeats)], 0.5)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--samples", type=int, nargs="*", default=[1, 10], help="values of S")
    parser.add_argument("--repeats", type=int, default=30, help="timed steps of each")
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument(
        "--table", action="store_true", help="also: time per step against B, M, T and S"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dtype = getattr(torch, arguments.dtype)
    results = []
    for S in arguments.samples:
        r = compare(S, arguments.repeats, dtype)
        results.append(r)
        print(
            f"S = {S:2d}   ours {r['ours_ms']:7.1f} ms   gpytorch {r['peer_ms']:7.1f} ms   ratio {r['ratio']:.2f} "
            f"(quartiles {r['ratio_q1']:.2f}, {r['ratio_q3']:.2f})   "
            f"gradients within {r['largest_relative_gradient_difference']:.0e}"
        )
    table = growth(max(5, arguments.repeats // 3), dtype) if arguments.table else []
    for name, ms in table:
        print(f"{name:10s} {ms:8.1f} ms per step")
    ratios = {f"S={r['S']}": [r["ratio"], r["ratio_q1"], r["ratio_q3"]] for r in results}
    report = {
        "benchmark": "mdgp",
        "peer": "GPyTorch DeepGP",
        "ratios": ratios,
        "goals": GOALS,
        "dtype": arguments.dtype,
    }
    print(json.dumps(report | {"results": results, "table": dict(table)}))


if __name__ == "__main__":
    main()
