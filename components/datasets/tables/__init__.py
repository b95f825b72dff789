"""Tables of inputs and targets."""
