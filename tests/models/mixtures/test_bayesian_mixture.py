"""A mixture of Gaussians: its densities, its bound by enumeration, scikit-learn's fits, and exact
Gibbs sampling."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats
from support.runs.configured import build_model, component, double, generator, load, normal
from support.targets.mean_field_families import F64, fitted, made, rows
from torch.testing import assert_close

from components.contracts.capabilities import CAPABILITIES
from components.errors import ConfigMismatchError, NumericalError
from components.metrics.unlabelled.clusters import adjusted_rand


def few(n=4, D=1, **changes):
    problem = rows(n=n, D=D)
    return made(
        "gaussian_mixture",
        problem,
        **{"clusters": 2, "concentration": 1.5, "mean_rows": 0.5} | changes,
    ), problem


def test_log_joint_literally():
    model, problem = few(D=2)
    assert isinstance(model, CAPABILITIES["log_joint"])
    theta = model.sample_prior(3, generator(0))
    assert theta.shape == (3, model.dim)
    log_pi, mu, L = model.split(theta)
    assert_close(model.join(log_pi, mu, L), theta)
    p = model.prior
    W = torch.linalg.inv(p.V).numpy()
    for s in range(3):
        pi, like = log_pi[s].exp().numpy(), np.zeros(4)
        prior = stats.dirichlet.logpdf(pi / pi.sum(), [1.5, 1.5])
        for k in range(2):
            Lambda = (L[s, k] @ L[s, k].T).numpy()
            like += pi[k] * stats.multivariate_normal.pdf(
                problem.train.x.numpy(), mu[s, k].numpy(), np.linalg.inv(Lambda)
            )
            prior += stats.wishart.logpdf(Lambda, float(p.nu), W)
            prior += stats.multivariate_normal.logpdf(
                mu[s, k].numpy(), p.m.numpy(), np.linalg.inv(0.5 * Lambda)
            )
        assert_close(model.log_likelihood(theta, problem.train)[s], torch.from_numpy(np.log(like)))

        def natural(t):  # (π_1, μ, lower triangles of Λ), whose density the prior is
            a, m, R = model.split(t[None])
            row, column = torch.tril_indices(2, 2)
            return torch.cat([a.exp()[0, :1], m.flatten(), (R @ R.mT)[0][:, row, column].flatten()])

        jacobian = torch.linalg.slogdet(torch.autograd.functional.jacobian(natural, theta[s]))[1]
        assert float(model.log_prior(theta)[s]) == pytest.approx(prior + float(jacobian), rel=1e-9)


def exact(model, x):
    """log p(z, x) of every labelling of the rows, by conjugacy."""
    every, alpha = {}, model.alpha
    for z in itertools.product(range(model.n_clusters), repeat=len(x)):
        n = np.bincount(z, minlength=model.n_clusters)
        K = model.n_clusters
        value = math.lgamma(K * alpha) - math.lgamma(K * alpha + len(x))
        value += sum(math.lgamma(alpha + c) - math.lgamma(alpha) for c in n)
        for k in range(K):
            known = model.prior
            for row in x[[i for i, c in enumerate(z) if c == k]]:
                value += float(known.log_predictive(row[None])[0])
                known = known.posterior(torch.ones(1, dtype=F64), row[None])
        every[z] = value
    return every


def test_the_bound_by_enumeration():
    """Σ_z q(z) E_q(θ)[log p(x, z, θ) − log q(z) q(θ)], one labelling after another, and below log
    p(x)."""
    model, problem = few()
    ascent, x = model.mean_field(), problem.train.x
    for cycles in (0, 4):
        factors = fitted(ascent, problem.train, cycles)
        # the best q(z), which the bound has
        r = ascent.responsibilities(factors, problem.train)[0].numpy()
        alpha, (m, beta, V, nu) = (
            factors["alpha"][0].numpy(),
            (factors[k][0].numpy() for k in ("m", "beta", "V", "nu")),
        )
        # a Wishart of one dimension
        tau = [stats.gamma(nu[k] / 2, scale=2 / V[k, 0, 0]) for k in range(2)]
        u = (np.arange(4000) + 0.5) / 4000
        log_tau = [np.log(t.ppf(u)).mean() for t in tau]
        e_tau = [t.mean() for t in tau]
        share = (
            np.log(stats.beta(alpha[0], alpha[1]).ppf(u)).mean(),
            np.log1p(-stats.beta(alpha[0], alpha[1]).ppf(u)).mean(),
        )
        of_row = [[0.5 * (log_tau[k] - math.log(2 * math.pi) - e_tau[k] * (float(v) - m[k, 0]) ** 2 - 1 / beta[k])
                   for k in range(2)] for v in x[:, 0]]  # fmt: skip
        value = 0.0
        for z in itertools.product(range(2), repeat=4):
            q = math.prod(r[n, k] for n, k in enumerate(z))
            value += q * (sum(share[k] + of_row[n][k] for n, k in enumerate(z)) - math.log(q))
        dirichlet = stats.dirichlet.rvs(alpha, 40_000, random_state=0)
        logs = stats.beta(*alpha).logpdf(dirichlet[:, 0]) - stats.beta(1.5, 1.5).logpdf(
            dirichlet[:, 0]
        )
        kl, p = logs.mean(), model.prior
        for k in range(2):
            t = tau[k].ppf(u)
            gamma = (
                tau[k].logpdf(t) - stats.gamma(float(p.nu) / 2, scale=2 / float(p.V)).logpdf(t)
            ).mean()
            ratio = 0.5 / beta[k]
            kl += gamma + 0.5 * (
                ratio - 1 - math.log(ratio) + 0.5 * e_tau[k] * (m[k, 0] - float(p.m[0])) ** 2
            )
        error = 4 * logs.std() / 200 + 5e-3
        assert float(ascent.objective(factors, problem.train)[0]) == pytest.approx(
            value - kl, abs=error
        )
    evidence = np.logaddexp.reduce(list(exact(model, x).values()))
    assert evidence - 2.5 < float(ascent.objective(factors, problem.train)[0]) < evidence


def test_one_cluster_is_exact():
    model, problem = few(D=2, clusters=1)
    factors = fitted(model.mean_field(), problem.train, 1)
    (evidence,) = exact(model, problem.train.x).values()
    assert float(model.mean_field().objective(factors, problem.train)) == pytest.approx(
        evidence, rel=1e-10
    )


def test_gibbs_has_the_predictive_of_all_labellings():
    model, problem = few()
    x, new = problem.train.x, problem.test.x[:3]
    every = exact(model, x)
    total = np.logaddexp.reduce(list(every.values()))
    expected = np.zeros(3)
    for z, value in every.items():
        n = np.bincount(z, minlength=2)
        for k in range(2):
            known = model.prior.posterior(double([float(c == k) for c in z]), x)
            share = (model.alpha + n[k]) / (2 * model.alpha + 4)
            expected += math.exp(value - total) * share * known.log_predictive(new).exp().numpy()
    g = generator(0)
    theta, densities = model.sample_prior(400, g), []
    for t in range(40):
        theta = model.draw_block("clusters", theta, problem.train, g)
        if t >= 10:
            densities.append(model.log_likelihood(theta, type(problem.test)(new, 1.0)).exp())
    by_chain = torch.stack(densities).mean(0)  # 400 independent chains
    error = by_chain.std(0) / 20
    assert ((by_chain.mean(0) - torch.from_numpy(expected)).abs() < 4.5 * error).all()


def separated():
    problem, rng = load("mixture_sim", n_train=120, n_test=50, spread=4.0)
    return problem, rng, problem.train.x.numpy()


def test_scikit_learns_bayesian_mixture_under_the_same_prior():
    from sklearn.mixture import BayesianGaussianMixture

    problem, _, x = separated()
    model = made("gaussian_mixture", problem, concentration=0.7, mean_rows=0.3)
    p, ascent = model.prior, model.mean_field()
    factors = fitted(ascent, problem.train, 300, starts=4)
    best = int(ascent.objective(factors, problem.train).argmax())
    theirs = BayesianGaussianMixture(
        n_components=3, weight_concentration_prior_type="dirichlet_distribution", weight_concentration_prior=0.7,
        mean_precision_prior=0.3, mean_prior=p.m.numpy(), degrees_of_freedom_prior=float(p.nu),
        covariance_prior=p.V.numpy(), reg_covar=0, tol=1e-12, max_iter=1000, random_state=0,
    ).fit(x)  # fmt: skip
    a, b = factors["m"][best, :, 0].argsort(), theirs.means_[:, 0].argsort()
    assert factors["m"][best][a].numpy() == pytest.approx(theirs.means_[b], abs=1e-6)
    assert factors["alpha"][best][a].numpy() == pytest.approx(
        theirs.weight_concentration_[b], abs=1e-5
    )
    nu = factors["nu"][best][a]
    assert nu.numpy() == pytest.approx(theirs.degrees_of_freedom_[b], abs=1e-5)
    covariance = (factors["V"][best][a] / nu[:, None, None]).numpy()
    assert covariance == pytest.approx(theirs.covariances_[b], abs=1e-6)
    r = ascent.responsibilities(factors, problem.test)[best][:, a].numpy()
    assert r == pytest.approx(theirs.predict_proba(problem.test.x.numpy())[:, b], abs=1e-6)


@pytest.mark.parametrize("cycles", [1, 7])
def test_em_is_scikit_learns_from_one_start(cycles):
    import warnings

    from sklearn.mixture import GaussianMixture

    problem, _, x = separated()
    ascent = made("gaussian_mixture", problem).point_masses(False)
    start = ascent.start(problem.train, 1, generator(0))
    ours = fitted(ascent, problem.train, cycles)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has not converged, as it should not
        theirs = GaussianMixture(
            n_components=3, reg_covar=0, tol=0, max_iter=cycles, weights_init=start["log_pi"][0].exp().numpy(),
            means_init=start["mu"][0].numpy(), precisions_init=torch.linalg.inv(start["covariance"][0]).numpy(),
        ).fit(x)  # fmt: skip
    assert ours["mu"][0].numpy() == pytest.approx(theirs.means_, abs=1e-9)
    assert ours["log_pi"][0].exp().numpy() == pytest.approx(theirs.weights_, abs=1e-9)
    assert ours["covariance"][0].numpy() == pytest.approx(theirs.covariances_, abs=1e-9)
    log_likelihood = float(ascent.objective(ours, problem.train)[0])
    assert log_likelihood == pytest.approx(120 * theirs.score(x), rel=1e-9)


def test_penalised_em_is_at_a_mode_of_the_literal_posterior():
    problem, _, _ = separated()
    model = made("gaussian_mixture", problem, concentration=2.0)
    ascent, p = model.point_masses(True), model.prior
    before = ascent.start(problem.train, 1, generator(0))
    factors = fitted(ascent, problem.train, 200)

    def literal(f):
        value = stats.dirichlet.logpdf(f["log_pi"][0].exp().numpy(), [2.0] * 3)
        like = np.zeros(120)
        for k in range(3):
            mu, S = f["mu"][0, k].numpy(), f["covariance"][0, k].numpy()
            like += math.exp(f["log_pi"][0, k]) * stats.multivariate_normal.pdf(
                problem.train.x.numpy(), mu, S
            )
            value += stats.wishart.logpdf(
                np.linalg.inv(S), float(p.nu), torch.linalg.inv(p.V).numpy()
            )
            value += stats.multivariate_normal.logpdf(mu, p.m.numpy(), S / float(p.beta))
        return value + np.log(like).sum()

    for f in (before, factors):
        assert float(ascent.objective(f, problem.train)) == pytest.approx(literal(f), rel=1e-9)
    top, g = literal(factors), generator(1)
    for _ in range(12):
        moved = dict(factors)
        moved["log_pi"] = (factors["log_pi"] + 0.02 * normal(g, 1, 3)).log_softmax(1)
        moved["mu"] = factors["mu"] + 0.02 * normal(g, 1, 3, 2)
        stretch = (0.02 * normal(g, 1, 3, 2)).exp().diag_embed()
        moved["covariance"] = stretch @ factors["covariance"] @ stretch
        assert literal(moved) < top
    for k in range(3):  # and level there in the weights
        step = 1e-3 * torch.eye(3, dtype=F64)[k]
        ends = [
            literal(factors | {"log_pi": (factors["log_pi"] + way * step).log_softmax(1)})
            for way in (1, -1)
        ]
        assert abs(ends[0] - ends[1]) / 2e-3 < 1e-3


def test_what_cannot_be_fitted():
    with pytest.raises(
        ConfigMismatchError, match=r"model\.clusters=9: dataset=few has 4 training rows; lower it"
    ):
        few(clusters=9)
    with pytest.raises(
        ConfigMismatchError, match=r"model\.freedom=0\.5: rows of 2 values need more than 1"
    ):
        few(D=2, freedom=0.5)
    model, problem = few(clusters=3)
    with pytest.raises(NumericalError, match="a cluster has collapsed"):
        fitted(model.point_masses(False), problem.train, 300)


def test_rand_index_is_scikit_learns():
    from sklearn.metrics import adjusted_rand_score

    g = generator(0)
    one, other = torch.randint(4, (50,), generator=g), torch.randint(3, (50,), generator=g)
    other[:25] = one[:25] % 3
    assert_close(adjusted_rand(one, other), adjusted_rand_score(one.numpy(), other.numpy()))
    assert adjusted_rand(one, (one + 1) % 4) == 1.0
    assert adjusted_rand(torch.zeros(5, dtype=torch.long), torch.zeros(5, dtype=torch.long)) == 1.0


def test_draws_predict_rows_and_find_clusters():
    problem, rng = load("mixture_sim", n_train=100, n_test=200)
    inference = component("inference", "cavi", draws=200)
    state = inference.init(build_model("gaussian_mixture", problem), problem, rng)
    for _, batch in problem.batches("whole", rng, 0, 60):
        state, _ = inference.step(state, batch, rng)
    posterior = inference.posterior(state)
    by_draws = super(type(posterior), posterior).log_predictive(problem.test)
    assert float((by_draws - posterior.log_predictive(problem.test)).abs().mean()) < 0.05
    assert problem.score(posterior, rng)["ari"] > 0.9
    drawn = super(type(posterior), posterior).clusters(problem.test)
    assert adjusted_rand(drawn.argmax(1), posterior.clusters(problem.test).argmax(1)) > 0.95
    assert set(problem.draw(posterior, rng)) >= {"clusters", "bound_by_start", "pairs"}
