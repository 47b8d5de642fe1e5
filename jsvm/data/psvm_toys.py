"""The toy problems and the Weston data of Hochreiter & Obermayer 2004, for the P-SVM.

The paper shows some of its data in figures only; what is assumed here beyond its text is said with
each function. In problems with row objects z, a machine sees the matrix K_ij = k(xⁱ, zʲ).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.numerics.arrays import as_key

REGIONS = 5  # half rings of `oscillating_regions`
RELEVANT, MODE = 20, 4  # `weston`: features 1 to 20, in five modes of four

MatrixToy = tuple[Float[Array, "columns 2"], Float[Array, " columns"], Float[Array, "rows 2"]]
PlaneToy = tuple[Float[Array, "size 2"], Float[Array, " size"]]


def four_clusters(*, key: Any, per_class: int = 25, rows: int = 100) -> MatrixToy:
    """Draw column objects around the corners (±1, ±1) and row objects uniform on [−1.2, 1.2]².

    Fig. 6 of the paper: a corner with equal probability, plus normal noise of standard deviation
    0.1 on each coordinate. Opposite corners belong together, y = sign x₁x₂ of the corner (shown in
    the figure only). There are 100 row objects below the figure, 50 in the text. X, y, Z are the
    column objects, class +1 first, their classes, and the row objects.

    Parameters
    ----------
    per_class, rows : int
        Number of column objects of each class, and of row objects.

    Examples
    --------
    >>> X, y, Z = four_clusters(key=0)
    >>> X.shape, Z.shape, bool(jnp.all(jnp.sign(X[:, 0] * X[:, 1]) == y))
    ((50, 2), (100, 2), True)
    """
    y = _two_classes(per_class, rows)
    corners, errors, places = jax.random.split(as_key(key), 3)
    first = jax.random.rademacher(corners, y.shape, y.dtype)
    X = jnp.stack([first, first * y], axis=1) + 0.1 * jax.random.normal(errors, (len(y), 2))
    return X, y, jax.random.uniform(places, (rows, 2), minval=-1.2, maxval=1.2)


def horseshoe(*, key: Any, per_class: int = 17, rows: int = 50) -> MatrixToy:
    """Draw a group of column objects, a horseshoe of others around it, and row objects everywhere.

    Fig. 3 of the paper has these numbers of objects, and row objects uniform on [−2, 2]². It does
    not say where the column objects are. Here class +1 is normal around the origin, with standard
    deviation 0.25, and class −1 lies at a distance of 1.2 ± 0.1 from it, open below: no line
    separates them.

    Arguments and what is returned are those of :func:`four_clusters`.

    Examples
    --------
    >>> X, y, Z = horseshoe(key=0)
    >>> X.shape, float(y.sum()), Z.shape
    ((34, 2), 0.0, (50, 2))
    """
    y = _two_classes(per_class, rows)
    inside, angles, radii, places = jax.random.split(as_key(key), 4)
    angle = jax.random.uniform(angles, (per_class,), minval=-jnp.pi / 4, maxval=5 * jnp.pi / 4)
    around = _polar(1.2 + 0.1 * jax.random.normal(radii, (per_class,)), angle)
    X = jnp.concatenate([0.25 * jax.random.normal(inside, (per_class, 2)), around])
    return X, y, jax.random.uniform(places, (rows, 2), minval=-2.0, maxval=2.0)


def _two_classes(per_class: int, rows: int) -> Float[Array, " columns"]:
    """Return the classes of column objects; raise ValueError if the numbers make no sense."""
    if per_class < 1 or rows < 0:
        raise ValueError(f"per_class={per_class} must be positive and rows={rows} not negative")
    return jnp.repeat(jnp.array([1.0, -1.0]), per_class)


def oscillating_regions(*, key: Any, per_region: int = 14) -> PlaneToy:
    """Draw from five half rings, of width 1/5 around the origin, whose classes alternate.

    Fig. 4 of the paper has 28 objects of class 1 and 42 of class 2 in "oscillatory" regions, but no
    formula. Two rings of 14 and three of 14 make these numbers: y = −sign sin(5π‖x‖), x₁ ≥ 0, and
    ‖x‖ is uniform on [0, 1). So the sine kernel with θ = 5π suits them better than a Gaussian, with
    fewer support vectors. X, y are the examples from the inner ring to the outer, and their
    classes; class 1 is +1.

    Parameters
    ----------
    per_region : int
        Number of examples in each of the five rings.

    Examples
    --------
    >>> X, y = oscillating_regions(key=0)
    >>> X.shape, int((y > 0).sum()), int((y < 0).sum())
    ((70, 2), 28, 42)
    """
    if per_region < 1:
        raise ValueError(f"per_region={per_region} must be positive")
    radii, angles = jax.random.split(as_key(key), 2)
    region = jnp.repeat(jnp.arange(REGIONS), per_region)
    inside = jax.random.uniform(radii, region.shape)
    radius = (region.astype(inside.dtype) + inside) / REGIONS
    angle = jax.random.uniform(angles, region.shape, minval=-jnp.pi / 2, maxval=jnp.pi / 2)
    return _polar(radius, angle), jnp.where(region % 2 == 1, 1.0, -1.0)


def _polar(radius: Float[Array, " n"], angle: Float[Array, " n"]) -> Float[Array, "n 2"]:
    return jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=1)


def sine_rings(*, size: int, key: Any, theta: float = 4 * jnp.pi) -> PlaneToy:
    """Draw x uniform on [−1, 1]² with the class y = sign sin(θ‖x‖), a target-shaped pattern.

    For the sine kernel sin(θ‖x − z‖) of section 2.4.4. The first object is the centre of the rings
    (with y = +1 as sin 0 = 0): its column sin(θ‖xⁱ − x⁰‖) of the indefinite Gram matrix has the
    sign of every yᵢ, so one support feature separates the classes.

    Parameters
    ----------
    size : int
        Number of examples, including the centre.
    theta : float
        Frequency; each ring is π/θ wide.

    Examples
    --------
    >>> X, y = sine_rings(size=100, key=0)
    >>> column = jnp.sin(4 * jnp.pi * jnp.linalg.norm(X - X[:1], axis=1))
    >>> bool(jnp.all((column >= 0) == (y > 0)))
    True
    """
    if size < 1 or not theta > 0:
        raise ValueError(f"size={size} and theta={theta} must be positive")
    X = jax.random.uniform(as_key(key), (size, 2), minval=-1.0, maxval=1.0).at[0].set(0.0)
    return X, jnp.where(jnp.sin(theta * jnp.linalg.norm(X, axis=1)) >= 0, 1.0, -1.0)


def curve(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return sin(3πx/4), the true function of `noisy_curve`.

    Fig. 5 of the paper shows its function as a dashed line only. This one has what the text
    mentions: an extremum at x = −2, where smoothing shows, and no feature at x = 0, where the
    outlier is.

    Examples
    --------
    >>> curve(jnp.array([-2.0, 0.0])).round(6).tolist()
    [1.0, 0.0]
    """
    return jnp.sin(0.75 * jnp.pi * x)


