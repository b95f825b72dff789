"""Players with logits that follow the gradient of their rewards."""
