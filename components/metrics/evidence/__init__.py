"""log p(x) of held-out rows for a latent-variable model, for any training method."""
