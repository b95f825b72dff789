"""What a run leaves behind, on disk and in MLflow."""
