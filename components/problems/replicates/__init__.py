"""Problems with replicates that have their own data and are computed together."""
