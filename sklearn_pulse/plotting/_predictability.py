"""Picture of what one view tells about the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._parameters import check_mapping
from ._style import check_numbers, check_offers, distinct_colors, drawing


class PredictabilityDisplay:
    """Share of the variance of features that the other view predicts.

    Make a display with :meth:`from_estimator`.

    Parameters
    ----------
    blocks : mapping of str to float
        R2 of each block of features.
    directions : array-like of shape (n_directions,)
        R2 of the leading directions of the embedding, that with most of its variance first.
    name : str or None, default=None
        Title of the axes, for example the name of the data set; None draws no title.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the bars.
    figure_ : matplotlib.figure.Figure
        The figure of `ax_`.
    bars_ : list of matplotlib.container.BarContainer
        The bars of the blocks, then those of the directions.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from sklearn_pulse import CrossPredictionTransformer
    >>> from sklearn_pulse.plotting import PredictabilityDisplay
    >>> X = np.random.default_rng(0).normal(size=(40, 64, 3))
    >>> cross = CrossPredictionTransformer(num_kernels=84, n_components=6, random_state=0)
    >>> display = PredictabilityDisplay.from_estimator(cross.fit(X, groups=np.arange(40) // 10))
    >>> [len(bars) for bars in display.bars_]
    [7, 12]
    >>> display.figure_.savefig("predictability.png")  # doctest: +SKIP
    """

    def __init__(
        self, blocks: Mapping[str, float], directions: ArrayLike, *, name: str | None = None
    ) -> None:
        self.blocks = blocks
        self.directions = directions
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, name: str | None = None, ax: Any = None, **bar_kw: Any
    ) -> PredictabilityDisplay:
        """Draw the predictability that a fitted transformer found.

        Parameters
        ----------
        estimator : CrossPredictionTransformer
            A fitted transformer with the attribute `predictability_`.
        name : str or None, default=None
            Title of the axes; None draws no title.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        **bar_kw : dict
            Keyword arguments for :meth:`matplotlib.axes.Axes.bar`.

        Returns
        -------
        PredictabilityDisplay
            The display, already drawn.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If the estimator is another one, or a pipeline, or `ax` is something else than one
            Axes.
        """
        check_is_fitted(estimator)
        what = "a fitted CrossPredictionTransformer; of a pipeline, this step, such as pipeline[-1]"
        check_offers(estimator, "predictability_", what)
        found = estimator.predictability_
        return cls(found["blocks"], found["directions"], name=name).plot(ax=ax, **bar_kw)

    def plot(
        self, ax: Any = None, *, name: str | None = None, **bar_kw: Any
    ) -> PredictabilityDisplay:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        name : str or None, default=None
            Title of the axes; None takes the `name` of the display.
        **bar_kw : dict
            Keyword arguments for :meth:`matplotlib.axes.Axes.bar`.

        Returns
        -------
        PredictabilityDisplay
            The display itself, with `ax_`, `figure_` and `bars_`.

        Raises
        ------
        TypeError
            If `ax` is something else than one Axes, `blocks` is no mapping, or `directions` no
            array.
        ValueError
            If `blocks` is empty, or `blocks` or `directions` holds something else than numbers.
        """
        check_mapping("blocks", self.blocks, "R2 by block", "{'statistics': 0.5}")
        heights = check_numbers("blocks", list(self.blocks.values()), 1, "(n_blocks,)")
        directions = check_numbers("directions", self.directions, 1, "(n_directions,)")
        first = len(heights) + 1  # a gap between blocks and directions
        places = np.arange(first, first + len(directions))
        of_blocks, of_directions = ({"color": color} | bar_kw for color in distinct_colors(2))
        with drawing(ax) as ax:
            self.bars_ = [
                ax.bar(range(len(heights)), heights, **of_blocks),
                ax.bar(places, directions, **of_directions),
            ]
            ends = sorted({1, len(directions)}) if len(directions) else []
            named = [*self.blocks, *(f"direction {i}" for i in ends)]
            ticks = [*range(len(heights)), *(places[i - 1] for i in ends)]
            ax.set_xticks(ticks, named, rotation=90)
            # The colour of the text is visible on dark axes too.
            ax.axhline(0.0, color=ax.yaxis.label.get_color(), linewidth=0.8)
            ax.set_ylabel("share predicted by the other view (R2)")
            ax.set_ylim(min(-0.05, ax.dataLim.y0), 1.0)  # other bars may be on the axes
            title = self.name if name is None else name
            if title is not None:
                ax.set_title(title)
        self.ax_, self.figure_ = ax, ax.figure
        return self
