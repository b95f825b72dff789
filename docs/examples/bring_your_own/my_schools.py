import torch
from torch.distributions import HalfCauchy, Normal


def log_density(theta, J, y, sigma):
    mu, tau, eta = theta[:, 0], theta[:, 1], theta[:, 2:]
    means = mu[:, None] + tau[:, None] * eta
    y, sigma = torch.tensor(y).to(theta), torch.tensor(sigma).to(theta)
    prior = (
        Normal(0, 5).log_prob(mu)
        + HalfCauchy(5.0).log_prob(tau)
        + Normal(0, 1).log_prob(eta).sum(1)
    )
    return prior + Normal(means, sigma).log_prob(y).sum(1)
