"""Clusters of embeddings against classes."""

import pickle
from functools import partial

import numpy as np
import pytest
import sklearn
import torch
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline

from sklearn_pulse.evaluation import (
    CLUSTERING_SCORERS,
    _clustering,
    clustering_scores,
    make_cluster_probe,
    make_linear_probe,
)
from tests.finetune.tuning import array_api


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    return rng.normal(size=(90, 4)) * [1, 1, 1, 5] + 3.0 * np.eye(4)[y], y


def test_cluster_probe_is_the_published_one():
    expected = {"n_clusters": 6, "random_state": 10, "n_init": "auto"}
    assert make_cluster_probe(6).get_params() == KMeans(**expected).get_params()
    assert make_cluster_probe(6, random_state=3).random_state == 3


def literal_scores(Z, clusters, y):
    """The definitions, one row at a time."""
    distance = np.sqrt(((Z[:, None] - Z[None]) ** 2).sum(-1))
    names = sorted(set(clusters.tolist()))
    silhouette = []
    for i in range(len(Z)):
        own = [j for j in range(len(Z)) if clusters[j] == clusters[i] and j != i]
        if not own:
            silhouette.append(0.0)
            continue
        a = distance[i, own].mean()
        b = min(distance[i, clusters == k].mean() for k in names if k != clusters[i])
        silhouette.append((b - a) / max(a, b))
    centre = {k: Z[clusters == k].mean(0) for k in names}
    spread = {k: np.mean(np.sqrt(((Z[clusters == k] - centre[k]) ** 2).sum(1))) for k in names}
    worst = [
        max(
            (spread[k] + spread[m]) / np.sqrt(((centre[k] - centre[m]) ** 2).sum())
            for m in names
            if m != k
        )
        for k in names
    ]

    def entropy(labels):
        share = np.unique(labels, return_counts=True)[1] / len(labels)
        return -(share * np.log(share)).sum()

    joint = entropy(clusters * 1000 + y)
    nmi = 2 * (entropy(clusters) + entropy(y) - joint) / (entropy(clusters) + entropy(y))
    return {
        "silhouette": np.mean(silhouette),
        "davies_bouldin": np.mean(worst),
        "ari": adjusted_rand_score(y, clusters),
        "nmi": nmi,
    }


def test_unlabelled_rows_are_clustered_and_not_compared(blobs):
    X, truth = blobs
    probe = make_cluster_probe(3).fit(X)
    labeled = np.arange(90) % 4 > 0
    y = np.where(labeled, truth, -1)
    scores, all_known = clustering_scores(probe, X, y), clustering_scores(probe, X, truth)
    clusters = make_cluster_probe(3).fit_predict(X)
    assert scores["ari"] == adjusted_rand_score(truth[labeled], clusters[labeled])
    assert scores["nmi"] != all_known["nmi"]
    assert scores["silhouette"] == all_known["silhouette"]
    text = np.where(labeled, np.array([*"abc"])[truth], "?")
    assert clustering_scores(probe, X, text, unlabeled_label="?") == scores
    assert clustering_scores(probe, X, y, unlabeled_label=None)["nmi"] != scores["nmi"]
    signs = np.where(truth > 0, 1, -1)  # usual names of two classes
    for names in (signs, signs.astype(str)):
        assert clustering_scores(probe, X, names) == clustering_scores(probe, X, truth > 0)
    with pytest.raises(ValueError, match="All 90 rows of y are -1.*pass y=None"):
        clustering_scores(probe, X, np.full(90, -1))


def test_a_search_with_another_mark_of_unlabelled_rows(blobs):
    X, y = blobs
    text = np.where(np.arange(len(y)) % 2, np.array(["a", "b", "c"])[y], "?")
    numbers = np.where(text == "?", -1, y)
    grid = {"n_clusters": [2, 3]}
    scoring = partial(clustering_scores, unlabeled_label="?")
    search = GridSearchCV(make_cluster_probe(2), grid, scoring=scoring, refit="ari", cv=KFold(3))
    same = GridSearchCV(make_cluster_probe(2), grid, scoring=CLUSTERING_SCORERS["ari"], cv=KFold(3))
    assert search.fit(X, text).best_score_ == same.fit(X, numbers).best_score_
    assert search.best_params_ == same.best_params_


