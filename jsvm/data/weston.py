"""The Weston data of Hochreiter & Obermayer 2004, section 3.3.2, a model of microarrays."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.numerics.keys import as_key

RELEVANT, MODE = 20, 4  # features 1 to 20, in five modes of four


def weston(
    *, key: Any, size: int = 600, features: int = 2000, balanced: bool = True
) -> tuple[Float[Array, "size features"], Float[Array, " size"]]:
    """Draw objects whose class shows in four of the first 20 features; all others are noise.

    Each object has one of five modes l ∈ {0, 4, 8, 12, 16}, all equally probable, and

        x_{l+τ} ~ y · N(2, 0.5 τ),  1 ≤ τ ≤ 4,
        x_j ~ N(0, 1)   for the other j ≤ 20,
        x_j ~ N(0, 20)  for j > 20.

    The second parameter of N is taken as a standard deviation. The paper does not say; it
    gives the errors of an SVM trained on 100 objects as 0.10 on the 20 relevant features
    and 0.38 on all. With standardised features, C = 0.1 and 500 test objects, means over
    100 draws are 0.071 and 0.371 for standard deviations, 0.063 and 0.365 for variances
    (standard errors 0.0014 and 0.003). Standard deviations are slightly nearer to both, and
    nearer to all five errors that Table 9 gives for Fisher's statistic; yet they, too, are
    easier than what the paper reports. On features that are not standardised an SVM guesses:
    its error with all features is 0.50 if 20 is a deviation, 0.49 if it is a variance.

    Parameters
    ----------
    key : JAX random key or int
    size, features : int
        Number of objects, of which the paper trains on 100, and of features.
    balanced : bool
        Equally many objects of both classes, in random order, as the paper says of its 600;
        otherwise a fair coin for each label, as it says a few lines below.

    Examples
    --------
    >>> X, y = weston(key=0)
    >>> X.shape, float(y.sum())
    ((600, 2000), 0.0)
    """
    if size < 0 or features < RELEVANT:
        raise ValueError(f"size={size} must not be negative, features={features} at least 20")
    labels, modes, values = jax.random.split(as_key(key), 3)
    noise = jax.random.normal(values, (size, features))
    if balanced:
        y = jnp.where(2 * jax.random.permutation(labels, size) < size, 1.0, -1.0)
    else:
        y = jax.random.rademacher(labels, (size,), noise.dtype)
    mode = jax.random.randint(modes, (size,), 0, RELEVANT // MODE)
    j = jnp.arange(RELEVANT)
    deviation = 0.5 * (j % MODE + 1)
    first = noise[:, :RELEVANT]
    first = jnp.where(
        (j // MODE)[None, :] == mode[:, None], y[:, None] * (2 + deviation[None, :] * first), first
    )
    return jnp.concatenate([first, 20 * noise[:, RELEVANT:]], axis=1), y
