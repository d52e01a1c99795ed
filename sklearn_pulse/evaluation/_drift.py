"""Numbers that tell whether new windows are like those of a reference."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances_chunked
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch, check_array, check_random_state
from sklearn.utils.validation import _num_samples

from .._groups import check_groups, nan_where_masked
from .._inputs._numbers import of_tensor
from .._parameters import check_integer, check_real, check_seed
from .._pipelines import before_last_step, last_step
from .._warnings import warn_user
from ._scoring import reconstructs

_DIVISIONS = 500  # that are compared at a time, which bounds the memory
_ROUNDING = 1e-7  # by which two relative distances may differ that are equal in theory


def drift_scores(
    estimator: Any,
    X_reference: ArrayLike,
    X_new: ArrayLike,
    *,
    groups_reference: ArrayLike | None = None,
    groups_new: ArrayLike | None = None,
    coverage: float = 0.95,
    n_permutations: int = 199,
    max_windows: int = 2000,
    random_state: Any = None,
) -> Bunch:
    """Compare new windows with windows of a reference, by a fitted transformer.

    The embeddings are compared by :func:`embedding_drift`. If the transformer scores the
    reconstruction of windows (`score_samples` of a
    :class:`~sklearn_pulse.PulseTransformer`), the scores of each channel are compared by
    :func:`score_drift`.

    Parameters
    ----------
    estimator : transformer or pipeline that ends with one
        A fitted transformer of windows.
    X_reference : array-like of shape (n_reference, n_timesteps, n_channels)
        Windows that are as they should be. Take windows that the transformer was not fitted on: it
        reconstructs its training windows better than others.
    X_new : array-like of shape (n_new, n_timesteps, n_channels)
        Windows to compare with them.
    groups_reference : array-like of shape (n_reference,), default=None
        Recording of each window of `X_reference`. Windows of one recording depend on each other:
        without groups any new recording looks like drift. A
        :class:`~sklearn_pulse.preprocessing.WindowScaler` with ``per="recording"`` does not get
        them, and needs lazy windows, which know their recordings.
    groups_new : array-like of shape (n_new,), default=None
        Recording of each window of `X_new`; needed with `groups_reference`.
    coverage : float, default=0.95
        Share of the reference's scores that lies inside the range.
    n_permutations : int, default=199
        Largest number of other divisions that the distance is compared with, random ones if there
        are more.
    max_windows : int, default=2000
        Largest number of windows of each set whose embeddings are compared. The distances take
        memory in proportion to its square. The scores of all windows are compared.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutations and of the choice of windows.

    Returns
    -------
    Bunch
        ``embedding``, the result of :func:`embedding_drift`; ``scores``, the result of
        :func:`score_drift` with one column per channel, or None if the transformer reconstructs
        nothing; and ``channel_names``, the names of the channels, or None if the transformer knows
        none.

    Raises
    ------
    NotFittedError
        If `estimator` is not fitted.
    TypeError, ValueError
        If `estimator` ends with a step that does not embed windows, a parameter is of the wrong
        kind or out of its range, a set holds fewer than two windows, or `estimator` refuses a set.

    See Also
    --------
    sklearn_pulse.plotting.DriftDisplay : The picture of these numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> from sklearn_pulse.evaluation import drift_scores
    >>> X = np.random.default_rng(0).normal(size=(60, 32, 2))
    >>> pulse = PulseTransformer(embedding_dim=8, max_epochs=1, random_state=0).fit(X[:20])
    >>> X_new = X[40:] * [1.0, 5.0]  # the second channel is too loud
    >>> drift = drift_scores(pulse, X[20:40], X_new, random_state=0)
    >>> drift.embedding.p_value, float(drift.scores.share_outside[1])
    (0.005, 1.0)
    """
    # The parameters are checked again below, but only after the windows were embedded.
    check_coverage(coverage)
    _check_settings(n_permutations, max_windows, random_state)
    if groups_reference is not None or groups_new is not None:
        _codes(groups_reference, groups_new, _num_samples(X_reference), _num_samples(X_new))
    transformer = last_step(estimator)
    if isinstance(transformer, type):
        raise TypeError(
            f"estimator is the class {transformer.__name__}: pass a fitted instance of it."
        )
    if not hasattr(transformer, "transform"):
        raise TypeError(
            f"{type(transformer).__name__} embeds nothing: pass a fitted transformer of"
            " windows, or the part of a pipeline that ends with one, such as pipeline[:-1]."
        )
    embedded, scored = {}, {}
    for name, X in {"X_reference": X_reference, "X_new": X_new}.items():
        try:
            X, transformer = before_last_step(estimator, X)
            embedded[name] = transformer.transform(X)
            if reconstructs(transformer):
                scored[name] = transformer.score_samples(X, per_channel=True)
        except NotFittedError:  # a ValueError too, of which the windows are no cause
            raise
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    distances = embedding_drift(
        _table(embedded["X_reference"], "X_reference"),
        _table(embedded["X_new"], "X_new"),
        groups_reference=groups_reference,
        groups_new=groups_new,
        n_permutations=n_permutations,
        max_windows=max_windows,
        random_state=random_state,
    )
    shares = score_drift(scored["X_reference"], scored["X_new"], coverage) if scored else None
    return Bunch(
        embedding=distances,
        scores=shares,
        channel_names=getattr(transformer, "channel_names_in_", None),
    )


def embedding_drift(
    reference: ArrayLike,
    new: ArrayLike,
    *,
    groups_reference: ArrayLike | None = None,
    groups_new: ArrayLike | None = None,
    n_permutations: int = 199,
    max_windows: int = 2000,
    random_state: Any = None,
) -> Bunch:
    """Measure the energy distance of two sets of embeddings, and test whether it is chance.

    The distance is ``1 - (W_reference + W_new) / (2 B)``. Here B is the mean Euclidean distance of
    an embedding of one set from an embedding of the other, and each W is the mean distance of two
    embeddings of one set. The result is about 0 if the sets are alike (chance may take it below 0),
    and 1 if they lie far apart. Each dimension is scaled to unit variance over both sets first. If
    there are groups, the means are weighted so that every recording of a set counts alike, however
    many windows it has: a long one would outweigh the others.

    It is compared with the distances that arise by chance, when windows, or whole recordings if
    there are groups, are divided into two sets of these sizes: in all ways, or, if there are more
    than `n_permutations`, at random. A division that leaves a single window in a set, which has no
    distance within, does not count.

    Parameters
    ----------
    reference : array-like of shape (n_reference, embedding_dim)
        Embeddings of the reference, at least two.
    new : array-like of shape (n_new, embedding_dim)
        Embeddings to compare with them, at least two.
    groups_reference : array-like of shape (n_reference,), default=None
        Recording of each embedding of `reference`, at least two recordings. None takes embeddings
        to be independent of each other.
    groups_new : array-like of shape (n_new,), default=None
        Recording of each embedding of `new`; needed with `groups_reference`. No recording is in
        both sets.
    n_permutations : int, default=199
        Largest number of divisions that the actual one is compared with.
    max_windows : int, default=2000
        Largest number of embeddings of each set that are compared, chosen at random, from all
        groups alike. The distances take time, and without groups memory, in proportion to its
        square.
    random_state : int, RandomState instance or None, default=None
        Seed of the divisions and of the choice.

    Returns
    -------
    Bunch
        ``distance``, the distance, at most 1; ``null_distances``, an ndarray with the distances of
        the other divisions; and ``p_value``, the share of divisions, the actual one included,
        whose distance is at least as large. With few recordings there are few divisions: of six
        recordings, of which one is new, no p-value is below 1/6.

    Raises
    ------
    TypeError, ValueError
        If a set holds fewer than two embeddings, values that are not finite, or another number of
        dimensions; if only one set has groups, the reference has a single recording, or both sets
        share a recording; or if a parameter is of the wrong kind or out of range.

    Notes
    -----
    Source: Székely and Rizzo (2013), "Energy statistics: A class of statistics based on distances",
    Journal of Statistical Planning and Inference 143; the pairs of an embedding with itself are
    left out, so that the value does not depend on the number of windows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.evaluation import embedding_drift
    >>> rng = np.random.default_rng(0)
    >>> reference, new = rng.normal(size=(50, 8)), rng.normal(loc=1.0, size=(50, 8))
    >>> drift = embedding_drift(reference, new, random_state=0)
    >>> round(drift.distance, 2), drift.p_value
    (0.19, 0.005)
    >>> embedding_drift(reference[:25], reference[25:], random_state=0).p_value > 0.05
    True
    """
    _check_settings(n_permutations, max_windows, random_state)
    for name, values in (("reference", reference), ("new", new)):
        _refuse_model(values, name, "embeddings, as transform returns them")
    first, second = _table(reference, "reference"), _table(new, "new")
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"reference has {first.shape[1]} dimensions and new has {second.shape[1]}: embed both"
            " by the same transformer."
        )
    codes = _codes(groups_reference, groups_new, len(first), len(second))
    rng = check_random_state(random_state)
    kept = [_drawn(part, max_windows, rng) for part in codes]
    points = np.concatenate([first[kept[0]], second[kept[1]]]).astype(np.float64, copy=False)
    group = np.concatenate([codes[0][kept[0]], codes[1][kept[1]]])
    names, group = np.unique(group, return_inverse=True)
    is_new = names > codes[0].max()
    divisions = np.array([is_new, *_other_divisions(is_new, n_permutations, rng)])
    n_new = divisions @ np.bincount(group)
    divisions = divisions[(n_new > 1) & (n_new < len(group) - 1)]
    distances = _energy_distances(points, group, divisions)
    distance, null = distances[0], distances[1:]
    if not len(null):
        warn_user(
            "No other division of the recordings has two windows on each side, so that the p-value"
            " of 1 compares nothing: pass more windows of each recording."
        )
    # A division and its complement have equal distances but for rounding, and so have divisions
    # that exchange equal embeddings. The distance may be 0, so the tolerance is no share of it.
    at_least = null >= distance - _ROUNDING
    return Bunch(
        distance=float(distance),
        null_distances=null,
        p_value=float((1 + at_least.sum()) / (1 + len(null))),
    )


def score_drift(reference: ArrayLike, new: ArrayLike, coverage: float = 0.95) -> Bunch:
    """Find the share of new scores outside the range of a reference's scores.

    The range lies between two quantiles of the reference that leave out as many scores below as
    above. A score above the range counts too: a dead sensor is easily reconstructed.

    Parameters
    ----------
    reference : array-like of shape (n_reference,) or (n_reference, n_channels)
        Scores of the windows of the reference, at least two, such as those of
        :meth:`~sklearn_pulse.PulseTransformer.score_samples`.
    new : array-like of shape (n_new,) or (n_new, n_channels)
        Scores to compare with them.
    coverage : float, default=0.95
        Share of the reference's scores that lies inside the range.

    Returns
    -------
    Bunch
        ``share_outside``, an ndarray of shape (n_channels,) with the share of new scores outside
        the range; ``low`` and ``high``, ndarrays of shape (n_channels,) with the ends of the range;
        and ``expected``, about the share outside of windows that are like the reference and
        independent of it. Scores of shape (n_reference,) are those of one channel.

    Raises
    ------
    TypeError, ValueError
        If `reference` holds fewer than two scores or `new` none, the number of channels differs, a
        score is not finite, or `coverage` is not a number between 0 and 1.

    Notes
    -----
    The range holds a share `coverage` of the reference itself, and less of other scores, since its
    ends are estimated from the reference. A new score has any rank among n scores of a reference
    with equal probability, so that ``expected = ((n - 1) (1 - coverage) + 2) / (n + 1)``: for a
    coverage of 0.95, it is 0.14 with 20 windows, 0.07 with 100 and 0.05 with many.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.evaluation import score_drift
    >>> reference = -np.linspace(0, 1, 101)
    >>> score_drift(reference, [-0.5, -3.0], coverage=0.9).share_outside
    array([0.5])
    """
    coverage = check_coverage(coverage)
    tables = []
    for name, scores, least in (("reference", reference, 2), ("new", new, 1)):
        _refuse_model(scores, name, "the scores of windows, such as those of score_samples")
        scores = np.asanyarray(of_tensor(scores))
        scores = scores[:, np.newaxis] if scores.ndim == 1 else scores
        tables.append(_table(scores, name, least).astype(np.float64, copy=False))
    first, second = tables
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"reference has scores of {first.shape[1]} channels and new of {second.shape[1]}:"
            " score both by the same transformer."
        )
    low, high = np.quantile(first, [(1 - coverage) / 2, (1 + coverage) / 2], axis=0)
    outside = (second < low) | (second > high)
    # Each end lies (n - 1) (1 - coverage) / 2 ranks from the outermost score of the reference. A
    # new score falls between two neighbours, or beyond either end, with probability 1 / (n + 1).
    n = len(first)
    expected = ((n - 1) * (1 - coverage) + 2) / (n + 1)
    return Bunch(share_outside=outside.mean(0), low=low, high=high, expected=expected)


def check_coverage(coverage: Any) -> float:
    """Return `coverage` as Python's own; raise unless it is a number between 0 and 1."""
    return check_real("coverage", coverage, 0.0, 1.0, open_minimum=True, example=0.95)


