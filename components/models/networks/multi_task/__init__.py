"""Multi-task networks of Boustati's tables."""
