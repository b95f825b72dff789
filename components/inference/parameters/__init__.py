"""Unknown parameters of state-space models, by particle filters that try many sets of them at once."""
