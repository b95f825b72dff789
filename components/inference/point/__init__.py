"""One network or a few at modes of the posterior, and estimators that fit themselves."""
