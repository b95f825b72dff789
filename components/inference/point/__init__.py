"""One or several networks at modes of the posterior, and estimators fitted in a single call."""
