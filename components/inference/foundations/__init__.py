"""What the foundations say of statistics: stopping rules, rates at which posteriors contract."""
