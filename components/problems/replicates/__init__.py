"""Problems whose replicates have their own data and are computed together."""
