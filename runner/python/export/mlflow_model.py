"""Code of the pyfunc model, which MLflow copies next to the file of the fitted model."""

from __future__ import annotations

from typing import Any

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel, PythonModelContext


class FittedModelOfMlflow(PythonModel):  # type: ignore[misc]
    """MLflow model with the predictions of ``runner.load_model(file).predict``."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the fitted model; its file has no code."""
        from runner.python.export.load_model import load_model
        from runner.python.export.mlflow_rows import ARTIFACT

        self.model = load_model(context.artifacts[ARTIFACT])

    def predict(
        self,
        context: PythonModelContext,
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Call ``predict_rows``."""
        from runner.python.export.mlflow_rows import predict_rows

        return predict_rows(self.model, model_input)


set_model(FittedModelOfMlflow())
