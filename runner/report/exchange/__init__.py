"""Scores and records from elsewhere: URLs, CSV and Parquet, archives, protocols."""
