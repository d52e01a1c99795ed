"""Plot of loss against epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .._parameters import check_boolean, check_integer, is_number
from ._style import add_legend, check_numbers, drawing, legend_entry, with_style


class TrainingCurveDisplay:
    """Training and validation loss against the epoch, with the selected epoch.

    The training loss is the solid line. The validation loss, if computed, is the dashed line of the
    same colour. A dotted vertical line marks the epoch whose weights were kept. Thin grey lines
    mark where a fit with ``warm_start`` went on, under a new schedule. Losses of different methods
    are different quantities, so only the shapes of their curves can be compared.

    Make a display with :meth:`from_estimator` or :meth:`from_history`. Pass ``ax=display.ax_`` to
    draw another estimator on the same axes.

    Parameters
    ----------
    epochs : ndarray of int of shape (n_epochs,)
        Numbers of the epochs, counted from 1.
    train_loss : ndarray of shape (n_epochs,)
        Mean loss of the batches of each epoch.
    valid_epochs : ndarray of int of shape (n_validations,)
        Epochs in which the validation loss was computed.
    valid_loss : ndarray of shape (n_validations,)
        Validation losses; empty without a validation part.
    selected_epoch : int or None, default=None
        Epoch whose weights were kept, counted from 1; None if the last weights were kept.
    fit_starts : sequence of int, default=()
        First epoch of each further fit, counted from 1.
    name : str or None, default=None
        Name of the estimator in the legend; None leaves it out.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the curves.
    figure_ : matplotlib.figure.Figure
        The figure of `ax_`.
    lines_ : list of matplotlib.lines.Line2D
        The line of the training loss and, if computed, that of the validation loss.
    selected_line_ : matplotlib.lines.Line2D or None
        The vertical line at the selected epoch.
    fit_lines_ : list of matplotlib.lines.Line2D
        The vertical lines before the epochs of `fit_starts`.

    Notes
    -----
    This is not :class:`~sklearn.model_selection.LearningCurveDisplay`, which draws a score against
    the number of training samples.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_pulse.plotting import TrainingCurveDisplay
    >>> history = [
    ...     {"train_loss": 1.0, "valid_loss": 1.1},
    ...     {"train_loss": 0.5, "valid_loss": 0.7},
    ...     {"train_loss": 0.4, "valid_loss": 0.8},
    ... ]
    >>> display = TrainingCurveDisplay.from_history(history, selected_epoch=2, name="PULSE")
    >>> [line.get_label() for line in display.lines_]
    ['PULSE, training', 'PULSE, validation']
    >>> display.lines_[1].get_ydata()
    array([1.1, 0.7, 0.8])
    """

    def __init__(
        self,
        epochs: NDArray[np.integer],
        train_loss: NDArray[np.floating],
        *,
        valid_epochs: NDArray[np.integer],
        valid_loss: NDArray[np.floating],
        selected_epoch: int | None = None,
        fit_starts: Sequence[int] = (),
        name: str | None = None,
    ) -> None:
        self.epochs = epochs
        self.train_loss = train_loss
        self.valid_epochs = valid_epochs
        self.valid_loss = valid_loss
        self.selected_epoch = selected_epoch
        self.fit_starts = fit_starts
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        name: str | None = None,
        log_scale: bool = False,
        ax: Any = None,
        **line_kw: Any,
    ) -> TrainingCurveDisplay:
        """Draw the curves of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with a ``history_``, or a :class:`~sklearn.frozen.FrozenEstimator`
            around such an estimator.
        name : str, default=None
            Name of the estimator in the legend; None takes the name of its class.
        log_scale : bool, default=False
            Whether the axis of the loss is logarithmic.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        **line_kw : dict
            Keyword arguments for :meth:`matplotlib.axes.Axes.plot`, for both lines.

        Returns
        -------
        TrainingCurveDisplay
            The display, already drawn.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If the estimator keeps no history, as an untrained encoder or a pipeline, or another
            parameter is of the wrong type. For a pipeline, pass its trained step.
        ValueError
            With `log_scale`, if a loss is zero or negative.
        """
        history = _history_of(estimator)
        inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
        return cls.from_history(
            history,
            selected_epoch=getattr(estimator, "selected_epoch_", None),
            name=type(inner).__name__ if name is None else name,
            log_scale=log_scale,
            ax=ax,
            **line_kw,
        )

    @classmethod
    def from_history(
        cls,
        history: Sequence[Mapping[str, Any]],
        *,
        selected_epoch: int | None = None,
        name: str | None = None,
        log_scale: bool = False,
        ax: Any = None,
        **line_kw: Any,
    ) -> TrainingCurveDisplay:
        """Draw the curves of a history.

        Parameters
        ----------
        history : sequence of dict
            One dictionary per epoch, as in ``history_``, with "train_loss" and, if there is a
            validation part, "valid_loss". If some epochs have "valid_batch_count", the validation
            loss is drawn for these epochs only, since the others repeat the last value. Where
            "fit" rises, a further fit began.
        selected_epoch : int, default=None
            Epoch whose weights were kept, counted from 1; None draws no mark.
        name : str, default=None
            Name of the estimator in the legend; None leaves it out.
        log_scale : bool, default=False
            Whether the axis of the loss is logarithmic.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        **line_kw : dict
            Keyword arguments for :meth:`matplotlib.axes.Axes.plot`, for both lines.

        Returns
        -------
        TrainingCurveDisplay
            The display, already drawn.

        Raises
        ------
        TypeError
            If the history is no list, an epoch is no dictionary, or another parameter is of the
            wrong type.
        ValueError
            If the history is empty, an epoch has no "train_loss", a loss or a "fit" is no number,
            `selected_epoch` lies outside the history, or a loss is zero or negative with
            `log_scale`.
        """
        rows = _checked_rows(history)
        validated = _validated(rows)
        if selected_epoch is not None:
            check_integer("selected_epoch", selected_epoch, 1)
            if selected_epoch > len(rows):
                raise ValueError(
                    f"selected_epoch={selected_epoch} lies behind the {len(rows)} epochs of"
                    " history: count epochs from 1"
                )
        display = cls(
            np.arange(1, len(rows) + 1),
            np.array([row["train_loss"] for row in rows], dtype=float),
            valid_epochs=np.array(validated, dtype=int) + 1,
            valid_loss=np.array([rows[i]["valid_loss"] for i in validated], dtype=float),
            selected_epoch=selected_epoch,
            fit_starts=[
                number
                for number, (before, row) in enumerate(pairwise(rows), 2)
                if row.get("fit", 1) > before.get("fit", 1)
            ],
            name=name,
        )
        return display.plot(ax=ax, log_scale=log_scale, **line_kw)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        log_scale: bool = False,
        **line_kw: Any,
    ) -> TrainingCurveDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        name : str, default=None
            Name of the estimator in the legend; None takes the `name` of the display.
        log_scale : bool, default=False
            Whether the axis of the loss is logarithmic.
        **line_kw : dict
            Keyword arguments for :meth:`matplotlib.axes.Axes.plot`, for both lines.

        Returns
        -------
        TrainingCurveDisplay
            The display itself, with the attributes that end in ``_``.

        Raises
        ------
        TypeError
            If `log_scale` is not True or False, `ax` is something else than one Axes, or epochs or
            losses of the display are of the wrong type.
        ValueError
            With `log_scale`, if a loss is zero or negative; or if the display has no epoch, or not
            one loss for each epoch.
        """
        check_boolean("log_scale", log_scale)
        epochs, train_loss = self._checked("epochs", "train_loss")
        valid_epochs, valid_loss = self._checked("valid_epochs", "valid_loss")
        if not len(epochs):
            raise ValueError("epochs holds no epoch: pass one or more, and their train_loss.")
        if self.selected_epoch is not None:
            check_integer("selected_epoch", self.selected_epoch, 1)
        for first in self.fit_starts:
            check_integer("each of fit_starts", first, 1)
        if log_scale and (np.append(train_loss, valid_loss) <= 0).any():
            raise ValueError("log_scale=True needs positive losses: set log_scale=False")
        name = self.name if name is None else name
        prefix = "" if name is None else f"{legend_entry(name)}, "
        # A single epoch makes no line, so few epochs are drawn with markers.
        markers = {"marker": "o", "markersize": 3} if len(epochs) < 30 else {}
        style = with_style("line", {**markers, "label": f"{prefix}training"}, line_kw)
        with drawing(ax) as ax:
            self.lines_ = ax.plot(epochs, train_loss, **style)
            color = self.lines_[0].get_color()
            if len(valid_loss):
                style |= {"label": f"{prefix}validation", "color": color, "linestyle": "--"}
                self.lines_ += ax.plot(valid_epochs, valid_loss, **style)
            self.selected_line_ = None
            if self.selected_epoch is not None:
                self.selected_line_ = ax.axvline(
                    self.selected_epoch,
                    color=color,
                    ls=":",
                    lw=1,
                    label=f"{prefix}selected epoch {self.selected_epoch}",
                )
            grey = {"color": "0.7", "lw": 1, "zorder": 0}
            self.fit_lines_ = [ax.axvline(first - 0.5, **grey) for first in self.fit_starts]
            if self.fit_lines_:
                self.fit_lines_[0].set_label(f"{prefix}further fit")
            _set_scales(ax, log_scale)
            add_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _checked(self, *names: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return epochs and their losses, as arrays; raise unless each epoch has one loss."""
        epochs, losses = (
            check_numbers(name, getattr(self, name), 1, "(n_epochs,)") for name in names
        )
        if len(epochs) != len(losses):
            raise ValueError(
                f"{names[0]} has {len(epochs)} epochs and {names[1]} has {len(losses)} losses: pass"
                " one loss for each epoch."
            )
        return epochs, losses


def _set_scales(ax: Any, log_scale: bool) -> None:
    """Set the ticks of the epochs and of the losses, and name both axes."""
    from matplotlib.ticker import AutoLocator, LogLocator, MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    if log_scale:
        ax.set_yscale("log")
        # Losses often stay within a decade, where ticks at powers of ten are too coarse, and some
        # hardly change.
        low, high = ax.get_ylim()
        fine = LogLocator(subs=(1, 1.5, 2, 3, 5, 7)) if high > 3 * low else AutoLocator()
        ax.yaxis.set_major_locator(fine)
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
    ax.set(xlabel="epoch", ylabel="loss")


def _checked_rows(history: Any) -> list[Mapping[str, Any]]:
    """Return the epochs of a history; raise for one that cannot be drawn."""
    if not isinstance(history, Iterable):
        raise TypeError(f"history must be a list of dictionaries, got {history!r}")
    rows = list(history)
    if not rows:
        raise ValueError("history holds no epoch: fit the estimator for at least one")
    if not all(isinstance(row, Mapping) for row in rows):
        raise TypeError(
            "history must hold a dictionary for every epoch, such as {'train_loss': 0.5}"
        )
    if not all(is_number(row.get("train_loss")) for row in rows):
        raise ValueError("history must hold a number 'train_loss' for every epoch")
    if not all(is_number(rows[i]["valid_loss"]) for i in _validated(rows)):
        raise ValueError(
            "history holds a 'valid_loss' that is no number: leave it out where it is unknown"
        )
    if not all(is_number(row.get("fit", 1)) for row in rows):
        raise ValueError("history holds a 'fit' that is no number: leave it out, or count fits")
    return rows


def _history_of(estimator: Any) -> list[dict[str, Any]]:
    """Return the history of a fitted estimator; raise with directions if it has none."""
    kind = type(estimator).__name__
    if hasattr(estimator, "steps"):
        raise TypeError(
            f"a {kind} has no history itself: pass its trained step, such as pipeline['pulse']"
        )
    check_is_fitted(estimator)
    try:
        history = estimator.history_
    except AttributeError as error:
        remedy = "pass an estimator that was trained in epochs, for example a PulseTransformer"
        for inner in ("estimator_", "best_estimator_"):
            if hasattr(getattr(estimator, inner, None), "history_"):
                remedy = f"pass its {inner}, which does"
        raise TypeError(f"{kind} keeps no history_ of losses by epoch: {remedy}") from error
    if not history:
        raise NotFittedError(f"the history_ of this {kind} is empty: fit it for one epoch or more")
    return history


def _validated(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the positions of the epochs in which a validation loss was computed."""
    counted = any("valid_batch_count" in row for row in rows)
    return [
        i
        for i, row in enumerate(rows)
        if row.get("valid_loss") is not None and (not counted or "valid_batch_count" in row)
    ]
