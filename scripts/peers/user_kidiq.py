"""A user's script for the posterior kidiq-kidscore_momiq: NumPyro's NUTS, its parallel chains
vectorised (in fewer CPU seconds than one chain after the other)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from zipfile import ZipFile

import jax
import jax.numpy as jnp
import numpyro
from numpyro import distributions as dist
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS

numpyro.enable_x64()
archive = Path(os.environ["RUNNER_DATA_DIR"], "posteriordb", "data", "kidiq.json.zip")
with ZipFile(archive) as file:
    data = json.loads(file.read("kidiq.json"))
x = jnp.asarray(data["mom_iq"], float)
y = jnp.asarray(data["kid_score"], float)


def model() -> None:
    beta = numpyro.sample("beta", dist.ImproperUniform(dist.constraints.real_vector, (), (2,)))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))
    numpyro.sample("y", dist.Normal(beta[0] + beta[1] * x, sigma), obs=y)


sampler = MCMC(
    NUTS(model, dense_mass=True),
    num_warmup=1000,
    num_samples=1000,
    num_chains=4,
    chain_method="vectorized",
    progress_bar=False,
)
sampler.run(jax.random.key(0))
draws = sampler.get_samples(group_by_chain=True)
sizes = [
    float(effective_sample_size(values).min()) for values in map(jax.device_get, draws.values())
]
slope = jax.device_get(draws["beta"])[..., 1]
print(json.dumps({"ess": min(sizes), "slope": float(slope.mean()), "sd": float(slope.std())}))
