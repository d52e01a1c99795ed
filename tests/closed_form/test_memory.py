"""What a folder keeps of fits and embeddings, so that searches compute features once."""

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse._closed_form._stack import FeatureStack
from sklearn_pulse._training._identity import fingerprint
from sklearn_pulse.corpus import fit_dataset
from sklearn_pulse.windows import RecordingWindows, sliding_windows
from tests.helpers import make_windows

from . import literal

# Two blocks that are quick to compute: what is kept does not depend on which.
SMALL = literal.SMALL | {"block_weights": (1, 1, 0, 0)}
EVERY_BLOCK = {"block_weights": "auto"}
PERSON = np.repeat(np.arange(6), 10)
ATTRIBUTES = (
    "alpha_",
    "channels_",
    "kappa_",
    "n_pairs_",
    "nearest_",
    "small_directions_",
    "views_",
    "whitening_",
)


@pytest.fixture
def X():
    return make_windows(60, 48, 2)[0]


@pytest.fixture
def computed(monkeypatch):
    """The numbers of windows whose features were computed, call by call."""
    calls, stack = [], FeatureStack._stack

    def counted(self, block):
        calls.append(len(block.x))
        return stack(self, block)

    monkeypatch.setattr(FeatureStack, "_stack", counted)
    return calls


def fitted(X, groups=PERSON, start=None, **params):
    return CrossPredictionTransformer(**SMALL | params).fit(X, groups=groups, start=start)


def check_same(one, other, X):
    assert_array_equal(one.transform(X), other.transform(X))
    for name in ATTRIBUTES:
        assert_array_equal(getattr(one, name), getattr(other, name))
    assert_array_equal(one.block_weights_, other.block_weights_)
    for name, value in one.predictability_["blocks"].items():
        assert_array_equal(other.predictability_["blocks"][name], value)


@pytest.mark.parametrize(("views", "n_left_out"), [("adjacent", 0), ("halves", 1)])
def test_fit_transform_computes_features_once(X, computed, views, n_left_out):
    X, groups = X.copy(), np.random.default_rng(0).permutation(PERSON)
    X[::7, 5:9] = np.nan
    X[3] = X[2]
    X[4, :24] = np.nan  # a fit to halves leaves it out
    one = fitted(X, groups, views=views)
    of_fit = sum(computed)
    expected = one.transform(X)
    computed.clear()
    cross = CrossPredictionTransformer(**SMALL, views=views)
    assert_array_equal(cross.fit_transform(X, groups=groups), expected)
    assert sum(computed) == of_fit + n_left_out
    computed.clear()
    assert_array_equal(cross.transform(X), expected)  # the windows are kept no longer
    assert sum(computed) == len(X)


def test_fit_transform_of_more_windows_than_the_sample_of_fit(X, computed, monkeypatch):
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 40)
    one = fitted(X, views="halves")
    of_fit = sum(computed)
    expected = one.transform(X)
    computed.clear()
    cross = CrossPredictionTransformer(**SMALL, views="halves")
    assert_array_equal(cross.fit_transform(X, groups=PERSON), expected)
    # Neither the pass of the fit over all windows nor the embedding computes the sample again.
    assert sum(computed) == of_fit - 40 + (len(X) - 40)


def test_fit_transform_keeps_rows_of_the_last_fit_alone(monkeypatch):
    """Fits that choose blocks embed nothing, so no window is read for rows of theirs."""
    read, take = [], RecordingWindows.take

    def counted(self, indices):
        read.append(len(indices))
        return take(self, indices)

    monkeypatch.setattr(RecordingWindows, "take", counted)
    recordings = list(make_windows(6, 640, 1)[0])
    lazy = sliding_windows(recordings, 64, 64, lazy=True).X
    cross = CrossPredictionTransformer(**SMALL | EVERY_BLOCK)
    cross.fit(lazy)
    of_fit = sum(read)
    read.clear()
    cross.fit_transform(lazy)
    # Once for the rows that are kept, and once to be embedded.
    assert sum(read) == of_fit + 2 * len(lazy)


@pytest.mark.parametrize("what", ["__version__", "_FORMAT"])
def test_a_folder_of_another_state_of_the_package_is_not_read(
    X, what, computed, tmp_path, monkeypatch
):
    known = fitted(X, memory=tmp_path)
    computed.clear()
    assert_array_equal(fitted(X, memory=tmp_path).alpha_, known.alpha_)
    assert not computed
    monkeypatch.setattr(f"sklearn_pulse._closed_form._memory.{what}", "another")
    fitted(X, memory=tmp_path)
    assert computed


