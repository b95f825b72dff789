"""Problems of which each replicate has data of its own, all of them at once."""
