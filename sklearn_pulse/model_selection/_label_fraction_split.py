"""Training parts with few labelled rows, for encoders that are already trained."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from .._data._labels import labeled_mask
from .._parameters import check_integer, check_option, check_seed
from .._seeds import as_seed
from ._draw import (
    as_indices,
    as_labels,
    check_fraction,
    check_labeled_groups,
    check_one_kind,
    check_one_of,
    check_pairs,
    for_splitters,
    one_more_of_each_class,
    own_permutation,
    rows_of_groups,
)
from ._labeled_test_split import LabeledTestSplit


class LabelFractionSplit(BaseCrossValidator):
    """Cross-validation that learns from a fraction of the labels, drawn several times.

    The training parts of another splitter lose rows; its test parts stay as they are. Use it for
    probes on an encoder that no longer learns from the rows: on precomputed embeddings, or in a
    pipeline whose encoder is a :class:`~sklearn.frozen.FrozenEstimator`. Where the pipeline
    pretrains on all rows, hide labels with :func:`mask_labels` instead.

    Parameters
    ----------
    fraction : float or None, default=0.01
        Share of the labelled rows of each training part to keep, 0 to 1, before smoothing: the
        first ``int(fraction * n)`` of a random permutation of the n rows. None with `n_groups`.
    n_groups : int or None, default=None
        Number of groups, such as people, that show each class in the rows that are kept of a
        training part. Groups are visited in random order, and a group is kept if it shows a class
        that fewer than `n_groups` kept groups show. `split` then needs `groups`, which metadata
        routing requests.
    smoothing : {"per_class", "published", "none"}, default="per_class"
        Rows that are added so that all classes are represented. "per_class" adds one further row
        of each class, as the paper says. The result is the rows that :func:`mask_labels` keeps of
        the same part with the same seed. "published" repeats the released code, which draws a
        position of each class in the permuted labels and uses it as a row number. So it adds one
        random row of any class per class, and classes may be missing. "none" adds no row.
    n_draws : int, default=5
        Number of times that the rows of each training part are drawn.
    cv : int, splitter, iterable of (train, test) or None, default=5
        The splitter to thin, as in :func:`~sklearn.model_selection.check_cv` with
        ``classifier=True``; ``[(train, test)]`` is a fixed division. A search by successive halving
        compares candidates on one division: give a splitter that shuffles a `random_state`.
    random_state : int, RandomState instance or None, default=0
        Seed of the first draw. Draw j has this seed plus j, the same in every split and for every
        fraction, so that a smaller fraction keeps a subset of the rows of a larger fraction.
    unlabeled_label : int, str or None, default=-1
        The value of ``y`` that marks an unlabelled row. Unlabelled rows are left out of training
        parts and not counted. To leave them out of test parts too, pass a
        :class:`LabeledTestSplit` as `cv`. With None, every row is labelled.

    See Also
    --------
    mask_labels : Function that hides labels, for pipelines that pretrain on every row.

    Notes
    -----
    All draws of one split of the wrapped splitter come before those of its next split.

    "published" shuffles with the seed as it is, to draw the rows of the released code. The other
    kinds of smoothing derive another seed from it, as :func:`mask_labels` does, since
    scikit-learn's shuffled splitters make their folds from the permutation of the seed itself.

    The published scores are means over the run seeds 0 to 4, each with five draws. So seed plus
    draw takes only nine different values.

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
        fraction: float | None = 0.01,
        *,
        n_groups: int | None = None,
        smoothing: Literal["per_class", "published", "none"] = "per_class",
        n_draws: int = 5,
        cv: Any = 5,
        random_state: int | np.random.RandomState | None = 0,
        unlabeled_label: Any = -1,
    ) -> None:
        self.fraction = fraction
        self.n_groups = n_groups
        self.smoothing = smoothing
        self.n_draws = n_draws
        # A generator can be iterated only once, but a splitter must yield its folds repeatedly.
        self.cv = list(cv) if isinstance(cv, Iterator) else cv
        self.random_state = random_state
        self.unlabeled_label = unlabeled_label

    def split(
        self, X: Any, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the indices of each split.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Data to split; only its number of rows matters to most splitters.
        y : array-like of shape (n_samples,)
            Labels; ``unlabeled_label`` marks the unlabelled rows.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, for `n_groups` and for a wrapped splitter that uses groups.

        Yields
        ------
        train : ndarray
            Indices of the drawn rows, in the order of the permutation, then of the added rows; in
            their own order with `n_groups`.
        test : ndarray
            Indices of the test part of the wrapped splitter.

        Raises
        ------
        TypeError
            If a parameter is of the wrong type, or labels mix text with numbers.
        ValueError
            If a parameter is out of its range, ``y`` or one of its labels is missing, ``y`` is not
            one-dimensional, groups are missing, a part names no rows, or no row is left to learn
            from.
        """
        self._check_params()
        labeled = labeled_mask(y, self.unlabeled_label, "LabelFractionSplit")
        labels = as_labels(y)
        check_one_kind(labels[labeled])
        seed = as_seed(self.random_state)
        who = None
        if self.n_groups is not None:
            who = check_labeled_groups(self.n_groups, groups, len(labels))
        y = for_splitters(y, self.unlabeled_label)
        check_pairs(self.cv)
        cv = check_cv(self.cv, y, classifier=True)
        for fold, (train, test) in enumerate(cv.split(X, y, self._passed_on(groups))):
            train, test = as_indices(train, len(labels)), as_indices(test, len(labels))
            train = train[labeled[train]]
            if train.size == 0:
                raise ValueError(
                    f"The training part of split {fold} holds no labelled row: label more rows, or"
                    " pass another cv."
                )
            for draw in range(self.n_draws):
                of_train = None if who is None else who[train]
                rows = self._draw(labels[train], of_train, (seed + draw) % 2**32)
                if rows.size == 0:
                    raise ValueError(
                        f"fraction={self.fraction!r} of the {train.size} labelled rows in the"
                        f" training part of split {fold} leaves no row with"
                        f" smoothing={self.smoothing!r}: use a larger fraction,"
                        " smoothing='per_class', or label more rows."
                    )
                yield train[rows], test

    def _check_params(self) -> None:
        """Raise unless the parameters that need no labels are valid."""
        check_one_of(self.fraction, self.n_groups)
        if self.n_groups is None:
            check_fraction(self.fraction)
        check_option("smoothing", self.smoothing, ("per_class", "published", "none"))
        check_integer("n_draws", self.n_draws, 1)
        check_seed("random_state", self.random_state)

    def _passed_on(self, groups: ArrayLike | None) -> ArrayLike | None:
        """Return the groups for the wrapped splitter, if they are not for this one alone."""
        if self.n_groups is None or _may_use_groups(check_cv(self.cv, classifier=True)):
            return groups
        return None

    def _draw(
        self, labels: NDArray[Any], groups: NDArray[Any] | None, seed: int
    ) -> NDArray[np.intp]:
        """Return the positions of the rows that keep their label."""
        if groups is not None and self.n_groups is not None:
            order = own_permutation(np.unique(groups).size, seed)
            return rows_of_groups(labels, groups, order, self.n_groups)
        n_drawn = int(check_fraction(self.fraction) * labels.size)
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
        """Return the number of splits.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), default=None
            Data to split, for a wrapped splitter that needs it.
        y : array-like of shape (n_samples,), default=None
            Labels, for a wrapped splitter that needs them.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, for a wrapped splitter that needs groups.

        Returns
        -------
        int
            Number of splits of the wrapped splitter times `n_draws`.

        Raises
        ------
        TypeError, ValueError
            If `n_draws` is no positive integer.
        """
        n_draws = check_integer("n_draws", self.n_draws, 1)
        y = for_splitters(y, self.unlabeled_label)
        return check_cv(self.cv, y, classifier=True).get_n_splits(X, y, groups) * n_draws

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata request of the wrapped splitter.

        Returns
        -------
        :class:`~sklearn.utils.metadata_routing.MetadataRequest`
            The request of the wrapped splitter, with the groups that `n_groups` needs.
        """
        request = copy.deepcopy(get_routing_for_object(check_cv(self.cv, classifier=True)))
        asked = request.split.requests.get("groups")
        if self.n_groups is not None and not isinstance(asked, str):  # a text is an alias
            request.split.add_request(param="groups", alias=True)
        return request


