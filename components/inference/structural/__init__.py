"""Methods for structural time series."""
