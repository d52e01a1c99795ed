"""Clustering protocol: k-means on embeddings, compared with the classes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import (
    adjusted_rand_score,
    davies_bouldin_score,
    normalized_mutual_info_score,
    silhouette_score,
)
from sklearn.utils import check_array, check_consistent_length

from .._data._labels import unlabeled_rows
from .._groups import nan_where_masked
from .._inputs._numbers import of_tensor
from .._parameters import check_label
from .._pipelines import before_last_step
from ._scoring import MetricScorer, check_one_kind, check_scored


def make_cluster_probe(
    n_clusters: int, random_state: int | np.random.RandomState | None = 10
) -> KMeans:
    """Make the cluster probe: k-means on embeddings that are not scaled.

    Parameters
    ----------
    n_clusters : int
        Number of clusters. The published protocol takes the number of classes.
    random_state : int, RandomState instance or None, default=10
        Seed of the initial cluster centres.

    Returns
    -------
    :class:`~sklearn.cluster.KMeans`
        Unfitted clusterer of input of shape (n_samples, embedding_dim).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.evaluation import make_cluster_probe
    >>> embeddings = np.array([[0.0, 1.0], [0.1, 1.1], [2.0, 0.0], [2.1, 0.1]])
    >>> labels = make_cluster_probe(2).fit_predict(embeddings)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """
    return KMeans(n_clusters=n_clusters, n_init="auto", random_state=random_state)


def clustering_scores(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    unlabeled_label: int | str | None = -1,
) -> dict[str, float]:
    """Cluster the embeddings of `X` and compare the clusters with the classes.

    The published protocol clusters the very data that it scores. So a copy of the clusterer is
    fitted on the embeddings of `X`, while the encoder before it is used as it was fitted. To score
    the clusters of the training data instead, use scikit-learn's own scorers, such as
    "adjusted_rand_score".

    As ``scoring`` of :func:`~sklearn.model_selection.cross_validate`, this function gives all
    scores with one pass through the encoder. For a search, use :data:`CLUSTERING_SCORERS`, in which
    higher is always better. They know -1 alone as the mark of a row without a label; for another
    mark, pass ``functools.partial(clustering_scores, unlabeled_label="?")`` as ``scoring``, and
    ``refit="ari"``, or another score that is best if high, to a search.

    Parameters
    ----------
    estimator : clusterer or pipeline
        A fitted pipeline of an encoder and a clusterer, or a clusterer of embeddings.
    X : array-like of shape (n_samples, ...)
        Input of the estimator: windows for a pipeline, embeddings for a clusterer alone.
    y : array-like of shape (n_samples,), default=None
        True labels. With None, the scores that need labels are left out.
    unlabeled_label : int, str or None, default=-1
        Label of rows without a label, which are clustered and not compared. (-1 is a class where
        the labels are -1 and 1 alone, or another label is negative. So a test fold of unlabelled
        rows and the class 1 alone looks like two classes: wrap the splitter in a
        :class:`~sklearn_pulse.model_selection.LabeledTestSplit`.) None means that every label is a
        class.

    Returns
    -------
    dict of str to float
        "silhouette" (-1 to 1, higher is better) and "davies_bouldin" (0 and above, lower is
        better) of the clusters; with `y` also "ari" and "nmi", the adjusted Rand index and the
        normalised mutual information between clusters and classes (1 is best).

    Raises
    ------
    TypeError
        If the last step of `estimator` has no method `fit_predict`, or `y` mixes text with numbers.
    ValueError
        If no row of `y` has a label, a label is NaN or None, or `y` has another length than `X`; or
        if there is a single cluster, or a cluster for each row.

    Notes
    -----
    Source: the released code. The paper reports no clustering scores.

    The silhouette compares all pairs of rows, so that its time grows with the square of their
    number: 20,000 rows of 256 columns take eight seconds of a core, 100,000 rows more than three
    minutes. Pass a sample of the rows where that is too long, or one of the other
    :data:`CLUSTERING_SCORERS`, which leave it out.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.evaluation import clustering_scores, make_cluster_probe
    >>> embeddings = np.array([[0.0, 1.0], [0.1, 1.1], [2.0, 0.0], [2.1, 0.1]])
    >>> scores = clustering_scores(make_cluster_probe(2), embeddings, [0, 0, 1, 1])
    >>> scores["ari"], scores["nmi"]
    (1.0, 1.0)
    """
    found = _cluster(estimator, X, y, unlabeled_label)
    return _silhouette(found) | _davies_bouldin(found) | _agreement(found)


class _Clustering(NamedTuple):
    """Embeddings with their clusters, the rows that have a label, and these labels."""

    points: NDArray[Any]
    clusters: NDArray[Any]
    labeled: NDArray[np.bool_] | None
    labels: NDArray[Any] | None


def _cluster(
    estimator: Any, X: Any, y: ArrayLike | None, unlabeled_label: int | str | None = -1
) -> _Clustering:
    """Fit a copy of the clusterer on the embeddings of `X`."""
    check_label(unlabeled_label)
    embedding, clusterer = before_last_step(estimator, X)
    if not hasattr(clusterer, "fit_predict"):
        raise TypeError(
            f"estimator must be a clusterer, but {type(clusterer).__name__} has no fit_predict:"
            " pass make_cluster_probe(n_clusters), or a pipeline that ends with it."
        )
    labeled = labels = None
    if y is not None:
        labels = check_scored(y)
        check_consistent_length(embedding, labels)
        labeled = np.full(len(labels), True)
        if unlabeled_label is not None:
            labeled = ~unlabeled_rows(labels, unlabeled_label)
        if not labeled.any():
            raise ValueError(
                f"All {len(labels)} rows of y are {unlabeled_label!r}, which marks a row without a"
                " label: label some rows, or pass y=None, which leaves out the scores that need"
                " labels."
            )
        labels = labels[labeled]
        check_one_kind(labels.tolist(), "y")
    embedding = nan_where_masked(of_tensor(embedding))
    clusters = clone(clusterer).fit_predict(embedding)
    points = check_array(embedding, dtype=[np.float64, np.float32], input_name="embedding")
    points = points - points.mean(axis=0)  # an offset would hide the distances
    # scikit-learn takes distances below 1e-8 for zero. Dividing by a power of two changes no digit.
    points = np.ldexp(points, -np.frexp(np.abs(points).max())[1])
    return _Clustering(points, clusters, labeled, labels)


def _check_several(found: _Clustering) -> None:
    """Raise unless there are two clusters or more, of which one holds two rows or more."""
    n_rows, n_clusters = len(found.points), len(np.unique(found.clusters))
    if not 1 < n_clusters < n_rows:
        raise ValueError(
            f"estimator found {n_clusters} cluster(s) among {n_rows} rows of X, and silhouette and"
            f" davies_bouldin need 2 to {n_rows - 1}: set another n_clusters, pass more rows, or"
            " look whether all embeddings are equal."
        )


def _silhouette(found: _Clustering) -> dict[str, float]:
    _check_several(found)
    return {"silhouette": float(silhouette_score(found.points, found.clusters))}


def _davies_bouldin(found: _Clustering) -> dict[str, float]:
    _check_several(found)
    return {"davies_bouldin": float(davies_bouldin_score(found.points, found.clusters))}


def _agreement(found: _Clustering) -> dict[str, float]:
    """Return the scores that need labels; without labels, an empty dictionary."""
    if found.labels is None:
        return {}
    clusters = found.clusters[found.labeled]
    return {
        "ari": float(adjusted_rand_score(found.labels, clusters)),
        "nmi": float(normalized_mutual_info_score(found.labels, clusters)),
    }


def silhouette_scores(estimator: Any, X: Any, y: ArrayLike | None = None) -> dict[str, float]:
    """Return the silhouette of :func:`clustering_scores` alone."""
    return _silhouette(_cluster(estimator, X, y))


def davies_bouldin_scores(estimator: Any, X: Any, y: ArrayLike | None = None) -> dict[str, float]:
    """Return the Davies-Bouldin index of :func:`clustering_scores` alone."""
    return _davies_bouldin(_cluster(estimator, X, y))


def agreement_scores(estimator: Any, X: Any, y: ArrayLike | None = None) -> dict[str, float]:
    """Return only those of the :func:`clustering_scores` that need labels."""
    return _agreement(_cluster(estimator, X, y))


CLUSTERING_SCORERS = {
    "silhouette": MetricScorer(silhouette_scores, "silhouette"),
    "neg_davies_bouldin": MetricScorer(davies_bouldin_scores, "davies_bouldin", -1),
    "ari": MetricScorer(agreement_scores, "ari"),
    "nmi": MetricScorer(agreement_scores, "nmi"),
}
"""Scorers by name, each for a score of :func:`clustering_scores`; higher is better."""
