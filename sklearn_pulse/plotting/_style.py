"""Shared parts of the displays: what is drawn, axes to draw on, distinct colours, the legend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._extras import needs
from .._groups import nan_where_masked
from .._inputs._numbers import of_tensor

CROWDED = 10  # above this number, legend entries stand beside the axes
MARKERS = "osD^vPX*<>"
# Blue, orange, green, vermilion, purple, sky blue, black and yellow, of Okabe and Ito.
_COLORS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#000000",
    "#f0e442",
)


def check_offers(estimator: Any, name: str, what: str) -> None:
    """Raise a TypeError, which tells `what` to pass, unless an estimator has what is drawn."""
    offered = getattr(estimator, name, None)
    if offered is None or isinstance(offered, str):  # as the parameter reconstruct of SimMTM
        raise TypeError(f"{type(estimator).__name__} has no {name}: pass {what}.")


def axes_or_new(ax: Any, n_beside: int = 0) -> Any:
    """Return `ax`, or axes on a new figure if it is None.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        Axes to draw on, or None.
    n_beside : int, default=0
        Number of entries of a legend beside the axes, for which a new figure is made wider.

    Returns
    -------
    matplotlib.axes.Axes
        `ax`, or the axes of a new figure, which leaves room for a legend beside them.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If `ax` is something else, such as several axes or a figure.
    """
    if ax is not None:
        _check_axes(ax, "ax must be one Axes")
        return ax
    plt = _pyplot()
    width, height = plt.rcParams["figure.figsize"]
    width *= 1 + 0.3 * _legend_columns(n_beside)
    ax = plt.subplots(layout="constrained", figsize=(width, height))[1]
    ax.set_prop_cycle(color=_palette())
    return ax


@contextmanager
def _closed_on_error(figure: Any, is_new: bool) -> Iterator[None]:
    """Close a new figure if drawing on it fails, since it would stay open half drawn."""
    try:
        yield
    except Exception:  # whatever it is, it is raised again
        if is_new:
            _pyplot().close(figure)
        raise


@contextmanager
def drawing(ax: Any, n_beside: int = 0) -> Iterator[Any]:
    """Give axes to draw on, as :func:`axes_or_new`; close a new figure if drawing fails.

    Keywords of the caller may not suit the artist, and an empty figure would stay open then.
    """
    axes = axes_or_new(ax, n_beside)
    with _closed_on_error(axes.figure, ax is None):
        yield axes


@contextmanager
def drawing_panels(axes: Any, n_rows: int, n_columns: int, unit: str) -> Iterator[NDArray[Any]]:
    """Give the axes of several panels, row by row; close a new figure if drawing fails.

    `unit` is what the panels are called in an error. On a new figure, panels below each other share
    the axis of time.
    """
    panels = _panels(axes, n_rows, n_columns, unit)
    with _closed_on_error(panels[0].figure, axes is None):
        yield panels


def _check_axes(ax: Any, what: str) -> None:
    """Raise a TypeError unless `ax` is one Axes of matplotlib."""
    with _needs_matplotlib():
        from matplotlib.axes import Axes
    if not isinstance(ax, Axes):
        raise TypeError(
            f"{what} of matplotlib, got {type(ax).__name__}: pass one of them, such as axes[0]."
        )


def _needs_matplotlib() -> AbstractContextManager[None]:
    """Raise with directions where an import of matplotlib fails."""
    return needs("sklearn_pulse.plotting needs matplotlib", "plot")


def _pyplot() -> Any:
    """Return matplotlib.pyplot; raise with directions if it is not installed."""
    with _needs_matplotlib():
        import matplotlib.pyplot as plt
    return plt


def with_style(
    kind: Literal["line", "points"], own: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return keywords of an artist, of which those of the caller replace those of a display.

    Parameters
    ----------
    kind : {"line", "points"}
        What is drawn: a line of `plot`, or the points of `scatter`.
    own : mapping
        Keywords of the display.
    given : mapping
        Keywords of the caller, which may be aliases, such as `lw` for `linewidth`.

    Returns
    -------
    dict
        The keywords, by their long names.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    AttributeError
        If the caller gives a keyword that lines lack.
    TypeError
        If the caller gives a keyword under two names.

    Examples
    --------
    >>> with_style("line", {"markersize": 5}, {"ms": 3})
    {'markersize': 3}
    """
    with _needs_matplotlib():
        from matplotlib.cbook import normalize_kwargs
        from matplotlib.collections import Collection
        from matplotlib.lines import Line2D
    artist = Line2D if kind == "line" else Collection
    style = {**own} | normalize_kwargs(dict(given), artist)
    if kind == "line":
        Line2D([], [], **style)  # raises for a keyword that lines lack
    return style


