"""Keys that mean the same in every inference method that declares them: the machine finds them by
these words."""

# keys to lower when a value is no longer finite
RATES = ("lr", "learning_rate", "step_size", "epsilon", "eta")
LEFT_OUT = ("warmup", "burn_in")  # steps that keep nothing
CHAINS = "chains"  # of a sampler
THINNING = "thinning"  # one state in this many is kept
