"""Data contract: layouts, bags and missing values of the input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._groups import check_groups
from .._signals import Signals, agreed, check_signals, compare, note, noted
from .._warnings import warn_user
from ..windows import LazyWindows
from ..windows._numbers import as_real_array
from ..windows._recordings import has_own_layout
from ..windows._shape import Shape, check_axes, note_or_compare_shape
from ..windows._tables import frame_channels
from ..windows._times import compare_rate

_BLOCK_ELEMENTS = 2**22  # values converted at a time, 16 MiB of float32
_CAST_WINDOWS, _CAST_STEPS = 64, 1024  # looked at for what a conversion to float32 loses,
_CAST_ELEMENTS = 2**20  # or fewer windows of many channels
_MOSTLY_LOST = 0.05  # rounding to float32, as a share of the variation of a channel
_NO_VARIATION = 1e-11  # a smaller share of the values is rounding of earlier steps in float64


class Block(NamedTuple):
    """Windows that are ready for a network."""

    x: NDArray[np.float32]  # (n, n_timesteps, n_channels), contiguous, zero where unobserved
    observed: NDArray[np.bool_] | None  # (n, n_timesteps), None where every step was observed


class CheckedWindows:
    """View of the checked input: windows are gathered block by block, never copied whole.

    Parameters
    ----------
    data : ndarray or LazyWindows
        Input of 2, 3 or 4 dimensions.
    input_layout : {"ntc", "nct"}, default="ntc"
        Order of the last two axes of 3-D and 4-D data.
    groups : array-like of shape (n_samples,) or None, default=None
        Recording or subject of each sample.
    labels : array-like of shape (n_samples,) or None, default=None
        Class of each sample, for a method that learns from classes.

    Attributes
    ----------
    n_samples : int
        Number of rows of the input.
    n_windows : int
        Number of windows in each row: 1 unless the input is a bag.
    n_timesteps : int
        Number of time steps of a window.
    n_channels : int
        Number of channels of a window.
    is_bag : bool
        Whether the input has four dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.base import CheckedWindows
    >>> windows = CheckedWindows(np.zeros((6, 2, 8)), input_layout="nct")
    >>> windows.n_timesteps, windows.n_channels
    (8, 2)
    """

    def __init__(
        self,
        data: Any,
        input_layout: str = "ntc",
        groups: ArrayLike | None = None,
        labels: ArrayLike | None = None,
    ) -> None:
        self.data = data
        self.lazy = data if isinstance(data, LazyWindows) else None
        self.input_layout = input_layout
        self.channels_first = input_layout == "nct" and len(data.shape) > 2
        shape = tuple(data.shape)
        if len(shape) == 2:
            shape = (*shape, 1)
        if self.channels_first:
            shape = (*shape[:-2], shape[-1], shape[-2])
        self.n_samples = shape[0]
        self.is_bag = len(shape) == 4
        self.n_windows = shape[1] if self.is_bag else 1
        self.n_timesteps, self.n_channels = shape[-2:]
        self.groups = check_groups(groups, self.n_samples)
        self.labels = None if labels is None else np.asarray(labels)

    def __len__(self) -> int:
        return self.n_samples * self.n_windows

    @property
    def names_recordings(self) -> bool:
        """Whether the input itself tells which recording a window belongs to."""
        return self.is_bag or (self.lazy is not None and self.lazy.recording is not None)

    @property
    def recording(self) -> NDArray[np.intp]:
        """Recording of each window, as a number.

        Lazy windows know their recordings, and a bag is a recording. Elsewhere `groups` names
        the recordings; without `groups` all windows count as one recording.
        """
        if self.lazy is not None and self.lazy.recording is not None:
            return self.lazy.recording
        if self.is_bag:
            return np.arange(len(self)) // self.n_windows
        if self.groups is None:
            return np.zeros(len(self), dtype=np.intp)
        return np.unique(self.groups, return_inverse=True)[1]

    @property
    def start(self) -> NDArray[np.intp]:
        """Start of each window in its recording; unknown ones count up within each recording."""
        if self.lazy is not None and self.lazy.start is not None:
            return self.lazy.start
        number = np.empty(len(self), dtype=np.intp)
        number[np.argsort(self.recording, kind="stable")] = np.arange(len(self))
        return number

    @property
    def overlaps(self) -> bool:
        """Whether two windows are known to share a time step."""
        return self.lazy is not None and self.lazy.overlaps

    def apart(self, index: NDArray[np.intp]) -> CheckedWindows | None:
        """Cut the steps that some windows cover into windows that share no step.

        Parameters
        ----------
        index : array of int
            Numbers of the windows.

        Returns
        -------
        CheckedWindows or None
            None means that the places of the windows in their recordings are unknown.
        """
        pieces = None if self.lazy is None else self.lazy.apart(index)
        return None if pieces is None else CheckedWindows(pieces, self.input_layout)

    def take(self, index: NDArray[np.intp]) -> Block:
        """Gather windows by their number, ``sample * n_windows + window`` for a bag.

        A window with no observed step comes back with an all-False row in `observed`.

        Parameters
        ----------
        index : array of int of shape (n,)
            Numbers of the windows.

        Returns
        -------
        Block
            The windows, and which of their time steps were observed.

        Raises
        ------
        ValueError
            If a value is infinite, or overflows float32.
        """
        with np.errstate(over="ignore"):
            x = np.ascontiguousarray(self._gather(index), dtype=np.float32)
        if min(x.strides) < 0:  # an axis of length 1, which NumPy counts as contiguous
            x = x.copy()
        finite = np.isfinite(x)
        if finite.all():
            return Block(x if x.flags.writeable else x.copy(), None)  # torch wants it writable
        if np.isinf(x).any():
            sample = int(index[np.isinf(x).any((1, 2)).argmax()]) // self.n_windows
            raise ValueError(
                "Input X contains infinity or a value too large for float32 (first in sample"
                f" {sample}): replace it, by NaN if the value is missing (missing time steps are"
                " masked)."
            )
        observed = np.asarray(finite.all(-1))
        return Block(np.where(observed[..., None], x, np.float32(0)), observed)

    def blocks(self) -> Iterator[tuple[NDArray[np.intp], Block]]:
        """Yield all windows in order, a few at a time."""
        size = max(1, _BLOCK_ELEMENTS // (self.n_timesteps * self.n_channels))
        for start in range(0, len(self), size):
            index = np.arange(start, min(start + size, len(self)))
            yield index, self.take(index)

    def scan(self) -> NDArray[np.bool_]:
        """Check every value once and find the windows with at least one observed step.

        Returns
        -------
        array of bool, of shape (n_samples * n_windows,)
            The usable windows.

        Raises
        ------
        ValueError
            If a value is infinite, or a sample has no observed step.
        """
        usable = self.observed_windows()
        self.check_usable(usable)
        return usable

    def observed_windows(self) -> NDArray[np.bool_]:
        """Find the windows with at least one observed step.

        Returns
        -------
        array of bool, of shape (n_samples * n_windows,)
            True where a window has an observed step.
        """
        # Lazy windows read each step of a recording once, however many windows hold the step.
        known = None if self.channels_first or self.lazy is None else self.lazy.observed_windows()
        if known is not None:
            return known
        observed = np.ones(len(self), dtype=bool)
        for index, block in self.blocks():
            if block.observed is not None:
                observed[index] = block.observed.any(1)
        return observed

    def numbers(self, samples: NDArray[np.intp], usable: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the numbers of the usable windows of some samples.

        Parameters
        ----------
        samples : array of int of shape (n,)
            Numbers of the samples.
        usable : array of bool of shape (n_samples * n_windows,)
            Windows with an observed step, as :meth:`scan` finds them.

        Returns
        -------
        array of int
            Numbers of the windows, sample by sample.
        """
        numbers = (samples[:, None] * self.n_windows + np.arange(self.n_windows)).ravel()
        return numbers[usable[numbers]]

    def like_input(self, x: NDArray[Any]) -> NDArray[Any]:
        """Arrange values in the layout of the input.

        Parameters
        ----------
        x : array of shape (n_samples, n_timesteps, n_channels)
            Values in the native layout.

        Returns
        -------
        array
            The values with the axes of the input.
        """
        if len(self.data.shape) == 2:
            return x[:, :, 0]
        return x.swapaxes(1, 2) if self.channels_first else x

    def check_usable(self, usable: NDArray[np.bool_]) -> None:
        """Raise if a sample has no usable window.

        Parameters
        ----------
        usable : array of bool of shape (n_samples * n_windows,)
            Windows with an observed step.

        Raises
        ------
        ValueError
            If no window of a sample is usable.
        """
        empty = ~usable.reshape(self.n_samples, self.n_windows).any(1)
        if empty.any():
            raise ValueError(
                f"Input X has no finite time step in sample {empty.argmax()} ({int(empty.sum())}"
                " such samples): a time step counts only if all its channels are finite. Drop these"
                " samples."
            )

    def check_computed(
        self, finite: NDArray[np.bool_], usable: NDArray[np.bool_], remedy: str = ""
    ) -> None:
        """Raise if what was computed from a usable window is not finite.

        Parameters
        ----------
        finite : array of bool of shape (n_samples * n_windows,)
            Windows whose results are finite.
        usable : array of bool of shape (n_samples * n_windows,)
            Windows with an observed step; the others do not count.
        remedy : str, default=""
            A further remedy, for the message.

        Raises
        ------
        ValueError
            If the result for a sample is not finite.
        """
        wrong = np.flatnonzero(usable & ~finite)
        if not len(wrong):
            return
        samples = np.unique(wrong // self.n_windows)
        largest = np.abs(self.take(wrong[:1]).x).max()
        more = ", ..." if len(samples) > 5 else ""
        raise ValueError(
            f"The values of X lead to results that are not finite in {len(samples)} sample(s)"
            f" ({', '.join(map(str, samples[:5]))}{more}); the first reaches {largest:.3g} in"
            " magnitude. Scale X, or replace outliers by NaN, which masks their time"
            f" steps.{remedy}"
        )

    def _gather(self, index: NDArray[np.intp]) -> Any:
        if self.lazy is not None:
            x: Any = self.lazy.take(index)
        elif self.is_bag:
            x = self.data[np.divmod(index, self.n_windows)]
        elif len(index) and np.array_equal(index, np.arange(index[0], index[0] + len(index))):
            x = self.data[index[0] : index[0] + len(index)]  # a slice copies nothing
        else:
            x = self.data[index]
        if x.ndim == 2:
            x = x[:, :, None]
        return x.swapaxes(-1, -2) if self.channels_first else x


def check_windows(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    groups: ArrayLike | None = None,
    stated: tuple[Any, Any] = (None, None),
    layout: str | None = None,
) -> CheckedWindows:
    """Check the input of `fit` (`reset=True`) or `transform` against the data contract.

    Parameters
    ----------
    estimator : estimator
        Has the parameters `input_layout`, `sampling_rate` and `channel_names`; its fitted
        attributes ``n_features_in_``, ``n_channels_in_``, ``n_timesteps_in_``,
        ``sampling_rate_in_`` and ``channel_names_in_`` are set or compared with.
    X : array-like of shape (n_samples, n_timesteps), (n_samples, n_timesteps, n_channels) or \
            (n_samples, n_windows, n_timesteps, n_channels)
        The input.
    reset : bool
        True in `fit`.
    groups : array-like of shape (n_samples,) or None, default=None
        Recording or subject of each sample.
    stated : tuple of float or None, and sequence of str or None, default=(None, None)
        Sampling rate and channel names of X, as the caller of `transform` states them. In `fit`
        the parameters state them.
    layout : {"ntc", "nct"} or None, default=None
        Order of the last two axes; None means the parameter `input_layout`.

    Returns
    -------
    CheckedWindows
        A view of the input in the native layout.

    Raises
    ------
    TypeError
        For frames that hold series, sparse matrices, strings and objects.
    ValueError
        For complex numbers, every shape that does not fit, and another sampling rate or other
        channel names than those of `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> from sklearn_pulse.base import check_windows
    >>> windows = check_windows(PulseTransformer(), np.zeros((6, 8, 2)), reset=True)
    >>> len(windows)
    6
    """
    name = type(estimator).__name__
    data: Any = X if isinstance(X, LazyWindows) else as_real_array(X)
    check_axes(data.shape, name)
    layout = layout or estimator.input_layout
    if layout == "nct" and isinstance(X, list | tuple) and all(map(has_own_layout, X)):
        data = data.swapaxes(1, 2)  # a frame has a column per channel, whatever the layout
    windows = CheckedWindows(data, layout, groups)
    shape = Shape(windows.n_timesteps, windows.n_channels, is_table=len(data.shape) == 2)
    table = X if hasattr(X, "columns") else data
    note_or_compare_shape(estimator, shape, table, input_layout=layout, reset=reset)
    if reset:
        estimator.n_timesteps_in_ = windows.n_timesteps
        _warn_of_lost_variation(windows)
        note(estimator, _signals_of(windows, X, estimator.sampling_rate, estimator.channel_names))
    else:
        fitted = noted(estimator)
        compare(_signals_of(windows, X, *stated), fitted, name)
        compare_rate(fitted.sampling_rate, X, "sampling_rate", "X")
    return windows


def _warn_of_lost_variation(windows: CheckedWindows) -> None:
    """Warn of channels whose variation within windows float32, which is computed in, does not hold.

    At most 64 windows, evenly spaced, and about 1,024 steps of each are looked at. Lazy windows
    are float32 from the start.
    """
    dtype = windows.data.dtype
    if windows.lazy is not None or not len(windows) or dtype.itemsize < 4 or dtype == np.float32:
        return
    step = -(-windows.n_timesteps // _CAST_STEPS)
    size = -(-windows.n_timesteps // step) * windows.n_channels
    n_windows = min(len(windows), _CAST_WINDOWS, max(1, _CAST_ELEMENTS // size))
    number = np.linspace(0, len(windows) - 1, n_windows).astype(np.intp)
    # One window at a time, since memory maps may be long.
    sample = np.stack([windows._gather(number[i : i + 1])[0, ::step] for i in range(n_windows)])
    x = sample.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        error = x - x.astype(np.float32)
    # Missing steps count as zeros; infinities are refused later.
    seen = np.isfinite(error).all(-1, keepdims=True)
    count = np.maximum(seen.sum(1, keepdims=True), 1)
    x, error = np.where(seen, x, 0.0), np.where(seen, error, 0.0)
    largest = np.abs(x).max((0, 1))
    unit = np.where(largest > 0, largest, 1.0)  # squares of tiny values would vanish
    x, error = x / unit, error / unit
    centred = np.where(seen, x - x.sum(1, keepdims=True) / count, 0.0)
    spread, lost = (np.sqrt(np.sum(part**2, (0, 1)) / count.sum()) for part in (centred, error))
    wrong = np.flatnonzero((spread > _NO_VARIATION) & (lost > _MOSTLY_LOST * spread))
    if len(wrong):
        c = wrong[0]
        remedy = (
            "multiply X in float64 first"
            if largest[c] < 1
            else "subtract the mean of each channel in float64 first, for example by"
            " sklearn_pulse.preprocessing.WindowScaler as a step before this one"
        )
        warn_user(
            f"float32 does not hold the variation of X in {len(wrong)} of {windows.n_channels}"
            f" channels: channel {c} reaches {largest[c]:.3g} and varies by"
            f" {spread[c] * unit[c]:.3g} within windows, which rounding changes by"
            f" {lost[c] * unit[c]:.3g}. Some or all of the signal is lost: {remedy}."
        )


def _signals_of(windows: CheckedWindows, X: Any, sampling_rate: Any, channel_names: Any) -> Signals:
    """Return what is stated or carried of the signals; raise where both contradict each other.

    Lazy windows carry a rate and names, and frames in a list, `X`, carry names.
    """
    n_channels, lazy = windows.n_channels, windows.lazy
    stated = check_signals(sampling_rate, channel_names, n_channels)
    if lazy is None:
        compare_rate(stated.sampling_rate, X, "sampling_rate", "X")
        return agreed(stated, Signals(None, frame_channels(X)))
    carried = check_signals(lazy.sampling_rate, lazy.channel_names, n_channels, owner="X.")
    compare_rate(stated.sampling_rate, lazy, "sampling_rate", "X")
    return agreed(stated, carried)
