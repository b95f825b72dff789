"""``runner fit``: a user's density or model with every method that fits it."""
