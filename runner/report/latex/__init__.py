"""Tables, figures and references of a study for a paper."""