def noisy_curve(
    *, key: Any, size: int = 50, noise: float = 0.2, outlier: float = 3.0
) -> tuple[Float[Array, "points 1"], Float[Array, " points"]]:
    """Draw x uniform on [−4, 4] with y = curve(x) + N(0, noise²), then add an outlier at 0.

    Parameters
    ----------
    size : int
        Number of points besides the outlier, which comes last.
    noise : float
        Standard deviation of the noise.
    outlier : float
        Target at x = 0, where the curve is 0.

    Examples
    --------
    >>> X, y = noisy_curve(key=0)
    >>> X.shape, float(X[-1, 0]), float(y[-1])
    ((51, 1), 0.0, 3.0)
    """
    if size < 0 or not noise >= 0:
        raise ValueError(f"size={size} and noise={noise} must not be negative")
    places, errors = jax.random.split(as_key(key), 2)
    x = jax.random.uniform(places, (size,), minval=-4.0, maxval=4.0)
    y = curve(x) + noise * jax.random.normal(errors, (size,))
    return jnp.append(x, 0.0)[:, None], jnp.append(y, outlier)


def weston(
    *, key: Any, size: int = 600, features: int = 2000, balanced: bool = True
) -> tuple[Float[Array, "size features"], Float[Array, " size"]]:
    """Draw objects whose class shows in four of the first 20 features; all others are noise.

    Each object has one of five modes l ∈ {0, 4, 8, 12, 16}, all equally probable, and

        x_{l+τ} ~ y · N(2, 0.5 τ),  1 ≤ τ ≤ 4,
        x_j ~ N(0, 1)   for the other j ≤ 20,
        x_j ~ N(0, 20)  for j > 20.

    The second parameter of N is taken as a standard deviation; the paper does not say. Its SVM,
    trained on 100 objects, has the errors 0.10 on the 20 relevant features and 0.38 on all. With
    standardised features, C = 0.1 and 500 test objects, means over 100 draws are 0.071 and 0.371
    for standard deviations, 0.063 and 0.365 for variances (standard errors 0.0014 and 0.003).
    Standard deviations are also nearer to the errors of Fisher's statistic in Table 9.

    Parameters
    ----------
    size, features : int
        Number of objects, of which the paper trains on 100, and of features.
    balanced : bool
        Equally many objects of both classes, in random order, as the paper says of its 600;
        otherwise a fair coin for each label, as it says below.

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
    deviation = 0.5 * (j % MODE + 1).astype(noise.dtype)
    first, shows = noise[:, :RELEVANT], (j // MODE)[None, :] == mode[:, None]
    first = jnp.where(shows, y[:, None] * (2 + deviation[None, :] * first), first)
    return jnp.concatenate([first, 20 * noise[:, RELEVANT:]], axis=1), y
