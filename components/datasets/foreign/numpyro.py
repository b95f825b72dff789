"""A NumPyro model as a target."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from components.contracts.user_code import FIX_DATA, reraise_user_error
from components.datasets.foreign.foreign_density import indexed_names
from components.datasets.foreign.foreign_function import ForeignFunctions, Rows
from components.datasets.foreign.own_model import OwnModel
from components.errors import ConfigMismatchError
from components.registry import register


@register("dataset", "numpyro")
class NumPyro(OwnModel):
    """A NumPyro model: the log joint of its latent sites, differentiated by JAX.

    The function is the model; it is called with ``data`` and ``arguments`` as keywords.  θ [K, P]
    holds its continuous latent sites, unconstrained, in the order of the model; chains are
    evaluated together (vmap, compiled).  JAX computes in float64, only for this density.  Discrete
    sites are summed out if funsor is installed and the model enables it, as in NumPyro.

    Raises:
        ConfigMismatchError: NumPyro is not installed, the function does not exist or raises, a site
            is discrete without funsor, or the density is not finite at the starting points.

    Source: Phan, Pradhan & Jankowiak (2019).
    """

    extra = "numpyro"

    def open_functions(self, data_dir: Path) -> ForeignFunctions:
        model = self.import_function()
        with reraise_user_error(self.where, model, FIX_DATA):
            try:
                return _compile_model(model, self.keywords(data_dir), self.derived)
            except ImportError as error:
                if "funsor" not in str(error):
                    raise
                raise ConfigMismatchError(
                    f"{self.where}: the model has a discrete parameter; sum it out, or mark its site with "
                    "infer={'enumerate': 'parallel'} and install funsor with pip"
                ) from error


def _compile_model(model: Any, keywords: dict[str, Any], derived: bool) -> ForeignFunctions:
    import jax
    from numpyro.infer.util import initialize_model

    with jax.enable_x64(True):
        info = initialize_model(jax.random.key(0), model, model_kwargs=keywords)
        start = info.param_info.z
        sites = [name for name in info.model_trace if name in start]
        shapes = [np.shape(start[name]) for name in sites]
        ends = np.cumsum([0, *map(prod, shapes)]).tolist()

        def to_sites(theta: Any) -> dict[str, Any]:
            parts = np.split(np.arange(ends[-1]), ends[1:-1])
            return {
                name: theta[part].reshape(shape)
                for name, part, shape in zip(sites, parts, shapes, strict=True)
            }

        def log_density(theta: Any) -> Any:
            return -info.potential_fn(to_sites(theta))

        constrained = jax.eval_shape(info.postprocess_fn, start)
        named = [
            name
            for name, site in info.model_trace.items()
            if name in sites or (derived and site["type"] == "deterministic")
        ]

        def constrain(theta: Any) -> Any:
            values = info.postprocess_fn(to_sites(theta))
            return jax.numpy.concatenate([values[name].reshape(-1) for name in named])

    def in_float64(function: Any) -> Any:
        compiled = jax.jit(jax.vmap(function))

        def call(theta: Rows) -> Any:
            with jax.enable_x64(True):
                return jax.device_get(compiled(theta))

        return call

    return ForeignFunctions(
        names=[e for name in named for e in indexed_names(name, constrained[name].shape)],
        dim=ends[-1],
        value=in_float64(log_density),
        value_and_gradient=in_float64(jax.value_and_grad(log_density)),
        constrain=in_float64(constrain),
    )
