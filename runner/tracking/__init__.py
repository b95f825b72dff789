"""MLflow as a mirror of the records on disk, held by a process beside the runs."""