def _may_use_groups(cv: Any) -> bool:
    """Return whether a splitter may use groups.

    A splitter of scikit-learn that ignores groups warns if it gets any; its metadata request tells
    whether it uses them. A splitter of another package may use groups without requesting them.
    """
    if isinstance(cv, LabeledTestSplit):
        return _may_use_groups(check_cv(cv.cv, classifier=True))
    makers = (kind for kind in type(cv).__mro__ if "split" in vars(kind))
    is_foreign = not next(makers, type(cv)).__module__.startswith("sklearn.")
    if is_foreign or not hasattr(cv, "get_metadata_routing"):
        return True
    request = get_routing_for_object(cv).split.requests.get("groups")
    return request is not None and request is not False


def _published_draw(labels: NDArray[Any], n_drawn: int, seed: int) -> NDArray[np.intp]:
    """Draw as the released code does, which uses positions in the permutation as row numbers."""
    rng = np.random.RandomState(seed)
    permutation = rng.permutation(labels.size)
    codes = np.unique(labels[permutation], return_inverse=True)[1]
    ends = np.cumsum(np.bincount(codes))[:-1]
    of_class = np.split(np.argsort(codes, kind="stable"), ends)
    places = [rng.permutation(members)[0] for members in of_class]
    rows = np.concatenate([permutation[:n_drawn], np.asarray(places, dtype=np.intp)])
    # A row that is drawn twice counts once.
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)]
