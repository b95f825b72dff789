"""What composes a problem, a posterior and an attacker: scores under attack, and whether to believe them."""