def _check_settings(n_permutations: Any, max_windows: Any, random_state: Any) -> None:
    """Raise for a parameter of the comparison that is of the wrong kind or out of its range."""
    check_integer("n_permutations", n_permutations, 1)
    check_integer("max_windows", max_windows, 2)
    check_seed("random_state", random_state)


def _refuse_model(values: Any, name: str, wanted: str) -> None:
    """Raise if an estimator, which `drift_scores` takes, stands where its output is `wanted`."""
    if hasattr(values, "fit"):
        raise TypeError(
            f"{name} is a {type(values).__name__}: pass {wanted}; drift_scores takes a fitted"
            " transformer and the windows."
        )


def _table(values: Any, name: str, ensure_min_samples: int = 2) -> NDArray[Any]:
    """Return a table of finite floats, of one row per window."""
    values = nan_where_masked(of_tensor(values))
    if np.ndim(values) != 2:
        raise ValueError(
            f"{name} must give one row of numbers per window, got an array of shape"
            f" {np.shape(values)}: pass embeddings, or a transformer that embeds."
        )
    with config_context(assume_finite=False):  # NaN would pass for the absence of drift
        kept = [np.float64, np.float32]  # a copy in float64 would double the memory
        table = check_array(values, dtype=kept, ensure_min_samples=0, input_name=name)
    if len(table) < ensure_min_samples:
        raise ValueError(
            f"{name} holds {len(table)} window(s), while a minimum of {ensure_min_samples} is"
            " required: pass more windows."
        )
    return table


