import pymc as pm


def schools(J, y, sigma):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        eta = pm.Normal("eta", 0, 1, shape=J)
        theta = pm.Deterministic("theta", mu + tau * eta)
        pm.Normal("y", theta, sigma, observed=y)
    return model
