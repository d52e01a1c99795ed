"""What lies under a mask is never read as data, wherever a masked array goes in."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_pulse import CrossPredictionTransformer, FineTuneClassifier, FineTuneRegressor
from sklearn_pulse.corpus import embed_dataset
from sklearn_pulse.evaluation import LabeledSubsetClassifier, embedding_drift, score_drift
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.model_selection import mask_labels
from sklearn_pulse.plotting import EmbeddingDisplay, LabelEfficiencyDisplay
from sklearn_pulse.windows import sliding_windows

_FILL = 999


@pytest.fixture
def masked():
    """Windows whose large values are masked, with a fill value of a file beneath."""
    X = np.random.default_rng(0).normal(size=(6, 40, 2))
    return np.ma.masked_array(np.where(X > 1.5, _FILL, X), X > 1.5)


def _in_blocks(masked):
    da = pytest.importorskip("dask.array")
    chunks = (2, -1, -1)
    mask = da.from_array(np.ma.getmaskarray(masked), chunks=chunks)
    return da.ma.masked_array(da.from_array(masked.data, chunks=chunks), mask=mask)


def test_a_list_of_masked_windows_is_read_as_the_array(masked):
    statistics = StatisticsTransformer().fit(masked)
    assert np.array_equal(statistics.transform(list(masked)), statistics.transform(masked))


def test_the_blocks_of_a_masked_dask_array_are_read_as_the_array(masked, tmp_path):
    blocks = _in_blocks(masked)
    statistics = StatisticsTransformer().fit(masked)
    expected = statistics.transform(masked)
    assert np.array_equal(statistics.transform(blocks), expected)
    embedded = embed_dataset(statistics, blocks, tmp_path / "sink")
    assert np.array_equal(embedded["embedding"][:], expected)


@pytest.fixture
def labels():
    return np.ma.masked_array([0, 1] * 9 + [77] * 6, np.arange(24) >= 18)


@pytest.mark.parametrize(
    "use",
    [
        lambda X, y: FineTuneClassifier(None, max_epochs=1).fit(X, y),
        lambda X, y: FineTuneRegressor(None, max_epochs=1).fit(X, y),
        lambda X, y: LabeledSubsetClassifier().fit(X[:, :, 0], y),
        lambda X, y: mask_labels(y, 1.0),
    ],
)
def test_a_masked_label_is_missing(use, labels):
    X = np.random.default_rng(0).normal(size=(24, 32, 2))
    with pytest.raises(ValueError, match=r"y contains NaN or None in 6 of 24"):
        use(X, labels)


def test_a_masked_target_and_a_masked_label_are_not_scored(labels):
    X, y = np.random.default_rng(0).normal(size=(24, 32, 2)), np.arange(24) % 2
    regressor = FineTuneRegressor(None, max_epochs=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="contains NaN"):
        regressor.score(X, labels)
    classifier = FineTuneClassifier(None, max_epochs=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="y contains NaN or None in 6 of 24"):
        classifier.score(X, labels)


@pytest.mark.parametrize(
    "model",
    [
        FineTuneClassifier(None, max_epochs=1, random_state=0),
        FineTuneRegressor(None, max_epochs=1, random_state=0),
        LabeledSubsetClassifier(FineTuneClassifier(None, max_epochs=1, random_state=0)),
    ],
)
def test_a_masked_weight_is_missing(model):
    X, y = np.random.default_rng(0).normal(size=(24, 32, 2)), np.arange(24) % 2
    weight = np.ma.masked_array(np.where(np.arange(24) < 3, _FILL, 1), np.arange(24) < 3)
    with pytest.raises(ValueError, match="contains NaN"):
        clone(model).fit(X, y, sample_weight=weight)
    model.fit(X, y)
    with pytest.raises(ValueError, match="contains NaN"):
        model.score(X, y, sample_weight=weight)


def test_weights_of_unlabelled_rows_may_be_masked():
    X, y = np.random.default_rng(0).normal(size=(24, 8)), np.arange(24) % 2
    y[:3] = -1
    weight = np.ma.masked_array(np.where(y < 0, _FILL, 1 + y), y < 0)
    expected = LabeledSubsetClassifier().fit(X, y, sample_weight=1.0 + y)
    probe = LabeledSubsetClassifier().fit(X, y, sample_weight=weight)
    assert np.array_equal(probe.predict_proba(X), expected.predict_proba(X))
    assert probe.score(X, y, sample_weight=weight) == expected.score(X, y, sample_weight=1.0 + y)


@pytest.mark.parametrize("dtype", [int, float, bool, object])
def test_windows_of_masked_labels_are_unlabelled(dtype):
    y = np.ma.masked_array(np.array([1, 0], dtype=dtype), [False, True])
    recordings = [np.ones(20)] * 2
    assert sliding_windows(recordings, 20, y=y).y.tolist() == [1, -1]
    steps = np.ma.masked_array(np.ones((2, 20), dtype=dtype), [[False] * 20, [True] * 20])
    assert sliding_windows(recordings, 20, y=steps).y.tolist() == [1, -1]


def test_masked_text_has_no_mark():
    y = np.ma.masked_array(["sit", "?"], [False, True])
    with pytest.raises(ValueError, match="strings have no unlabelled marker"):
        sliding_windows([np.ones(20)] * 2, 20, y=y)


@pytest.mark.parametrize("name", ["groups", "start"])
def test_masked_groups_and_starts_are_missing(name):
    X = np.random.default_rng(0).normal(size=(24, 32, 2))
    values = np.ma.masked_array(np.arange(24) // (8 if name == "groups" else 1), np.arange(24) > 20)
    cross = CrossPredictionTransformer(num_kernels=84, embedding_dim=8, n_components=9)
    with pytest.raises(ValueError, match=f"{name} is (missing|unknown or infinite) for 3"):
        cross.fit(X, **{"groups": np.zeros(24), name: values})


def test_masked_scores_and_embeddings_are_missing():
    scores = np.ma.masked_greater([1.0, 2, 3, 1e9], 10)
    with pytest.raises(ValueError, match="reference contains NaN"):
        score_drift(scores, [5.0])
    with pytest.raises(ValueError, match="reference contains NaN"):
        embedding_drift(scores[:, np.newaxis], np.ones((3, 1)))
    embedding = np.ma.masked_greater(np.c_[scores.data, scores.data], 10)
    with pytest.raises(ValueError, match="embedding contains NaN"):
        EmbeddingDisplay.from_embedding(embedding, method="pca")
    y = np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match="the embedding of 'own' contains NaN"):
        LabelEfficiencyDisplay.from_estimators({"own": embedding}, None, y, cv=2, fractions=[1.0])


def test_a_masked_score_is_left_out_of_the_mean():
    scores = np.ma.masked_less([[0.5, 0.7, -1.0], [0.8, 0.9, 0.7]], 0)
    display = LabelEfficiencyDisplay.from_scores({"own": scores}, fractions=[0.1, 1.0])
    assert display.lines_[0].get_ydata().tolist() == pytest.approx([0.6, 0.8])
