"""Components of users: what their classes must declare, and what their methods must return."""
