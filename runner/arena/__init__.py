"""A method of the user's next to all others, on the problems of a suite."""
