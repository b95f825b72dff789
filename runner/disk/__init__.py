"""Files on disk: plain files only, YAML with comments, limits for reading."""
