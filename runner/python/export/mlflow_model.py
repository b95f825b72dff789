"""The pyfunc model of MLflow: its code, which MLflow copies next to the file of the fitted model."""

from __future__ import annotations

from typing import Any

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel, PythonModelContext


class FittedModelOfMlflow(PythonModel):  # type: ignore[misc]
    """Predicts as ``runner.load_model(file).predict``."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the fitted model; its file holds no code."""
        from runner.python.export.load_model import load_model
        from runner.python.export.mlflow_signature import ARTIFACT

        self.model = load_model(context.artifacts[ARTIFACT])

    def predict(
        self,
        context: PythonModelContext,
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Predictions for rows; of a series without regressors, for ``horizon`` times ahead."""
        from runner.python.export.mlflow_signature import HORIZON

        if self.model.answers == "forecasts" and HORIZON in model_input:
            return self.model.predict(horizon=int(model_input[HORIZON].iloc[0]))
        return self.model.predict(model_input)


set_model(FittedModelOfMlflow())