def _panels(axes: Any, n_rows: int, n_columns: int, unit: str) -> NDArray[Any]:
    """Return the axes of several panels, on a new figure if `axes` is None."""
    n_panels = n_rows * n_columns
    if axes is not None:
        axes = np.ravel(axes)
        if len(axes) != n_panels:
            raise ValueError(
                f"{len(axes)} axes for {n_panels} {unit}: pass one of ax or axes for each."
            )
        for ax in axes:
            _check_axes(ax, "each of ax or axes must be an Axes")
        return axes
    _, made = _pyplot().subplots(
        n_rows,
        n_columns,
        sharex=n_columns == 1,
        squeeze=False,
        layout="constrained",
        figsize=(7, 1 + 1.2 * n_rows) if n_columns == 1 else (4.5 * n_columns, 3.6 * n_rows),
    )
    for ax in np.ravel(made):
        ax.set_prop_cycle(color=_palette())
    return np.ravel(made)


def as_floats(values: Any) -> NDArray[np.float64]:
    """Return numbers as an array, NaN where masked; raise if they are no real numbers."""
    values = nan_where_masked(of_tensor(values))
    kept = np.asarray(values)
    if kept.dtype.kind not in "fiubO":  # NumPy cuts complex numbers, and makes numbers of dates
        raise ValueError(f"it holds {kept.dtype}")
    return np.asarray(values, dtype=float)


def check_numbers(name: str, values: Any, n_axes: int, shape: str) -> NDArray[np.float64]:
    """Return numbers to draw as an array.

    Parameters
    ----------
    name : str
        Name of the values in error messages.
    values : array-like
        The numbers; masked entries become NaN.
    n_axes : int
        Number of axes that they must have.
    shape : str
        The shape in the error message.

    Returns
    -------
    ndarray of float
        The numbers.

    Raises
    ------
    TypeError
        If the values are no array, such as None, one number or a mapping.
    ValueError
        If the values are no real numbers, or have another number of axes.

    Examples
    --------
    >>> check_numbers("directions", [1, 2], 1, "(n_directions,)")
    array([1., 2.])
    """
    try:
        array = as_floats(values)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} does not hold numbers ({error}): pass an array of numbers of shape {shape}."
        ) from error
    if array.ndim == 0:
        raise TypeError(f"{name} must be an array of shape {shape}, got {values!r}.")
    if array.ndim != n_axes:
        raise ValueError(f"{name} has shape {array.shape}: pass an array of shape {shape}.")
    return array


def name_channels(n_channels: int, names: Sequence[str] | None) -> list[str]:
    """Return the name of each channel.

    Parameters
    ----------
    n_channels : int
        Number of channels.
    names : sequence of str or None
        Names of the channels; None numbers them.

    Returns
    -------
    list of str
        One name per channel.

    Raises
    ------
    TypeError
        If `names` is a single string, a mapping or no sequence at all.
    ValueError
        If the number of names is not that of the channels.

    Examples
    --------
    >>> name_channels(2, None)
    ['channel 0', 'channel 1']
    """
    if names is None:
        return [f"channel {i}" for i in range(n_channels)]
    names = list_of_names("channel_names", names)
    if len(names) != n_channels:
        raise ValueError(
            f"channel_names has {len(names)} names for {n_channels} channels: pass one name per"
            " channel."
        )
    return names


def list_of_names(parameter: str, names: Any) -> list[str]:
    """Return names as text.

    Raise a TypeError for a single string, and for names without an order, such as a mapping.
    """
    # A mapping would give its keys, which are labels rather than names.
    if isinstance(names, str | Mapping | Set) or not isinstance(names, Iterable):
        example = [names] if isinstance(names, str) else ["a", "b"]
        raise TypeError(f"{parameter} must be a list of names, got {names!r}: pass {example!r}.")
    return [str(name) for name in names]


def _palette() -> list[str]:
    """Return our colours; where the style in force is dark, white takes the place of black."""
    with _needs_matplotlib():
        from matplotlib import rcParams
        from matplotlib.colors import to_rgb
    # The face of the axes may be transparent, while text is always seen.
    is_dark = np.mean(to_rgb(rcParams["axes.labelcolor"])) > 0.5
    return ["#ffffff" if is_dark and color == "#000000" else color for color in _COLORS]


