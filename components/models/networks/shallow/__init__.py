"""Networks with one hidden layer and a hierarchical prior."""
