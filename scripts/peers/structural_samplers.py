"""Samplers of a structural series: bsts-causalimpact (Rust) and NumPyro's NUTS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scripts.peers.installed import peer_imports

Array = np.ndarray[Any, np.dtype[Any]]


TIMES = 104
DF, GUESS = 32.0, 0.1  # of the level's σ: the Rust sampler's prior


def build_rust(y: Array, X: Array, chains: int, size: float = 3.0) -> Callable[[int], Array]:
    """(σ, level σ, β) [n, …]."""
    with peer_imports():
        from causal_impact._core import run_gibbs_sampler

    columns = np.ascontiguousarray(X.T) if X.shape[1] else np.zeros((0, TIMES + 1))
    seed = 0

    def run(n: int) -> Array:
        nonlocal seed
        seed += 1
        keys = {
            "prior_level_sd": GUESS,
            "expected_model_size": size,
            "nwarmup": 0,
            "nchains": chains,
            "seed": seed,
        }
        fit = run_gibbs_sampler(y=y, x=columns, pre_end=TIMES, niter=n, **keys)
        beta = np.array(fit.beta).reshape(len(fit.sigma_obs), -1)
        return np.column_stack([fit.sigma_obs, fit.sigma_level, beta])

    return run


def build_nuts(y: Array) -> Callable[[int], Array]:
    """NumPyro's NUTS, warmed up once and compiled: the random walk by its innovations in units of
    σ."""
    with peer_imports():
        import jax
        import jax.numpy as jnp
        import numpyro
        from numpyro import distributions as dist
        from numpyro.infer import MCMC, NUTS

    numpyro.enable_x64()
    observations = jnp.asarray(y[:TIMES])

    def model() -> None:
        level = numpyro.sample("level", dist.Gamma(DF / 2, DF * GUESS**2 / 2)) ** -0.5
        noise = numpyro.sample("noise", dist.Gamma(0.005, 0.005)) ** -0.5
        z = numpyro.sample("z", dist.Normal(0, 1).expand([TIMES - 1]).to_event(1))
        first = numpyro.sample("first", dist.Normal(observations[0], 1.0))
        path = first + jnp.concatenate([jnp.zeros(1), jnp.cumsum(level * z)])
        numpyro.sample("y", dist.Normal(path, noise).to_event(1), obs=observations)

    mcmc = MCMC(NUTS(model), num_warmup=1000, num_samples=1000, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0))
    mcmc.post_warmup_state = mcmc.last_state
    mcmc.run(jax.random.PRNGKey(1))  # compiled without a warm-up now

    def run(n: int) -> Array:
        mcmc.post_warmup_state = mcmc.last_state
        mcmc.run(mcmc.post_warmup_state.rng_key)
        samples = mcmc.get_samples()
        return np.column_stack(
            [np.asarray(samples["noise"]) ** -0.5, np.asarray(samples["level"]) ** -0.5]
        )

    return run
