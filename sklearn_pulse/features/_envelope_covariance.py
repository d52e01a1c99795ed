"""Logarithm of the covariance of the power in octave bands, through a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d
from torch import Tensor

from .._data._windows import Block, CheckedWindows
from .._docstrings import complete_docstring
from .._parameters import check_integer
from .._persistence import stored_array, tensor_of
from .._typing import BagPooling, InputLayout
from ._channels import over_observed_parts
from ._covariance import (
    CovarianceTransformer,
    Observed,
    Signals,
    mean_without_artefacts,
    spread_evenly,
)

_FEWEST_FRAMES = 8  # frames per window that do not overlap; short windows have shorter frames
_QUIET = 1e-3  # share of the usual power that counts as none


@complete_docstring
class EnvelopeCovarianceTransformer(CovarianceTransformer):
    """Logarithm of the covariance of the power in octave bands, through a window.

    Each channel is split into octave bands, and each band into short frames. The logarithm of the
    power of a frame is a slow signal, the envelope. This transformer gives the covariance of the
    envelopes, as `CovarianceTransformer` does for channels: how much the power of each band
    changes within a window, how fast, and with which other bands. Neither the gain of a sensor nor
    the usual spectrum of a person matters, since both add constants to envelopes.

    Parameters
    ----------
    n_bands : int, default=6
        Largest number of octave bands of a channel; short windows have fewer.
    frame_length : int, default=32
        Largest number of time steps of a frame; it is at most an eighth of a window.
    delays : sequence of int, default=(0, 1, 2)
        Delays of the envelopes, in frames, each of which overlaps the one before by half.
    shrinkage : float, default=0.1
        Share of the covariance that is replaced by the mean variance on its diagonal, above 0 and
        at most 1.

    Attributes
    ----------
    n_bands_ : int
        Number of bands of a channel.
    frame_length_ : int
        Number of time steps of a frame.
    delays_ : ndarray of int of shape (n_delays,)
        The delays in use, in ascending order: those below half the number of frames, and so many of
        them that the matrix has at most 64 rows (one delay for more bands).
    power_ : ndarray of shape (n_bands * n_channels,)
        Usual power of each band of each channel, the mean over the frames of at most 256 windows,
        of which artefacts are left out as those of `CovarianceTransformer`.
    scale_ : ndarray of shape (n_bands * n_channels,)
        Standard deviation of each envelope within these windows.

    See Also
    --------
    CovarianceTransformer : The covariance of the channels themselves.
    StatisticsTransformer : The power of the bands of a whole window.

    Notes
    -----
    The signal less its moving mean is the highest band; the moving mean of twice the length does
    the same to the rest, and so on. Band b is ``L_b - L_(b+1)``, where ``L_0`` is the signal and
    ``L_(b+1)`` is ``L_b`` smoothed twice by a moving mean of ``2^(b+1) + 1`` steps. The envelope is
    the logarithm of the mean square of a frame, plus a thousandth of `power_`.

    A time step counts as missing if any of its channels is NaN. A window with missing steps is read
    from its first to its last observed step, with straight lines across the gaps, and a frame with
    a missing step does not count: if a tenth of the steps are missing here and there, no frame is
    left, and the features say nothing. Windows may have another length than those of `fit` if they
    have more than twice as many frames as the longest delay. The features are computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.features import EnvelopeCovarianceTransformer
    >>> noise = np.random.default_rng(0).normal(size=(20, 512, 1))
    >>> X = noise * (1 + np.sin(np.arange(512) / 20)[:, None])  # its power comes and goes
    >>> envelopes = EnvelopeCovarianceTransformer(n_bands=2, delays=(0,)).fit(np.r_[noise, X])
    >>> envelopes.get_feature_names_out().tolist()
    ['channel0_band0_delay0_channel0_band0_delay0',
     'channel0_band0_delay0_channel0_band1_delay0',
     'channel0_band1_delay0_channel0_band1_delay0']
    >>> calm, waxing = envelopes.transform(noise)[:, 0], envelopes.transform(X)[:, 0]
    >>> bool(calm.max() < waxing.min())
    True
    """

    power_: NDArray[np.float64]
    _unit = "frames"
    _least_scale = 1e-12  # of a logarithm: rounding moves a constant envelope by less
    _unstored = ("delays_", "scale_", "n_bands_", "frame_length_", "power_")

    def __init__(
        self,
        n_bands: int = 6,
        frame_length: int = 32,
        delays: Sequence[int] = (0, 1, 2),
        shrinkage: float = 0.1,
        *,
        bag_pooling: BagPooling = "mean",
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(
            delays,
            shrinkage,
            bag_pooling=bag_pooling,
            input_layout=input_layout,
            sampling_rate=sampling_rate,
            channel_names=channel_names,
        )
        self.n_bands = n_bands
        self.frame_length = frame_length

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("n_bands", self.n_bands, 1)
        check_integer("frame_length", self.frame_length, 1)

    def _fit_shape(self) -> None:
        self.n_bands_ = min(int(self.n_bands), max(1, self.n_timesteps_in_.bit_length() - 3))
        longest = max(1, self.n_timesteps_in_ // _FEWEST_FRAMES)
        self.frame_length_ = min(int(self.frame_length), longest)
        super()._fit_shape()

    def _fit(self, windows: CheckedWindows, usable: NDArray[np.intp]) -> None:
        self._fit_shape()
        block = windows.take(spread_evenly(usable))
        sums = self._of_powers(block, _sums, self._n_signals + 1)
        power = mean_without_artefacts(sums[:, :-1], sums[:, -1:])
        self.power_ = np.where(power > 0, power, 1.0)
        super()._fit(windows, usable)

    def _weights(self) -> dict[str, Tensor]:
        return super()._weights() | {"power": tensor_of(self.power_)}

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        super()._restore(weights)
        self.power_ = stored_array(weights, "power", np.float64, (self._n_signals,))

    def _n_steps(self, n_timesteps: int) -> int:
        return len(range(0, n_timesteps - self.frame_length_ + 1, self._hop))

    @property
    def _n_signals(self) -> int:
        return self.n_bands_ * self.n_channels_in_

    def _signal_names(self, channels: Sequence[str]) -> list[str]:
        return [f"{channel}_band{band}" for band in range(self.n_bands_) for channel in channels]

    def _of_signals(
        self, block: Block, compute: Callable[[Signals, Observed], Signals], n_values: int
    ) -> Signals:
        return self._of_powers(
            block, lambda powers, whole: compute(self._envelopes(powers), whole), n_values
        )

    def _envelopes(self, powers: Signals) -> Signals:
        # Without power exactly 0, so that a dead channel has no variance that rounding left.
        return np.log1p(powers / (_QUIET * self.power_[:, None]))

    def _of_powers(
        self, block: Block, compute: Callable[[Signals, Observed], Signals], n_values: int
    ) -> Signals:
        """Compute values of the power of frames, and of which frames are whole."""
        return over_observed_parts(
            block, lambda signal, observed: compute(*self._powers(signal, observed)), n_values
        )

    def _powers(self, signal: Signals, observed: Observed | None) -> tuple[Signals, Observed]:
        """Return the power of frames, bands before channels, and which frames are whole."""
        n, n_channels, n_timesteps = signal.shape
        whole = np.ones((n, n_timesteps), dtype=bool)
        if observed is not None:
            whole &= observed
        powers = []
        for band in range(self.n_bands_):
            width = 2 ** (band + 1) + 1
            low = uniform_filter1d(uniform_filter1d(signal, width), width)
            powers.append(self._frames(np.square(signal - low)).mean(-1))
            signal = low
        return np.concatenate(powers, axis=1), np.asarray(self._frames(whole).all(-1))

    @property
    def _hop(self) -> int:
        return max(1, self.frame_length_ // 2)

    def _frames(self, signal: NDArray[Any]) -> NDArray[Any]:
        """Cut the last axis into frames, each of which overlaps the one before by half.

        A frame is contiguous, so that its mean does not depend on the number of windows.
        """
        if signal.shape[-1] < self.frame_length_:
            return np.zeros((*signal.shape[:-1], 0, self.frame_length_), dtype=signal.dtype)
        frames = sliding_window_view(signal, self.frame_length_, axis=-1)
        return np.ascontiguousarray(frames[..., :: self._hop, :])


def _sums(powers: Signals, whole: Observed) -> Signals:
    """Return the sums over the whole frames, and their number."""
    return np.concatenate([(powers * whole[:, None]).sum(-1), whole.sum(-1)[:, None]], axis=1)
