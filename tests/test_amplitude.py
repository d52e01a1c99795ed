"""Windows in another unit than those of fit: noted, warned of, saved."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_pulse import (
    CrossPredictionTransformer,
    FineTuneClassifier,
    PulseTransformer,
    RandomEncoderTransformer,
    load_pretrained,
    pretrained,
)
from sklearn_pulse.baselines import PatchTSTTransformer
from sklearn_pulse.datasets import fetch_har, fetch_mitbih_af, fetch_wesad
from sklearn_pulse.features import (
    AutocorrelationTransformer,
    RhythmTransformer,
    StatisticsTransformer,
)
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import LazyWindows, sliding_windows
from tests.helpers import make_windows, small
from tests.persistence.helpers import read_config, write_config

X, y = make_windows(24)
quick = partial(small, max_epochs=1)
statistics = StatisticsTransformer().fit(X)
METHODS = [
    StatisticsTransformer,
    RandomEncoderTransformer,
    CrossPredictionTransformer,
    PulseTransformer,
    FineTuneClassifier,
]


def warned(call, *args, **params):
    """Return what is said of the amplitude while a function is called."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args, **params)
    return [str(w.message) for w in caught if "was fitted on" in str(w.message)]


@pytest.mark.parametrize("cls", METHODS)
def test_another_unit_is_warned_of(cls):
    model = quick(cls).fit(X, y)
    read = model.predict if hasattr(model, "predict") else model.transform
    assert not warned(read, X)
    assert not warned(read, 20 * X) and not warned(read, X / 20)
    (larger,) = warned(read, 1000 * X)
    assert f"times larger than the windows that {cls.__name__} was fitted on" in larger
    (smaller,) = warned(read, X / 1000)
    assert f"times smaller than the windows that {cls.__name__} was fitted on" in smaller


@pytest.mark.parametrize(
    "cls",
    [
        AutocorrelationTransformer,
        PatchTSTTransformer,
        RhythmTransformer,
    ],
)
def test_where_the_unit_does_not_matter_nothing_is_said(cls):
    long, _ = make_windows(12, 64)
    fitted = quick(cls).fit(long)
    assert not warned(fitted.transform, 1024 * long)
    embedded = fitted.transform(long)
    np.testing.assert_allclose(fitted.transform(1024 * long), embedded, atol=0.05)
    if cls is PatchTSTTransformer:
        tuned = quick(FineTuneClassifier, pretrained=FrozenEstimator(fitted)).fit(
            long, np.arange(12) % 2
        )
        assert not warned(tuned.predict, 1024 * long)


def test_the_amplitude_is_the_root_mean_square_of_windows():
    rms = np.array([[np.sqrt(np.mean(window[:, c] ** 2)) for c in range(2)] for window in X])
    of_windows = np.sort(rms.astype(np.float64), axis=0)  # of 24 windows one lies beyond, each way
    np.testing.assert_allclose(statistics.amplitude_in_, of_windows[[1, -2]], rtol=1e-6)


def test_the_warning_names_the_channel_and_the_sizes():
    other = X.copy()
    other[:, :, 1] *= 1e6
    (text,) = warned(statistics.transform, other)
    low, high = statistics.amplitude_in_[:, 1]
    assert text.startswith("Channel 1 of X is ") and f"was {low:.3g} to {high:.3g}" in text
    rms = np.sqrt(np.mean(other[:, :, 1].astype(np.float64) ** 2, axis=1))
    looked_at = rms[np.linspace(0, len(X) - 1, 8).astype(int)]
    median = np.percentile(looked_at, 50, method="lower")
    assert f"is {median / high:.2g} times larger" in text and f"is {median:.3g}," in text


def test_a_few_artefacts_are_no_other_unit():
    noisy = X.copy()
    noisy[:3] *= 1e6
    assert not warned(statistics.transform, noisy)
    assert not warned(StatisticsTransformer().fit(noisy).transform, X)


def test_rest_and_effort_of_fit_are_both_admitted():
    both = np.concatenate([X, 500 * X])
    fitted = StatisticsTransformer().fit(both)
    assert not warned(fitted.transform, X) and not warned(fitted.transform, 500 * X)
    assert warned(fitted.transform, 500_000 * X)


@pytest.mark.parametrize("gain", [1e-3, 1e3])
@pytest.mark.parametrize("n_windows", [2, 3])
def test_a_few_windows_of_fit_are_admitted_however_far_apart(n_windows, gain):
    few = X[:n_windows] * np.array([gain, 1, 1])[:n_windows, np.newaxis, np.newaxis]
    fitted = StatisticsTransformer().fit(few)
    for window in few:
        assert not warned(fitted.transform, window[np.newaxis])


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_sensor_that_was_off_says_nothing(value):
    off = X.copy()
    off[:, :, 1] = value
    if np.isnan(value):
        off[:, 0, 1] = 1.0  # a step that counts
    assert not warned(statistics.transform, off)
    assert not warned(StatisticsTransformer().fit(off).transform, X)
    if value == 0:
        assert np.isnan(StatisticsTransformer().fit(off).amplitude_in_[:, 1]).all()


