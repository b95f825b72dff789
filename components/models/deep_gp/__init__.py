"""Deep Gaussian processes of several tasks."""
