"""Split into training, validation and test groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from .._groups import check_groups
from .._parameters import check_option, check_real, check_seed


class GroupHoldout(BaseCrossValidator):
    """One split into training, validation and test groups, as the paper divides its data.

    The sorted groups are shuffled; the first 70 % are for training, the next 15 % for validation
    and the rest for testing. With one group per recording the split is recording-wise, and scores
    are those of new recordings of known people. With one group per subject it is subject-wise, and
    scores are those of new people. Where a person has several recordings, a recording-wise split
    leaks traits of that person (eight of nine test users of the HAR data also occur in training).

    Parameters
    ----------
    on : {"val", "test"}, default="val"
        Second part of the split. Select models on "val", and look at "test" once.
    train_size : float, default=0.7
        Share of the groups in the training part, in (0, 1).
    val_size : float, default=0.15
        Share of the groups in the validation part, in (0, 1). All remaining groups are the test
        part.
    random_state : int, RandomState instance or None, default=1234
        Seed of the shuffle. The default is the published seed. None and an instance divide anew at
        each call, so the test part of one call may hold training groups of another call.

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

    # With metadata routing enabled, groups are routed by default, as in scikit-learn's splitters.
    __metadata_request__split = {"groups": True}

    def __init__(
        self,
        on: Literal["val", "test"] = "val",
        *,
        train_size: float = 0.7,
        val_size: float = 0.15,
        random_state: int | np.random.RandomState | None = 1234,
    ) -> None:
        self.on = on
        self.train_size = train_size
        self.val_size = val_size
        self.random_state = random_state

    def parts(self, groups: ArrayLike) -> NDArray[np.str_]:
        """Return the part that each row belongs to.

        Parameters
        ----------
        groups : array-like of shape (n_samples,)
            Recording or subject of each row.

        Returns
        -------
        ndarray of str of shape (n_samples,)
            "train", "val" or "test" for each row.

        Raises
        ------
        ValueError
            If a parameter is out of its range, if the shares leave no group for the test part, if
            a group is missing, or if there are too few groups for one of the parts.
        TypeError
            If a parameter is of a wrong kind, or `groups` is no array-like.
        """
        meaning = "it is a share, not a number of rows"
        for name in ("train_size", "val_size"):
            check_real(name, getattr(self, name), 0.0, 1.0, open_minimum=True, meaning=meaning)
        check_seed("random_state", self.random_state)
        if not self.train_size + self.val_size < 1:
            raise ValueError(
                f"train_size={self.train_size!r} and val_size={self.val_size!r} must leave a part "
                "for the test: lower one of them."
            )
        if np.ndim(groups) == 0:  # an iterator, too, which could not be gone through twice
            raise TypeError(
                f"groups must be an array-like of one group per row, got {groups!r}: pass an array"
                " or a list."
            )
        checked = np.asarray(check_groups(groups, _num_samples(groups), unit="row"))
        names, index = np.unique(checked, return_inverse=True)
        order = np.arange(len(names))
        check_random_state(self.random_state).shuffle(order)
        # The floor of the published code, as it is in floating point: 62 of 90 groups, not 63.
        n_train = int(self.train_size * len(names))
        # The published code has 0.85 here; as a sum of floats, 0.7 + 0.1 is less than 0.8.
        n_kept = int(round((self.train_size + self.val_size) * len(names), 9))
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
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the one split.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...) or None
            Data to split, of which only the number of rows matters. None takes that of `groups`.
        y : array-like, default=None
            Not used; present for the interface of scikit-learn's splitters.
        groups : array-like of shape (n_samples,)
            Recording or subject of each row.

        Yields
        ------
        train : ndarray
            Indices of the training rows.
        test : ndarray
            Indices of the rows in the part that `on` names.

        Raises
        ------
        ValueError
            If `groups` or a group is missing, `groups` has another length than `X`, `on` is
            unknown, a parameter is out of its range, or one of the three parts would be empty.
        TypeError
            If a parameter is of a wrong kind.
        """
        check_option("on", self.on, ("val", "test"))
        if groups is None:
            raise ValueError(
                "GroupHoldout needs groups, the recording or the subject of each row: pass groups."
            )
        if X is not None:
            check_groups(groups, _num_samples(X), unit="row")
        parts = self.parts(groups)
        yield np.flatnonzero(parts == "train"), np.flatnonzero(parts == self.on)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X : array-like, default=None
            Not used; present for the interface of scikit-learn's splitters.
        y : array-like, default=None
            Not used; present for the interface of scikit-learn's splitters.
        groups : array-like, default=None
            Not used; present for the interface of scikit-learn's splitters.

        Returns
        -------
        int
            Always 1.
        """
        return 1
