"""Topics and how they were found."""
