"""Picture of how new windows differ from those of a reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from ..evaluation import drift_scores, embedding_drift, score_drift
from ._style import add_legend, distinct_colors, drawing, drawing_panels, name_channels


class DriftDisplay:
    """Distance of the embeddings, and scores outside the reference's range, of new windows.

    The panel of the embeddings shows the distance of the new windows from the reference beside the
    distances of other divisions. The panel of the scores shows the share of new windows whose
    reconstruction is outside the reference's range, channel by channel, beside the share that is
    expected.

    Make a display with :meth:`from_estimator`, :meth:`from_embeddings` or :meth:`from_scores`.

    Parameters
    ----------
    embedding : Bunch or None, default=None
        Result of :func:`~sklearn_pulse.evaluation.embedding_drift`; None draws no panel of the
        embeddings.
    scores : Bunch or None, default=None
        Result of :func:`~sklearn_pulse.evaluation.score_drift`; None draws no panel of the scores.
    channel_names : sequence of str or None, default=None
        Names of the channels; None numbers them.
    name : str or None, default=None
        Title of the first panel, for example the name of the recording; None draws no title.

    Attributes
    ----------
    axes_ : ndarray of matplotlib.axes.Axes
        Axes of the panels: of the embeddings, if drawn, then of the scores, if drawn.
    figure_ : matplotlib.figure.Figure
        The figure of `axes_`.

    See Also
    --------
    sklearn_pulse.evaluation.drift_scores : The numbers that are drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> from sklearn_pulse.plotting import DriftDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 32, 2))
    >>> pulse = PulseTransformer(embedding_dim=8, max_epochs=1, random_state=0).fit(X[:20])
    >>> X_new = X[40:] * [1.0, 5.0]  # the second channel is too loud
    >>> display = DriftDisplay.from_estimator(pulse, X[20:40], X_new, random_state=0)
    >>> len(display.axes_), display.embedding.p_value
    (2, 0.005)
    """

    def __init__(
        self,
        embedding: Bunch | None = None,
        scores: Bunch | None = None,
        *,
        channel_names: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        self.embedding = embedding
        self.scores = scores
        self.channel_names = channel_names
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X_reference: ArrayLike,
        X_new: ArrayLike,
        *,
        channel_names: Sequence[str] | None = None,
        name: str | None = None,
        ax: Any = None,
        **params: Any,
    ) -> DriftDisplay:
        """Compare new windows with a reference by a fitted transformer, and draw the result.

        Parameters
        ----------
        estimator : transformer or pipeline that ends with one
            A fitted transformer of windows. If it reconstructs no windows, the panel of the scores
            is left out.
        X_reference : array-like of shape (n_reference, n_timesteps, n_channels)
            Windows that are as they should be, and that the transformer was not fitted on.
        X_new : array-like of shape (n_new, n_timesteps, n_channels)
            Windows to compare with them.
        channel_names : sequence of str, default=None
            Names of the channels; None takes the names that the estimator knows, or numbers.
        name : str, default=None
            Title of the first panel; None draws no title.
        ax : matplotlib.axes.Axes or array-like of Axes, default=None
            Axes to draw on, one per panel; None makes a new figure.
        **params : dict
            Keyword arguments for :func:`~sklearn_pulse.evaluation.drift_scores`, such as
            `groups_reference`, `groups_new` and `random_state`.

        Returns
        -------
        DriftDisplay
            The display, already drawn.
        """
        drift = drift_scores(estimator, X_reference, X_new, **params)
        names = drift.channel_names if channel_names is None else channel_names
        return cls(drift.embedding, drift.scores, channel_names=names, name=name).plot(ax=ax)

    @classmethod
    def from_embeddings(
        cls,
        reference: ArrayLike,
        new: ArrayLike,
        *,
        name: str | None = None,
        ax: Any = None,
        **params: Any,
    ) -> DriftDisplay:
        """Draw the distance of two sets of embeddings.

        Parameters
        ----------
        reference : array-like of shape (n_reference, embedding_dim)
            Embeddings of the reference, at least two.
        new : array-like of shape (n_new, embedding_dim)
            Embeddings to compare with them, at least two.
        name : str, default=None
            Title of the panel; None draws no title.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        **params : dict
            Keyword arguments for :func:`~sklearn_pulse.evaluation.embedding_drift`.

        Returns
        -------
        DriftDisplay
            The display, already drawn.
        """
        return cls(embedding_drift(reference, new, **params), name=name).plot(ax=ax)

    @classmethod
    def from_scores(
        cls,
        reference: ArrayLike,
        new: ArrayLike,
        *,
        coverage: float = 0.95,
        channel_names: Sequence[str] | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> DriftDisplay:
        """Draw the share of new scores outside the range of a reference's scores.

        Parameters
        ----------
        reference : array-like of shape (n_reference,) or (n_reference, n_channels)
            Scores of the windows of the reference, at least two.
        new : array-like of shape (n_new,) or (n_new, n_channels)
            Scores to compare with them.
        coverage : float, default=0.95
            Share of the reference's scores that lies in its range.
        channel_names : sequence of str, default=None
            Names of the channels; None numbers them.
        name : str, default=None
            Title of the panel; None draws no title.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.

        Returns
        -------
        DriftDisplay
            The display, already drawn.
        """
        scores = score_drift(reference, new, coverage)
        return cls(scores=scores, channel_names=channel_names, name=name).plot(ax=ax)

    def plot(self, ax: Any = None, *, name: str | None = None) -> DriftDisplay:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or array-like of Axes, default=None
            Axes to draw on, one per panel; None makes a new figure.
        name : str, default=None
            Title of the first panel; None takes the `name` of the display.

        Returns
        -------
        DriftDisplay
            The display itself, with `axes_` and `figure_`.

        Raises
        ------
        TypeError
            If `ax` holds something else than Axes, `channel_names` is no list of names, or the
            display holds something else than the results of the functions.
        ValueError
            If the display holds nothing to draw, or the number of axes or of names does not fit.
        """
        panels: list[Callable[[Any], None]] = []
        names: list[str] = []
        if self.embedding is not None:
            _check_result("embedding", self.embedding, "embedding_drift", "null_distances")
            panels.append(self._draw_null)
        if self.scores is not None:  # the names may raise, so they come before a figure is made
            _check_result("scores", self.scores, "score_drift", "share_outside")
            names = name_channels(len(self.scores.share_outside), self.channel_names)
            panels.append(partial(self._draw_bars, names=names))
        if not panels:
            raise ValueError("embedding and scores are None: pass one of them to draw it.")
        single = ax is None and len(panels) == 1  # of the size of a scikit-learn display
        opened = drawing(None) if single else drawing_panels(ax, 1, len(panels), "panels")
        with opened as axes:
            axes = np.ravel(axes)
            for draw, panel in zip(panels, axes, strict=True):
                draw(panel)
            title = self.name if name is None else name
            if title is not None:
                axes[0].set_title(title)
            self.axes_, self.figure_ = axes, axes[0].figure
            if ax is None:
                self._widen(len(names))
        return self

    def _widen(self, n_channels: int) -> None:
        """Widen the panel of the scores of a new figure, so that many names fit below it."""
        more = 0.17 * max(n_channels - 20, 0)  # inches
        width = self.figure_.get_figwidth()
        if len(self.axes_) > 1:
            self.axes_[1].get_gridspec().set_width_ratios([width / 2, width / 2 + more])
        self.figure_.set_figwidth(width + more)

    def _draw_null(self, ax: Any) -> None:
        """Draw the distance of the new windows beside the distances of other divisions."""
        assert self.embedding is not None
        null, new = distinct_colors(2)
        # Equal distances differ by rounding, and no bin is narrow enough to hold the difference.
        values = np.round(self.embedding.null_distances, 7)
        ax.autoscale(axis="y")  # which an earlier picture on these axes has switched off
        ax.hist(values, bins="sqrt", color=null, alpha=0.6, label=f"{len(values)} other divisions")
        ax.axvline(
            self.embedding.distance,
            color=new,
            lw=2,
            label=f"new windows (p = {self.embedding.p_value:.2g})",
        )
        ax.set(xlabel="energy distance of the embeddings", ylabel="number of divisions")
        _leave_room(ax)
        add_legend(ax, loc="upper center")

    def _draw_bars(self, ax: Any, names: list[str]) -> None:
        """Draw the share of windows outside the range of each channel."""
        assert self.scores is not None
        expected, new = distinct_colors(2)
        shares = self.scores.share_outside
        ax.bar(np.arange(len(shares)), shares, color=new, label="new windows")
        ax.axhline(
            self.scores.expected,
            color=expected,
            ls="--",
            label=f"expected ({100 * self.scores.expected:.3g} %)",
        )
        ax.set_xticks(np.arange(len(shares)), names, **_turned(names))
        ax.set(ylabel="share of windows\noutside the range", xlim=(-1, len(shares)), ylim=(0, 1))
        ax.set_yticks(np.linspace(0, 1, 6))
        _leave_room(ax)
        add_legend(ax, loc="upper center")


def _check_result(name: str, result: Any, function: str, key: str) -> None:
    """Raise a TypeError unless a result has the numbers that a function of drift gives."""
    if hasattr(result, key):
        return
    remedy = "pass what this function returns"
    if hasattr(result, "embedding") and hasattr(result, "scores"):
        remedy = "of the result of drift_scores, pass its embedding and its scores"
    raise TypeError(
        f"{name} must be the result of sklearn_pulse.evaluation.{function}, got"
        f" {type(result).__name__} without {key}: {remedy}."
    )


def _turned(names: list[str]) -> dict[str, Any]:
    """Return keywords of tick labels: turned as far as neighbours would run into each other."""
    if (len(names) + 1) * max(map(len, names)) <= 45:
        return {}
    if len(names) > 10:
        return {"rotation": 90}
    return {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}


def _leave_room(ax: Any) -> None:
    """Raise the upper end of the y axis, so that a legend fits above what is drawn."""
    ax.set_ylim(top=1.35 * ax.get_ylim()[1])
