"""Scatter plot of embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.preprocessing import StandardScaler

from .._parameters import check_option


class EmbeddingDisplay:
    """Embeddings in two dimensions, coloured by label.

    Make one with :meth:`from_estimator` or :meth:`from_embedding`.

    Parameters
    ----------
    coordinates : ndarray of shape (n_samples, 2)
        What is drawn.
    y : ndarray of shape (n_samples,) or None
        Labels; -1 (unlabelled) is drawn in grey.
    axis_names : tuple of str
        Names of the two coordinates.
    target_names : sequence of str or None
        Name of each class, in the order of the sorted labels.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where it was drawn.
    figure_ : matplotlib.figure.Figure
        The figure of `ax_`.
    """

    def __init__(
        self,
        coordinates: NDArray[np.floating],
        *,
        y: NDArray[Any] | None = None,
        axis_names: tuple[str, str] = ("1", "2"),
        target_names: Any = None,
    ) -> None:
        self.coordinates = coordinates
        self.y = y
        self.axis_names = axis_names
        self.target_names = target_names

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
        target_names: Any = None,
        random_state: Any = None,
        ax: Any = None,
        **scatter_kw: Any,
    ) -> EmbeddingDisplay:
        """Draw embeddings.

        Parameters
        ----------
        embedding : array-like of shape (n_samples, embedding_dim)
            At least two samples.
        y : array-like of shape (n_samples,), default=None
            Labels.
        method : {"pca", "tsne"}, default="pca"
            Projection of the standardised embedding. For "tsne" the settings are those of the
            paper (perplexity 50, as far as the number of samples allows).
        target_names : sequence of str, default=None
            Name of each class, in the order of the sorted labels.
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
            For another `method`, or labels whose number is not that of the samples.
        """
        check_option("method", method, ("pca", "tsne"))
        embedding = np.asarray(embedding)
        labels = None if y is None else np.asarray(y)
        if labels is not None and len(labels) != len(embedding):
            raise ValueError(f"y has {len(labels)} labels for {len(embedding)} embeddings")
        scaled = StandardScaler().fit_transform(embedding)
        if method == "pca":
            pca = PCA(2, random_state=random_state)
            coordinates = pca.fit_transform(scaled)
            names = tuple(
                f"PC{i} ({share:.0%} of variance)"
                for i, share in enumerate(pca.explained_variance_ratio_, start=1)
            )
        else:
            n_samples = len(scaled)
            tsne = TSNE(
                perplexity=min(50, (n_samples - 1) / 3),
                learning_rate=max(n_samples / 48, 50),
                init="pca",
                random_state=random_state,
            )
            coordinates, names = tsne.fit_transform(scaled), ("t-SNE 1", "t-SNE 2")
        display = cls(coordinates, y=labels, axis_names=names, target_names=target_names)
        return display.plot(ax=ax, **scatter_kw)

    def plot(self, ax: Any = None, **scatter_kw: Any) -> EmbeddingDisplay:
        """Draw, on `ax` or a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            None makes a new figure.
        **scatter_kw
            For :meth:`matplotlib.axes.Axes.scatter`.

        Returns
        -------
        EmbeddingDisplay
            Itself, with `ax_` and `figure_`.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        style = {"s": 18, "alpha": 0.8} | scatter_kw
        if self.y is None:
            ax.scatter(*self.coordinates.T, **style)
        else:
            self._scatter_classes(ax, plt.get_cmap("tab10"), style)
            ax.legend(frameon=False)
        ax.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _scatter_classes(self, ax: Any, colours: Any, style: dict[str, Any]) -> None:
        unlabelled = self.y == -1
        if unlabelled.any():
            grey = {"color": "0.8", "label": "unlabelled", "zorder": 0}
            ax.scatter(*self.coordinates[unlabelled].T, **(style | grey))
        for i, label in enumerate(np.unique(self.y[~unlabelled])):
            name = label if self.target_names is None else self.target_names[i]
            drawn = {"color": colours(i % 10), "label": str(name)}
            ax.scatter(*self.coordinates[self.y == label].T, **(style | drawn))
