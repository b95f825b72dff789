"""Closed-form analyses of the linear model by four schools of statistics."""
