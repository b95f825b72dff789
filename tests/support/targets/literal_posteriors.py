"""Literal densities of posteriordb by torch's distributions, and small data for them."""

import torch
from support.runs.configured import F64, double, generator, normal
from torch import distributions
from torch.distributions import MultivariateNormal


def use_float64(family):
    """Wrap a family of torch.distributions so that parameters given as Python numbers are not
    rounded to float32."""
    return lambda *parameters: family(*(torch.as_tensor(p, dtype=F64) for p in parameters))


Normal, HalfNormal, HalfCauchy, Gamma, Beta = (
    use_float64(getattr(distributions, name))
    for name in ("Normal", "HalfNormal", "HalfCauchy", "Gamma", "Beta")
)


def small_data(posterior):
    """A few rows of data of the right form, so that formulas can be compared without files."""
    g = generator(1)

    n = 12
    y = normal(g, n).tolist()
    answers = ("real_ideo", "race_adj", "educ1", "gender", "income", "partyid7")
    sizes = ("diam1", "diam2", "canopy_height", "total_height", "density", "weight")
    return {
        "sblri-blr": {"X": normal(g, n, 3).tolist(), "y": y},
        "kidiq-kidscore_momiq": {"mom_iq": (100 + 15 * normal(g, n)).tolist(), "kid_score": y},
        "kilpisjarvi_mod-kilpisjarvi": {
            "x": (1950 + torch.arange(n)).tolist(),
            "y": y,
            "pmualpha": 9.0,
            "psalpha": 100.0,
            "pmubeta": 0.0,
            "psbeta": 0.03,
        },
        "mesquite-logmesquite": {k: normal(g, n).exp().tolist() for k in sizes}
        | {"group": [0, 1] * 6},
        "nes2000-nes": {k: torch.randint(1, 8, (n,), generator=g).tolist() for k in answers}
        | {"age_discrete": [1, 2, 3, 4] * 3},
        "arK-arK": {"K": 2, "y": y},
        "eight_schools-eight_schools_noncentered": {
            "y": y,
            "sigma": (1 + normal(g, n).exp()).tolist(),
        },
        "low_dim_gauss_mix-low_dim_gauss_mix": {"y": y},
        "hmm_example-hmm_example": {"y": (6 + 3 * normal(g, 13)).tolist()},
        "garch-garch11": {"y": y, "sigma1": 0.5},
        "gp_pois_regr-gp_regr": {"x": list(range(-10, 14, 2)), "y": y},
    }[posterior]


def literal(posterior, data, v):
    """log p(parameters, y) of one vector of parameters, exactly as in posteriordb's models."""
    d = {k: double(x) for k, x in data.items()}
    y = d.get("y")
    if posterior == "sblri-blr":
        prior = Normal(0.0, 10.0).log_prob(v[:-1]).sum() + HalfNormal(10.0).log_prob(v[-1])
        return Normal(d["X"] @ v[:-1], v[-1]).log_prob(y).sum() + prior
    if posterior == "kidiq-kidscore_momiq":
        mean = v[0] + v[1] * d["mom_iq"]
        return Normal(mean, v[2]).log_prob(d["kid_score"]).sum() + HalfCauchy(2.5).log_prob(v[2])
    if posterior == "kilpisjarvi_mod-kilpisjarvi":
        prior = Normal(d["pmualpha"], d["psalpha"]).log_prob(v[0]) + Normal(
            d["pmubeta"], d["psbeta"]
        ).log_prob(v[1])
        return Normal(v[0] + v[1] * d["x"], v[2]).log_prob(y).sum() + prior
    if posterior == "mesquite-logmesquite":
        mean = (
            v[0]
            + v[1] * d["diam1"].log()
            + v[2] * d["diam2"].log()
            + v[3] * d["canopy_height"].log()
        )
        mean = mean + v[4] * d["total_height"].log() + v[5] * d["density"].log() + v[6] * d["group"]
        return Normal(mean, v[7]).log_prob(d["weight"].log()).sum()
    if posterior == "nes2000-nes":
        age = [(d["age_discrete"] == k).to(F64) for k in (2, 3, 4)]
        terms = [
            torch.ones(12, dtype=F64),
            d["real_ideo"],
            d["race_adj"],
            *age,
            d["educ1"],
            d["gender"],
            d["income"],
        ]
        mean = torch.stack([b * x for b, x in zip(v[:9], terms, strict=True)]).sum(0)
        return Normal(mean, v[9]).log_prob(d["partyid7"]).sum()
    if posterior == "arK-arK":
        lp = Normal(0.0, 10.0).log_prob(v[:-1]).sum() + HalfCauchy(2.5).log_prob(v[-1])
        for t in range(data["K"], len(y)):
            mean = v[0] + sum(v[k] * y[t - k] for k in range(1, data["K"] + 1))
            lp = lp + Normal(mean, v[-1]).log_prob(y[t])
        return lp
    if posterior.startswith("eight_schools"):
        effect = v[:-2]
        mu = v[-2]
        tau = v[-1]
        # in the original parameters the effects are N(μ, τ²): η = (ϑ − μ)/τ contributes their
        # Jacobian
        return (
            Normal(effect, d["sigma"]).log_prob(y).sum()
            + Normal(mu, tau).log_prob(effect).sum()
            + Normal(0.0, 5.0).log_prob(mu)
            + HalfCauchy(5.0).log_prob(tau)
        )
    if posterior.startswith("low_dim"):
        mu = v[:2]
        sigma = v[2:4]
        w = v[4]
        lp = (
            Normal(0.0, 2.0).log_prob(mu).sum()
            + HalfNormal(2.0).log_prob(sigma).sum()
            + Beta(5.0, 5.0).log_prob(w)
        )
        p = (
            w * Normal(mu[0], sigma[0]).log_prob(y).exp()
            + (1 - w) * Normal(mu[1], sigma[1]).log_prob(y).exp()
        )
        return lp + p.log().sum()
    if posterior.startswith("hmm"):
        A = v[:4].reshape(2, 2)
        mu = v[4:]
        alpha = torch.full((2,), 0.5, dtype=F64) * Normal(mu, 1.0).log_prob(y[0]).exp()
        for t in range(1, len(y)):
            alpha = (alpha @ A) * Normal(mu, 1.0).log_prob(y[t]).exp()
        return (
            alpha.sum().log() + Normal(3.0, 1.0).log_prob(mu[0]) + Normal(10.0, 1.0).log_prob(mu[1])
        )
    if posterior.startswith("garch"):
        mu, alpha0, alpha1, beta1 = v
        scale = d["sigma1"]
        lp = torch.zeros((), dtype=F64)
        for t in range(len(y)):
            if t > 0:
                scale = (alpha0 + alpha1 * (y[t - 1] - mu) ** 2 + beta1 * scale**2).sqrt()
            lp = lp + Normal(mu, scale).log_prob(y[t])
        return lp
    rho, alpha, sigma = v
    K = alpha**2 * torch.exp(-0.5 * (d["x"][:, None] - d["x"]) ** 2 / rho**2) + sigma * torch.eye(
        len(y), dtype=F64
    )
    prior = (
        Gamma(25.0, 4.0).log_prob(rho)
        + HalfNormal(2.0).log_prob(alpha)
        + HalfNormal(1.0).log_prob(sigma)
    )
    return MultivariateNormal(torch.zeros(len(y), dtype=F64), K).log_prob(y) + prior


def free_coordinates(posterior):
    """Free parameters, without those determined by others: rows of a transition matrix sum to
    one."""
    return [0, 2, 4, 5] if posterior.startswith("hmm") else []
