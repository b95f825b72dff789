"""``runner new``: a component, an experiment or a study of one's own, which runs as it stands."""
