"""Random partitions: their samplers and the distances between them."""
