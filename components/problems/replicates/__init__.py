"""Problems in which each replicate has its own data, all run together."""