def _codes(
    groups_reference: ArrayLike | None, groups_new: ArrayLike | None, n_reference: int, n_new: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the number of each window's recording; the reference has the lowest numbers."""
    if groups_reference is None and groups_new is None:
        return np.arange(n_reference), n_reference + np.arange(n_new)
    if groups_reference is None or groups_new is None:
        missing = "groups_new" if groups_new is None else "groups_reference"
        raise ValueError(
            f"{missing} is None: pass the recordings of both sets of windows, or of neither."
        )
    first = check_groups(groups_reference, n_reference, unit="window", name="groups_reference")
    second = check_groups(groups_new, n_new, unit="window", name="groups_new")
    assert first is not None and second is not None
    names, codes = np.unique(first, return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            "groups_reference holds one recording only, which cannot tell drift from the"
            " difference of two recordings: pass a reference of several recordings."
        )
    new_names, new_codes = np.unique(second, return_inverse=True)
    shared = set(names.tolist()) & set(new_names.tolist())
    if shared:
        raise ValueError(
            f"groups_new and groups_reference share {sorted(map(str, shared))[0]!r}: give the"
            " recordings of the two sets different names."
        )
    return codes, len(names) + new_codes


def _drawn(
    codes: NDArray[np.intp], max_windows: int, rng: np.random.RandomState
) -> NDArray[np.intp]:
    """Draw at most `max_windows` windows, from all recordings alike; return them in order."""
    order = rng.permutation(len(codes))
    by_group = order[np.argsort(codes[order], kind="stable")]
    _, first = np.unique(codes[by_group], return_index=True)
    # The shuffled windows of each recording have the turns 0, 1, 2, ...; low turns come first.
    turn = np.arange(len(codes)) - np.repeat(first, np.diff([*first, len(codes)]))
    shuffled = rng.permutation(len(codes))
    taken = by_group[shuffled[np.argsort(turn[shuffled], kind="stable")][:max_windows]]
    return np.sort(taken)


def _other_divisions(
    is_new: NDArray[np.bool_], n_permutations: int, rng: np.random.RandomState
) -> Iterator[NDArray[np.bool_]]:
    """Yield all other divisions of the groups; random ones if there are too many."""
    n_groups, n_new = len(is_new), int(is_new.sum())
    if math.comb(n_groups, n_new) - 1 > n_permutations:
        yield from (rng.permutation(is_new) for _ in range(n_permutations))
        return
    for chosen in itertools.combinations(range(n_groups), n_new):
        division = np.isin(np.arange(n_groups), chosen)
        if (division != is_new).any():
            yield division


def _energy_distances(
    points: NDArray[np.float64], group: NDArray[np.intp], divisions: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Compute the relative energy distance of two sets, for each division of the groups.

    `points` is of shape (n, dim), `group` (n,), and `divisions` (n_divisions, n_groups) is True
    where a group is in the second set.
    """
    # Powers of two change no digit, and no square of a huge or tiny value leaves float64.
    points = np.ldexp(points, -np.frexp(np.abs(points).max(0))[1])
    points = StandardScaler().fit_transform(points)
    n_groups = divisions.shape[1]
    member = sp.csr_array(
        (np.ones(len(group)), (group, np.arange(len(group)))), shape=(n_groups, len(group))
    )
    sums = np.zeros((n_groups, n_groups))  # of the distances of the members of two groups
    alone = np.array_equal(group, np.arange(n_groups))  # each window is its own group
    start = 0
    for rows in pairwise_distances_chunked(points):
        own = slice(start, start + len(rows))
        if alone:
            sums[own] = rows
        else:
            sums += member[:, own] @ (member @ rows.T).T
        start += len(rows)
    of_self = 1 / np.bincount(group)
    sums *= of_self  # from sums to means, so that a long group counts as a short one
    sums *= of_self[:, np.newaxis]
    parts = range(0, len(divisions), _DIVISIONS)
    return np.concatenate(
        [_distances_of(sums, of_self, divisions[part : part + _DIVISIONS]) for part in parts]
    )


def _distances_of(
    means: NDArray[np.float64], of_self: NDArray[np.float64], divisions: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Compute the distance of some divisions from the mean distances of two groups.

    `of_self` is the share of the pairs within each group that pair an embedding with itself. Their
    distance is 0 and does not count.
    """
    second = divisions.astype(np.float64)
    first = 1.0 - second
    n_first, n_second = first.sum(1), second.sum(1)
    to_second = means @ second.T  # (n_groups, n_divisions)
    to_first = means @ first.T
    between = np.einsum("dg,gd->d", first, to_second) / (n_first * n_second)
    within = np.einsum("dg,gd->d", first, to_first) / (n_first**2 - first @ of_self)
    within += np.einsum("dg,gd->d", second, to_second) / (n_second**2 - second @ of_self)
    # Where all embeddings are equal, the sets are alike.
    apart = between > 0
    return np.where(apart, 1 - within / np.where(apart, 2 * between, 1.0), 0.0)
