"""Records of runs, on disk and in MLflow."""
