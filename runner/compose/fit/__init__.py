"""Which parts fit each other, and what complaints list where they do not."""
