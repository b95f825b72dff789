"""Games from PettingZoo parallel environments of users."""
