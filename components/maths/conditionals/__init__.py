"""What Gibbs samplers draw: variances, one number in an interval, coefficients that are in or out."""
