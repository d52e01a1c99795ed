"""Arrays of Zarr are read by their chunks, with the bits of arrays in memory."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_pulse import CrossPredictionTransformer, PulseTransformer
from sklearn_pulse._inputs import _stored
from sklearn_pulse._inputs._stored import StoredArray, as_stored
from sklearn_pulse.corpus import embed_dataset, fit_dataset
from sklearn_pulse.evaluation import LabeledSubsetClassifier, probe_scores
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.inspection import channel_importance
from sklearn_pulse.plotting import LabelEfficiencyDisplay, ReconstructionDisplay
from sklearn_pulse.preprocessing import Resampler, WindowScaler
from tests.helpers import make_windows, small

zarr = pytest.importorskip("zarr")
X, y = make_windows(20)


def store(values, chunks=None):
    """Write an array of Zarr into memory, in chunks that divide every axis unevenly."""
    chunks = chunks or tuple(max(1, 2 * n // 5) for n in values.shape)
    stored = zarr.create_array({}, shape=values.shape, chunks=chunks, dtype=values.dtype)
    stored[:] = values
    return stored


class Counted:
    """An array in chunks that notes how many rows are read at a time."""

    chunks = (3, *X.shape[1:])
    shape, ndim, dtype = X.shape, X.ndim, X.dtype

    def __init__(self):
        self.read = []

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("read whole")

    def __getitem__(self, rows):
        self.read.append(len(X[rows]))
        return X[rows]


@pytest.fixture
def no_room(monkeypatch):
    monkeypatch.setattr(_stored, "_KEPT_BYTES", 0)
    monkeypatch.setattr(_stored, "_MANY_PASSES", 1000)


@pytest.mark.parametrize(
    "make",
    [
        StatisticsTransformer,
        WindowScaler,
        lambda: WindowScaler(robust=True),
        lambda: Resampler(64, 32),
        lambda: small(PulseTransformer, max_epochs=1, batch_size=4),
        lambda: small(CrossPredictionTransformer),
    ],
)
def test_nothing_reads_more_than_a_chunk_at_a_time(make, no_room):
    source = Counted()
    got = make().fit(source).transform(source)
    assert max(source.read) == 3
    np.testing.assert_array_equal(got, make().fit(X).transform(X))


@pytest.mark.parametrize("values", [X, X[:, :, 0], X.reshape(5, 4, *X.shape[1:])])
@pytest.mark.parametrize("make", [StatisticsTransformer, lambda: WindowScaler(per="window")])
def test_every_shape_has_the_bits_of_an_array(values, make):
    got = make().fit_transform(store(values))
    np.testing.assert_array_equal(got, make().fit_transform(values))
    if values.ndim > 2:
        first = store(values.swapaxes(-1, -2))
        got = make().set_params(input_layout="nct").fit(first).transform(first)
        got = got if got.ndim == 2 else got.swapaxes(-1, -2)
        np.testing.assert_array_equal(got, make().fit_transform(values))


def test_any_rows_are_those_of_the_array():
    rng = np.random.default_rng(0)
    stored = StoredArray(store(X))
    for key in (slice(3, 17, 4), slice(None, None, -3), slice(5, 5), rng.integers(-20, 20, 30)):
        np.testing.assert_array_equal(stored[key], X[key])
        np.testing.assert_array_equal(stored[key, 2:5], X[key, 2:5])
    again = pickle.loads(pickle.dumps(stored))
    np.testing.assert_array_equal(np.asarray(again), X)


def test_other_arrays_are_not_taken_for_stored_ones():
    da = pytest.importorskip("dask.array")
    text = zarr.create_array({}, shape=(4, 3), chunks=(2, 3), dtype="complex64")
    for other in (X, da.from_array(X, chunks=3), text, store(X[:, 0, 0]), list(X), None):
        assert as_stored(other) is None


def test_channel_importance_reads_chunks(no_room):
    model = make_pipeline(StatisticsTransformer(), LogisticRegression(max_iter=1000)).fit(X, y)
    source = Counted()
    got = channel_importance(model, source, y, n_repeats=1, random_state=0)
    expected = channel_importance(model, X, y, n_repeats=1, random_state=0)
    np.testing.assert_array_equal(got.importances, expected.importances)
    assert max(source.read) == 3


def test_channel_importance_takes_a_table_in_chunks():
    table = X[:, :, 0]
    model = make_pipeline(StatisticsTransformer(), LogisticRegression(max_iter=1000)).fit(table, y)
    got, expected = (
        channel_importance(model, values, y, n_repeats=2, random_state=0).importances
        for values in (store(table), table)
    )
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("values", [X, X[:, :, 0]])
def test_probes_learn_from_labelled_rows_in_chunks(values):
    some = np.where(np.arange(len(y)) % 4 == 0, -1, y)
    model = make_pipeline(StatisticsTransformer(), LogisticRegression(max_iter=1000))
    expected, got = (
        (
            probe.fit(given, labels).predict_proba(given).tolist(),
            probe.score(given, labels),
            probe_scores(probe, given, labels),
        )
        for probe, given, labels in (
            (LabeledSubsetClassifier(model), values, some),
            (LabeledSubsetClassifier(model), store(values), store(some)),
        )
    )
    assert got == expected


def test_label_efficiency_embeds_windows_in_chunks():
    statistics = StatisticsTransformer().fit(X)
    got, expected = (
        LabelEfficiencyDisplay.from_estimators({"a": statistics}, *given, cv=2, fractions=(0.5,))
        for given in ((store(X), store(y)), (X, y))
    )
    np.testing.assert_array_equal(got.scores["a"], expected.scores["a"])


def test_a_reconstruction_is_drawn_of_windows_in_chunks():
    pulse = small(PulseTransformer, max_epochs=1).fit(X)
    got, expected = (
        ReconstructionDisplay.from_estimator(pulse, given, sample=3) for given in (store(X), X)
    )
    np.testing.assert_array_equal(got.signal, expected.signal)


def test_a_corpus_may_be_an_array_of_zarr(tmp_path):
    statistics = StatisticsTransformer().fit(X)
    source = store(X)
    group = embed_dataset(statistics, source, tmp_path / "z", chunk_size=6)
    np.testing.assert_array_equal(group["embedding"][:], statistics.transform(X))
    cross, expected = small(CrossPredictionTransformer), small(CrossPredictionTransformer)
    fit_dataset(cross, source)
    np.testing.assert_array_equal(cross.transform(X), expected.fit(X).transform(X))


def test_chunks_are_kept_up_to_a_limit(monkeypatch):
    source = Counted()
    StoredArray(source)[np.arange(20)]
    stored = StoredArray(source)
    source.read.clear()
    for _ in range(3):
        stored[:]
    assert sum(source.read) == 20
    monkeypatch.setattr(_stored, "_KEPT_BYTES", 2 * 3 * X[0].nbytes)
    stored = StoredArray(source)
    stored[:]
    assert len(stored._kept) == 2


def test_a_few_of_very_many_rows_need_no_list_of_all():
    class Endless:
        shape, dtype, chunks = (2**50, 4), np.dtype(np.float32), (10, 4)

        def __getitem__(self, rows):
            return np.arange(rows.start, rows.stop)[:, np.newaxis] % 101 + np.zeros(4, np.float32)

    stored = StoredArray(Endless())
    rows = [12, -3, 12, 2**49]
    expected = np.array([12, (2**50 - 3) % 101, 12, 2**49 % 101])
    np.testing.assert_array_equal(stored[np.array(rows)][:, 0], expected)
    np.testing.assert_array_equal(stored[25:3:-7, 0], [25, 18, 11, 4])
