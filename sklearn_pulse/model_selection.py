"""Few labels and honest folds: label masking and splitters that scikit-learn does not have."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from ._unlabeled import labeled_mask

__all__ = ["GroupHoldout", "LabeledTestSplit", "mask_labels"]


def mask_labels(
    y: ArrayLike,
    fraction: float,
    random_state: int | np.random.RandomState | None = None,
    *,
    unlabeled_label: int | str = -1,
) -> np.ndarray:
    """Hide all but a fraction of the labels, keeping some of each class.

    Of the n labelled rows the first ``int(fraction * n)`` of a random permutation keep their
    label, and so does one further row of each class: the next one of that class in the
    permutation, if there is one. No class is lost, and with the same integer seed a smaller
    fraction keeps a subset of what a larger one keeps.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Integer labels (or text labels, with a text ``unlabeled_label``). Rows that are
        unlabelled already stay so and count for nothing.
    fraction : float
        Share of the labels to keep, 0 to 1, before the further row of each class. With 0 one
        row of each class is kept, with 1 all are.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutation.
    unlabeled_label : int or str, default=-1
        The value that marks an unlabelled row.

    Returns
    -------
    y_masked : ndarray of shape (n_samples,)
        Copy of ``y`` with hidden labels replaced by ``unlabeled_label``. The type is that of
        ``y`` if it can hold this value, else int64 or a longer text type.

    Raises
    ------
    TypeError
        If the labels or a parameter are of the wrong type.
    ValueError
        If ``fraction`` is outside 0 to 1, or ``y`` is not one-dimensional or holds no label.

    Notes
    -----
    Source: paper, Section 5.2 ("1 % and 5 % of the ground truth labels", smoothed so that all
    classes are represented).

    Examples
    --------
    >>> from sklearn_pulse.model_selection import mask_labels
    >>> mask_labels([0, 0, 0, 0, 0, 0, 1, 1], 0.25, random_state=0)
    array([-1,  0, -1, -1, -1,  0,  1,  1])
    """
    _check_fraction(fraction)
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(
            f"y must hold one label per row, shape (n_samples,); got shape {labels.shape}."
        )
    masked = np.array(labels, dtype=_masked_dtype(labels, unlabeled_label))
    candidates = np.flatnonzero(masked != unlabeled_label)
    if candidates.size == 0:
        raise ValueError(
            f"y holds no label: all {labels.size} entries equal "
            f"unlabeled_label={unlabeled_label!r}; pass the labels before they are masked."
        )
    shuffled = candidates[_own_permutation(candidates.size, random_state)]
    n_drawn = int(fraction * candidates.size)
    rest = shuffled[n_drawn:]
    # np.unique gives the first place of each class in the rest of the permutation.
    _, first_of_class = np.unique(labels[rest], return_index=True)
    hidden = np.delete(rest, first_of_class)
    masked[hidden] = unlabeled_label
    return masked


def _own_permutation(n: int, random_state) -> np.ndarray:
    """Permutation of n rows that differs from the one scikit-learn's splitters draw.

    ``KFold(shuffle=True, random_state=0)`` and ``ShuffleSplit`` take their test rows from the
    front of ``RandomState(0).permutation(n)``. Drawn alike with the same seed, the labelled rows
    would all fall into one test fold and leave the training part without any.
    """
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.RandomState(seed).permutation(n)


def _check_fraction(fraction, name: str = "fraction") -> None:
    """Refuse what is no share between 0 and 1."""
    if isinstance(fraction, (bool, np.bool_)) or not isinstance(fraction, Real):
        raise TypeError(f"{name} must be a number between 0 and 1, got {fraction!r}.")
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"{name} must lie between 0 and 1, got {fraction!r}; it is a share, "
            "not a number of rows."
        )


def _masked_dtype(labels: np.ndarray, unlabeled_label) -> np.dtype:
    """Type that holds the labels and the marker."""
    if isinstance(unlabeled_label, Integral) and not isinstance(unlabeled_label, bool):
        if labels.dtype.kind not in "iu":
            raise TypeError(
                f"y must hold integers beside unlabeled_label={unlabeled_label!r}, got "
                f"{labels.dtype} labels; encode them with sklearn.preprocessing.LabelEncoder, "
                "or, if they are text, pass a text unlabeled_label."
            )
        held = np.iinfo(labels.dtype)
        fits = held.min <= unlabeled_label <= held.max
        return labels.dtype if fits else np.dtype(np.int64)
    if isinstance(unlabeled_label, str):
        if labels.dtype.kind == "U":
            return np.result_type(labels.dtype, np.asarray(unlabeled_label).dtype)
        if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels):
            return labels.dtype
        raise TypeError(
            f"y must hold text beside unlabeled_label={unlabeled_label!r}, got {labels.dtype} "
            "labels; pass an integer unlabeled_label."
        )
    raise TypeError(f"unlabeled_label must be an integer or a text, got {unlabeled_label!r}.")


class LabeledTestSplit(BaseCrossValidator):
    """Cross-validation whose test folds hold labelled rows only.

    Wraps another splitter. Unlabelled rows that it puts into a training part stay there, where
    a pretrained step learns from them. Those that fall into a test fold are left out of that
    split altogether: a scorer could not use them, and moved to the training part they would
    carry their group (a subject, a recording) from the test side over to the training side.

    Parameters
    ----------
    cv : int, splitter, iterable of (train, test) or None, default=5
        The splitter to wrap, as in :func:`~sklearn.model_selection.check_cv` with
        ``classifier=True``: an integer is a stratified k-fold, for which the unlabelled rows
        are one more class, so that labelled and unlabelled rows spread evenly.
    unlabeled_label : int, str or None, default=-1
        The value of ``y`` that marks an unlabelled row. With None every row is labelled.

    Notes
    -----
    With metadata routing enabled, ``groups`` are requested if the wrapped splitter requests
    them; set another request there.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold
    >>> from sklearn_pulse.model_selection import LabeledTestSplit
    >>> X, y = np.zeros((6, 1)), np.array([0, -1, 1, 0, -1, 1])
    >>> for train, test in LabeledTestSplit(KFold(2)).split(X, y):
    ...     print(train, test)
    [3 4 5] [0 2]
    [0 1 2] [3 5]
    """

    def __init__(self, cv: Any = 5, unlabeled_label: Any = -1) -> None:
        # A generator can be walked through once only, a splitter has to give its folds again.
        self.cv = list(cv) if isinstance(cv, Iterator) else cv
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
            Indices of the training part, as the wrapped splitter gives them.
        test : ndarray
            Indices of the labelled rows of the test fold.

        Raises
        ------
        ValueError
            If ``y`` is missing or not one-dimensional, or a test fold holds no labelled row.
        """
        labeled = labeled_mask(y, self.unlabeled_label, "LabeledTestSplit")
        cv = check_cv(self.cv, y, classifier=True)
        for fold, (train, test) in enumerate(cv.split(X, y, groups)):
            test = np.asarray(test)
            labeled_test = test[labeled[test]]
            if labeled_test.size == 0:
                raise ValueError(
                    f"Fold {fold} of cv={self.cv!r} holds no labelled row in its test part: all "
                    f"{test.size} equal unlabeled_label={self.unlabeled_label!r}. Use fewer "
                    "folds, a stratified cv, or label more rows (or groups)."
                )
            yield train, labeled_test

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
            That of the wrapped splitter.
        """
        return check_cv(self.cv, y, classifier=True).get_n_splits(X, y, groups)

    def get_metadata_routing(self) -> MetadataRequest:
        """Request what the wrapped splitter requests.

        Returns
        -------
        routing : :class:`~sklearn.utils.metadata_routing.MetadataRequest`
            The request of the wrapped splitter.
        """
        return get_routing_for_object(check_cv(self.cv, classifier=True))


class GroupHoldout(BaseCrossValidator):
    """One split into training, validation and test groups, as the paper divides its data.

    The sorted groups are shuffled; the first 70 % are for training, the next 15 % for validation
    and the rest for testing. With one group a recording the split is recording-wise: it measures
    new recordings of people that are known. With one a subject it is subject-wise: it measures
    new people. A recording-wise split leaks what is particular to a person wherever someone has
    several recordings (eight of nine test users of the HAR data also occur in training).

    Parameters
    ----------
    on : {"val", "test"}, default="val"
        What the second part of the split is. Select on "val", and look at "test" once.
    train_size, val_size : float, default=0.7, 0.15
        Shares of the groups; what remains is the test part.
    random_state : int, RandomState instance or None, default=1234
        Seed of the shuffle; the default is the published one.

    Notes
    -----
    For several folds use :class:`~sklearn.model_selection.GroupKFold` with the same groups.

    References
    ----------
    Paper, Appendix D.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.model_selection import GroupHoldout
    >>> groups = np.repeat(np.arange(10), 2)
    >>> for train, val in GroupHoldout().split(np.zeros((20, 1)), groups=groups):
    ...     print(np.unique(groups[train]), np.unique(groups[val]))
    [0 1 2 4 7 8 9] [5]
    >>> GroupHoldout().parts(groups)[:4].tolist()
    ['train', 'train', 'train', 'train']
    """

    # With metadata routing enabled groups arrive unasked, as in scikit-learn's group splitters.
    __metadata_request__split = {"groups": True}

    def __init__(
        self,
        on: str = "val",
        *,
        train_size: float = 0.7,
        val_size: float = 0.15,
        random_state: int | np.random.RandomState | None = 1234,
    ) -> None:
        self.on = on
        self.train_size = train_size
        self.val_size = val_size
        self.random_state = random_state

    def parts(self, groups: ArrayLike) -> np.ndarray:
        """Say which part each row belongs to.

        Parameters
        ----------
        groups : array-like of shape (n_samples,)
            Recording or subject of each row.

        Returns
        -------
        parts : ndarray of shape (n_samples,)
            "train", "val" or "test".

        Raises
        ------
        ValueError
            If a share is not between 0 and 1, if both leave nothing for the test, or if there
            are too few groups for a part.
        """
        for name in ("train_size", "val_size"):
            _check_fraction(getattr(self, name), name)
        if not 0 < self.train_size <= self.train_size + self.val_size < 1:
            raise ValueError(
                f"train_size={self.train_size!r} and val_size={self.val_size!r} must be positive "
                "and leave a part for the test."
            )
        names, index = np.unique(np.asarray(groups), return_inverse=True)
        order = np.arange(len(names))
        check_random_state(self.random_state).shuffle(order)
        n_train = int(self.train_size * len(names))
        n_kept = int((self.train_size + self.val_size) * len(names))
        part_of = np.full(len(names), "train", dtype="<U5")
        part_of[order[n_train:]] = "val"
        part_of[order[n_kept:]] = "test"
        if len(np.unique(part_of)) < 3:
            raise ValueError(
                f"groups holds {len(names)} groups, too few for a training, a validation and a "
                "test part: pass more groups, or other shares."
            )
        return part_of[index]

    def split(
        self, X: Any, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give the one split.

        Parameters
        ----------
        X, y : array-like
            Not used.
        groups : array-like of shape (n_samples,)
            Recording or subject of each row.

        Yields
        ------
        train, test : ndarray
            Indices of the training rows, and of those of the part that `on` names.

        Raises
        ------
        ValueError
            If `groups` is missing, or as for :meth:`parts`.
        """
        if self.on not in ("val", "test"):
            raise ValueError(f"on must be 'val' or 'test', got {self.on!r}.")
        if groups is None:
            raise ValueError(
                "GroupHoldout needs groups, the recording or the subject of each row: pass groups."
            )
        parts = self.parts(groups)
        yield np.flatnonzero(parts == "train"), np.flatnonzero(parts == self.on)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Give the number of splits.

        Parameters
        ----------
        X, y, groups : array-like, default=None
            Not used.

        Returns
        -------
        n_splits : int
            Always 1.
        """
        return 1
