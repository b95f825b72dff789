"""An elevation map for navigation by the terrain: as tensors, and as a compiled loop."""
