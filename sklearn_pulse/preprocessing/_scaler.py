"""Centring and scaling of channels."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.metaestimators import available_if

from .._docstrings import complete_docstring
from .._groups import check_groups
from .._parameters import check_boolean, check_option
from .._typing import InputLayout
from ._base import BasePreprocessor
from ._quantiles import robust_of_pieces
from ._source import WindowSource
from ._statistics import Statistics, of_pieces, of_windows, robust_of_windows
from ._values import WindowMap

_NO_RECORDINGS = (
    "per='recording' needs the recording of each window: call transform(X, groups=...) or"
    " fit_transform(X, groups=...), in a pipeline with metadata routing fit(X, y, groups=...) and"
    " predict(X, groups=...); or pass bags (4-D), a list of recordings, or lazy windows, which know"
    " their recordings."
)


def _keeps_statistics(scaler: Any) -> bool:
    """Return True; raise an AttributeError if no statistics are kept to undo the scaling with."""
    if scaler._per != "channel":
        raise AttributeError(
            f"per={scaler._per!r} keeps no statistics to undo: keep the windows as they were, or"
            " fit with per='channel'."
        )
    return True


@complete_docstring
class WindowScaler(BasePreprocessor):
    """Subtract the mean of each channel and divide by its standard deviation.

    Networks train badly on channels whose values are large, tiny, or far from zero. Use this step
    in front of an encoder, or on recordings before they are cut.

    Parameters
    ----------
    with_mean : bool, default=True
        Whether to subtract the mean.
    with_std : bool, default=True
        Whether to divide by the standard deviation.
    per : {"channel", "window", "recording"}, default="channel"
        Which values share a mean and a standard deviation. "channel": all values of a channel in
        `fit`, so that levels of windows, and of people, stay comparable. "window": the values of a
        channel in one window, so that its level and amplitude are lost. "recording": the values of
        a channel in all windows of a recording that are transformed together, so that differences
        between people or electrodes are lost, and differences in time stay. "window" and
        "recording" learn nothing in `fit`. Each recording in a list, also if it is a 1-D array or a
        Series, is one window, and a recording of its own unless `groups` say otherwise; nested
        lists of numbers of equal length are a table.
    robust : bool, default=False
        Whether to take the median, and the interquartile range divided by 1.349 (which makes it
        the standard deviation of normal data), so that outliers do not count.

    Attributes
    ----------
    center_ : ndarray of float64 of shape (n_channels,) or None
        Number that is subtracted from each channel; None unless `per` is "channel".
    scale_ : ndarray of float64 of shape (n_channels,) or None
        Number by which each channel is divided: 1 for a channel without spread. None unless `per`
        is "channel".

    See Also
    --------
    BandpassFilter : Remove slow drift and fast noise.
    Resampler : Change the sampling rate.

    Notes
    -----
    Missing values (NaN) are left out of the statistics and stay where they are; a value is missing
    by itself, whatever the other channels hold. Sums are in float64, and the values are centred
    before they are squared, so that an offset of 1e6 with a spread of 1 loses no precision.

    `fit` reads arrays, memory maps, lists and lazy windows in blocks; ``robust=True`` reads large
    data five times, for exact quartiles. Lazy windows stay lazy in `transform`; everything else
    becomes an array in memory, or a list of arrays. Steps that several windows share count several
    times.

    `groups` is an argument of `transform` (and not a parameter of the constructor, nor an argument
    of `fit`, which would not use it) since scikit-learn divides and routes arguments with one entry
    per sample together with `X`. With metadata routing a pipeline hands them to this step in `fit`
    and in `predict`, under another name after ``set_transform_request(groups="name")``. They are
    neither checked nor used unless `per` is "recording" and the windows do not know their
    recordings themselves.

    ``set_output`` concerns 2-D output; windows of several channels stay arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.preprocessing import WindowScaler
    >>> rng = np.random.default_rng(0)
    >>> X = 1e6 + rng.normal(size=(20, 50, 2))  # raw counts of a converter
    >>> scaled = WindowScaler().fit_transform(X)
    >>> bool(abs(scaled.mean()) < 1e-6), round(float(scaled.std()), 3)
    (True, 1.0)
    >>> recordings = [rng.normal(size=(80, 2)), rng.normal(size=(130, 2))]
    >>> [x.shape for x in WindowScaler(per="recording").fit_transform(recordings)]
    [(80, 2), (130, 2)]
    """

    def __init__(
        self,
        with_mean: bool = True,
        with_std: bool = True,
        per: Literal["channel", "window", "recording"] = "channel",
        robust: bool = False,
        input_layout: InputLayout = "ntc",
    ) -> None:
        self.with_mean = with_mean
        self.with_std = with_std
        self.per = per
        self.robust = robust
        self.input_layout = input_layout

    def _check_params(self) -> None:
        super()._check_params()
        check_boolean("with_mean", self.with_mean)
        check_boolean("with_std", self.with_std)
        check_option("per", self.per, ("channel", "window", "recording"))
        check_boolean("robust", self.robust)

    @property
    def _per(self) -> str:
        """Value of `per` in `fit`, or its present value before."""
        return self._fitted("per") if hasattr(self, "center_") else self.per

    def _learn(self, windows: WindowSource) -> None:
        self.center_ = self.scale_ = None
        if self.per == "channel":
            self.center_, self.scale_ = self._streamed(windows, None)

    def transform(
        self, X: ArrayLike, *, groups: ArrayLike | None = None
    ) -> NDArray[np.float32] | Any:
        """Scale windows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels), list or LazyWindows
            Windows as in `fit`; 3-D windows may have another number of time steps.
        groups : array-like of shape (n_samples,), default=None
            Recording of each window, for ``per="recording"``. Where bags and lazy windows know
            their recordings, `groups` is not used. Each array of a list is a recording of its own
            where `groups` is None.

        Returns
        -------
        ndarray, list of ndarray or of frames, or LazyWindows
            The windows, float32, in the shape of the input. A list gives a list, in which frames
            and Series stay frames and Series; lazy windows give lazy windows.

        Raises
        ------
        TypeError
            If `X` holds no numbers.
        ValueError
            If `X` has an infinite value, or another number or other names of channels than in
            `fit`, if the recordings are needed and unknown, or if a group is missing.
        """
        windows = self._read(X)
        # Other windows that a pipeline passes through may be more or fewer than the groups.
        if self._fitted("per") == "recording" and windows.recording is None:
            names = check_groups(groups, windows.n_samples)
            if names is not None:
                windows.recording = np.unique(names, return_inverse=True)[1]
            elif windows.is_list:
                windows.recording = np.arange(windows.n_windows)
        return self._map(windows, self._function(windows))

    def fit_transform(
        self, X: ArrayLike, y: Any = None, *, groups: ArrayLike | None = None
    ) -> NDArray[np.float32] | Any:
        """Fit, and scale the same windows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels), list or LazyWindows
            Windows, as in `fit`.
        y : None
            Ignored. Present because scikit-learn passes it.
        groups : array-like of shape (n_samples,), default=None
            Recording of each window, as in `transform`.

        Returns
        -------
        ndarray, list of ndarray, or LazyWindows
            The scaled windows.
        """
        return self.fit(X, y).transform(X, groups=groups)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata request; by default it holds `groups`, whatever `per` is.

        A search over `per` routes for all its candidates. `groups` change nothing where they are
        not used.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
            The request.
        """
        request = super().get_metadata_routing()
        if request.transform.requests["groups"] is None:
            request.transform.add_request(param="groups", alias=True)
        return request

    @available_if(_keeps_statistics)
    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float32] | Any:
        """Undo the scaling with the statistics of `fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels), list or LazyWindows
            Scaled windows.

        Returns
        -------
        ndarray, list of ndarray, or LazyWindows
            The windows in their former units, float32, whose values near 1e6 are 0.06 apart.

        Raises
        ------
        AttributeError
            If `per` is not "channel": the statistics of windows and recordings are not kept.
        TypeError
            If `X` holds no numbers.
        ValueError
            If `X` has an infinite value, or another number or other names of channels than in
            `fit`.
        """
        windows = self._read(X)
        return self._map(windows, partial(_unscale, statistics=(self.center_, self.scale_)))

    def _function(self, windows: WindowSource) -> WindowMap:
        if self.center_ is not None and self.scale_ is not None:
            return partial(_scale, statistics=Statistics(self.center_, self.scale_))
        if self._fitted("per") == "recording":
            if windows.recording is None:
                raise ValueError(_NO_RECORDINGS)
            return self._by_recording(windows, windows.recording)
        names = ("robust", "with_mean", "with_std")
        return partial(_scale_windows, **{name: self._fitted(name) for name in names})

    def _by_recording(self, windows: WindowSource, recording: NDArray[np.intp]) -> WindowMap:
        """Learn the statistics of each recording, one after the other."""
        names, first = np.unique(np.sort(recording), return_index=True)
        members = np.split(np.argsort(recording, kind="stable"), first[1:])
        rows = [self._streamed(windows, index) for index in members]
        statistics = Statistics(*map(np.array, zip(*rows, strict=True)))
        return partial(_scale_recordings, statistics=statistics, names=names)

    def _streamed(self, windows: WindowSource, index: NDArray[np.intp] | None) -> Statistics:
        """Return the statistics of some windows, read in pieces."""
        if self._fitted("robust"):
            found = robust_of_pieces(lambda: windows.pieces(index), windows.n_channels)
        else:
            found = of_pieces(windows.pieces(index), windows.n_channels)
        return _select(found, self._fitted("with_mean"), self._fitted("with_std"))