def test_scores_are_those_of_clusters_of_the_scored_data(blobs):
    X, y = blobs
    train, test = np.arange(60), np.arange(60, 90)
    pipeline = make_pipeline(PCA(3), make_cluster_probe(3)).fit(X[train])
    centres = pipeline[-1].cluster_centers_.copy()
    Z = PCA(3).fit(X[train]).transform(X[test])
    clusters = KMeans(3, n_init="auto", random_state=10).fit(Z).labels_
    scores = clustering_scores(pipeline, X[test], y[test])
    assert scores == pytest.approx(literal_scores(Z, clusters, y[test]))
    assert not np.array_equal(clusters, pipeline.predict(X[test]))  # it would be another score
    np.testing.assert_array_equal(pipeline[-1].cluster_centers_, centres)


def test_embeddings_are_not_scaled(blobs):
    X, y = blobs
    assert clustering_scores(make_cluster_probe(3), X, y) == pytest.approx(
        literal_scores(X, KMeans(3, n_init="auto", random_state=10).fit(X).labels_, y)
    )


def test_masked_entries_are_missing(blobs):
    Z, y = blobs
    masked = np.ma.array(Z, mask=Z == Z[0, 0])
    for score in (clustering_scores, *CLUSTERING_SCORERS.values()):
        with pytest.raises(ValueError, match="NaN"):
            score(make_cluster_probe(3), masked, y)


