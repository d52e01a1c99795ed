"""Scatter plot of embeddings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from .._data._labels import labeled_mask
from .._groups import missing_mask, mixes_text, nan_where_masked
from .._inputs._numbers import of_tensor
from .._parameters import check_label, check_option, check_seed
from ._style import (
    add_legend,
    check_numbers,
    check_offers,
    class_names,
    distinct_colors,
    distinct_markers,
    drawing,
    is_color,
    legend_entry,
    list_of_names,
    with_style,
)

_MANY_VALUES = 20  # above this number, whole numbers of a floating-point type are no classes
_MANY_POINTS = 2000  # above this number, points are drawn fainter
_LARGEST_OFFSET = 1000  # of the spread: t-SNE computes in float32
_LARGEST_EXPONENT = 20  # t-SNE finds no neighbours, or crashes, among points of huge or tiny units


class EmbeddingDisplay:
    """Embeddings in two dimensions, coloured by class or by a continuous value.

    Make a display with :meth:`from_estimator` or :meth:`from_embedding`.

    Parameters
    ----------
    coordinates : ndarray of shape (n_samples, 2)
        Coordinates of the points.
    y : ndarray of shape (n_samples,) or None, default=None
        Labels, numbers or text, one colour and legend entry per class; samples without a label
        (`unlabeled_label`, NaN or None) are drawn in grey. Or continuous values, such as an age, on
        a colour scale with a colour bar: floating-point numbers of which some are not whole, or
        more than twenty differ. Of these, NaN is drawn in grey. None draws all samples in one
        colour.
    axis_names : tuple of str, default=("1", "2")
        Names of the two coordinates.
    target_names : sequence of str or None, default=None
        Names of the classes. Integer labels are positions in it; other labels are named in their
        sorted order. None takes the labels themselves.
    name : str or None, default=None
        Title of the axes, for example the name of the method; None draws no title.
    y_name : str or None, default=None
        What `y` means, as the title of the legend or of the colour bar; None draws no title.
    unlabeled_label : int, str or None, default=-1
        Label of samples without a label; None means that every label is a class.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the points.
    figure_ : matplotlib.figure.Figure
        The figure of `ax_`.
    collections_ : list of matplotlib.collections.PathCollection
        The points of the unlabelled samples, if any, then those of each class, or those with a
        continuous value.
    colorbar_ : matplotlib.colorbar.Colorbar or None
        The colour bar of continuous values; None for classes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from sklearn_pulse.plotting import EmbeddingDisplay
    >>> embedding = np.random.default_rng(0).normal(size=(30, 8))
    >>> display = EmbeddingDisplay.from_embedding(embedding, ["rest", "walk", "run"] * 10)
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['rest', 'run', 'walk']
    >>> display.figure_.savefig("embedding.png")  # doctest: +SKIP
    """

    def __init__(
        self,
        coordinates: NDArray[np.floating],
        *,
        y: NDArray[Any] | None = None,
        axis_names: tuple[str, str] = ("1", "2"),
        target_names: Sequence[str] | None = None,
        name: str | None = None,
        y_name: str | None = None,
        unlabeled_label: int | str | None = -1,
    ) -> None:
        self.coordinates = coordinates
        self.y = y
        self.axis_names = axis_names
        self.target_names = target_names
        self.name = name
        self.y_name = y_name
        self.unlabeled_label = unlabeled_label

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike | None = None, **kwargs: Any
    ) -> EmbeddingDisplay:
        """Embed windows with a fitted transformer and draw them.

        Parameters
        ----------
        estimator : transformer
            A fitted transformer, or a fitted pipeline that ends in a transformer.
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows to embed, or any other input of the transformer.
        y : array-like of shape (n_samples,), default=None
            Labels, numbers or text, of which `unlabeled_label` means unlabelled; or continuous
            values.
        **kwargs : dict
            Keyword arguments for :meth:`from_embedding`.

        Returns
        -------
        EmbeddingDisplay
            The display, already drawn.

        Raises
        ------
        TypeError
            If the estimator does not transform, as a pipeline that ends in a classifier.
        """
        what = "a fitted transformer, or the steps of a pipeline up to one, such as pipeline[:-1]"
        check_offers(estimator, "transform", what)
        return cls.from_embedding(estimator.transform(X), y, **kwargs)

    @classmethod
    def from_embedding(
        cls,
        embedding: ArrayLike,
        y: ArrayLike | None = None,
        *,
        method: Literal["pca", "tsne"] = "pca",
        target_names: Sequence[str] | None = None,
        name: str | None = None,
        y_name: str | None = None,
        unlabeled_label: int | str | None = -1,
        random_state: Any = None,
        ax: Any = None,
        **scatter_kw: Any,
    ) -> EmbeddingDisplay:
        """Draw embeddings.

        Parameters
        ----------
        embedding : array-like of shape (n_samples, embedding_dim)
            Embeddings of at least two samples, of at least two dimensions.
        y : array-like of shape (n_samples,), default=None
            Labels, numbers or text, of which `unlabeled_label` means unlabelled; or continuous
            values, of which NaN means unknown: floating-point numbers of which some are not whole,
            or more than twenty differ.
        method : {"pca", "tsne"}, default="pca"
            Projection to two dimensions. "pca": the first two principal components of the
            standardised embedding. "tsne": t-SNE of the embedding as it is, with the settings of
            the paper's figure: perplexity 50 (or ``(n_samples - 1) / 3`` if this is smaller),
            learning rate ``max(n_samples / 48, 50)``, started from the principal components.
        target_names : sequence of str, default=None
            Names of the classes. Integer labels are positions in it; other labels are named in
            their sorted order.
        name : str, default=None
            Title of the axes; None draws no title.
        y_name : str, default=None
            What `y` means, as the title of the legend or of the colour bar; None draws no title.
        unlabeled_label : int, str or None, default=-1
            Label of samples without a label; None means that every label is a class.
        random_state : int, RandomState instance or None, default=None
            Seed of the projection.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        **scatter_kw : dict
            Keyword arguments for :meth:`matplotlib.axes.Axes.scatter`.

        Returns
        -------
        EmbeddingDisplay
            The display, already drawn.

        Raises
        ------
        TypeError
            If `y` holds no labels, or labels without an order, `target_names` is no list of names,
            or another parameter is of the wrong type.
        ValueError
            If `method` is unknown, if `random_state` is out of its range, if the embedding is too
            small or not finite, if the number of labels or of names does not fit, if a number of
            `y` is infinite, or if continuous values and `scatter_kw` both colour the points.

        Notes
        -----
        Source: paper, Appendix F (figure of t-SNE embeddings). The paper embeds with cuML.
        """
        check_option("method", method, ("pca", "tsne"))
        check_seed("random_state", random_state)
        check_label(unlabeled_label)
        points = check_array(
            nan_where_masked(of_tensor(embedding)),
            order="C",  # in another memory order, sums over columns round differently
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name="embedding",
        )
        if min(points.shape) < 2:
            raise ValueError(
                f"embedding has shape {points.shape}, but a picture of two axes needs two samples"
                " and two dimensions or more: pass more windows; of one dimension, draw"
                " matplotlib's hist(embedding[:, 0])."
            )
        labels = _checked_labels(y, len(points))
        project = _pca if method == "pca" else _tsne
        coordinates, axis_names = project(points, random_state)
        display = cls(
            coordinates,
            y=labels,
            axis_names=axis_names,
            target_names=target_names,
            name=name,
            y_name=y_name,
            unlabeled_label=unlabeled_label,
        )
        return display.plot(ax=ax, **scatter_kw)

    def plot(
        self, ax: Any = None, *, name: str | None = None, **scatter_kw: Any
    ) -> EmbeddingDisplay:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        name : str, default=None
            Title of the axes; None takes the `name` of the display.
        **scatter_kw : dict
            Keyword arguments for :meth:`matplotlib.axes.Axes.scatter`. A list or an array with an
            entry per point, such as of sizes or edge colours, is in the order of the points.

        Returns
        -------
        EmbeddingDisplay
            The display itself, with `ax_`, `figure_`, `collections_` and `colorbar_`.

        Raises
        ------
        TypeError
            If the labels of `y` have no order, `target_names` or `axis_names` is no list of names,
            or `ax` is something else than one Axes.
        ValueError
            If `coordinates` has another shape, if `y` or `target_names` cannot be drawn, as in
            :meth:`from_embedding`, if there are not two `axis_names`, if continuous values and
            `scatter_kw` both colour the points, or if `alpha` is not one number.
        """
        points = check_numbers("coordinates", self.coordinates, 2, "(n_samples, 2)")
        if points.shape[1] != 2:
            raise ValueError(
                f"coordinates has {points.shape[1]} columns: pass the two to draw, or all of them"
                " to EmbeddingDisplay.from_embedding, which projects them to two."
            )
        y = _checked_labels(self.y, len(points))
        axis_names = list_of_names("axis_names", self.axis_names)
        if len(axis_names) != 2:
            raise ValueError(f"axis_names holds {len(axis_names)} names: pass two, ('1', '2').")
        continuous = y is not None and _is_continuous(y)
        crowded = len(points) > _MANY_POINTS
        own = {"s": 18, "alpha": 0.3 if crowded else 0.8, "linewidth": 0}
        # May raise, so it comes before a figure is made.
        style = with_style("points", own, scatter_kw)
        if np.ndim(style["alpha"]):  # which no entry of a legend can show
            raise ValueError("alpha is one number for all points: colour them by c=, as RGBA rows.")
        if continuous and {"c", "color"} & style.keys():
            raise ValueError(
                "The continuous values of y colour the points: leave out c and color, or y."
            )
        groups = self._groups(y) if y is None or not continuous else self._values(y)
        if "c" in style:  # matplotlib takes c or color, not both
            groups = [(rows, {**drawn, "color": None}) for rows, drawn in groups]
        has_legend = y is not None and not continuous
        # Points fill the plane, so on a new figure the legend stands beside them.
        beside = ax is None
        with drawing(ax, n_beside=len(groups) if has_legend else 0) as ax:
            self.collections_ = [
                ax.scatter(*points[rows].T, **(drawn | _of_rows(style, rows, len(points))))
                for rows, drawn in groups
            ]
            self.colorbar_ = None
            if continuous:
                self.colorbar_ = ax.figure.colorbar(self.collections_[-1], ax=ax, label=self.y_name)
                self.colorbar_.solids.set_alpha(1)  # faint points would make a faint scale
                if len(groups) > 1:
                    add_legend(ax)
            elif has_legend:
                add_legend(ax, beside=beside, markerscale=1.5, title=self.y_name)
            ax.set(xlabel=axis_names[0], ylabel=axis_names[1])
            title = self.name if name is None else name
            if title is not None:
                ax.set_title(title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _groups(self, y: NDArray[Any] | None) -> list[tuple[Any, dict[str, Any]]]:
        """Return groups of samples that look alike: their rows, and keywords for the points."""
        if y is None:
            return [(slice(None), {})]
        labeled = labeled_mask(y, self.unlabeled_label, "EmbeddingDisplay", allow_missing=True)
        classes = _sorted_classes(y[labeled])
        names, places = class_names(classes, self.target_names)
        drawn: list[tuple[Any, dict[str, Any]]] = []
        if not labeled.all():
            drawn.append((~labeled, {"color": "0.7", "label": "unlabelled"}))
        # A class looks the same whichever others occur.
        colors, markers = distinct_colors(len(names)), distinct_markers(len(names))
        for label, place in zip(classes, places, strict=True):
            style = {"color": colors[place], "marker": markers[place]}
            drawn.append((y == label, style | {"label": legend_entry(names[place])}))
        return drawn

    def _values(self, y: NDArray[Any]) -> list[tuple[Any, dict[str, Any]]]:
        """Return the samples without a continuous value, if any, and those with one."""
        if self.target_names is not None:
            raise ValueError(
                "target_names names classes, but y holds continuous values: leave target_names"
                " out, or pass integer labels."
            )
        known = ~np.isnan(y)
        if np.isinf(y).any():
            raise ValueError("y holds an infinity: pass finite values, NaN if unknown.")
        drawn: list[tuple[Any, dict[str, Any]]] = []
        if not known.all():
            drawn.append((~known, {"color": "0.7", "label": "unknown"}))
        return [*drawn, (known, {"c": y[known], "cmap": "viridis"})]


def _of_rows(style: dict[str, Any], rows: Any, n_points: int) -> dict[str, Any]:
    """Return the keywords for some points; a value per point is cut to these points."""
    return {
        name: np.asarray(value)[rows]
        if np.ndim(value) and len(value) == n_points and not is_color(value)
        else value
        for name, value in style.items()
    }


def _is_continuous(y: NDArray[Any]) -> bool:
    """Return whether y holds continuous values rather than classes."""
    if y.dtype.kind != "f" or y.ndim != 1:
        return False
    known = y[~np.isnan(y)]
    if np.isinf(known).any():  # an infinity is no class, and `_values` refuses it
        return True
    return bool((known != np.round(known)).any()) or len(np.unique(known)) > _MANY_VALUES


def _checked_labels(y: ArrayLike | None, n_samples: int) -> NDArray[Any] | None:
    """Return labels as a flat array, None without any; raise unless each sample has one."""
    labels = None if y is None else _labels(y)
    if labels is not None and len(labels) != n_samples:
        raise ValueError(
            f"y has {len(labels)} labels for {n_samples} embeddings: pass one label for each"
        )
    return labels


def _labels(y: ArrayLike) -> NDArray[Any]:
    """Return labels as a flat array; text mixed with -1 makes an array of objects.

    A missing entry is NaN among floating-point numbers, NaT among dates and None among others.
    """
    mixed = isinstance(y, list | tuple) and mixes_text(y)
    labels = np.asarray(y, dtype=object if mixed else None)
    if labels.ndim == 0:
        raise TypeError(
            f"y must hold one label per embedding, got {type(y).__name__}: pass a list or an array."
        )
    missing = missing_mask(y).reshape(labels.shape)
    if (missing.any() or labels.dtype == object) and labels.dtype.kind not in "mM":
        kind = _kind(labels[~missing], y)
        labels = labels.astype(object)
        labels[missing] = None
        if kind == "i":  # pandas and polars make them floating-point beside a missing entry
            labels[~missing] = [int(label) for label in labels[~missing]]
        labels = labels.astype(float) if kind == "f" else labels
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _kind(known: NDArray[Any], y: ArrayLike) -> str:
    """Return "i" or "f" for labels that are integers or floating-point numbers, else "O"."""
    dtype = getattr(y, "dtype", "")
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)  # of pandas' categories
    if re.match(r"u?int\d", str(dtype).lower()):  # but not an interval
        return "i"
    if known.dtype != object:
        return known.dtype.kind if known.dtype.kind == "f" else "O"
    numbers = known.size and all(isinstance(label, Real) for label in known.flat)
    return "f" if numbers and np.asarray(known.tolist()).dtype.kind == "f" else "O"