def test_failed_fit_transform_keeps_the_fit(X):
    cross = fitted(X)
    expected = cross.transform(X)
    with pytest.raises(ValueError, match="infinity"):
        cross.fit_transform(np.where(X == X.max(), np.inf, X), groups=PERSON)
    assert_array_equal(cross.transform(X), expected)


@pytest.mark.parametrize("views", ["adjacent", "halves"])
@pytest.mark.parametrize(
    "params",
    [
        {"alpha": 0.0},
        {"alpha": 1.0},
        {"whitening": 0.7},
        {"nearest": 0.4},
        {"unpredicted": 0.6},
        {"embedding_dim": 5},
        {"alpha": 0.3, **EVERY_BLOCK},
    ],
)
def test_a_fit_from_the_folder_has_the_bits_of_a_fit(X, tmp_path, computed, views, params):
    blocks = {"block_weights": params.get("block_weights", SMALL["block_weights"])}
    fitted(X, views=views, memory=tmp_path, **blocks).transform(X)
    computed.clear()
    kept = fitted(X, views=views, memory=tmp_path, **params)
    kept.transform(X)
    assert computed == []
    check_same(kept, fitted(X, views=views, **params), X)


def test_nearest_windows_of_a_sample_have_the_bits_of_a_fit(X, tmp_path, computed, monkeypatch):
    """Those that are kept are the windows that a fit without a folder reads again."""
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 35)
    fitted(X, memory=tmp_path)
    computed.clear()
    kept = fitted(X, memory=tmp_path, nearest=0.6)
    assert computed == []
    check_same(kept, fitted(X, nearest=0.6), X)


@pytest.mark.parametrize(
    "params",
    [
        {"n_components": 11},
        {"num_kernels": 168},
        {"rho": 1e-3},
        {"random_state": 1},
        {"block_weights": (1, 1, 1, 1)},
        {"views": "halves"},
    ],
)
def test_other_parameters_are_computed(X, tmp_path, computed, params):
    base = {"block_weights": (1, 0, 1, 0)}  # MiniRocket has kernels
    fitted(X, memory=tmp_path, **base)
    computed.clear()
    check_same(fitted(X, memory=tmp_path, **base | params), fitted(X, **base | params), X)
    assert computed


@pytest.mark.parametrize("views", ["auto", "halves"])
def test_other_windows_are_computed(X, tmp_path, views):
    """Each of the inputs differs from the first in one thing."""
    other, missing, zero = X.copy(), X.copy(), X.copy()
    other[3, 5, 1] += 1e-3
    missing[3, 5], zero[3, 5] = np.nan, 0.0
    every = [
        {"X": X},
        {"X": other},
        {"X": missing},
        {"X": zero},
        {"X": X, "groups": np.roll(PERSON, 5)},
        {"X": X, "groups": np.zeros(60)},
        {"X": X, "groups": None},
        {"X": X, "start": np.tile(np.random.default_rng(0).permutation(10), 6)},
        {"X": X.reshape(60, 96, 1)},
        {"X": X[:59], "groups": PERSON[:59]},
        {"X": X.reshape(30, 2, 48, 2), "groups": None},
    ]
    for inputs in every:
        fitted(**inputs, views=views, memory=tmp_path)
    for inputs in every:
        kept = fitted(**inputs, views=views, memory=tmp_path)
        check_same(kept, fitted(**inputs, views=views), inputs["X"])


def test_transform_does_not_mix_up_fits_or_windows(X, tmp_path):
    missing, zero = X.copy(), X.copy()
    missing[3, 5], zero[3, 5] = np.nan, 0.0
    for train in (X, X[::-1]):
        kept, plain = fitted(train, memory=tmp_path), fitted(train)
        for windows in (X, missing, zero, X[:7], X[:, :40]):
            for _ in range(2):
                assert_array_equal(kept.transform(windows), plain.transform(windows))


@pytest.mark.parametrize("kind", ["lazy", "channels first", "bags"])
def test_every_kind_of_windows(X, tmp_path, computed, kind):
    params, groups = {}, PERSON
    if kind == "lazy":
        recordings = X.reshape(6, 480, 2)
        X, groups = sliding_windows(list(recordings), length=48, stride=48).X, None
    elif kind == "channels first":
        X, params = X.transpose(0, 2, 1), {"input_layout": "nct"}
    else:
        X, groups = X.reshape(6, 10, 48, 2), None
    fitted(X, groups, memory=tmp_path, **params).transform(X)
    computed.clear()
    kept = fitted(X, groups, memory=tmp_path, alpha=0.1, **params)
    embedding = kept.transform(X)
    assert computed == []
    assert_array_equal(embedding, fitted(X, groups, alpha=0.1, **params).transform(X))