@pytest.mark.parametrize("dispatch", [False, pytest.param(True, marks=array_api)])
def test_embeddings_may_be_a_tensor(blobs, monkeypatch, dispatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    Z, y = blobs
    expected = clustering_scores(make_cluster_probe(3), Z, y)
    tensor = torch.tensor(Z, requires_grad=True)
    with sklearn.config_context(array_api_dispatch=dispatch):
        assert clustering_scores(make_cluster_probe(3), tensor, y) == pytest.approx(expected)


@pytest.mark.parametrize("n_clusters", [1, 90])
def test_one_cluster_or_one_per_row_is_told(blobs, n_clusters):
    Z, y = blobs
    message = rf"found {n_clusters} cluster\(s\) among 90 rows .* need 2 to 89: set another n_clu"
    probe = make_cluster_probe(n_clusters)
    for name in ("silhouette", "neg_davies_bouldin"):
        with pytest.raises(ValueError, match=message):
            CLUSTERING_SCORERS[name](probe, Z, y)
    assert np.isfinite(CLUSTERING_SCORERS["ari"](probe, Z, y))


def test_without_labels_the_internal_scores_remain(blobs):
    scores = clustering_scores(make_cluster_probe(3), blobs[0])
    assert sorted(scores) == ["davies_bouldin", "silhouette"]
    for name in ("ari", "nmi"):
        with pytest.raises(ValueError, match=f"'{name}' needs labels, but y is None"):
            CLUSTERING_SCORERS[name](make_cluster_probe(3), blobs[0])


@pytest.mark.parametrize("routing", [False, True])
def test_scoring_of_cross_validation_and_search(blobs, routing):
    X, y = blobs
    pipeline = make_pipeline(PCA(3), make_cluster_probe(3))
    cv = KFold(3, shuffle=True, random_state=0)
    with sklearn.config_context(enable_metadata_routing=routing):
        # With routing scikit-learn 1.6 takes no None for params.
        together = cross_validate(pipeline, X, y, cv=cv, scoring=clustering_scores, params={})
        each = cross_validate(pipeline, X, y, cv=cv, scoring=CLUSTERING_SCORERS, params={})
        for k, (train, test) in enumerate(cv.split(X)):
            expected = clustering_scores(pipeline.fit(X[train]), X[test], y[test])
            for name, value in expected.items():
                assert together[f"test_{name}"][k] == value
                signed = -each["test_neg_davies_bouldin"] if name == "davies_bouldin" else None
                assert (each[f"test_{name}"] if signed is None else signed)[k] == value
        search = GridSearchCV(
            pipeline, {"kmeans__n_clusters": [2, 3, 8]}, scoring=CLUSTERING_SCORERS["ari"], cv=cv
        )
        search.fit(X * [1, 1, 1, 0.1], y)
    assert search.best_params_ == {"kmeans__n_clusters": 3}


def test_scorers_print_and_pickle(blobs):
    for name, scorer in CLUSTERING_SCORERS.items():
        assert name.removeprefix("neg_") in repr(scorer)
        again = pickle.loads(pickle.dumps(scorer))
        assert again(make_cluster_probe(3), *blobs) == scorer(make_cluster_probe(3), *blobs)


def test_only_its_own_scorer_computes_the_silhouette(blobs, monkeypatch):
    """Its time grows with the square of the rows."""
    monkeypatch.delattr(_clustering, "silhouette_score")
    probe = make_cluster_probe(3)
    for name in CLUSTERING_SCORERS.keys() - {"silhouette"}:
        assert np.isfinite(CLUSTERING_SCORERS[name](probe, *blobs))
    with pytest.raises(NameError):
        CLUSTERING_SCORERS["silhouette"](probe, *blobs)


def test_a_classifier_is_no_clusterer(blobs):
    probe = make_linear_probe().fit(*blobs)
    with pytest.raises(TypeError, match="LogisticRegression has no fit_predict: pass make_cluster"):
        clustering_scores(probe, *blobs)


def test_missing_labels_and_other_lengths_are_named(blobs):
    X, y = blobs[:2]
    probe = make_cluster_probe(3)
    for few in (np.where(y == 0, np.nan, y), [None if label == 0 else "a" for label in y]):
        with pytest.raises(ValueError, match=r"Input y contains NaN or None in \d+ of .*leave"):
            clustering_scores(probe, X, few)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clustering_scores(probe, X, y[:-1])
    # A mark beside text is no label.
    with_mark = np.array([-1 if label == 0 else "a" for label in y], dtype=object)
    assert clustering_scores(probe, X, with_mark)["ari"] == 0.0
    with pytest.raises(TypeError, match="y: text is mixed with numbers"):
        clustering_scores(probe, X, np.where(y == 0, "a", y.astype(object)))


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy before 2.0")
def test_labels_of_string_dtype_are_text(blobs):
    X, y = blobs[0], blobs[1].astype(str)
    probe = make_cluster_probe(3)
    of_string_dtype = y.astype(np.dtypes.StringDType())
    assert clustering_scores(probe, X, of_string_dtype) == clustering_scores(probe, X, y)


@pytest.mark.parametrize("unit", [2.0**-60, 2.0**60])
def test_the_unit_of_embeddings_does_not_matter(unit):
    """At tiny units scikit-learn's Davies-Bouldin score is 0, which is the best of all."""
    rng = np.random.default_rng(0)
    embeddings, labels = rng.normal(size=(60, 4)), np.arange(60) % 2
    plain = clustering_scores(make_cluster_probe(2), embeddings, labels)
    assert clustering_scores(make_cluster_probe(2), embeddings * unit, labels) == plain
    assert plain["davies_bouldin"] > 1


@pytest.mark.parametrize("dtype", ["f2", "u1", "i8"])
def test_the_type_of_embeddings_does_not_matter(dtype):
    """In half precision small values beside large ones would be lost."""
    rng = np.random.default_rng(0)
    embeddings = np.c_[20 + 0.7 * rng.normal(size=(60, 3)), np.zeros(60)].astype(dtype)
    embeddings[0, 3] = 200 if dtype == "u1" else 60_000
    probe, labels = make_cluster_probe(3), np.arange(60) % 2
    scores = clustering_scores(probe, embeddings, labels)
    assert scores == clustering_scores(probe, embeddings.astype(float), labels)


@pytest.mark.parametrize("offset", [1e6, 1e9])
def test_an_offset_changes_no_score(blobs, offset):
    Z, y = blobs
    expected = clustering_scores(make_cluster_probe(3), Z, y)
    found = clustering_scores(make_cluster_probe(3), Z + offset, y)
    assert found == pytest.approx(expected, abs=1e-4)
