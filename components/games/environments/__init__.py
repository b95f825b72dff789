"""Games: rules, states and rewards; environments of users."""
