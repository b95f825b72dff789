"""Topic models: corpora, latent Dirichlet allocation, its inference, figures and scores."""
