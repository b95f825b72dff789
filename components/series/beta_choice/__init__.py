"""Choice of β for generalised filters."""