def _sorted_classes(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the classes that occur, sorted; raise for labels without an order."""
    try:
        return np.unique(labels)
    except TypeError as error:
        raise TypeError(
            f"y holds labels without an order ({error}): make all of them text, for example by"
            " [str(label) for label in y]."
        ) from error


def _pca(embedding: NDArray[Any], random_state: Any) -> tuple[NDArray[Any], tuple[str, str]]:
    """Return the first two principal components, and names with their share of the variance."""
    # Arrays, whatever output scikit-learn is configured for.
    pca = PCA(2, random_state=random_state).set_output(transform="default")
    scaler = StandardScaler().set_output(transform="default")
    # Powers of two change no digit, and no square of a huge or tiny value leaves the number range.
    embedding = np.ldexp(embedding, -_exponent(embedding, axis=0))
    with np.errstate(invalid="ignore"):  # equal embeddings have no variance to share
        coordinates = pca.fit_transform(scaler.fit_transform(embedding))
    first, second = np.nan_to_num(pca.explained_variance_ratio_)
    return coordinates, (f"PC1 ({first:.0%} of variance)", f"PC2 ({second:.0%} of variance)")


def _exponent(embedding: NDArray[Any], axis: int | None = None) -> NDArray[np.intc]:
    """Return the power of two of the largest size."""
    return np.frexp(np.abs(embedding).max(axis))[1]


def _tsne(embedding: NDArray[Any], random_state: Any) -> tuple[NDArray[Any], tuple[str, str]]:
    """Return the coordinates of t-SNE, and their names."""
    n_samples = len(embedding)
    names = ("t-SNE 1", "t-SNE 2")
    if (embedding == embedding[0]).all():  # t-SNE divides by their spread
        return np.zeros((n_samples, 2)), names
    scaled = np.ldexp(embedding, -_exponent(embedding))  # whose squares are numbers
    if np.abs(scaled.mean(axis=0)).max() > _LARGEST_OFFSET * scaled.std(axis=0).max():
        embedding = embedding - embedding.mean(axis=0)
    unit = _exponent(embedding)
    if abs(unit) > _LARGEST_EXPONENT:
        embedding = np.ldexp(embedding, -unit)
    tsne = TSNE(
        perplexity=min(50, (n_samples - 1) / 3),
        learning_rate=max(n_samples / 48, 50),
        init="pca",
        random_state=random_state,
    ).set_output(transform="default")
    return tsne.fit_transform(embedding), names
