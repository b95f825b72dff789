"""Security evaluation: curves of a score against ε, certificates, and the checks on both."""
