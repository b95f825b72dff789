"""A PyMC model as a target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from components.contracts.user_code import FIX_DATA, reraise_user_error
from components.datasets.foreign.foreign_density import NO_PARAMETER, indexed_names
from components.datasets.foreign.foreign_function import ForeignFunctions, Rows
from components.datasets.foreign.own_model import OwnModel
from components.errors import ConfigMismatchError
from components.registry import register


@register("dataset", "pymc")
class PyMC(OwnModel):
    """A PyMC model: the log density of its value variables, differentiated by PyTensor.

    The function returns a pymc.Model; it is called with ``data`` and ``arguments`` as keywords.
    θ [K, P] holds its continuous value variables, unconstrained, in the order of the model;
    the log density includes the log-Jacobian.  Chains are evaluated one after another.

    Raises:
        ConfigMismatchError: PyMC is not installed, the function does not exist, raises or does not
            return a model, a variable is discrete, or the density is not finite at the starting
            points.

    Source: Abril-Pla et al. (2023).
    """

    extra = "pymc"

    def open_functions(self, data_dir: Path) -> ForeignFunctions:
        function = self.import_function()
        with reraise_user_error(self.where, function, FIX_DATA):
            model = function(**self.keywords(data_dir))
        self._check_model(model)
        with reraise_user_error(self.where, function, FIX_DATA):
            return _compile_model(model, self.derived)

    def _check_model(self, model: Any) -> None:
        """Check for a model with only continuous variables."""
        import pymc

        if not isinstance(model, pymc.Model):
            raise ConfigMismatchError(
                f"{self.where}: returns {type(model).__name__}, but must return a pymc.Model"
            )
        if discrete := [v.name for v in model.discrete_value_vars]:
            raise ConfigMismatchError(
                f"{self.where}: {', '.join(discrete)} is discrete; gradients need continuous "
                "variables: sum the discrete ones out (pymc_extras.marginalize)"
            )
        if not model.continuous_value_vars:
            raise ConfigMismatchError(f"{self.where}: {NO_PARAMETER}")


def _compile_model(model: Any, derived: bool) -> ForeignFunctions:
    from pymc.pytensorf import compile as compile_function
    from pymc.pytensorf import join_nonshared_inputs

    point = model.initial_point(random_seed=0)
    inputs = model.continuous_value_vars
    gradient = model.logp_dlogp_function(inputs, initial_point=point, ravel_inputs=True)
    gradient.set_extra_values({})
    variables = [*model.free_RVs, *(model.deterministics if derived else [])]

    def of_flat(outputs: Any) -> Any:
        joined, flat = join_nonshared_inputs(point, outputs, inputs, make_inputs_shared=False)
        return compile_function([flat], joined)

    log_density = of_flat([model.logp()])
    constrained = of_flat(model.replace_rvs_by_values(variables))
    start = np.concatenate([np.ravel(point[v.name]) for v in inputs]).astype(float)
    shapes = [np.shape(value) for value in constrained(start)]

    def value(theta: Rows) -> Rows:
        return np.array([log_density(row)[0] for row in theta], dtype=float)

    def value_and_gradient(theta: Rows) -> tuple[Rows, Rows]:
        pairs = [gradient([row]) for row in theta]
        return np.array([float(v) for v, _ in pairs]), np.array([g for _, g in pairs])

    def constrain(theta: Rows) -> Rows:
        return np.array(
            [np.concatenate([np.ravel(v) for v in constrained(row)]) for row in theta], dtype=float
        )

    return ForeignFunctions(
        names=[
            name
            for variable, shape in zip(variables, shapes, strict=True)
            for name in indexed_names(variable.name, shape)
        ],
        dim=len(start),
        value=value,
        value_and_gradient=value_and_gradient,
        constrain=constrain,
    )
