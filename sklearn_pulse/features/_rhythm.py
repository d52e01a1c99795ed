"""Regularity of the intervals between the events of each channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, uniform_filter1d

from .._data._windows import Block
from .._docstrings import complete_docstring
from .._parameters import check_integer
from .._typing import BagPooling, InputLayout
from ._base import BaseFeatureTransformer
from ._channels import over_observed_parts

_FEATURES = ("spread", "middle_spread", "change", "deviation", "persistence", "height_deviation")
_WIDEST = 16  # an event is the fastest step of at most this share of the window on each side
_HEIGHT = 0.4  # of an event, between the median speed (0) and nearly the largest (1)
_NEARLY_LARGEST = 0.98  # quantile of the speeds, which few artefacts change
_ROUNDING = 4 * float(np.finfo(np.float32).eps)  # a smaller share of the values is no speed
_SMALLEST = 0.02  # is added before logarithms: a more regular rhythm is as good as this one
_UNKNOWN = 0.3  # irregularity of a window with fewer than three events
Rows = NDArray[np.float64]  # of shape (n_rows, n_steps), one channel of a window in each


@complete_docstring
class RhythmTransformer(BaseFeatureTransformer):
    """Regularity of the rhythm of each channel: of the intervals between its events.

    Events are the steps at which a channel changes fastest, such as the beats of an ECG or a PPG,
    or steps and strokes in motion data. How regular they are does not depend on the amplitude, the
    rate or the shape of the events, which differ between people. In atrial fibrillation, for
    example, the intervals between beats are irregular.

    Parameters
    ----------
    n_scales : int, default=4
        Number of time scales. On the first scale, an event is the fastest step within a sixteenth
        of the window on both sides. Each further scale halves this distance.

    Attributes
    ----------
    radii_ : ndarray of int of shape (n_scales,)
        Distance, in steps, within which an event is the fastest step, on each scale; of steps that
        are as fast as one another, the first is the event. Short windows have fewer scales, since
        each radius is at least one step.

    See Also
    --------
    AutocorrelationTransformer : Rhythm and its frequency, without events.

    Notes
    -----
    The speed is the absolute difference of neighbouring steps, smoothed twice by a moving mean of
    half the radius. Its maxima within the radius are events if they exceed 0.4 of the way from the
    median of the speed to its 98th percentile. For each channel and scale there are six features.
    With the intervals d between neighbouring events:

    - *spread*: ``log(q90 / q10)`` of the quantiles of d, and *middle_spread*: ``log(q75 / q25)``;
    - *change*: the median of the absolute differences of neighbouring d, over the median of d;
    - *deviation*: the standard deviation of d over its mean;
    - *persistence*: the covariance of neighbouring d over the variance of d plus a thousandth of
      the square of its mean;
    - *height_deviation*: the standard deviation of the speed at the events, over its mean.

    All but the persistence are given as ``log(0.02 + value)``. A channel with fewer than three
    neighbouring events has ``log(0.3)``, and a persistence of zero.

    A time step counts as missing if any of its channels is NaN. Missing steps are bridged by
    straight lines, on which there are no events, and an interval across one does not count. Windows
    may have another length than those of `fit`. The features are computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.features import RhythmTransformer
    >>> regular, irregular = np.zeros((2, 400, 1))
    >>> regular[20::40] = 1.0
    >>> irregular[[20, 45, 105, 130, 190, 235, 250, 310, 350]] = 1.0
    >>> rhythm = RhythmTransformer(n_scales=1).fit([regular, irregular])
    >>> rhythm.get_feature_names_out()[2]
    'channel0_change_radius25'
    >>> features = rhythm.transform([regular, irregular])
    >>> bool(features[0, 2] < features[1, 2])
    True
    """

    _reads_scale = False

    _unstored = ("radii_",)

    def __init__(
        self,
        n_scales: int = 4,
        *,
        bag_pooling: BagPooling = "mean",
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> None:
        self.n_scales = n_scales
        self.bag_pooling = bag_pooling
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("n_scales", self.n_scales, 1)

    def _fit_shape(self) -> None:
        widest = self.n_timesteps_in_ // _WIDEST
        n_scales = min(int(self.n_scales), max(1, widest.bit_length()))  # the last radius is 1
        self.radii_ = np.array([max(1, widest >> scale) for scale in range(n_scales)])

    def _features(self, block: Block) -> NDArray[np.float64]:
        return over_observed_parts(block, self._rhythm, self._n_features_out)

    def _rhythm(
        self, signal: NDArray[np.float64], observed: NDArray[np.bool_] | None
    ) -> NDArray[np.float64]:
        """Return the features of windows of shape (n, n_channels, n_timesteps).

        `observed`, of shape (n_timesteps,), tells which steps of a single window were bridged.
        """
        n, n_channels, n_timesteps = signal.shape
        signal = signal.reshape(n * n_channels, n_timesteps)
        speed = np.abs(np.diff(signal))
        noise = _ROUNDING * np.abs(signal).max(axis=1, keepdims=True)
        moved = None if observed is None else observed[1:] & observed[:-1]
        features = [
            _regularity(*_events(speed, int(radius), noise, moved), moved) for radius in self.radii_
        ]
        return np.stack(features, axis=1).reshape(n, self._n_features_out)

    @property
    def _n_features_out(self) -> int:
        return self.n_channels_in_ * len(self.radii_) * len(_FEATURES)

    def _feature_names(self, channels: Sequence[str]) -> list[str]:
        return [
            f"{channel}_{feature}_radius{radius}"
            for channel in channels
            for radius in self.radii_
            for feature in _FEATURES
        ]


def _events(
    speed: Rows, radius: int, noise: Rows, moved: NDArray[np.bool_] | None
) -> tuple[NDArray[np.bool_], Rows]:
    """Return the events of each row, which stand out from `noise`, and the smoothed speed."""
    if not speed.shape[1]:
        return np.zeros(speed.shape, dtype=bool), speed
    width = max(1, radius // 2)
    smooth = uniform_filter1d(uniform_filter1d(speed, width), width)
    last = speed.shape[1] - 1
    ranks = last // 2, int(_NEARLY_LARGEST * last)
    usual, largest = np.partition(smooth, ranks, axis=1)[:, ranks, None].swapaxes(0, 1)
    # Recorders round to a grid, on which steps are often as fast as one another, and as fast as the
    # threshold. A tolerance keeps the rounding of another unit from deciding between them.
    events = smooth >= maximum_filter1d(smooth, 2 * radius + 1, mode="nearest") - noise
    events &= smooth > usual + _HEIGHT * (largest - usual) + noise
    # Of steps that are as fast as one another, the first within the radius.
    so_far = np.pad(np.cumsum(events, axis=1), ((0, 0), (radius + 1, 0)))
    events &= so_far[:, radius:-1] == so_far[:, : -radius - 1]
    if moved is not None:
        events &= moved
    return events, smooth


class _Grouped:
    """Statistics of the numbers that belong to each of `n` rows, given in the order of rows."""

    def __init__(self, row: NDArray[np.intp], n: int) -> None:
        self.row, self.n = row, n
        self.count = np.bincount(row, minlength=n)

    def mean(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean of each row, 0 where there is no number."""
        return np.bincount(self.row, values, self.n) / np.maximum(self.count, 1)

    def quantile(self, values: NDArray[np.float64], share: float) -> NDArray[np.float64]:
        """Return a quantile of each row, 1 where there is no number."""
        ordered = np.append(values[np.lexsort((values, self.row))], 1.0)
        largest = np.maximum(self.count - 1, 0)
        place = share * largest
        below = place.astype(np.intp)
        first = np.where(self.count, np.cumsum(self.count) - self.count, len(values))
        low, high = ordered[first + below], ordered[first + np.minimum(below + 1, largest)]
        return low + (place - below) * (high - low)


