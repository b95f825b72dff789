"""gpytorch_gp: equal to igp for the same kernel, other kernels compared with loops, and errors for
invalid kernels."""

import gpytorch
import pytest
import torch
from support.runs.configured import build_model
from support.small.shallow_gp_problems import elbo_of, predict, problem, scatter_parameters
from torch.autograd import grad
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.models.shallow_gp.gpytorch_kernel import parse_kernel

OURS = {
    "matern52": "ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=D))",
    "squared_exponential": "ScaleKernel(RBFKernel(ard_num_dims=D))",
}
PLAIN = {"hyperprior": None, "jitter": 1e-9, "noise_variance": 0.05, "mean": "linear"}


def pair(p, shape, posterior):
    """igp and the same model with GPyTorch's kernel, with equal parameters that differ from their
    start."""
    ours = build_model(
        "igp", p, kernel=shape, ard="own", posterior=posterior, n_inducing=5, **PLAIN
    )
    scatter_parameters(ours)
    changes = {"kernel": OURS[shape], "posterior": posterior, "n_inducing": 5, **PLAIN}
    theirs = build_model("gpytorch_gp", p, **changes)
    shared = {k: v for k, v in ours.state_dict().items() if not k.startswith("covariance")}
    theirs.load_state_dict(shared, strict=False)
    for t, kernel in enumerate(theirs.covariance.kernels):
        kernel.outputscale = ours.covariance.log_variance[t].exp().detach()
        kernel.base_kernel.lengthscale = ours.covariance.log_lengthscale[t].exp().detach()
    return ours, theirs


@pytest.mark.parametrize("posterior", ["exact", "sparse"])
@pytest.mark.parametrize("shape", OURS)
def test_model_equals_igp_for_shared_kernels(shape, posterior):
    p = problem()
    ours, theirs = pair(p, shape, posterior)
    bounds = [elbo_of(m, p.train) for m in (ours, theirs)]
    assert bounds[0].item() == pytest.approx(bounds[1].item(), abs=1e-8)
    # d/d ln v = v/(1 − e⁻ᵛ)⁻¹ d/dρ for v = softplus(ρ), GPyTorch's transform
    mine, raw = (
        grad(b, list(m.covariance.parameters()), retain_graph=True)
        for b, m in zip(bounds, (ours, theirs), strict=True)
    )
    for t, kernel in enumerate(theirs.covariance.kernels):
        by_name = {name: raw[2 * t + i] for i, (name, _) in enumerate(kernel.named_parameters())}
        for name, value, wanted in (
            ("raw_outputscale", kernel.outputscale, mine[1][t]),
            ("base_kernel.raw_lengthscale", kernel.base_kernel.lengthscale[0], mine[0][t]),
        ):
            slope = by_name[name].reshape(wanted.shape) * value / -torch.expm1(-value)
            assert_close(slope, wanted, rtol=1e-7, atol=1e-8)
    leaf = p.test.x.clone().requires_grad_()
    predictions = [predict(m, leaf) for m in (ours, theirs)]
    for ours_value, other in (
        (predictions[0].mean, predictions[1].mean),
        (predictions[0].variance, predictions[1].variance),
    ):
        assert_close(ours_value, other, rtol=0, atol=1e-8)
        slopes = [grad(v.sum(), leaf, retain_graph=True)[0] for v in (ours_value, other)]
        assert_close(*slopes, rtol=0, atol=1e-7)


def test_nonstationary_kernel_has_the_variance_of_each_point():
    p = problem()
    module = build_model("gpytorch_gp", p, kernel="LinearKernel + ScaleKernel(RBFKernel)", **PLAIN)
    task = torch.arange(3)[:, None]
    K = module.covariance.matrix(p.test.x[None], task, p.test.x[None], task)
    assert_close(module.covariance.variance(p.test.x[None], task), K.diagonal(dim1=1, dim2=2))
    assert K[0].diagonal().std() > 0.1
    literal = module.covariance.kernels[0].kernels[0].variance.squeeze() * p.test.x @ p.test.x.T
    literal = literal + module.covariance.kernels[0].kernels[1](p.test.x).to_dense()
    assert_close(K[0], literal)


def test_hyperprior_is_normal_around_the_start():
    p = problem()
    module = build_model("gpytorch_gp", p, kernel="RBFKernel(lengthscale=3.0)", hyperprior=0.5)
    assert_close(module.covariance.kernels[2].lengthscale.item(), 3.0)
    assert module.covariance.log_hyperprior(0.5).item() == 0.0
    with torch.no_grad():
        module.covariance.kernels[1].raw_lengthscale += 0.2
    assert_close(module.covariance.log_hyperprior(0.5).item(), -0.5 * (0.2 / 0.5) ** 2)


def test_hyperparameters_start_at_the_given_values():
    kernel = parse_kernel(
        "ScaleKernel(RBFKernel(ard_num_dims=D, lengthscale=[1.0, 2.0]), outputscale=3.0)", 2
    )
    assert_close(kernel.base_kernel.lengthscale, torch.tensor([[1.0, 2.0]]))
    assert_close(kernel.outputscale.item(), 3.0)


def test_kernels_of_users_are_imported_by_name():
    class Doubled(gpytorch.kernels.RBFKernel):
        def forward(self, x1, x2, diag=False, **params):
            return 2 * super().forward(x1, x2, diag=diag, **params)

    x = torch.randn(4, 2)
    doubled = parse_kernel("Doubled()", 2)(x).to_dense()
    plain = parse_kernel("RBFKernel", 2)(x).to_dense()
    assert_close(doubled, 2 * plain)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "RBFKernal",
            r"model.kernel=RBFKernal: unknown kernel RBFKernal; did you mean RBFKernel\?",
        ),
        ("Seasonal()", "unknown kernel Seasonal; list the module of your own kernel in plugins="),
        ("RBFKernel(", "model.kernel=RBFKernel\\(: "),
        ("RBFKernel - RBFKernel", "RBFKernel - RBFKernel is not the name of a kernel"),
        ("RBFKernel(ard_num_dims=print(1))", "unknown kernel print"),
        ("__import__('os').system('true')", "is not the name of a kernel"),
        ("RBFKernel(ard_num_dims=[].append)", r"\[\].append is not a kernel or a literal"),
        ("MaternKernel(nu=3)", "MaternKernel: "),
        ("ScaleKernel()", "ScaleKernel: "),
        ("RBFKernel(lengthscales=2.0)", "RBFKernel: .*lengthscales"),
    ],
)
def test_unknown_kernel_is_refused_in_one_line(text, message):
    with pytest.raises(ConfigMismatchError, match=message) as error:
        parse_kernel(text, 2)
    assert "\n" not in str(error.value)
