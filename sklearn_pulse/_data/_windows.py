"""Checked windows: one view of every layout, gathered block by block as float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._groups import check_groups
from .._inputs._lazy import read_places, read_windows
from ..windows import LazyWindows

_BLOCK_ELEMENTS = 2**22  # values converted at a time, 16 MiB of float32


def evenly(n: int, most: int) -> NDArray[np.intp]:
    """Return at most `most` of the numbers below n, evenly spaced, the first and last among them.

    Examples
    --------
    >>> evenly(9, 3).tolist(), evenly(2, 3).tolist()
    ([0, 4, 8], [0, 1])
    """
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


class Block(NamedTuple):
    """Windows that are ready for a network."""

    x: NDArray[np.float32]  # (n, n_timesteps, n_channels), contiguous, zero where unobserved
    observed: NDArray[np.bool_] | None  # (n, n_timesteps), None where every step was observed


class CheckedWindows:
    """View of the checked input: windows are gathered block by block, never copied whole.

    Parameters
    ----------
    data : ndarray, LazyWindows or array in chunks on a disk
        Input of 2, 3 or 4 dimensions.
    input_layout : {"ntc", "nct"}, default="ntc"
        Order of the last two axes of 3-D and 4-D data.
    groups : array-like of shape (n_samples,) or None, default=None
        Recording or subject of each sample.
    labels : array-like of shape (n_samples,) or None, default=None
        Class of each sample, for a method that learns from classes.
    takes_nan : bool, default=True
        Whether the method takes missing time steps, for the messages.

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
    on_first_block : callable or None
        Is called with the first block that :meth:`take` reads, and no further one: who looks at a
        few windows reads none again.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.base import CheckedWindows
    >>> windows = CheckedWindows(np.zeros((6, 2, 8)), input_layout="nct")
    >>> windows.n_timesteps, windows.n_channels
    (8, 2)
    """

    on_first_block: Callable[[Block], None] | None = None

    def __init__(
        self,
        data: Any,
        input_layout: str = "ntc",
        groups: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        *,
        takes_nan: bool = True,
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
        self.takes_nan = takes_nan

    def __len__(self) -> int:
        return self.n_samples * self.n_windows

    @property
    def block_size(self) -> int:
        """Number of windows that :meth:`blocks` reads at a time."""
        return max(1, _BLOCK_ELEMENTS // (self.n_timesteps * self.n_channels))

    @property
    def names_recordings(self) -> bool:
        """Whether the input itself tells which recording a window belongs to."""
        return self.is_bag or (self.lazy is not None and self.lazy.recording is not None)

    @property
    def knows_recordings(self) -> bool:
        """Whether the input itself, or groups, tell which recording a window belongs to."""
        return self.names_recordings or self.groups is not None

    @cached_property
    def recording(self) -> NDArray[np.intp]:
        """Recording of each window, as a number.

        Lazy windows know their recordings, and a bag is a recording. Elsewhere `groups` names
        the recordings; without `groups` all windows count as one recording.
        """
        known = None if self.lazy is None else read_places(self.lazy, "recording")
        if known is not None:
            return known
        if self.is_bag:
            return np.arange(len(self)) // self.n_windows
        if self.groups is None:
            return np.zeros(len(self), dtype=np.intp)
        return np.unique(self.groups, return_inverse=True)[1]

    @cached_property
    def start(self) -> NDArray[np.intp]:
        """Start of each window in its recording; unknown ones count up within each recording."""
        known = None if self.lazy is None else read_places(self.lazy, "start")
        if known is not None:
            return known
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

        They are copies, which a method may write to. A window with no observed step comes back with
        an all-False row in `observed`.

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
        block = self._read(index)
        if self.on_first_block is not None and len(block.x):
            look, self.on_first_block = self.on_first_block, None
            look(block)
        return block

    def _read(self, index: NDArray[np.intp]) -> Block:
        """Gather windows as :meth:`take` returns them."""
        with np.errstate(over="ignore"):
            x = np.ascontiguousarray(self._gather(index), dtype=np.float32)
        if min(x.strides) < 0:  # an axis of length 1, which NumPy counts as contiguous
            x = x.copy()
        finite = np.isfinite(x)
        if finite.all():
            return Block(x.copy() if self._holds(x) else x, None)
        if np.isinf(x).any():
            sample = int(index[np.isinf(x).any((1, 2)).argmax()]) // self.n_windows
            by = "by NaN if the value is missing (missing time steps are masked)"
            if not self.takes_nan:
                by = "for example by interpolation, or drop the sample"
            raise ValueError(
                "Input X contains infinity or a value too large for float32 (first in sample"
                f" {sample}): replace it, {by}."
            )
        observed = np.asarray(finite.all(-1))
        return Block(np.where(observed[..., None], x, np.float32(0)), observed)

    def values(self, index: NDArray[np.intp]) -> NDArray[np.float32]:
        """Gather windows with NaN where a value is missing; other channels of the step stay.

        Parameters
        ----------
        index : array of int of shape (n,)
            Numbers of the windows.

        Returns
        -------
        ndarray of float32, of shape (n, n_timesteps, n_channels)
            Copies of the windows.
        """
        return np.array(self._gather(index), dtype=np.float32, order="C")

    def blocks(self) -> Iterator[tuple[NDArray[np.intp], Block]]:
        """Yield all windows in order, a few at a time."""
        for start in range(0, len(self), self.block_size):
            index = np.arange(start, min(start + self.block_size, len(self)))
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
        known = None if self.channels_first or self.lazy is None else self.lazy._known_observed()
        if known is not None:
            return known
        observed = np.ones(len(self), dtype=bool)
        for index, block in self.blocks():
            if block.observed is not None:
                observed[index] = block.observed.any(1)
        return observed

    def hold_two_parts(self, index: NDArray[np.intp], length: int) -> bool:
        """Tell whether a window has an observed step in two of its parts.

        Parameters
        ----------
        index : array of int
            Numbers of the windows.
        length : int
            Number of time steps of a part; the steps behind the last whole part are left out.

        Returns
        -------
        bool
            Whether any of the windows has two such parts.
        """
        n_parts = self.n_timesteps // length
        if n_parts < 2:
            return False
        # One at a time: the first usually decides, and memory maps may be long.
        for number in index.ravel():  # windows of bags lie in rows
            observed = self.take(np.array([number])).observed
            if observed is None:
                return True
            parts = observed[0, : n_parts * length].reshape(n_parts, length)
            if parts.any(1).sum() > 1:
                return True
        return False

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

    def check_usable(self, usable: NDArray[np.bool_], read: slice = slice(None)) -> None:
        """Raise if a sample has no usable window.

        Parameters
        ----------
        usable : array of bool of shape (n_samples * n_windows,)
            Windows with an observed step.
        read : slice, default=slice(None, None, None)
            Time steps that count, for the message.

        Raises
        ------
        ValueError
            If no window of a sample is usable.
        """
        empty = ~usable.reshape(self.n_samples, self.n_windows).any(1)
        if empty.any():
            first, last, _ = read.indices(self.n_timesteps)
            is_part = last - first < self.n_timesteps
            where = f" among steps {first} to {last - 1}, which are read," if is_part else ""
            can_select = self.lazy is not None and self.lazy._is_users
            if can_select and self.lazy is not None and self.channels_first:
                can_select = bool(self.lazy._channels_first)  # else it reads the wrong axis
            select = ", as by X[X.observed_windows()] of lazy windows" if can_select else ""
            raise ValueError(
                f"Input X has no finite time step{where} in sample {empty.argmax()}"
                f" ({int(empty.sum())} such samples): a time step counts only if all its channels"
                f" are finite. Drop these samples{select}."
                f"{self._lacking_channels(int(empty.argmax()), read)}"
            )

    def _lacking_channels(self, sample: int, read: slice) -> str:
        """Name the channels that a sample lacks, such as the channels of a sensor not worn."""
        windows = sample * self.n_windows + np.arange(self.n_windows)
        lacking = ~np.isfinite(self._gather(windows)[:, read]).any((0, 1))
        if lacking.all() or not lacking.any():
            return ""
        numbers = ", ".join(map(str, np.flatnonzero(lacking)))
        return (
            f" Sample {sample} has no finite value in channel(s) {numbers} (counted from 0): if"
            " whole recordings lack a channel, leave it out of all recordings, or fill it in."
        )

    def check_computed(
        self, finite: NDArray[np.bool_], usable: NDArray[np.bool_], remedy: str
    ) -> None:
        """Raise if a result that was computed from a usable window is not finite.

        Parameters
        ----------
        finite : array of bool of shape (n_samples * n_windows,)
            Windows whose results are finite.
        usable : array of bool of shape (n_samples * n_windows,)
            Windows with an observed step; the others do not count.
        remedy : str
            A further remedy, for the message; empty if there is none.

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
        outliers = "replace outliers by NaN, which masks their time steps"
        if not self.takes_nan:
            outliers = "replace outliers, for example by interpolation"
        raise ValueError(
            f"The values of X lead to results that are not finite in {len(samples)} sample(s)"
            f" ({', '.join(map(str, samples[:5]))}{more}); the first reaches {largest:.3g} in"
            f" magnitude. Scale X, or {outliers}.{remedy}"
        )

    def _holds(self, x: NDArray[np.float32]) -> bool:
        """Tell whether `x` shares the memory of X, which no method may write to."""
        if self.lazy is not None:  # a `take` of a user may return a part of a file
            return not x.flags.writeable
        return isinstance(self.data, np.ndarray) and np.may_share_memory(x, self.data)

    def _gather(self, index: NDArray[np.intp]) -> Any:
        if self.lazy is not None:
            x: Any = read_windows(self.lazy, index)
        elif self.is_bag:
            x = self.data[np.divmod(index, self.n_windows)]
        elif len(index) and np.array_equal(index, np.arange(index[0], index[0] + len(index))):
            x = self.data[index[0] : index[0] + len(index)]  # a slice copies nothing
        else:
            x = self.data[index]
        if x.ndim == 2:
            x = x[:, :, None]
        return x.swapaxes(-1, -2) if self.channels_first else x
