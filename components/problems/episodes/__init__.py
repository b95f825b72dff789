"""What an episode of a game hands on: where the game stands after it, and the transitions within it."""
