"""MLflow as a mirror of the records on disk, held by a process next to the runs."""
