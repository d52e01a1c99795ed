"""Labels of windows, from labels per time step or per recording."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping, Sequence, ValuesView
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._groups import missing_mask, nan_where_masked
from .._inputs._tables import table_values
from .._parameters import check_option, check_share

UNLABELED = -1
"""Label of an unlabelled step or window, as in scikit-learn's semi-supervised estimators."""

_RULES = ("majority", "pure")
_BLOCK_SIZE = 2**20  # labels whose classes are found at a time


def check_label_rule(label: str, min_labeled: float) -> None:
    """Raise unless these are parameters of `window_labels`."""
    check_option("label", label, _RULES)
    check_share("min_labeled", min_labeled)


def unmasked(values: Any) -> Any:
    """Return an array of labels with NaN for its masked entries; anything else as it is."""
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind not in "biuf":
        values = values.astype(object)  # so that NaN fits in
    return nan_where_masked(values)


def _unbox(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Convert an object array of strings or of numbers to a string or number dtype.

    Among numbers, None and other missing entries become -1.
    """
    missing = missing_mask(array)
    values = array.tolist()
    if all(isinstance(value, str) for value in values):
        return np.asarray(values, dtype=str)
    entries = list(zip(values, missing.flat, strict=True))
    if all(absent or isinstance(value, numbers.Real) for value, absent in entries):
        return np.asarray([UNLABELED if absent else value for value, absent in entries])
    if all(isinstance(value, bytes) for value in values):
        raise ValueError(f"{name} holds bytes: pass text, numpy.array({name}).astype(str).")
    raise ValueError(
        f"{name} mixes strings with numbers or missing entries; strings have no unlabelled marker, "
        "so encode the classes as integers and mark unlabelled entries with -1."
    )


def as_label_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return labels as an array of int64 or of strings.

    Parameters
    ----------
    values : array-like of shape (n_labels,)
        Integers, booleans, strings, or floats that are whole numbers or NaN. NaN becomes -1, and
        so do masked entries, None and pandas' NA among numbers.
    name : str
        Name of the values in error messages.

    Returns
    -------
    ndarray of shape (n_labels,)
        The labels, int64 or strings.

    Raises
    ------
    ValueError
        If the values are anything else; the message begins with `name`.

    Examples
    --------
    >>> as_label_array([2.0, float("nan")], "y")
    array([ 2, -1])
    """
    if isinstance(values, list | tuple) and any(isinstance(value, str) for value in values):
        values = np.array(values, dtype=object)  # else numbers and NaN beside text become text
    array = np.asarray(unmasked(table_values(values)))
    if array.dtype.kind in ("O", "S", "T"):  # T is NumPy's StringDType
        array = _unbox(array, name)
    if array.dtype.kind == "U":
        return array
    if array.dtype.kind in "uf" and _beyond_int64(array):
        raise ValueError(
            f"{name} holds numbers beyond 64-bit integers: number the classes, for example by"
            f" numpy.unique({name}, return_inverse=True)[1]."
        )
    if array.dtype.kind in "biu":
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "f":
        missing = np.isnan(array)
        if (missing | (np.isfinite(array) & (array == np.floor(array)))).all():
            return np.where(missing, UNLABELED, array).astype(np.int64)
    raise ValueError(
        f"{name} must hold class labels, integers or strings (-1 or NaN for unlabelled among "
        f"integers), got dtype {array.dtype}; to repeat a continuous target of each recording, "
        "use target[windows.recording]; cut one of each time step as recordings of one channel, "
        "and average each window."
    )


def _beyond_int64(values: NDArray[Any]) -> bool:
    """Return whether a finite number, unsigned or a float, is beyond 64-bit integers."""
    if values.dtype.kind == "u":
        return bool((values > np.uint64(np.iinfo(np.int64).max)).any())
    values = values.astype(np.float64)
    return bool((np.isfinite(values) & ((values < -(2.0**63)) | (values >= 2.0**63))).any())


def _n_axes(values: Any, name: str) -> int:
    """Return the number of axes of `values`; raise if they are ragged."""
    try:
        return np.ndim(values)
    except ValueError as error:
        raise ValueError(f"{name} cannot be read as an array: {error}") from error


def _as_entries(y: Any) -> list[Any]:
    """Return the entries of `y`, one per recording."""
    if isinstance(y, (list, tuple)):
        return list(y)
    array = np.asanyarray(y)
    if array.ndim == 0:
        remedy = "[y] for a single recording"
        if isinstance(y, Mapping):
            remedy = "[y[name] for name in names], where names lists the recordings in their order"
        elif isinstance(y, Iterator | ValuesView):
            remedy = "list(y)"
        raise ValueError(
            f"y must be None, one label per recording or one sequence of labels per recording, "
            f"got {y!r}; pass {remedy}."
        )
    return list(array)


def _are_per_step(entries: list[Any]) -> bool:
    """Return whether labels are per time step; raise unless all entries are scalars or all 1-D."""
    axes = [_n_axes(entry, f"y[{i}]") for i, entry in enumerate(entries)]
    for i, n_axes in enumerate(axes):
        if n_axes == 2 and np.shape(entries[i])[1] == 1:
            names = list(getattr(entries[i], "columns", []))
            column = f"frame[{names[0]!r}]" if names else f"numpy.ravel(y[{i}])"
            raise ValueError(
                f"y[{i}] has 2 axes, as a table of one column has: pass the column, {column}, which"
                " holds one label per step."
            )
        if n_axes > 1:
            raise ValueError(
                f"y[{i}] has {n_axes} axes, but a step has one label: pass numpy.argmax(y[{i}],"
                " axis=1) if each column is 1 in the steps of its class, else one of the columns."
            )
        if n_axes != axes[0]:
            raise ValueError(
                f"y[{i}] has {n_axes} axes and y[0] has {axes[0]}; the entries of y must all be "
                "scalars (one label per recording) or all be 1-D (one label per step)."
            )
    return axes[0] == 1


def parse_labels(y: Any, n_timesteps: Sequence[int]) -> NDArray[Any] | list[NDArray[Any]]:
    """Read labels that are given per recording or per time step.

    Parameters
    ----------
    y : array-like of shape (n_recordings,) or (n_recordings, n_timesteps) or list
        One scalar per recording, or one 1-D sequence per recording with one label per time step.
        The number of axes of the entries decides which of the two forms `y` has; sizes never do.
    n_timesteps : sequence of int
        Length of each recording.

    Returns
    -------
    ndarray of shape (n_recordings,) or list of ndarray of shape (n_timesteps,)
        An array if the labels are per recording, a list if they are per step.

    Raises
    ------
    ValueError
        If the labels fit neither form; the message names the recording.

    Examples
    --------
    >>> parse_labels([3, 4], n_timesteps=[10, 20])
    array([3, 4])
    >>> parse_labels([[0, 0, 1]], n_timesteps=[3])
    [array([0, 0, 1])]
    """
    entries = _as_entries(y)
    if len(entries) != len(n_timesteps):
        raise ValueError(
            f"y has {len(entries)} entries for {len(n_timesteps)} recordings; give one label "
            "or one sequence of labels per recording (a single recording: [labels])."
        )
    if not _are_per_step(entries):
        return as_label_array(_column(y, entries), "y")
    labels = [as_label_array(entry, f"y[{i}]") for i, entry in enumerate(entries)]
    first = next((i for i, steps in enumerate(labels) if len(steps)), 0)
    for i, (steps, expected) in enumerate(zip(labels, n_timesteps, strict=True)):
        if len(steps) != expected:
            remedy = "one label per step of the recording as passed, before any down-sampling"
            if getattr(y, "shape", ())[1:] == (1,):  # a table of one column
                names = list(getattr(y, "columns", []))
                column = f"y[{names[0]!r}]" if names else "numpy.ravel(y)"
                remedy = f"{column}, if it has one label per recording"
            raise ValueError(
                f"y[{i}] has {len(steps)} labels but recordings[{i}] has {expected} steps; give "
                f"{remedy}."
            )
        # The labels of a recording without a step are of no kind.
        if len(steps) and steps.dtype.kind != labels[first].dtype.kind:
            raise ValueError(
                f"y[{i}] and y[{first}] mix strings with integers; encode the classes in one way."
            )
    return labels


def _column(y: Any, entries: list[Any]) -> Any:
    """Return `y`, as an object array if numpy would turn mixed entries into strings."""
    if isinstance(y, (list, tuple)) and any(isinstance(entry, str) for entry in entries):
        return np.asarray(entries, dtype=object)
    return y


def _classes(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted different labels, found block by block: numpy copies what it sorts."""
    starts = range(0, max(len(labels), 1), _BLOCK_SIZE)
    return np.unique(np.concatenate([np.unique(labels[s : s + _BLOCK_SIZE]) for s in starts]))


def window_labels(
    labels: NDArray[Any],
    start: NDArray[np.int64],
    length: int,
    label: Literal["majority", "pure"],
    min_labeled: float,
) -> NDArray[Any]:
    """Label each window of one recording by the labels of its time steps.

    A window gets a label if at least the fraction `min_labeled` of its steps is labelled. With
    ``label="majority"`` the label is the most frequent class of the labelled steps; the lowest
    class wins a tie. With ``label="pure"`` all labelled steps must have the same class. All other
    windows get -1.

    Parameters
    ----------
    labels : ndarray of shape (n_timesteps,)
        Label of each time step: integers (-1 means unlabelled) or strings.
    start : ndarray of int of shape (n_windows,)
        First step of each window.
    length : int
        Number of time steps in a window.
    label : {"majority", "pure"}
        Rule that labels a window.
    min_labeled : float
        Smallest fraction of labelled steps in a labelled window, in (0, 1].

    Returns
    -------
    ndarray of shape (n_windows,)
        Labels of the windows, with the dtype of `labels`.

    Raises
    ------
    ValueError
        If the labels are strings and a window stays unlabelled.

    Examples
    --------
    >>> import numpy as np
    >>> steps = np.array([0, 0, 1, -1, -1, -1])
    >>> window_labels(steps, np.array([0, 3]), 3, "majority", 0.5)
    array([ 0, -1])
    """
    is_text = labels.dtype.kind == "U"
    classes = _classes(labels)
    if not is_text:
        classes = classes[classes != UNLABELED]
    n_labeled = np.zeros(len(start), dtype=np.int64)
    most = np.zeros(len(start), dtype=np.int64)
    best = np.full(len(start), -1)
    # cumulative[t] counts the steps before t with the current class. It is summed in place, since
    # a copy of a long recording's labels fills gigabytes.
    dtype = np.int32 if len(labels) <= np.iinfo(np.int32).max else np.int64
    cumulative: NDArray[np.signedinteger[Any]] = np.zeros(len(labels) + 1, dtype=dtype)
    for position, value in enumerate(classes):
        cumulative[1:] = labels == value
        np.cumsum(cumulative, out=cumulative)
        count = cumulative[start + length] - cumulative[start]
        n_labeled += count
        better = count > most  # strict, so that the lower class wins a tie
        best[better] = position
        np.maximum(most, count, out=most)
    # Divide instead of multiplying: 7 / 25 equals the float 0.28, but 0.28 * 25 is above 7.
    accepted = n_labeled / length >= min_labeled
    if label == "pure":
        accepted &= most == n_labeled
    if is_text:
        if not accepted.all():
            raise ValueError(
                "label='pure' leaves windows unlabelled, and strings have no unlabelled marker; "
                "encode y as integers (then these windows get -1) or use label='majority'."
            )
        return classes[best]
    return np.where(accepted, np.append(classes, UNLABELED)[best], UNLABELED)
