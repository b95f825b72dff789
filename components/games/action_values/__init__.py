"""Action values Q(s, a, b): tables, linear functions, networks."""
