"""The path from z_0 to z_T and its entropies, compared with literal recursions and known
densities."""

import math

import pytest
import torch
from support.runs.configured import F64, double, generator, normal
from support.targets.refined_targets import MEAN, PRECISION, banana, gaussian, slope_of
from torch.distributions import MultivariateNormal, kl_divergence

from components.errors import NumericalError
from components.inference.refined.kernels import KernelStep
from components.inference.refined.path import Begun, Refinement

ETA = double(0.07)
I2 = torch.eye(2, dtype=F64)


def refinement(kernel="sgd", entropy="initial", full=True, bandwidth=1.3):
    return Refinement(KernelStep(kernel, bandwidth, 3, 1e-9), entropy, full)


def noise(S, B=1, D=2, seed=3):
    return normal(generator(seed), S, B, D)


def begin(m, s, eps, target=gaussian):
    """Draws m + s ε of a diagonal Gaussian [D]."""
    entropy = MultivariateNormal(m, s.square().diag()).entropy()
    return Begun(m + s * eps, entropy.expand(eps.shape[1]), target, 1.0)


def guide():
    return torch.tensor([0.4, -0.3], dtype=F64, requires_grad=True), torch.tensor(
        [0.8, 1.4], dtype=F64, requires_grad=True
    )


# steps
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("steps", [1, 3])
def test_sgd_matches_published_recursion(steps, full):
    m, s = guide()
    start_point = begin(m, s, noise(4))
    z = start_point.z
    for _ in range(steps):
        z = z - ETA * (z - MEAN) @ PRECISION
    refined, entropy = refinement(full=full)(start_point, ETA, steps, torch.Generator())
    assert torch.allclose(refined, z)
    assert torch.allclose(entropy, start_point.entropy)


def test_sgld_matches_autoregression_moments():
    """z_T = A^T z_0 + …, A = I − ηΛ: mean μ + A^T (z_0 − μ), variance Σ_k A^k 2η A^k (a z-test of
    both)."""
    S = 40000
    steps = 4
    start = double([1.0, 2.0]).expand(S, 1, 2)
    start_point = Begun(start, torch.zeros(1, dtype=F64), gaussian, 1.0)
    z, _ = refinement("sgld", full=False)(start_point, ETA, steps, generator(0))
    A = I2 - ETA * PRECISION
    mean = MEAN + torch.linalg.matrix_power(A, steps) @ (start[0, 0] - MEAN)
    cov = sum(2 * ETA * torch.linalg.matrix_power(A, 2 * k) for k in range(steps))
    error = (z[:, 0].mean(0) - mean) / (cov.diagonal() / S).sqrt()
    assert error.abs().max() < 4
    sampled = torch.cov(z[:, 0].T)
    sd = ((cov.square() + torch.outer(cov.diagonal(), cov.diagonal())) / S).sqrt()
    assert ((sampled - cov) / sd).abs().max() < 4


def test_full_and_fast_gradients_differ_by_hessian():
    """∂/∂m of log p(z_T) is (I − ηΛ)^T ∇log p(z_T) in full, ∇log p(z_T) if Δz is constant."""
    steps = 2
    results = {}
    for full in (True, False):
        m, s = guide()
        start_point = begin(m, s, noise(1))
        z, entropy = refinement(full=full)(start_point, ETA, steps, torch.Generator())
        value = (gaussian(z) + entropy).sum()
        results[full] = (
            value.detach(),
            torch.autograd.grad(value, m)[0],
            slope_of(z.detach())[0, 0],
        )
    assert torch.equal(results[True][0], results[False][0])
    A = torch.linalg.matrix_power(I2 - ETA * PRECISION, steps)
    assert torch.allclose(results[False][1], results[False][2])
    assert torch.allclose(results[True][1], A @ results[True][2])
    assert not torch.allclose(results[True][1], results[False][1], rtol=0.05)


@pytest.mark.parametrize("kernel", ["sgd", "sgld", "svgd", "sgld_r", "hmc"])
def test_every_kernel_gradient_matches_differences(kernel):
    """∂/∂m and ∂/∂η compared with finite differences at the same noise."""

    def value(m, s, eta, full=True):
        z, entropy = refinement(kernel, full=full)(
            begin(m, s, noise(5, 2), banana), eta, 2, generator(1)
        )
        return (banana(z) + entropy).sum()

    m, s = guide()
    eta = ETA.clone().requires_grad_()
    of_m, of_eta = torch.autograd.grad(value(m, s, eta), (m, eta))
    h = 1e-5
    for d in range(2):
        step = h * I2[d]
        slope = (value(m + step, s, eta) - value(m - step, s, eta)) / (2 * h)
        assert float(of_m[d]) == pytest.approx(float(slope.detach()), rel=1e-5)
    slope = (value(m, s, eta + h) - value(m, s, eta - h)) / (2 * h)
    assert float(of_eta) == pytest.approx(float(slope.detach()), rel=1e-5)
    assert torch.allclose(value(m, s, eta), value(m, s, eta, full=False))


# entropies
# of mean 0 and covariance I: means of quadratics are exact
SYMMETRIC = math.sqrt(2) * torch.cat([I2, -I2])[:, None]


