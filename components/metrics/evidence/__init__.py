"""log p(x) of held-out rows of a model with latent variables, whatever the model was trained by."""
