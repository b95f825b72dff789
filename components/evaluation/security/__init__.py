"""Security evaluation: curves of a score by ε, certificates, and checks of both."""
