"""Cross-validation whose test folds hold labelled rows only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from .._data._labels import labeled_mask
from ._draw import as_indices, check_pairs, for_splitters, short


class LabeledTestSplit(BaseCrossValidator):
    """Cross-validation whose test folds hold labelled rows only.

    It wraps another splitter. Unlabelled rows in a training part stay there, so that a pretrained
    step learns from them. Unlabelled rows in a test fold are left out of that split altogether: a
    scorer could not use them, and in the training part they would leak their group (a subject, a
    recording) from the test side to the training side.

    Parameters
    ----------
    cv : int, splitter, iterable of (train, test) or None, default=5
        The splitter to wrap, as in :func:`~sklearn.model_selection.check_cv` with
        ``classifier=True``. An integer is the number of folds of a stratified k-fold, which
        treats the unlabelled rows as one more class and so spreads them evenly.
    unlabeled_label : int, str or None, default=-1
        The value of ``y`` that marks an unlabelled row. With None, every row is labelled.

    Notes
    -----
    With metadata routing enabled, ``groups`` are requested if the wrapped splitter requests
    them. To change the request, change that of the wrapped splitter.

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
        # A generator can be iterated only once, but a splitter must yield its folds repeatedly.
        self.cv = list(cv) if isinstance(cv, Iterator) else cv
        self.unlabeled_label = unlabeled_label

    @property
    def shuffle(self) -> bool:
        """Whether the wrapped splitter shuffles, which successive halving asks for."""
        return bool(getattr(check_cv(self.cv, classifier=True), "shuffle", True))

    @property
    def random_state(self) -> Any:
        """The seed of the wrapped splitter; 0 if it has none."""
        return getattr(check_cv(self.cv, classifier=True), "random_state", 0)

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
            Group of each row, for a wrapped splitter that uses groups.

        Yields
        ------
        train : ndarray
            Indices of the training part of the wrapped splitter.
        test : ndarray
            Indices of the labelled rows of the test fold.

        Raises
        ------
        TypeError
            If ``unlabeled_label`` is no label.
        ValueError
            If ``y`` or one of its labels is missing, ``y`` is not one-dimensional, a part names no
            rows, or a test fold holds no labelled row.
        """
        labeled = labeled_mask(y, self.unlabeled_label, "LabeledTestSplit")
        y = for_splitters(y, self.unlabeled_label)
        check_pairs(self.cv)
        cv = check_cv(self.cv, y, classifier=True)
        for fold, (train, test) in enumerate(cv.split(X, y, groups)):
            train, test = as_indices(train, len(labeled)), as_indices(test, len(labeled))
            labeled_test = test[labeled[test]]
            if labeled_test.size == 0:
                raise ValueError(
                    f"Fold {fold} of cv={short(self.cv)} holds no labelled row in its test part: "
                    f"all {test.size} equal unlabeled_label={self.unlabeled_label!r}. Use fewer "
                    "folds, a stratified cv, or label more rows (or groups)."
                )
            yield train, labeled_test

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
            Number of splits of the wrapped splitter.
        """
        y = for_splitters(y, self.unlabeled_label)
        return check_cv(self.cv, y, classifier=True).get_n_splits(X, y, groups)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata request of the wrapped splitter.

        Returns
        -------
        :class:`~sklearn.utils.metadata_routing.MetadataRequest`
            The request of the wrapped splitter.
        """
        return get_routing_for_object(check_cv(self.cv, classifier=True))
