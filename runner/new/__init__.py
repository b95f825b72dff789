"""``runner new``: a user's own component, experiment or study, which runs unchanged."""
