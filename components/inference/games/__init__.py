"""Decision makers: one episode a step."""
