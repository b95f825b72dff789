"""Files as they lie on a disk: plain ones alone, YAML with its comments, and how much of it is read."""