def test_missing_steps_do_not_count():
    gaps = X.copy()
    gaps[:, :12] = np.nan
    gaps[:, 12:] *= 1000
    assert len(warned(statistics.transform, gaps)) == 1


def test_lazy_windows_bags_tables_and_channels_first_are_compared():
    recording = X.reshape(-1, 2)
    assert warned(statistics.transform, sliding_windows([1000 * recording], 16, lazy=True).X)
    assert not warned(statistics.transform, sliding_windows([recording], 16, lazy=True).X)
    assert warned(statistics.transform, 1000 * X.reshape(6, 4, 16, 2))
    table = StatisticsTransformer().fit(X[:, :, 0])
    assert warned(table.transform, 1000 * X[:, :, 0]) and not warned(table.transform, X[:, :, 0])
    first = StatisticsTransformer(input_layout="nct").fit(X.swapaxes(1, 2))
    np.testing.assert_array_equal(first.amplitude_in_, statistics.amplitude_in_)
    assert warned(first.transform, 1000 * X.swapaxes(1, 2))


def test_a_scaler_before_takes_any_unit():
    pipeline = make_pipeline(WindowScaler(per="window"), StatisticsTransformer()).fit(X)
    assert not warned(pipeline.transform, 1000 * X)


def test_no_window_is_read_again():
    class Counted(LazyWindows):
        shape = (100, 16, 2)

        def observed_windows(self):
            return np.ones(100, dtype=bool)

        def take(self, indices):
            read.extend(indices)
            return 1000 * X[np.asarray(indices) % 24]

    read = []
    assert warned(statistics.transform, Counted())
    assert sorted(read) == [*range(100)]


def test_it_is_said_once_of_many_blocks(monkeypatch):
    monkeypatch.setattr("sklearn_pulse._data._windows._BLOCK_ELEMENTS", 3 * X[0].size)
    assert len(warned(statistics.transform, 1000 * X)) == 1


def test_validation_windows_in_another_unit_are_warned_of():
    assert warned(quick(PulseTransformer).fit, X, X_val=1000 * X)


def test_a_frozen_and_a_loaded_model_warn(tmp_path):
    model = small(RandomEncoderTransformer).fit(X)
    classifier = make_pipeline(FrozenEstimator(model), LogisticRegression()).fit(X, y)
    assert warned(classifier.predict, 1000 * X)
    model.save_pretrained(tmp_path / "model")
    loaded = load_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.amplitude_in_, model.amplitude_in_)
    assert warned(loaded.transform, 1000 * X) and not warned(loaded.transform, X)


def test_a_model_saved_before_is_not_compared(tmp_path):
    small(RandomEncoderTransformer).fit(X).save_pretrained(tmp_path / "model")
    config = read_config(tmp_path / "model")
    del config["fitted"]["amplitude_in_"]
    write_config(tmp_path / "model", config)
    loaded = load_pretrained(tmp_path / "model")
    assert loaded.amplitude_in_ is None and not warned(loaded.transform, 1000 * X)


@pytest.mark.parametrize("value", [3, "large", [1.0, 2.0], [["a", "b"], ["c", "d"]]])
def test_a_file_with_an_impossible_amplitude_is_refused(tmp_path, value):
    small(RandomEncoderTransformer).fit(X).save_pretrained(tmp_path / "model")
    config = read_config(tmp_path / "model")
    config["fitted"]["amplitude_in_"] = value
    write_config(tmp_path / "model", config)
    with pytest.raises(ValueError, match="amplitude_in_"):
        load_pretrained(tmp_path / "model")


def test_the_model_that_comes_along_wants_microvolts():
    model = pretrained.load("eeg-174hz")
    eeg = 40 * np.random.default_rng(0).normal(size=(8, 178, 1))
    assert not warned(model.transform, eeg)
    (text,) = warned(model.transform, 1e-6 * eeg)
    assert "If X has another unit, convert it" in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* is read instead")  # of the ECG
@pytest.mark.parametrize("fetch", [fetch_har, fetch_wesad, fetch_mitbih_af])
def test_people_held_out_are_not_warned_of_but_in_another_unit(fetch, data_home):
    if fetch is fetch_mitbih_af:
        pytest.importorskip("wfdb")
    data = fetch(data_home, download_if_missing=False)
    person = np.unique(data.groups, return_inverse=True)[1]
    windows = np.asarray(data.X, dtype=np.float32)
    for fold in range(3):
        fitted = StatisticsTransformer().fit(windows[person % 3 != fold])
        for one in range(fold, person.max() + 1, 3):
            own = windows[person == one]
            assert not warned(fitted.transform, own)
            assert not any(warned(fitted.transform, window[None]) for window in own[::20])
            assert warned(fitted.transform, 1000 * own) and warned(fitted.transform, own / 1000)
