"""Results of an episode of a game: the state of the game after it, and its transitions."""
