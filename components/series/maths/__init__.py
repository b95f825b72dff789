"""Linear filters, stationary covariances, stocks and forecasts of linear systems."""
