"""Time series: state-space and structural models, their data, filters, smoothers, figures and
scores."""
