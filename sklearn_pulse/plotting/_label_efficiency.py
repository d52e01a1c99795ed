"""Plot of score against the share of labels, or the number of labelled people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import check_boolean, check_mapping, check_option, is_number
from ..evaluation._label_scores import check_amounts, label_efficiency_scores
from ._style import (
    CROWDED,
    MARKERS,
    add_legend,
    as_floats,
    axes_or_new,
    distinct_colors,
    drawing,
    legend_entry,
    with_style,
)

_FRACTIONS = (0.01, 0.05, 0.1, 0.5, 1.0)
_MAJORITY = "majority class"
_BANDS = {"std": " ±1 std", "quantiles": ", 10 to 90 %", "none": ""}


class LabelEfficiencyDisplay:
    """Score of a probe against the amount of labels that it learns from, for several methods.

    The amount is a share of the labels, or a number of labelled groups, such as people. Lines are
    means over the repeats (seeds, draws of labels, splits), bands are the spread of the repeats,
    and faint points are the repeats themselves. The axis of the amounts is logarithmic.

    Make a display with :meth:`from_estimators`, which computes the scores, or with
    :meth:`from_scores`.

    Parameters
    ----------
    scores : dict of str to ndarray of shape (n_amounts, n_repeats)
        Scores by method name, NaN where a result is missing. Methods may differ in their number of
        repeats.
    fractions : ndarray of shape (n_amounts,) or None, default=None
        Shares of the labels, ascending, in (0, 1]; None with `n_groups`.
    n_groups : ndarray of shape (n_amounts,) or None, default=None
        Numbers of labelled groups of each class, ascending; None with `fractions`.
    majority_score : float or None, default=None
        Score of a classifier that predicts the most frequent class, drawn as a horizontal line;
        None draws no line.
    score_name : str, default="accuracy"
        Name of the score axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the curves.
    figure_ : matplotlib.figure.Figure
        The figure of `ax_`.
    lines_ : list of matplotlib.lines.Line2D
        The means, one line per method, in the order of `scores`.
    bands_ : list of matplotlib.collections.FillBetweenPolyCollection
        The spreads, one band per method; empty with ``band="none"``.
    points_ : list of matplotlib.collections.PathCollection
        The repeats, one collection per method; empty with ``points=False``.
    majority_line_ : matplotlib.lines.Line2D or None
        The horizontal line of `majority_score`.

    Notes
    -----
    Source: paper, Section 5.2, which compares 1 % and 5 % over five draws for each of five
    initialisations.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_pulse.plotting import LabelEfficiencyDisplay
    >>> display = LabelEfficiencyDisplay.from_scores(
    ...     {"trained": [[0.6, 0.7], [0.8, 0.9]], "untrained": [[0.5, 0.5], [0.7, 0.8]]},
    ...     fractions=(0.01, 0.1),
    ...     majority_score=0.4,
    ... )
    >>> [line.get_label() for line in display.lines_]
    ['trained', 'untrained']
    >>> display.lines_[0].get_ydata()
    array([0.65, 0.85])
    """

    def __init__(
        self,
        scores: Mapping[str, NDArray[np.floating]],
        fractions: NDArray[np.floating] | None = None,
        *,
        n_groups: NDArray[np.integer] | None = None,
        majority_score: float | None = None,
        score_name: str = "accuracy",
    ) -> None:
        self.scores = scores
        self.fractions = fractions
        self.n_groups = n_groups
        self.majority_score = majority_score
        self.score_name = score_name

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any],
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        cv: Any = None,
        fractions: Sequence[float] | None = None,
        n_groups: Sequence[int] | None = None,
        n_draws: int = 5,
        probe: Any = None,
        scoring: Any = None,
        score_name: str | None = None,
        random_state: Any = 0,
        unlabeled_label: int | str | None = -1,
        ax: Any = None,
        **plot_kw: Any,
    ) -> LabelEfficiencyDisplay:
        """Score frozen encoders with a probe on drawn labels, and draw the result.

        In each split, each draw keeps a share of the labels of the training part, or the labels of
        a few groups of it (:func:`~sklearn_pulse.model_selection.mask_labels`: at least one label
        of each class). The probe is fitted on these labels and scored on the test part. All methods
        see the same labels, and within a draw a larger amount only adds labels. With all labels,
        the draws of a split coincide, and only the splits make scores spread.

        Parameters
        ----------
        estimators : dict of str to transformer or array-like
            Methods by their name in the legend. Each is a fitted transformer (also a
            :class:`~sklearn.frozen.FrozenEstimator`, or a fitted pipeline that ends in a
            transformer), or the embeddings of `X`, of shape (n_samples, embedding_dim). Encoders
            are not fitted again, so fit them on recordings that are in no test part.
        X : array-like of shape (n_samples, n_timesteps, n_channels) or None
            Windows; None if embeddings of all methods are passed.
        y : array-like of shape (n_samples,)
            Labels. The probe neither learns from unlabelled windows, marked by `unlabeled_label`,
            nor is it scored on them. They are not embedded either: a
            ``WindowScaler(per="recording")`` in a transformer then scales by the labelled windows
            alone; pass the embeddings of all windows instead of such a transformer.
        groups : array-like of shape (n_samples,), default=None
            Recording or subject of each window, for splits that keep groups whole. Without groups,
            windows of one recording fall on both sides, and scores are too high. `n_groups` labels
            whole groups, so groups are needed then.
        cv : int, splitter, iterable of (train, test) or None, default=None
            Splitter, or the number of folds; None means 5 folds. Folds are made by
            :class:`~sklearn.model_selection.GroupKFold` if `groups` are passed, else by
            :class:`~sklearn.model_selection.StratifiedKFold`. For the paper's division, pass
            :class:`~sklearn_pulse.model_selection.GroupHoldout`.
        fractions : sequence of float or None, default=None
            Shares of the labels, ascending, in (0, 1]. None means 1, 5, 10, 50 and 100 %, or the
            amounts of `n_groups`.
        n_groups : sequence of int or None, default=None
            Numbers of labelled groups that show each class, ascending, instead of shares of the
            labels: for example (1, 2, 4) people. Where a training part has fewer groups, all are
            labelled.
        n_draws : int, default=5
            Number of times that labels are drawn in each split.
        probe : classifier, default=None
            Cloned and fitted on embeddings; None is
            :func:`~sklearn_pulse.evaluation.make_linear_probe`.
        scoring : str, callable or None, default=None
            Scorer, as in :func:`~sklearn.metrics.check_scoring`; None means the ``score`` of the
            probe, which is the accuracy. A probe with a `scoring` of its own, such as a search,
            needs the same score here.
        score_name : str, default=None
            Name of the score axis; None takes the name of `scoring`, if it has one.
        random_state : int, RandomState instance or None, default=0
            Seed of the draws.
        unlabeled_label : int, str or None, default=-1
            Label of windows without a label; None means that every label is a class.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        **plot_kw : dict
            Keyword arguments for :meth:`plot`.

        Returns
        -------
        LabelEfficiencyDisplay
            The display, already drawn, with a line for the majority class of the training parts.
            The columns of its `scores` are splits times draws.

        Raises
        ------
        NotFittedError
            If a transformer is not fitted.
        TypeError
            If a parameter or one of `estimators` is of the wrong type.
        ValueError
            If a parameter is out of its range, `fractions` and `n_groups` are both given, groups
            are missing, inputs differ in length, or the probe has a `scoring` of its own and
            `scoring` is None.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> import numpy as np
        >>> from sklearn_pulse import RandomEncoderTransformer
        >>> from sklearn_pulse.plotting import LabelEfficiencyDisplay
        >>> y, recording = np.arange(60) % 2, np.arange(60) // 10
        >>> X = np.random.default_rng(0).normal(size=(60, 16, 1)) * (1 + y[:, None, None])
        >>> encoder = RandomEncoderTransformer(embedding_dim=8, random_state=0).fit(X)
        >>> display = LabelEfficiencyDisplay.from_estimators(
        ...     {"untrained": encoder}, X, y, groups=recording, cv=3, fractions=(0.1, 1.0)
        ... )
        >>> display.scores["untrained"].shape
        (2, 15)

        The same with the labels of one and of two recordings of each class:

        >>> display = LabelEfficiencyDisplay.from_estimators(
        ...     {"untrained": encoder}, X, y, groups=recording, cv=3, n_groups=(1, 2)
        ... )
        >>> display.ax_.get_xlabel()
        'labelled groups of each class'
        """
        _check_look(ax, **plot_kw)  # before anything is fitted
        if fractions is None and n_groups is None:
            fractions = _FRACTIONS
        scores, majority = label_efficiency_scores(
            estimators,
            X,
            y,
            groups=groups,
            cv=cv,
            fractions=fractions,
            n_groups=n_groups,
            n_draws=n_draws,
            probe=probe,
            scoring=scoring,
            random_state=random_state,
            unlabeled_label=unlabeled_label,
        )
        return cls.from_scores(
            scores,
            fractions,
            n_groups=n_groups,
            majority_score=majority,
            score_name=_score_name(scoring) if score_name is None else score_name,
            ax=ax,
            **plot_kw,
        )

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, ArrayLike],
        fractions: Sequence[float] | None = None,
        *,
        n_groups: Sequence[int] | None = None,
        majority_score: float | None = None,
        score_name: str = "accuracy",
        ax: Any = None,
        **plot_kw: Any,
    ) -> LabelEfficiencyDisplay:
        """Draw scores that are already computed.

        Parameters
        ----------
        scores : dict of str to array-like of shape (n_amounts, n_repeats) or (n_amounts,)
            Scores by method name, NaN where a result is missing.
        fractions : sequence of float or None, default=None
            Shares of the labels, ascending, in (0, 1]. Pass either these or `n_groups`.
        n_groups : sequence of int or None, default=None
            Numbers of labelled groups of each class, ascending.
        majority_score : float, default=None
            Score of a classifier that predicts the most frequent class, drawn as a horizontal
            line; None draws no line.
        score_name : str, default="accuracy"
            Name of the score axis.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        **plot_kw : dict
            Keyword arguments for :meth:`plot`.

        Returns
        -------
        LabelEfficiencyDisplay
            The display, already drawn.

        Raises
        ------
        TypeError
            If an amount or `majority_score` is not a number, or another parameter is of the wrong
            type.
        ValueError
            If amounts are out of their range, do not ascend, or are both or neither given, or
            scores have another shape or are no numbers.
        """
        values, of_groups = check_amounts(fractions, n_groups)
        display = cls(
            _check_scores(scores, len(values)),
            None if of_groups else values,
            n_groups=values if of_groups else None,
            majority_score=majority_score,
            score_name=score_name,
        )
        return display.plot(ax=ax, **plot_kw)

    def plot(
        self,
        ax: Any = None,
        *,
        band: Literal["std", "quantiles", "none"] = "std",
        points: bool = True,
        **line_kw: Any,
    ) -> LabelEfficiencyDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure. On axes with lines, colours and markers go on
            behind those of the lines, and a majority line that is there is not drawn again.
        band : {"std", "quantiles", "none"}, default="std"
            Band around the mean: "std" reaches one population standard deviation of the repeats to
            each side, "quantiles" reaches from the 10 % to the 90 % quantile, "none" draws no band.
            The legend names the kind.
        points : bool, default=True
            Whether to draw each repeat.
        **line_kw : dict
            Keyword arguments for :meth:`matplotlib.axes.Axes.plot`, for the lines of all methods.

        Returns
        -------
        LabelEfficiencyDisplay
            The display itself, with the attributes that end in ``_``.

        Raises
        ------
        TypeError
            If `points` is not True or False, `ax` is something else than one Axes, or an amount or
            `majority_score` is not a number.
        ValueError
            If `band` is unknown, or the display holds what :meth:`from_scores` refuses.
        """
        line_kw = _check_look(ax, band=band, points=points, **line_kw)
        amounts = check_amounts(self.fractions, self.n_groups).values
        by_method = _check_scores(self.scores, len(amounts))
        _check_majority(self.majority_score)
        n_entries = len(by_method) + (self.majority_score is not None)
        with drawing(ax, n_beside=n_entries if n_entries > CROWDED else 0) as ax:
            self.lines_: list[Any] = []
            self.bands_: list[Any] = []
            self.points_: list[Any] = []
            before = [line for line in ax.get_lines() if line.get_label() != _MAJORITY]
            colors = distinct_colors(len(before) + len(by_method))
            for number, (name, scores) in enumerate(by_method.items(), len(before)):
                style = {
                    "color": colors[number],
                    "marker": MARKERS[number % len(MARKERS)],
                    "label": legend_entry(name),
                }
                self._draw_curve(ax, amounts, scores, band, points, style | line_kw)
            self.majority_line_ = None if self.majority_score is None else self._majority_line(ax)
            earlier = [line.get_xdata() for line in before if line.get_marker() in MARKERS]
            self._label_axes(ax, np.unique(np.concatenate([amounts, *earlier])))
            titles = ax.get_legend().get_title().get_text().splitlines() if ax.get_legend() else []
            titles = list(dict.fromkeys([*titles, _legend_title(by_method, band)]))
            add_legend(ax, title="\n".join(titles), title_fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_curve(
        self,
        ax: Any,
        amounts: NDArray[Any],
        scores: NDArray[Any],
        band: str,
        points: bool,
        style: dict[str, Any],
    ) -> None:
        """Draw the line of a method, its band and its points."""
        mean = _by_amount(np.mean, scores)
        self.lines_ += ax.plot(amounts, mean, **style)
        color = self.lines_[-1].get_color()
        if band != "none":
            low, high = _spread(scores, mean, band)
            self.bands_.append(ax.fill_between(amounts, low, high, color=color, alpha=0.15, lw=0))
        if points:
            where = np.broadcast_to(amounts[:, None], scores.shape)
            faint = {"s": 10, "alpha": 0.3, "linewidths": 0, "color": color}
            self.points_.append(ax.scatter(where.ravel(), scores.ravel(), **faint))

    def _majority_line(self, ax: Any) -> Any:
        """Return the line of the majority class, which is drawn unless it is there."""
        for line in ax.get_lines():
            if line.get_label() == _MAJORITY and line.get_ydata()[0] == self.majority_score:
                return line
        return ax.axhline(self.majority_score, color="0.4", ls="--", lw=1, label=_MAJORITY)

    def _label_axes(self, ax: Any, amounts: NDArray[Any]) -> None:
        ax.set_xscale("log")
        shown = _spaced(amounts)
        if self.n_groups is None:
            ticks, label = [f"{100 * share:.3g} %" for share in shown], "labels used for training"
        else:
            ticks, label = [str(number) for number in shown], "labelled groups of each class"
        ax.set_xticks(shown, ticks)
        ax.set_xticks([], minor=True)
        ax.set(xlabel=label, ylabel=self.score_name)


def _check_look(
    ax: Any, *, band: Any = "std", points: Any = True, **line_kw: Any
) -> dict[str, Any]:
    """Return the keywords of the lines; raise unless the parameters of `plot` can be drawn."""
    check_option("band", band, _BANDS)
    check_boolean("points", points)
    if ax is not None:
        axes_or_new(ax)
    return with_style("line", {"markersize": 5}, line_kw)


def _legend_title(by_method: Mapping[str, NDArray[np.floating]], band: str) -> str:
    """Return a title that explains lines and bands, and counts the repeats."""
    finite = [np.isfinite(scores).sum(axis=1) for scores in by_method.values()]
    repeats = set(np.concatenate(finite).tolist())
    if len(repeats) > 1:
        repeats.discard(0)  # an amount without a score has no point
    count = str(min(repeats))
    if len(repeats) > 1:
        count += f" to {max(repeats)}"
    if repeats == {1}:
        return "one run each"
    return f"mean{_BANDS[band]} of {count} runs"


def _check_majority(score: Any) -> None:
    """Raise unless the score of the majority class is a number or None."""
    if score is not None and not is_number(score):
        raise TypeError(
            f"majority_score must be a number or None, got {score!r}; pass for example"
            " majority_score=0.5"
        )


def _check_scores(
    scores: Mapping[str, ArrayLike], n_amounts: int
) -> dict[str, NDArray[np.float64]]:
    """Return one array of shape (n_amounts, n_repeats) per method."""
    check_mapping("scores", scores, "arrays by method", "{'PULSE': array}")
    checked = {}
    for name, values in scores.items():
        try:
            array = as_floats(values)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"scores[{name!r}] does not hold rows of numbers, all of one length ({error}): pass"
                " NaN where a result is missing"
            ) from error
        array = array[:, None] if array.ndim == 1 else array
        if array.ndim != 2 or len(array) != n_amounts or array.shape[1] == 0:
            raise ValueError(
                f"scores[{name!r}] has shape {np.shape(values)}: pass one row for each of the"
                f" {n_amounts} amounts of labels and one column per repeat"
            )
        if np.isinf(array).any():  # no mean could be drawn
            raise ValueError(
                f"scores[{name!r}] holds an infinity: pass NaN where a result is missing"
            )
        checked[name] = array
    return checked


def _by_amount(statistic: Any, scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Apply a statistic to the finite repeats of each amount; NaN without any."""
    rows = (row[~np.isnan(row)] for row in scores)
    return np.array([statistic(row) if row.size else np.nan for row in rows])


def _spread(
    scores: NDArray[np.floating], mean: NDArray[np.float64], band: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lower and the upper edge of the band of one method."""
    if band == "std":
        std = _by_amount(np.std, scores)
        return mean - std, mean + std
    low, high = (
        _by_amount(lambda row, share=share: np.quantile(row, share), scores) for share in (0.1, 0.9)
    )
    return low, high


def _spaced(amounts: NDArray[Any]) -> list[float]:
    """Return the amounts whose tick labels do not overlap, chosen from the largest down."""
    least = 0.11 * np.log(amounts[-1] / amounts[0])
    shown = [amounts[-1]]
    for amount in amounts[-2::-1]:
        if np.log(shown[-1] / amount) >= least:
            shown.append(amount)
    return shown[::-1]


def _score_name(scoring: Any) -> str:
    if scoring is None:
        return "accuracy"
    if isinstance(scoring, str):
        return scoring.replace("_", " ")
    return str(getattr(scoring, "metric", "score"))  # of PROBE_SCORERS and the like