def _select(statistics: Statistics, with_mean: bool, with_std: bool) -> Statistics:
    """Return 0 as the centre, and 1 as the scale, where the user does not want it."""
    center, scale = statistics
    return Statistics(
        center if with_mean else np.zeros_like(center), scale if with_std else np.ones_like(scale)
    )


def _scale(
    x: NDArray[np.float64], recording: Any, *, statistics: Statistics
) -> NDArray[np.float64]:
    """Scale windows (n, n_channels, n_timesteps), in place; statistics are (..., n_channels)."""
    center, scale = statistics
    x -= center[..., np.newaxis]
    x /= scale[..., np.newaxis]
    return x


def _unscale(
    x: NDArray[np.float64], recording: Any, *, statistics: tuple[Any, Any]
) -> NDArray[np.float64]:
    """Undo `_scale`, in place."""
    center, scale = statistics
    x *= scale[..., np.newaxis]
    x += center[..., np.newaxis]
    return x


def _scale_windows(
    x: NDArray[np.float64], recording: Any, *, robust: bool, with_mean: bool, with_std: bool
) -> NDArray[np.float64]:
    """Scale each window by its own statistics."""
    own = robust_of_windows(x) if robust else of_windows(x)
    return _scale(x, recording, statistics=_select(own, with_mean, with_std))


def _scale_recordings(
    x: NDArray[np.float64],
    recording: NDArray[np.intp],
    *,
    statistics: Statistics,
    names: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Scale each window by the statistics of its recording."""
    rows = np.searchsorted(names, recording)
    own = Statistics(statistics.center[rows], statistics.scale[rows])
    return _scale(x, recording, statistics=own)
