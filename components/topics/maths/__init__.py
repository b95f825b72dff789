"""Updates of latent Dirichlet allocation."""
