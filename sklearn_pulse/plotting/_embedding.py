"""Scatter plot of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from .._data._labels import labeled_mask
from .._parameters import check_option
from ._style import add_legend, axes_or_new, class_names, distinct_colors

_MANY_POINTS = 2000  # more points than this are drawn fainter


class EmbeddingDisplay:
    """Embeddings in two dimensions, coloured by label.

    Make one with :meth:`from_estimator` or :meth:`from_embedding`.

    Parameters
    ----------
    coordinates : ndarray of shape (n_samples, 2)
        What is drawn.
    y : ndarray of shape (n_samples,) or None
        Labels, numbers or text; -1 (unlabelled) is drawn in grey.
    axis_names : tuple of str
        Names of the two coordinates.
    target_names : sequence of str or None
        Names of the classes, as in :meth:`from_embedding`.
    name : str or None
        Title of the axes, for example the method; None draws none.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where it was drawn.
    figure_ : matplotlib.figure.Figure
        The figure of `ax_`.
    collections_ : list of matplotlib.collections.PathCollection
        The points: of the unlabelled samples if there are any, then of each class.

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
    ) -> None:
        self.coordinates = coordinates
        self.y = y
        self.axis_names = axis_names
        self.target_names = target_names
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike | None = None, **kwargs: Any
    ) -> EmbeddingDisplay:
        """Embed windows with a fitted transformer and draw them.

        Parameters
        ----------
        estimator : transformer
            Fitted; also a pipeline that ends in a transformer.
        X : array-like
            What it transforms.
        y : array-like of shape (n_samples,), default=None
            Labels.
        **kwargs
            As in :meth:`from_embedding`.

        Returns
        -------
        EmbeddingDisplay
            Drawn.
        """
        return cls.from_embedding(estimator.transform(X), y, **kwargs)

    @classmethod
    def from_embedding(
        cls,
        embedding: ArrayLike,
        y: ArrayLike | None = None,
        *,
        method: str = "pca",
        target_names: Sequence[str] | None = None,
        name: str | None = None,
        random_state: Any = None,
        ax: Any = None,
        **scatter_kw: Any,
    ) -> EmbeddingDisplay:
        """Draw embeddings.

        Parameters
        ----------
        embedding : array-like of shape (n_samples, embedding_dim)
            At least two samples and two dimensions.
        y : array-like of shape (n_samples,), default=None
            Labels, numbers or text; -1 means unlabelled.
        method : {"pca", "tsne"}, default="pca"
            "pca": the first two principal components of the standardised embedding. "tsne": of
            the embedding as it is, with the settings of the paper's figure: perplexity 50 (as far
            as the number of samples allows), learning rate ``max(n_samples / 48, 50)``, started
            from the principal components.
        target_names : sequence of str, default=None
            Names of the classes: integer labels are positions in it, other labels are named in
            their sorted order.
        name : str, default=None
            Title of the axes.
        random_state : int, RandomState instance or None, default=None
            Of the projection.
        ax : matplotlib.axes.Axes, default=None
            None makes a new figure.
        **scatter_kw
            For :meth:`matplotlib.axes.Axes.scatter`.

        Returns
        -------
        EmbeddingDisplay
            Drawn.

        Raises
        ------
        ValueError
            For another `method`, an embedding that is too small or not finite, or labels or names
            whose number does not fit.

        Notes
        -----
        Source: paper, Appendix F (figure of t-SNE embeddings). The paper embeds with cuML.
        """
        check_option("method", method, ("pca", "tsne"))
        embedding = check_array(
            embedding, ensure_min_samples=2, ensure_min_features=2, input_name="embedding"
        )
        labels = None if y is None else _labels(y)
        if labels is not None and len(labels) != len(embedding):
            raise ValueError(f"y has {len(labels)} labels for {len(embedding)} embeddings")
        project = _pca if method == "pca" else _tsne
        coordinates, axis_names = project(embedding, random_state)
        display = cls(
            coordinates, y=labels, axis_names=axis_names, target_names=target_names, name=name
        )
        return display.plot(ax=ax, **scatter_kw)

    def plot(
        self, ax: Any = None, *, name: str | None = None, **scatter_kw: Any
    ) -> EmbeddingDisplay:
        """Draw, on `ax` or a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            None makes a new figure.
        name : str, default=None
            Title of the axes; None takes the display's own.
        **scatter_kw
            For :meth:`matplotlib.axes.Axes.scatter`.

        Returns
        -------
        EmbeddingDisplay
            Itself, with `ax_`, `figure_` and `collections_`.
        """
        groups = self._groups()  # raises before there is a figure
        # Points fill the plane: on a figure of its own the legend covers none of them.
        beside = ax is None
        ax = axes_or_new(ax, n_beside=0 if self.y is None else len(groups))
        crowded = len(self.coordinates) > _MANY_POINTS
        style = {"s": 18, "alpha": 0.3 if crowded else 0.8, "linewidths": 0} | scatter_kw
        self.collections_ = [
            ax.scatter(*self.coordinates[rows].T, **(drawn | style)) for rows, drawn in groups
        ]
        if self.y is not None:
            add_legend(ax, beside=beside, markerscale=1.5)
        ax.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])
        title = self.name if name is None else name
        if title is not None:
            ax.set_title(title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _groups(self) -> list[tuple[Any, dict[str, Any]]]:
        """Return the samples that are drawn alike, and how: rows and keywords."""
        if self.y is None:
            return [(slice(None), {})]
        labeled = labeled_mask(self.y, -1, "EmbeddingDisplay")
        classes = np.unique(self.y[labeled])
        names = class_names(classes, self.target_names)
        drawn = [] if labeled.all() else [(~labeled, {"color": "0.7", "label": "unlabelled"})]
        for label, name, color in zip(classes, names, distinct_colors(len(classes)), strict=True):
            drawn.append((self.y == label, {"color": color, "label": name}))
        return drawn


def _labels(y: ArrayLike) -> NDArray[Any]:
    """Return labels as an array; text beside -1 stays an object array."""
    mixed = isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) > 1
    return np.asarray(y, dtype=object if mixed else None)


def _pca(embedding: NDArray[Any], random_state: Any) -> tuple[NDArray[Any], tuple[str, str]]:
    pca = PCA(2, random_state=random_state)
    coordinates = pca.fit_transform(StandardScaler().fit_transform(embedding))
    first, second = pca.explained_variance_ratio_
    return coordinates, (f"PC1 ({first:.0%} of variance)", f"PC2 ({second:.0%} of variance)")


def _tsne(embedding: NDArray[Any], random_state: Any) -> tuple[NDArray[Any], tuple[str, str]]:
    n_samples = len(embedding)
    tsne = TSNE(
        perplexity=min(50, (n_samples - 1) / 3),
        learning_rate=max(n_samples / 48, 50),
        init="pca",
        random_state=random_state,
    )
    return tsne.fit_transform(embedding), ("t-SNE 1", "t-SNE 2")