def test_fit_dataset_reads_what_fit_kept(X, tmp_path, computed):
    fitted(X, memory=tmp_path)
    computed.clear()
    cross = CrossPredictionTransformer(**SMALL, alpha=0.2, memory=tmp_path)
    fit_dataset(cross, X, groups=PERSON)
    assert computed == []
    check_same(cross.set_params(memory=None), fitted(X, alpha=0.2), X)


def test_a_search_computes_the_features_of_a_window_once_per_division(X, tmp_path, computed):
    y = np.arange(60) % 3
    X = X + y[:, None, None]
    cross = CrossPredictionTransformer(**SMALL | EVERY_BLOCK, memory=str(tmp_path))
    grid = {
        "crosspredictiontransformer__alpha": [0.0, 1.0],
        "crosspredictiontransformer__nearest": [0.0, 0.5],
    }
    pipeline = make_pipeline(cross, LogisticRegression())
    division = GroupKFold(2)
    search = GridSearchCV(pipeline, grid, cv=division, refit=False).fit(X, y, groups=PERSON)
    with_folder = sum(computed)
    computed.clear()
    plain = clone(pipeline).set_params(crosspredictiontransformer__memory=None)
    expected = GridSearchCV(plain, grid, cv=division, refit=False).fit(X, y, groups=PERSON)
    assert with_folder < sum(computed) / 3
    computed.clear()
    one = clone(pipeline).set_params(crosspredictiontransformer__memory=str(tmp_path / "one"))
    GridSearchCV(one, {}, cv=division, refit=False).fit(X, y, groups=PERSON)
    assert with_folder == sum(computed)  # four maps take what one takes
    assert_array_equal(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )


@pytest.mark.xdist_group("workers")
def test_processes_share_a_folder(X, tmp_path):
    y = np.arange(60) % 3
    X = X + y[:, None, None]
    scores = []
    for n_jobs in (None, 2):
        cross = CrossPredictionTransformer(
            **SMALL, num_threads=1, memory=joblib.Memory(tmp_path / str(n_jobs), verbose=0)
        )
        pipeline = make_pipeline(cross, LogisticRegression())
        grid = {"crosspredictiontransformer__alpha": [0.0, 0.3, 0.6, 1.0]}
        search = GridSearchCV(pipeline, grid, cv=GroupKFold(2), n_jobs=n_jobs)
        scores.append(search.fit(X, y, groups=PERSON).cv_results_["mean_test_score"])
    assert_array_equal(*scores)


def test_warnings_are_not_forgotten(tmp_path):
    X, _ = make_windows(20, 16, 1)
    X[:, 8:] = np.nan  # the last half of each window is missing
    for _ in range(2):
        with pytest.warns(UserWarning, match="No window of X has an observed time step in both"):
            fitted(X, None, memory=tmp_path)
    for _ in range(2):
        with pytest.warns(UserWarning, match="start is not used"):
            fitted(np.nan_to_num(X), None, np.arange(20), memory=tmp_path)


@pytest.mark.parametrize("random_state", [None, np.random])
def test_a_seed_that_is_drawn_anew_is_named(X, tmp_path, random_state):
    with pytest.warns(UserWarning, match="memory finds nothing .* pass an int as random_state"):
        fitted(X, memory=tmp_path, random_state=random_state)


def test_the_folder_belongs_to_a_machine(X, tmp_path):
    cross = fitted(X, memory=tmp_path / "cache")
    cross.save_pretrained(tmp_path / "model")
    assert "memory" not in (tmp_path / "model" / "config.json").read_text()
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    assert loaded.memory is None
    assert_array_equal(loaded.transform(X), cross.transform(X))


@pytest.mark.parametrize("memory", [3, True, ("cache",)])
def test_what_is_no_folder_is_refused(X, memory):
    with pytest.raises(TypeError, match="memory must be None, a folder or a joblib.Memory, got"):
        fitted(X, memory=memory)


def test_what_an_embedding_depends_on_is_digested_once(X, tmp_path, monkeypatch):
    model = fitted(X, memory=tmp_path / "kept")
    expected = model.transform(X)
    digested = []

    def counted(value):
        digested.append(value)
        return fingerprint(value)

    monkeypatch.setattr("sklearn_pulse._closed_form._memory.fingerprint", counted)
    monkeypatch.setattr("sklearn_pulse._data._windows._BLOCK_ELEMENTS", 15 * X[0].size)
    assert_array_equal(model.transform(X), expected)
    assert len(digested) == 1 + 4  # of what was fitted, and of each block
