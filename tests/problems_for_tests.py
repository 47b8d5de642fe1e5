"""Small problems of fixed shapes, so that the tests share compiled programs."""

import numpy as np


def rbf(X, Z=None, gamma=0.5):
    Z = X if Z is None else Z
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(-1))


def chess(n, seed=0):
    X = np.random.default_rng(seed).uniform(0, 4, (n, 2))
    return X, np.where(np.floor(X).sum(1) % 2 == 0, 1.0, -1.0)


def two_classes(rng, n=14, d=2, noise=0.7):
    """Overlapping classes, both of them present."""
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, d)) * noise + 0.5 * y[:, None], y


def regression(rng, n=14):
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)
