"""Plot of one window and its reconstruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._data._validation import check_windows
from .._data._windows import CheckedWindows
from .._inputs._stored import take_rows
from .._parameters import check_integer
from ._style import (
    check_numbers,
    check_offers,
    distinct_colors,
    drawing_panels,
    name_channels,
)


class ReconstructionDisplay:
    """A window and its reconstructions from crops, channel by channel.

    Make a display with :meth:`from_estimator`.

    Parameters
    ----------
    signal : ndarray of shape (n_timesteps, n_channels)
        The window; NaN where it is missing.
    predictions : dict of int to ndarray of shape (n_timesteps, n_channels)
        Reconstruction by start of the crop, in time steps; NaN up to the start and past the end of
        the crop.
    channel_names : sequence of str or None, default=None
        Names of the channels; None numbers them.

    Attributes
    ----------
    axes_ : ndarray of matplotlib.axes.Axes
        Axes of each channel.
    figure_ : matplotlib.figure.Figure
        The figure of `axes_`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> from sklearn_pulse.plotting import ReconstructionDisplay
    >>> X = np.random.default_rng(0).normal(size=(8, 32, 2))
    >>> pulse = PulseTransformer(embedding_dim=8, max_epochs=1, random_state=0).fit(X)
    >>> display = ReconstructionDisplay.from_estimator(pulse, X, starts=(16,))
    >>> len(display.axes_), sorted(display.predictions)
    (2, [0, 16])
    """

    def __init__(
        self,
        signal: NDArray[np.floating],
        predictions: dict[int, NDArray[np.floating]],
        *,
        channel_names: Any = None,
    ) -> None:
        self.signal = signal
        self.predictions = predictions
        self.channel_names = channel_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        *,
        sample: int = 0,
        starts: Sequence[int] | None = None,
        channel_names: Any = None,
        axes: Any = None,
    ) -> ReconstructionDisplay:
        """Reconstruct one window with a fitted `PulseTransformer` and draw it.

        Parameters
        ----------
        estimator : PulseTransformer
            A fitted transformer.
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows of at least two time steps.
        sample : int, default=0
            Position of the window in `X`, counted from 0.
        starts : sequence of int, default=None
            Time steps at which crops start; None takes one crop, which starts at a quarter of the
            window, unless all steps from there on are missing. The reconstruction of the full
            window is always drawn.
        channel_names : sequence of str, default=None
            Names of the channels; None takes the names that the estimator knows, or numbers.
        axes : array-like of matplotlib.axes.Axes, default=None
            Axes to draw on, one per channel; None makes a new figure.

        Returns
        -------
        ReconstructionDisplay
            The display, already drawn.

        Raises
        ------
        NotFittedError
            If the transformer is not fitted.
        TypeError
            If the estimator does not reconstruct, as a pipeline, `sample` is no integer, or
            `starts` is no sequence of integers.
        ValueError
            If there is no window, if windows have one time step only, if `X` holds bags, if
            `sample` is no position in `X`, or if a start lies outside the window or after its
            observed steps.
        """
        check_is_fitted(estimator)
        what = "a fitted PulseTransformer; of a pipeline, this step and the windows that reach it"
        check_offers(estimator, "reconstruct", what)
        n_samples = _num_samples(X)
        if not n_samples:
            raise ValueError("X holds no window: pass at least one window to draw.")
        sample = check_integer("sample", sample, 0, n_samples - 1)
        window = take_rows(X, [sample])
        windows = check_windows(estimator, window, reset=False)
        n_timesteps = windows.n_timesteps
        _check_single(windows, sample)
        block = windows.take(np.arange(1))
        signal = block.x[0].copy()
        if block.observed is not None:
            signal[~block.observed[0]] = np.nan
        starts = _check_starts(starts, n_timesteps, _latest_start(signal, sample))
        is_fixed = getattr(estimator, "crop", None) == "fixed"
        length = estimator.net_.module_.longest_crop(_span(signal)) if is_fixed else n_timesteps
        predictions: dict[int, NDArray[np.floating]] = {}
        for start in (0, *starts):  # the full window first
            prediction = estimator.reconstruct(window, start=start)
            native = (
                windows.like_input(prediction) if prediction.ndim == 3 else prediction[..., None]
            )
            first = int(np.isfinite(native[0, :, 0]).argmax()) - 1  # the next observed step
            if first not in predictions:
                predictions[first] = native[0]
                if start:
                    predictions[first][first + 1 + length :] = np.nan
        if channel_names is None:
            channel_names = getattr(estimator, "channel_names_in_", None)
        return cls(signal, predictions, channel_names=channel_names).plot(axes=axes)

    def plot(self, axes: Any = None) -> ReconstructionDisplay:
        """Draw the window and its reconstructions.

        Parameters
        ----------
        axes : array-like of matplotlib.axes.Axes, default=None
            Axes to draw on, one per channel; None makes a new figure.

        Returns
        -------
        ReconstructionDisplay
            The display itself, with `axes_` and `figure_`.

        Raises
        ------
        TypeError
            If `axes` holds something else than Axes, `channel_names` is no list of names, or
            `predictions` is no dictionary of arrays by step.
        ValueError
            If the number of axes or of names is not that of the channels, `signal` is no array of
            steps and channels, or a prediction has another shape than it.
        """
        signal, drawn = self._checked()
        names = name_channels(signal.shape[1], self.channel_names)
        # The reconstruction of a window that begins with missing steps starts at its first step.
        first = int(np.isfinite(signal).all(1).argmax())
        # Long names of neighbours would run into each other; a new figure makes room beside.
        is_new = axes is None
        beside = {"rotation": 0, "ha": "right", "va": "center"} if is_new else {}
        colors = distinct_colors(len(drawn))
        with drawing_panels(axes, signal.shape[1], 1, "channels") as axes:
            for channel, (ax, channel_name) in enumerate(zip(axes, names, strict=True)):
                ax.plot(signal[:, channel], color="0.6", label="signal")
                for (start, prediction), color in zip(drawn, colors, strict=True):
                    name = "full window" if start == first else f"crop from step {start}"
                    ax.plot(prediction[:, channel], color=color, lw=1.2, label=name)
                    ax.axvline(start, color=color, lw=0.6, ls=":")
                ax.set_ylabel(channel_name, **beside)
            if is_new:  # wider than the axes; above, it would hide a title
                handles, labels = axes[0].get_legend_handles_labels()
                axes[0].figure.legend(
                    handles,
                    labels,
                    frameon=False,
                    ncols=3,
                    fontsize="small",
                    loc="outside lower center",
                )
            else:
                axes[0].legend(
                    frameon=False,
                    ncols=3,
                    fontsize="small",
                    loc="lower left",
                    bbox_to_anchor=(0, 1),
                )
            axes[-1].set_xlabel("time step")
            self.axes_, self.figure_ = axes, axes[0].figure
            if is_new:
                self.figure_.align_ylabels(axes)
        return self

    def _checked(self) -> tuple[NDArray[Any], list[tuple[int, NDArray[Any]]]]:
        """Return the window, and its predictions by start; raise unless they can be drawn."""
        shape = "(n_timesteps, n_channels)"
        signal = check_numbers("signal", self.signal, 2, shape)
        if not signal.size:
            raise ValueError(f"signal has shape {signal.shape}: pass an array of shape {shape}.")
        if not isinstance(self.predictions, Mapping):
            raise TypeError(
                "predictions must be a dictionary of arrays by start of the crop, got"
                f" {type(self.predictions).__name__}; pass for example {{0: array}}."
            )
        drawn = []
        for start, given in self.predictions.items():
            check_integer("each key of predictions", start, 0)
            prediction = check_numbers(f"predictions[{start}]", given, 2, shape)
            if prediction.shape != signal.shape:
                raise ValueError(
                    f"predictions[{start}] has shape {prediction.shape}, but signal has"
                    f" {signal.shape}: pass arrays of one shape, with NaN for steps that are not"
                    " predicted."
                )
            drawn.append((start, prediction))
        return signal, sorted(drawn, key=lambda each: each[0])


def _check_single(windows: CheckedWindows, sample: int) -> None:
    """Raise for bags, and for windows of which no step is predicted."""
    message = "X must hold single windows of at least two time steps"
    if windows.is_bag:
        raise ValueError(f"{message}, not bags: pass the windows of one bag, X[{sample}].")
    if windows.n_timesteps < 2:
        raise ValueError(
            f"{message}: the first step is the initial condition, which is never predicted. Pass"
            " longer windows."
        )


def _latest_start(signal: NDArray[np.floating], sample: int) -> int:
    """Return the last observed step that another step follows, which can be predicted from it."""
    observed = np.flatnonzero(np.isfinite(signal[:-1]).all(1))
    if not observed.size:
        raise ValueError(
            f"Of window {sample} of X only the last time step is observed, from which no step is"
            " predicted: pass another sample."
        )
    return int(observed[-1])


def _span(signal: NDArray[np.floating]) -> int:
    """Return the number of steps from the first observed one to the last."""
    observed = np.flatnonzero(np.isfinite(signal).all(1))
    return int(observed[-1] - observed[0]) + 1


def _check_starts(starts: Any, n_timesteps: int, latest: int) -> tuple[int, ...]:
    """Return the steps at which crops start; raise unless a step is predicted from each."""
    if starts is None:
        quarter = n_timesteps // 4
        return (quarter,) if quarter <= latest else ()
    if isinstance(starts, str) or not isinstance(starts, Sequence | np.ndarray):
        raise TypeError(
            f"starts must be a sequence of integers, got {starts!r}; pass for example starts=(0,)"
        )
    checked = tuple(check_integer("each of starts", x, 0, n_timesteps - 2) for x in starts)
    late = [start for start in checked if start > latest]
    if late:
        raise ValueError(
            f"starts holds {late[0]}, but from there on no step of the window is observed that a"
            f" later step can be predicted from: pass starts of at most {latest}."
        )
    return checked
