"""Scientific components: methods, models, data sets, attackers and metrics."""
