"""What particles are drawn by, resampled by and summarised by."""
