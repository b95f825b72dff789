"""Networks of one hidden layer under a hierarchical prior."""
