"""Training parts with few labelled rows, for encoders that are trained already."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from .._data._labels import labeled_mask
from .._parameters import check_integer, check_option, check_seed
from ._draw import check_share, one_more_of_each_class, own_permutation


class LabelFractionSplit(BaseCrossValidator):
    """Cross-validation that learns from a fraction of the labels, drawn several times.

    Thins the training parts of another splitter and leaves its test parts alone. It drops rows,
    so it is for probes on an encoder that learns nothing from them any more: precomputed
    embeddings, or a pipeline whose encoder is a :class:`~sklearn.frozen.FrozenEstimator`. Where
    the pipeline pretrains on all rows, hide labels with :func:`mask_labels` instead.

    Parameters
    ----------
    fraction : float, default=0.01
        Share of the labelled rows of each training part to keep, 0 to 1, before smoothing: the
        first ``int(fraction * n)`` of a random permutation of the n rows.
    smoothing : {"per_class", "published", "none"}, default="per_class"
        What is added so that all classes are represented. "per_class" adds one further row of
        each class, as the paper says: the rows that :func:`mask_labels` keeps of the same part
        with the same seed. "published" repeats the released code, which draws a place of each
        class in the permuted labels and takes it for a row number, so that one random row of any
        class is added per class and classes may be missing. "none" adds nothing.
    n_draws : int, default=5
        How often the rows of each training part are drawn.
    cv : int, splitter, iterable of (train, test) or None, default=5
        The splitter to thin, as in :func:`~sklearn.model_selection.check_cv` with
        ``classifier=True``; ``[(train, test)]`` is a fixed division.
    random_state : int, RandomState instance or None, default=0
        Seed of the first draw; draw j has this seed plus j, the same in every split and for every
        fraction, so that a smaller fraction keeps a subset of what a larger one keeps.
    unlabeled_label : int, str or None, default=-1
        The value of ``y`` that marks an unlabelled row. Such rows are left out of training parts
        and count for nothing; `cv` may be a :class:`LabeledTestSplit` to leave them out of test
        parts. With None every row is labelled.

    See Also
    --------
    mask_labels : Hides labels, for pipelines that pretrain on every row.

    Notes
    -----
    The splits of the wrapped splitter come one after the other, each with all its draws.

    "published" shuffles with the seed as it is, to draw the rows of the released code; the others
    derive a seed of their own from it, as :func:`mask_labels` does, since scikit-learn's shuffled
    splitters make their folds of the same permutation.

    The published scores are means over the run seeds 0 to 4, each with five draws: seed plus draw
    takes nine different values only.

    Source: paper, Section 5.2 ("1 % and 5 % of the ground truth labels", "five random label
    subsets").

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.model_selection import LabelFractionSplit
    >>> X, y = np.zeros((200, 3)), np.arange(200) % 2
    >>> holdout = [(np.arange(100), np.arange(100, 200))]
    >>> for train, test in LabelFractionSplit(0.03, cv=holdout, n_draws=2).split(X, y):
    ...     print(train, len(test))
    [75 19 29 14 91] 100
    [99 76 45 24  5] 100
    """

    def __init__(
        self,
        fraction: float = 0.01,
        *,
        smoothing: str = "per_class",
        n_draws: int = 5,
        cv: Any = 5,
        random_state: int | np.random.RandomState | None = 0,
        unlabeled_label: Any = -1,
    ) -> None:
        self.fraction = fraction
        self.smoothing = smoothing
        self.n_draws = n_draws
        # A generator can be walked through once only, a splitter has to give its folds again.
        self.cv = list(cv) if isinstance(cv, Iterator) else cv
        self.random_state = random_state
        self.unlabeled_label = unlabeled_label

    def split(
        self, X: Any, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give the indices of each split.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            The data.
        y : array-like of shape (n_samples,)
            Labels; ``unlabeled_label`` marks the unlabelled rows.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, for a wrapped splitter that uses groups.

        Yields
        ------
        train : ndarray
            Indices of the drawn rows, in the order of the permutation, then of the added ones.
        test : ndarray
            Indices of the test part, as the wrapped splitter gives them.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of its range, ``y`` is missing or not one-dimensional, or no row
            is left to learn from.
        """
        check_share("fraction", self.fraction)
        check_option("smoothing", self.smoothing, ("per_class", "published", "none"))
        check_integer("n_draws", self.n_draws, 1)
        check_seed("random_state", self.random_state)
        labeled = labeled_mask(y, self.unlabeled_label, "LabelFractionSplit")
        labels = _as_labels(y)
        seed = self._first_seed()
        cv = check_cv(self.cv, y, classifier=True)
        for fold, (train, test) in enumerate(cv.split(X, y, groups)):
            train = np.asarray(train)
            train = train[labeled[train]]
            for draw in range(self.n_draws):
                rows = self._draw(labels[train], seed + draw)
                if rows.size == 0:
                    raise ValueError(
                        f"fraction={self.fraction!r} of the {train.size} labelled rows in the"
                        f" training part of split {fold} leaves no row with"
                        f" smoothing={self.smoothing!r}: use a larger fraction,"
                        " smoothing='per_class', or label more rows."
                    )
                yield train[rows], test

    def _first_seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _draw(self, labels: np.ndarray, seed: int) -> np.ndarray:
        """Positions of the rows that keep their label."""
        n_drawn = int(self.fraction * labels.size)
        if self.smoothing == "published":
            return _published_draw(labels, n_drawn, seed)
        permutation = own_permutation(labels.size, seed)
        if self.smoothing == "none":
            return permutation[:n_drawn]
        more = one_more_of_each_class(labels, permutation, n_drawn)
        return np.concatenate([permutation[:n_drawn], more])

    def get_n_splits(
        self, X: Any = None, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> int:
        """Give the number of splits.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), default=None
            The data, for a wrapped splitter that needs it.
        y : array-like of shape (n_samples,), default=None
            The labels, for a wrapped splitter that needs them.
        groups : array-like of shape (n_samples,), default=None
            The groups, for a wrapped splitter that needs them.

        Returns
        -------
        n_splits : int
            That of the wrapped splitter times `n_draws`.
        """
        return check_cv(self.cv, y, classifier=True).get_n_splits(X, y, groups) * self.n_draws

    def get_metadata_routing(self) -> MetadataRequest:
        """Request what the wrapped splitter requests.

        Returns
        -------
        routing : :class:`~sklearn.utils.metadata_routing.MetadataRequest`
            The request of the wrapped splitter.
        """
        return get_routing_for_object(check_cv(self.cv, classifier=True))


def _as_labels(y: ArrayLike) -> np.ndarray:
    """Labels as an array of shape (n_samples,) that keeps text beside a numeric marker."""
    return np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None).ravel()


def _published_draw(labels: np.ndarray, n_drawn: int, seed: int) -> np.ndarray:
    """Draw as the released code does, which mistakes places in the permutation for rows."""
    rng = np.random.RandomState(seed)
    permutation = rng.permutation(labels.size)
    permuted = labels[permutation]
    places = [rng.permutation(np.flatnonzero(permuted == c))[0] for c in np.unique(labels)]
    rows = np.concatenate([permutation[:n_drawn], np.asarray(places, dtype=np.intp)])
    # A row that is hit twice counts once.
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)]
