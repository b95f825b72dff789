"""Games in tables as compiled loops: the tensors' numbers, bit by bit, from the same uniforms."""
