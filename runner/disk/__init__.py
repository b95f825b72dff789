"""Files on a disk: plain files only, YAML with its comments, and read limits."""
