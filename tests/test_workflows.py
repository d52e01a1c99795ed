"""What users do: pipelines, searches, few labels."""

import gc
import os
import pickle
import subprocess
import sys
import tracemalloc

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pulse import FineTuneClassifier, PulseTransformer
from sklearn_pulse.evaluation import LabeledSubsetClassifier, make_linear_probe
from sklearn_pulse.model_selection import LabeledTestSplit, mask_labels
from sklearn_pulse.objectives import CrossReconstruction
from sklearn_pulse.windows import RecordingWindows, SlidingWindows, sliding_windows
from tests.helpers import SMALL_PULSE, make_windows


def recordings(n=6, n_timesteps=80):
    """Recordings of unequal length whose frequency changes half way, and labels per step."""
    rng = np.random.default_rng(0)
    signals, labels = [], []
    for i in range(n):
        length = n_timesteps + 8 * i
        y = (np.arange(length) >= length // 2).astype(int)
        phase = np.cumsum(0.3 + 0.6 * y)
        signal = np.sin(phase[:, None] + rng.uniform(0, 6, size=2))
        signals.append(signal + 0.05 * rng.normal(size=signal.shape))
        labels.append(y)
    return signals, labels


def pipeline(memory=None, probe=None, **params):
    return Pipeline(
        [
            ("pulse", PulseTransformer(**SMALL_PULSE | params)),
            ("scale", StandardScaler()),
            ("probe", probe or LogisticRegression(max_iter=1000, class_weight="balanced")),
        ],
        memory=memory,
    )


@pytest.fixture
def fits(monkeypatch, tmp_path):
    """Number of encoder fits so far, and of the windows that each saw."""
    log = tmp_path / "fits"
    original = PulseTransformer.fit

    def fit(self, X, *args, **kwargs):
        with log.open("a") as file:
            file.write(f"{len(X)}\n")
        return original(self, X, *args, **kwargs)

    monkeypatch.setattr(PulseTransformer, "fit", fit)
    return lambda: [int(line) for line in log.read_text().split()]


def test_windows_pipeline_and_search(fits, tmp_path):
    """A change of the probe's C retrains no encoder."""
    signals, labels = recordings()
    w = sliding_windows(signals, 16, 16, y=labels)
    grid = {
        "pulse__n_crops": [1, 2],
        "probe__C": [0.1, 1.0, 10.0],
    }
    search = GridSearchCV(pipeline(str(tmp_path / "cache")), grid, cv=GroupKFold(3))
    search.fit(w.X, w.y, groups=w.groups)
    n_encoders, n_folds = 2, 3
    assert len(fits()) == n_encoders * n_folds + 1
    assert len(search.cv_results_["params"]) == 3 * n_encoders
    assert search.best_score_ > 0.7


def test_a_cache_knows_a_frozen_encoder_that_another_process_has_read(tmp_path, monkeypatch):
    X, y = make_windows(24)
    pulse = PulseTransformer(**SMALL_PULSE).fit(X)
    read = pickle.loads(pickle.dumps(pulse))
    embedded = []
    transform = PulseTransformer.transform
    monkeypatch.setattr(
        PulseTransformer, "transform", lambda *args: embedded.append(1) or transform(*args)
    )
    for encoder in (pulse, read):
        steps = [("encoder", FrozenEstimator(encoder)), ("probe", LogisticRegression())]
        Pipeline(steps, memory=str(tmp_path)).fit(X, y)
    assert len(embedded) == 1


def test_a_cache_knows_a_fine_tuned_network_whatever_the_order_of_sets(tmp_path):
    X, y = make_windows(24)
    pulse = PulseTransformer(**SMALL_PULSE).fit(X)
    tuned = FineTuneClassifier(FrozenEstimator(pulse), max_epochs=1, random_state=0).fit(X, y)
    path = tmp_path / "tuned.pickle"
    path.write_bytes(pickle.dumps(tuned))
    code = "import joblib, sys; print(joblib.hash(joblib.load(sys.argv[1])), end='')"
    command = [sys.executable, "-c", code, str(path)]
    env = os.environ | {"PYTHONHASHSEED": "1"}
    found = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    assert found == joblib.hash(tuned)


# Daily, test_common compares the bits of an encoder that another process fitted.
@pytest.mark.slow
@pytest.mark.xdist_group("workers")
def test_two_workers_search_to_the_bits_of_one():
    """The loss shows bits that differ, which the accuracy may hide."""
    signals, labels = recordings()
    w = sliding_windows(signals, 16, 16, y=labels)
    search = GridSearchCV(
        pipeline(), {"pulse__n_crops": [1, 2]}, cv=GroupKFold(3), scoring="neg_log_loss"
    )
    scores = [
        clone(search)
        .set_params(n_jobs=n_jobs)
        .fit(w.X, w.y, groups=w.groups)
        .cv_results_["mean_test_score"]
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*scores)


def test_one_label_per_recording(fits):
    """The window is a step, and the number of samples does not change."""
    X, y = make_windows(30, 40)
    model = Pipeline([("window", SlidingWindows(length=16, stride=8)), *pipeline().steps])
    model.fit(X, y)
    assert fits() == [30]
    assert model["pulse"].transform(model["window"].transform(X)).shape == (30, 8)
    assert model.score(X, y) > 0.9


def test_recordings_of_unequal_length_with_one_label_each():
    X, y = make_windows(30, 40)
    unequal = [x[: 40 - i % 20] for i, x in enumerate(X)]
    window = SlidingWindows(length=24, stride=8)
    bags = window.fit_transform(unequal)
    assert np.isnan(bags).any()
    model = pipeline().fit(bags, y)
    assert model.score(bags, y) > 0.75
    shortest = next(i for i, x in enumerate(unequal) if len(x) < 24)
    alone = model["pulse"].transform(unequal[shortest][None])
    np.testing.assert_allclose(model["pulse"].transform(bags)[shortest], alone[0], atol=1e-5)


def test_unlabelled_windows_are_pretrained_on_and_not_classified(monkeypatch):
    """y == -1 end to end: PULSE sees every window, the probe the labelled ones."""
    X, y = make_windows(60, 16)
    partly = mask_labels(y, 0.2, random_state=0)
    n_labelled = int((partly != -1).sum())
    assert 12 <= n_labelled <= 14

    seen = set()
    original = CrossReconstruction.forward

    def forward(objective, x, **kwargs):
        seen.update(map(bytes, x.numpy()))
        return original(objective, x, **kwargs)

    monkeypatch.setattr(CrossReconstruction, "forward", forward)
    probed = []

    class CountingRegression(LogisticRegression):
        def fit(self, X, y, **kwargs):
            probed.append(len(y))
            return super().fit(X, y, **kwargs)

    model = pipeline(probe=LabeledSubsetClassifier(CountingRegression()))
    model.fit(X, partly)
    assert seen == set(map(bytes, X))
    assert probed == [n_labelled]
    assert model.classes_.tolist() == [0, 1]
    assert model.score(X, y) > 0.75
    assert model.score(X, partly) == np.mean(model.predict(X)[partly != -1] == partly[partly != -1])


def test_cross_validation_with_few_labels():
    X, y = make_windows(60, 16)
    partly = mask_labels(y, 0.5, random_state=0)
    model = pipeline(probe=LabeledSubsetClassifier())
    groups = np.arange(60) // 4
    scores = cross_val_score(
        model, X, partly, groups=groups, cv=LabeledTestSplit(GroupKFold(3)), scoring="accuracy"
    )
    assert scores.mean() > 0.75


def test_linear_probe_on_a_frozen_encoder():
    X, y = make_windows(60, 16)
    embedding = PulseTransformer(**SMALL_PULSE).fit_transform(X)
    probe = make_linear_probe().fit(embedding[:40], y[:40])
    assert probe.score(embedding[40:], y[40:]) > 0.9


def test_groups_are_routed_through_a_search(monkeypatch):
    """With metadata routing one `groups` serves the splitter and PULSE's own validation part."""
    signals, labels = recordings()
    w = sliding_windows(signals, 16, 16, y=labels)
    seen = []
    original = PulseTransformer.fit

    def fit(self, X, y=None, *, groups=None, X_val=None):
        seen.append(np.asarray(groups))
        return original(self, X, y, groups=groups, X_val=X_val)

    monkeypatch.setattr(PulseTransformer, "fit", fit)
    with config_context(enable_metadata_routing=True):
        model = pipeline()
        model["pulse"].set_fit_request(groups=True)
        search = GridSearchCV(model, {"pulse__n_crops": [1, 2]}, cv=GroupKFold(3), refit=False)
        search.fit(w.X, w.y, groups=w.groups)
    assert len(seen) == 6
    for groups in seen:
        assert len(np.unique(groups)) == 4  # two recordings of six are in the test fold


def test_a_search_over_lazy_windows_never_reads_them_whole(tmp_path):
    signals, labels = recordings()
    mapped = []
    for i, signal in enumerate(signals):
        np.save(tmp_path / f"{i}.npy", signal)
        mapped.append(np.load(tmp_path / f"{i}.npy", mmap_mode="r"))
    cut = {"length": 16, "stride": 8, "y": labels}
    lazy, whole = sliding_windows(mapped, **cut, lazy=True), sliding_windows(signals, **cut)

    class Unreadable(RecordingWindows):
        def __array__(self, *args, **kwargs):
            raise AssertionError("the windows were read as a whole")

    lazy.X.__class__ = Unreadable
    scores = [
        GridSearchCV(
            pipeline(validation_fraction=0, max_epochs=1),
            {"pulse__n_crops": [1, 2]},
            cv=GroupKFold(3),
        )
        .fit(w.X, w.y, groups=w.groups)
        .cv_results_["mean_test_score"]
        for w in (lazy, whole)
    ]
    np.testing.assert_array_equal(*scores)


def test_memory_does_not_grow_with_the_number_of_windows(tmp_path, monkeypatch):
    """Peak of what numpy and Python allocate, beside the windows' own size."""
    monkeypatch.setattr("sklearn_pulse._data._windows._BLOCK_ELEMENTS", 2**12)
    np.save(tmp_path / "long.npy", np.random.default_rng(0).normal(size=(3_000, 8)))
    recording = np.load(tmp_path / "long.npy", mmap_mode="r")
    peaks, sizes = [], []
    for stride in (200, 200, 20):  # the first fit also loads modules
        w = sliding_windows([recording], 256, stride, lazy=True)
        encoder = PulseTransformer(
            **SMALL_PULSE | {"max_epochs": 1, "validation_fraction": 0, "batch_size": 16}
        )
        gc.collect()
        tracemalloc.start()
        encoder.fit(w.X)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        sizes.append(w.X.nbytes)
    assert sizes[2] > 9 * sizes[1]
    assert peaks[2] - peaks[1] < 0.2 * (sizes[2] - sizes[1])  # positions, not windows
