"""Networks that read texts as rows of tokens."""
