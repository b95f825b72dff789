"""Players whom the decision maker meets in a game."""
