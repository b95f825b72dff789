"""Parameter inference in state-space models by particle filters over many parameter sets."""
