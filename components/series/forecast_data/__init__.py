"""Series with a forecast horizon."""
