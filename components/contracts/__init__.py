"""What the parts of a run ask of each other: roles, capabilities, posteriors, problems, random streams."""
