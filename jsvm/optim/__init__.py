"""Descent by the signs of gradients, exact or noisy, as optax transformations."""

from jsvm.optim.noisy_rprop import noisy_rprop
from jsvm.optim.rprop import irprop_plus, rprop

__all__ = ["irprop_plus", "noisy_rprop", "rprop"]