def distinct_colors(n_colors: int) -> list[tuple[float, ...]]:
    """Return distinct colours, also for people who do not see red and green apart.

    Parameters
    ----------
    n_colors : int
        Number of colours. Up to eight are those of Okabe and Ito, "Color Universal Design" (2008),
        with white for black under a dark style; more are spread evenly over "viridis", whose
        lightness rises throughout. So many colours need distinct markers beside them.

    Returns
    -------
    list of tuple of float
        RGBA values from 0 to 1, all different.
    """
    with _needs_matplotlib():
        from matplotlib import colormaps
        from matplotlib.colors import to_rgba

    if n_colors <= len(_COLORS):
        return [to_rgba(color) for color in _palette()[:n_colors]]
    spread = colormaps["viridis"]
    return [spread(i / (n_colors - 1)) for i in range(n_colors)]


def distinct_markers(n_markers: int) -> list[str]:
    """Return markers for groups of points: dots where colours suffice to tell groups apart.

    More than ten repeat, so that neighbours differ.
    """
    kinds = "o" if n_markers <= len(_COLORS) else MARKERS
    return [kinds[i % len(kinds)] for i in range(n_markers)]


def add_legend(ax: Any, *, beside: bool = False, **legend_kw: Any) -> None:
    """Add a legend, of which points and lines are opaque, in the axes or beside them.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Axes of the legend. All artists with a label are entries.
    beside : bool, default=False
        Whether the legend stands beside the axes. A legend of many entries always does.
    **legend_kw : dict
        Keyword arguments for :meth:`matplotlib.axes.Axes.legend`.
    """
    with _needs_matplotlib():
        from matplotlib.patches import Patch
    entries = len(ax.get_legend_handles_labels()[1])
    style: dict[str, Any] = {"framealpha": 0.85, "edgecolor": "none"}  # readable on top of points
    if beside or entries > CROWDED:
        style |= {"loc": "upper left", "bbox_to_anchor": (1, 1), "fontsize": "small"}
        style |= {"ncols": _legend_columns(entries)}
    legend = ax.legend(**(style | legend_kw))
    for handle in legend.legend_handles:
        if not isinstance(handle, Patch):  # a patch shows the very colour of its bars
            handle.set_alpha(1)  # nearly transparent points would be invisible in the legend


def is_color(value: Any) -> bool:
    """Return whether matplotlib reads a value as one colour, such as three numbers."""
    with _needs_matplotlib():
        from matplotlib.colors import is_color_like
    return bool(is_color_like(value))


def legend_entry(name: Any) -> str:
    """Return a name as a label that matplotlib shows in a legend.

    A space comes before an empty name, and one that begins with "_", which matplotlib leaves out.

    Examples
    --------
    >>> legend_entry("rest"), legend_entry("_rest")
    ('rest', ' _rest')
    """
    text = str(name)
    return f" {text}" if not text or text.startswith("_") else text


def _legend_columns(n_entries: int) -> int:
    """Return the number of columns of at most 20 entries."""
    return -(-n_entries // 20)


class ClassNames(NamedTuple):
    """Names of all classes that could occur, and the place among them of each that does."""

    names: list[str]
    places: list[int]


def class_names(
    classes: Sequence[Any] | NDArray[Any], target_names: Sequence[str] | None
) -> ClassNames:
    """Name the classes that occur.

    Parameters
    ----------
    classes : sequence
        The labels that occur, sorted.
    target_names : sequence of str or None
        Names of the classes. If all labels are integers and positions in `target_names`, they are
        looked up by position, as in the data sets of scikit-learn. Else the labels are named in
        their sorted order. None takes the labels themselves.

    Returns
    -------
    ClassNames
        The names, and a place for each of `classes`.

    Raises
    ------
    TypeError
        If `target_names` is a single string, a mapping or no sequence at all.
    ValueError
        If some position has no name, and the number of names is not that of the classes; or if
        integers from 1 on are positions in `target_names`, but could also count from 1.

    Examples
    --------
    >>> class_names([0, 2], ["rest", "walk", "run"])
    ClassNames(names=['rest', 'walk', 'run'], places=[0, 2])
    >>> class_names([1, 2], ["rest", "walk"])
    ClassNames(names=['rest', 'walk'], places=[0, 1])
    """
    in_order = list(range(len(classes)))
    if target_names is None:
        return ClassNames([str(label) for label in classes], in_order)
    names = list_of_names("target_names", target_names)
    if all(hasattr(label, "__index__") and 0 <= label < len(names) for label in classes):
        if len(classes) and classes[0] > 0:
            raise ValueError(
                f"y holds the labels {classes[0]} to {classes[-1]} of {len(names)} target_names,"
                " and may count from 0 or from 1: pass the names as y,"
                " numpy.asarray(target_names)[y], or [y - 1] if it counts from 1."
            )
        return ClassNames(names, [int(label) for label in classes])
    if len(names) != len(classes):
        raise ValueError(
            f"target_names has {len(names)} names for the {len(classes)} classes of y: pass one"
            " name per class, in the order of the sorted labels."
        )
    return ClassNames(names, in_order)
