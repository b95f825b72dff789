"""Models with latent variables of rows, trained with several draws of the guide or with draws
refined from it."""
