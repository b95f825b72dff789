"""What the Hamiltonian samplers share: mass, leapfrog, warm-up, trajectory lengths and trees."""
