"""Users' components: required declarations of their classes and results of their methods."""
