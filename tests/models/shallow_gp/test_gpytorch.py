"""Users' Gaussian processes: bounds and predictives equal GPyTorch's, and use no cached factors of
earlier parameters."""

import gpytorch
import pytest
import torch
from gpytorch.mlls import ExactMarginalLogLikelihood, VariationalELBO
from support.runs.configured import component, generator
from support.small.shallow_gp_problems import elbo_of, predict
from support.small.small_problems import classes, real, train
from torch.autograd import grad
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from runner.execution.rng import Streams


def model(cls, **keys):
    return component("model", "gpytorch", class_path=f"own_things:{cls}", **keys)


def build(cls, problem, **keys):
    return model(cls, **keys).build(problem, Streams(0))


def one_task(**keys):
    return real(n_tasks=1, missing=0.0, **keys)


def perturb(module):
    for i, p in enumerate(module.parameters()):
        p.data.add_(0.1 * torch.randn(p.shape, dtype=p.dtype, generator=generator(i)))


def test_exact_bound_and_predictive_equal_gpytorch():
    problem = one_task()
    module = build("Exact", problem)
    for _ in range(2):  # also after changes of the hyper-parameters
        terms = module.elbo(problem.train, None)
        gp = module.gp
        n = problem.n
        asked = n * ExactMarginalLogLikelihood(gp.likelihood, gp)(
            gp(*gp.train_inputs), gp.train_targets
        )
        assert_close(terms["elbo"], asked)
        assert_close(terms["log_hyperprior"], terms["elbo"] - terms["log_likelihood"])
        ours = predict(module, problem.test.x)
        gp.train()
        gp.eval()
        gp.likelihood.eval()
        law = gp.likelihood(gp(problem.test.x))
        assert_close(ours.mean[:, 0], law.mean)
        assert_close(ours.variance[:, 0], law.variance)
        gp.likelihood.train()
        perturb(module)


def test_sparse_bound_equals_gpytorch():
    problem = one_task()
    module = build("Sparse", problem, n_inducing=7)
    perturb(module)
    batch = problem.train.part(slice(10), problem.n / 10)
    likelihood = gpytorch.likelihoods.GaussianLikelihood(
        noise_constraint=gpytorch.constraints.GreaterThan(1e-8)
    ).double()
    likelihood.noise = module.likelihood.noise_variance.detach()
    module.gp.train()
    asked = problem.n * VariationalELBO(likelihood, module.gp, problem.n)(
        module.gp(batch.x), batch.y[:, 0]
    )
    assert_close(elbo_of(module, batch), asked)


def test_predictions_use_the_parameters_of_now():
    problem = one_task()
    module = build("Sparse", problem, n_inducing=7)
    perturb(module)
    module.elbo(problem.train, None)
    predict(module, problem.test.x)
    perturb(module)  # without a step in between, as after replacing the state
    stale_free = predict(module, problem.test.x).mean.detach()
    fresh = build("Sparse", problem, n_inducing=7)
    fresh.load_state_dict(module.state_dict())
    assert_close(predict(fresh, problem.test.x).mean, stale_free)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_are_learnt_and_attacked_by_gradients(n_classes):
    problem = classes(n_classes=n_classes)
    dsvi = component("inference", "dsvi", lr=0.05, n_predict=10)
    arguments = {} if n_classes == 2 else {"functions": 3}
    state, rng = train(dsvi, model("Sparse", arguments=arguments, n_inducing=10), problem, 60)
    posterior = dsvi.posterior(state)
    x = problem.test.x.clone().requires_grad_()
    predictive = posterior.predict(x, rng.noise)
    accuracy = (predictive.guess == problem.test.y).double().mean()
    assert float(accuracy) > 0.7
    (slope,) = grad(predictive.log_prob(problem.test.y).sum(), x)
    assert torch.isfinite(slope).all()
    assert slope.abs().max() > 0


def test_global_random_state_is_unchanged():
    problem = classes()
    torch.manual_seed(0)
    rng_state = torch.get_rng_state()
    dsvi = component("inference", "dsvi", n_predict=2)
    first, same = (
        train(dsvi, model("Sparse", arguments={"functions": 3}, n_inducing=5), problem, 2)
        for _ in range(2)
    )
    assert torch.equal(torch.get_rng_state(), rng_state)
    for a, b in zip(first[0].module.parameters(), same[0].module.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("cls", "keys", "problem", "message"),
    [
        ("Net", {}, classes(), "must derive from gpytorch.models.ExactGP or ApproximateGP"),
        (
            "Exact",
            {},
            classes(),
            "an ExactGP requires real labels of one task, but small has classes labels; use ApproximateGP",
        ),
        ("Exact", {}, real(), "small has 2 tasks; use ApproximateGP"),
        (
            "Sparse",
            {},
            classes(),
            r"instead of 3 \(tasks times classes\); .*batch_shape=torch.Size\(\[3\]\)",
        ),
        ("Sparse", {"arguments": {"width": 3}}, classes(), "TypeError: .*width.*fix it there"),
    ],
)
def test_mismatched_models_are_refused(cls, keys, problem, message):
    with pytest.raises(ConfigMismatchError, match=message) as error:
        build(cls, problem, **keys)
    assert "\n" not in str(error.value)