def _regularity(events: NDArray[np.bool_], speed: Rows, moved: NDArray[np.bool_] | None) -> Rows:
    """Return the features of each row, shape (n_rows, n_features)."""
    n = len(events)
    row, step = np.nonzero(events)
    at_events = _Grouped(row, n)
    height = speed[row, step]
    mean_height = at_events.mean(height)
    height_variance = at_events.mean((height - mean_height[row]) ** 2)

    neighbours = row[1:] == row[:-1]
    if moved is not None:
        gaps = np.cumsum(~moved)
        neighbours &= gaps[step[1:]] == gaps[step[:-1]]
    all_intervals = np.diff(step).astype(np.float64)
    interval = all_intervals[neighbours]
    intervals = _Grouped(row[1:][neighbours], n)
    mean = np.maximum(intervals.mean(interval), 1.0)
    centred = all_intervals - mean[row[1:]]
    variance = intervals.mean(centred[neighbours] ** 2)

    twice = neighbours[1:] & neighbours[:-1]  # pairs of neighbouring intervals
    pairs = _Grouped(row[2:][twice], n)
    change = np.abs(np.diff(all_intervals))[twice]
    covariance = pairs.mean((centred[1:] * centred[:-1])[twice])

    q10, q25, median, q75, q90 = (
        intervals.quantile(interval, share) for share in (0.1, 0.25, 0.5, 0.75, 0.9)
    )
    irregularity = (
        np.log(q90 / q10),
        np.log(q75 / q25),
        pairs.quantile(change, 0.5) / median,
        np.sqrt(variance) / mean,
        np.sqrt(height_variance) / np.where(mean_height > 0, mean_height, 1.0),
    )
    known = pairs.count > 0
    features = [np.log(_SMALLEST + np.where(known, x, _UNKNOWN - _SMALLEST)) for x in irregularity]
    persistence = np.where(known, covariance / (variance + 1e-3 * mean**2), 0.0)
    return np.stack([*features[:-1], persistence, features[-1]], axis=1)
