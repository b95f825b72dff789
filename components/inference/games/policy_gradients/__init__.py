"""Players whose logits follow the gradient of what they get."""