def exact_kl(m, s, eta, steps):
    """KL(q_T ‖ p) of Gaussians, with q_T the distribution of z_T = μ + A^T (z_0 − μ)."""
    A = torch.linalg.matrix_power(I2 - eta * PRECISION, steps)
    q = MultivariateNormal(MEAN + A @ (m - MEAN), A @ s.square().diag() @ A.T)
    return kl_divergence(q, MultivariateNormal(MEAN, precision_matrix=PRECISION))


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_jacobian_gives_exact_gaussian_divergence(steps, full):
    m, s = guide()
    z, entropy = refinement("sgd", "jacobian", full)(
        begin(m, s, SYMMETRIC), ETA, steps, torch.Generator()
    )
    bound = (gaussian(z) + entropy).mean()
    assert float(bound.detach()) == pytest.approx(
        -float(exact_kl(m, s, ETA, steps).detach()), abs=1e-12
    )
    if full:
        gradients = torch.autograd.grad(bound, (m, s))
        exact = torch.autograd.grad(-exact_kl(m, s, ETA, steps), (m, s))
        assert all(torch.allclose(a, b) for a, b in zip(gradients, exact, strict=True))


def test_jacobian_matches_change_of_variables():
    """log q(z_T) = log q_0(z_0) − log|det ∂z_T/∂z_0|, by the Jacobian of two whole steps."""
    m, s = guide()
    start_point = begin(m.detach(), s.detach(), noise(3, 2), banana)
    _, entropy = refinement("sgd", "jacobian", full=False)(start_point, ETA, 2, torch.Generator())

    def ascend_twice(z):
        for _ in range(2):
            z = z + ETA * torch.func.grad(lambda x: banana(x))(z)
        return z

    for i in range(3):
        for b in range(2):
            J = torch.func.jacrev(ascend_twice)(start_point.z[i, b])
            expected = start_point.entropy[b] + torch.linalg.slogdet(J)[1]
            assert float(entropy[i, b]) == pytest.approx(float(expected), abs=1e-10)


def test_jacobian_keeps_bound_below_log_normaliser():
    """The target is normalised, so that no bound is above 0; VIS-P assumes too large an entropy of
    z_T."""
    m = torch.zeros(2, dtype=F64)
    s = double([1.0, 1.0])
    results = {}
    for entropy in ("initial", "jacobian"):
        z, H = refinement("sgd", entropy, full=False)(
            begin(m, s, SYMMETRIC), torch.tensor(0.2), 4, torch.Generator()
        )
        results[entropy] = float((gaussian(z) + H).mean())
    assert results["initial"] > 0.5
    assert results["jacobian"] < 0


def test_too_large_step_is_refused():
    m, s = guide()
    with pytest.raises(
        NumericalError,
        match=r"inference\.eta=0\.8 .*; lower inference\.eta \(below 0\.4",
    ):
        refinement("sgd", "jacobian")(begin(m, s, noise(2)), double(0.8), 1, torch.Generator())


def test_entropies_match_closed_form():
    m, s = guide()
    start_point = begin(m, s, noise(4, 3))
    _, gaussian_entropy = refinement("sgd", "gaussian")(start_point, ETA, 2, torch.Generator())
    q = MultivariateNormal(torch.zeros(2, dtype=F64), s.square().diag())
    # −log N(z_T; z_T, σ²)
    assert torch.allclose(gaussian_entropy, -q.log_prob(torch.zeros(2, dtype=F64)))
    assert torch.allclose(
        refinement("sgd", "gaussian")(start_point, ETA, 0, torch.Generator())[1],
        start_point.entropy,
    )
    _, joint = refinement("sgld", "joint")(start_point, ETA, 2, torch.Generator())
    step = MultivariateNormal(torch.zeros(2, dtype=F64), 2 * ETA * I2)
    assert torch.allclose(joint, start_point.entropy + 2 * step.entropy())


def test_repulsive_particles_have_joint_entropy():
    """Jointly, the S particles have N(·, (2η/S) K ⊗ I), and each has 1/S of its entropy."""
    start_point = begin(*(p.detach() for p in guide()), noise(4, 3))
    _, joint = refinement("sgld_r", "joint")(start_point, ETA, 1, torch.Generator())
    for b in range(3):
        K = torch.exp(-torch.cdist(start_point.z[:, b], start_point.z[:, b]).square() / 1.3)
        whole = MultivariateNormal(torch.zeros(8, dtype=F64), torch.kron(2 * ETA / 4 * K, I2))
        assert float(joint[b]) == pytest.approx(
            float(start_point.entropy[b] + whole.entropy() / 4), abs=1e-6
        )


# the flow of the Fokker-Planck equation
def flow(bandwidth, particles=300, steps=200, time=2.0, D=2):
    """From N(2, ¼ I) to the target N(0, I), by VIS-FP."""
    z = 2 + 0.5 * noise(particles, 1, D, seed=0)
    # from exact moments, so that only the flow is tested
    z = 2 + 0.5 * (z - z.mean(0)) / z.std(0, correction=0)
    start_point = Begun(z, torch.zeros(1, dtype=F64), lambda x: -0.5 * x.square().sum(-1), 1.0)
    eta = double(time / steps)
    out, _ = refinement("sgd", "fokker_planck", full=False, bandwidth=bandwidth)(
        start_point, eta, steps, torch.Generator()
    )
    return out[:, 0].mean(0), out[:, 0].var(0, correction=0)


def test_fokker_planck_flow_has_diffusion_moments():
    mean, variance = flow("median")
    assert (mean - 2 * math.exp(-2)).abs().max() < 0.01
    exact = 1 - 0.75 * math.exp(-4)
    assert (variance / exact - 1).abs().max() < 0.08


@pytest.mark.parametrize(("gamma", "variance"), [(0.5, 0.56), (4.0, 0.96)])
def test_wide_bandwidth_shrinks_spread(gamma, variance):
    """From N(2, ¼) to N(0, 1); the diffusion has standard deviation 0.986 at time 2."""
    _, log_det = flow(1 / gamma, D=1)
    assert float(log_det) == pytest.approx(variance, abs=0.03)
