"""Mirror of the records in MLflow, updated by a separate process."""
