"""Sampling rates and channel names: stated, carried by windows, compared, printed and saved."""

import copy
import inspect
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_pulse import (
    CrossPredictionTransformer,
    FineTuneClassifier,
    FineTuneRegressor,
    PulseTransformer,
    RandomEncoderTransformer,
)
from sklearn_pulse.baselines import SupervisedClassifier
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.interop import from_reference_checkpoint, to_reference_state
from sklearn_pulse.preprocessing import BandpassFilter, Resampler, WindowScaler
from sklearn_pulse.windows import RecordingWindows, random_windows, segment_windows, sliding_windows
from tests.helpers import make_windows, small
from tests.persistence.helpers import pulse, read_config, write_config
from tests.test_common import CLASSES, FEATURES

X, y = make_windows(8)
NAMES = ["ecg", "ppg"]
RECORDINGS = [X.reshape(-1, 2)]
PUBLIC = [cls for cls in [*CLASSES, *FEATURES] if "tests" not in cls.__module__]
quick = partial(small, max_epochs=1)
untrained = partial(small, RandomEncoderTransformer)


def lazy(rate=64, names=NAMES, **params):
    """Windows that carry a rate and names."""
    return sliding_windows(
        RECORDINGS, 16, lazy=True, sampling_rate=rate, channel_names=names, **params
    ).X


@pytest.fixture(scope="module")
def fitted():
    return untrained(sampling_rate=64, channel_names=NAMES).fit(X)


# --- what an estimator is told ---


@pytest.mark.parametrize(
    "cls", [*PUBLIC, SupervisedClassifier, FineTuneClassifier, FineTuneRegressor]
)
def test_every_estimator_has_both_parameters(cls):
    parameters = inspect.signature(cls).parameters
    for name in ("sampling_rate", "channel_names"):
        assert parameters[name].default is None
        assert f"{name} : " in cls.__doc__ and f"{name}_in_ : " in cls.__doc__
    stated = cls(sampling_rate=64.0, channel_names=NAMES)
    assert clone(stated).get_params()["channel_names"] == NAMES
    text = repr(stated)
    assert "sampling_rate=64.0" in text and "channel_names=['ecg', 'ppg']" in text


TOLD = [
    PulseTransformer,
    RandomEncoderTransformer,
    StatisticsTransformer,
    CrossPredictionTransformer,
    SupervisedClassifier,
]


def _uses(model):
    """Return the methods of a fitted model that read windows."""
    names = ("transform", "predict", "predict_proba")
    names += ("reconstruct", "score_samples", "decoder_reliance")
    return [getattr(model, name) for name in names if hasattr(model, name)]


@pytest.mark.parametrize("cls", TOLD)
def test_another_rate_and_other_channels_are_refused(cls):
    model = quick(cls, sampling_rate=64, channel_names=NAMES).fit(X, y)
    assert model.sampling_rate_in_ == 64.0
    assert model.channel_names_in_.tolist() == NAMES
    expected = model.transform(X)
    stated = model.transform(X, sampling_rate=64 + 1e-9, channel_names=tuple(NAMES))
    np.testing.assert_array_equal(stated, expected)
    for method in _uses(model):
        method(X, sampling_rate=64, channel_names=NAMES)
        with pytest.raises(
            ValueError,
            match=rf"100 Hz, but {cls.__name__} was fitted on 64 Hz: .*Resampler\(from_rate=100,",
        ):
            method(X, sampling_rate=100)
        with pytest.raises(ValueError, match=r"take the channels of X in the order \[1, 0\]"):
            method(X, channel_names=NAMES[::-1])
        with pytest.raises(ValueError, match=r"\['ecg', 'eda'\], but .* fitted on \['ecg', 'ppg'"):
            method(X, channel_names=["ecg", "eda"])
        with pytest.raises(ValueError, match="100 Hz, but"):
            method(lazy(100))


@pytest.mark.parametrize("cls", [SupervisedClassifier, FineTuneRegressor])
def test_a_score_states_rate_and_channels_as_a_prediction_does(cls):
    model = quick(cls, sampling_rate=64, channel_names=NAMES).fit(X, y)
    weight = np.arange(len(y))
    metric = accuracy_score if cls is SupervisedClassifier else r2_score
    expected = metric(y, model.predict(X), sample_weight=weight)
    assert model.score(X, y, weight, sampling_rate=64, channel_names=NAMES) == expected
    with pytest.raises(ValueError, match="100 Hz, but"):
        model.score(X, y, sampling_rate=100)
    with pytest.raises(ValueError, match=r"take the channels of X in the order \[1, 0\]"):
        model.score(X, y, channel_names=NAMES[::-1])
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(clone(model).set_score_request(sampling_rate=True)).fit(X, y)
        with pytest.raises(ValueError, match="100 Hz, but"):
            pipe.score(X, y, sampling_rate=100)


def test_what_nobody_stated_is_not_compared():
    model = untrained().fit(X)
    assert model.sampling_rate_in_ is None and model.channel_names_in_ is None
    model.transform(X, sampling_rate=100, channel_names=NAMES)
    model.transform(lazy(100))


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"sampling_rate": 0}, ValueError, "sampling_rate must be .* in Hz"),
        ({"sampling_rate": "64"}, TypeError, "sampling_rate must be a number"),
        ({"channel_names": ["ecg"]}, ValueError, "1 names, but X has 2 channels"),
        ({"channel_names": ["ecg", "ecg"]}, ValueError, "channel_names holds 'ecg' twice"),
        ({"channel_names": ["ecg", 2]}, TypeError, "channel_names must be a list of strings"),
        ({"channel_names": "ab"}, TypeError, "channel_names must be a list of strings"),
    ],
)
def test_bad_values_are_refused_everywhere(fitted, params, error, message):
    for cls in TOLD:
        with pytest.raises(error, match=message):
            quick(cls, **params).fit(X, y)
    with pytest.raises(error, match=message):
        fitted.transform(X, **params)
    with pytest.raises(error, match=message):
        sliding_windows(RECORDINGS, 16, **params)


def test_names_of_channels_that_come_first_name_the_layout():
    turned = [np.zeros((2, 100))]
    with pytest.raises(ValueError, match="another input_layout if these are its time steps"):
        sliding_windows(turned, 16, channel_names=NAMES)
    assert sliding_windows(turned, 16, channel_names=NAMES, input_layout="nct").X.shape[1:] == (
        16,
        2,
    )


def test_names_of_columns(fitted):
    columns = pd.DataFrame(columns=NAMES).columns
    assert untrained(channel_names=columns).fit(X).channel_names_in_.tolist() == NAMES
    fitted.transform(X, channel_names=np.array(NAMES))


def test_a_refused_fit_leaves_the_first(fitted):
    model = clone(fitted).fit(X)
    with pytest.raises(ValueError, match="2 names, but X has 1 channels"):
        model.set_params(sampling_rate=32).fit(X[:, :, :1])
    assert model.sampling_rate_in_ == 64.0


def test_training_goes_on_with_the_same_signals():
    known = {"sampling_rate": 64, "channel_names": NAMES}
    model = quick(PulseTransformer, **known, warm_start=True).fit(X)
    for params, message in [
        ({"sampling_rate": 32}, "sampled at 32 Hz, but PulseTransformer was fitted on 64 Hz"),
        ({"channel_names": NAMES[::-1]}, r"in the order \[1, 0\]"),
    ]:
        with pytest.raises(ValueError, match=message):
            copy.deepcopy(model).set_params(**params).fit(X)
    model.set_params(sampling_rate=None).fit(X)
    with pytest.raises(ValueError, match="X_val: X is sampled at 32 Hz.*fitted on 64 Hz"):
        model.fit(X, X_val=lazy(rate=32))


# --- what windows carry ---


@pytest.mark.parametrize("downsample", [1, 2])
def test_every_cutter_passes_both_on(downsample):
    options = {
        "sampling_rate": 64,
        "channel_names": NAMES,
        "downsample": downsample,
        "lazy": True,
    }
    segments = [(0, 0, 64, 1)]
    for cut in (
        sliding_windows(RECORDINGS, 8, **options),
        random_windows(RECORDINGS, 8, 2, random_state=0, **options),
        segment_windows(RECORDINGS, segments, 8, **options),
    ):
        for carrier in (cut, cut.X, cut.X[1:], cut.X.apart(np.arange(2))):
            assert carrier.sampling_rate == 64 / downsample
            assert carrier.channel_names == ("ecg", "ppg")
    plain = sliding_windows(RECORDINGS, 8)
    assert plain.sampling_rate is None and plain.channel_names is None


def test_windows_tell_the_estimator():
    model = untrained().fit(lazy())
    assert model.sampling_rate_in_ == 64.0 and model.channel_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match=r"take the channels of X in the order \[1, 0\]"):
        model.transform(lazy(names=NAMES[::-1]))


def test_windows_that_contradict_the_parameter():
    with pytest.raises(ValueError, match="sampling_rate=100, but X carries .* 64 Hz"):
        untrained(sampling_rate=100).fit(lazy())
    with pytest.raises(ValueError, match=r"channel_names=\['a', 'b'\], but X carries .*'ecg'"):
        untrained(channel_names=["a", "b"]).fit(lazy())
    with pytest.raises(ValueError, match="sampling_rate=100, but X carries"):
        untrained().fit(X).transform(lazy(), sampling_rate=100)


def test_windows_to_validate_on_are_compared():
    with pytest.raises(ValueError, match="100 Hz, but PulseTransformer was fitted on 64 Hz"):
        pulse(max_epochs=1).fit(lazy(), X_val=lazy(100))


def test_windows_of_others_that_carry_nonsense():
    windows = lazy()
    windows.sampling_rate = "fast"
    with pytest.raises(TypeError, match="X.sampling_rate must be a number"):
        untrained().fit(windows)


def test_recording_windows_are_told_directly():
    windows = RecordingWindows(RECORDINGS, [0], [0], 8, sampling_rate=64, channel_names=NAMES)
    assert windows.sampling_rate == 64.0 and windows.channel_names == ("ecg", "ppg")


def test_steps_keep_both_and_the_resampler_changes_the_rate(fitted):
    chain = make_pipeline(
        WindowScaler(), BandpassFilter(None, 20, sampling_rate=128), Resampler(128, 64)
    )
    windows = chain.fit_transform(lazy(128))
    for part in (windows, windows[:2]):
        assert part.sampling_rate == 64.0 and part.channel_names == ("ecg", "ppg")
    fitted.transform(windows)
    with pytest.raises(ValueError, match="128 Hz, but RandomEncoderTransformer was fitted on 64"):
        fitted.transform(chain[:-1].transform(lazy(128)))


@pytest.mark.parametrize("step", [Resampler(100, 50), BandpassFilter(None, 20, sampling_rate=100)])
def test_steps_refuse_another_rate_than_they_were_told(step):
    message = r"rate=100, but X carries a .* of 64 Hz: resample X, fit .* with \w+=64,"
    with pytest.raises(ValueError, match=message):
        step.fit(lazy())
    with pytest.raises(ValueError, match=message):
        step.fit(X).transform(lazy())


# --- pipelines, containers, files ---


@pytest.mark.parametrize("cls", [RandomEncoderTransformer, StatisticsTransformer])
def test_metadata_routing_hands_both_to_the_transformer(cls):
    with sklearn.config_context(enable_metadata_routing=True):
        step = small(cls, sampling_rate=64).set_transform_request(sampling_rate=True)
        chain = make_pipeline(WindowScaler(), step).fit(X)
        expected = chain.transform(X)
        np.testing.assert_array_equal(chain.transform(X, sampling_rate=64), expected)
        again = clone(chain).fit_transform(X, sampling_rate=64)
        np.testing.assert_array_equal(again, expected)
        whole = make_pipeline(*clone(chain), LogisticRegression())
        params = {"params": {"sampling_rate": 64}, "error_score": "raise"}
        scores = cross_val_score(whole, X, y, cv=2, **params)
        alone = cross_val_score(whole, X, y, cv=2, params={})  # scikit-learn 1.6 fails without
        np.testing.assert_array_equal(scores, alone)
        for method in (chain.transform, chain.fit_transform, partial(whole.fit, y=y)):
            with pytest.raises(ValueError, match=f"100 Hz, but {cls.__name__}"):
                method(X, sampling_rate=100)


def test_a_rate_that_is_passed_with_pandas_output(fitted):
    expected = fitted.transform(X)
    model = untrained(sampling_rate=64).set_output(transform="pandas").fit(X)
    frame = model.transform(X, sampling_rate=64)
    assert frame.columns.tolist() == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(frame.to_numpy(), expected)


@pytest.mark.parametrize("cls", [RandomEncoderTransformer, CrossPredictionTransformer])
def test_a_saved_model_compares_too(cls, tmp_path):
    quick(cls, sampling_rate=64, channel_names=NAMES).fit(X).save_pretrained(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "- Sampled at 64 Hz." in card and "- Channels, in this order: ['ecg', 'ppg']." in card
    restored = cls.from_pretrained(tmp_path / "model")
    assert restored.get_params()["channel_names"] == NAMES
    with pytest.raises(ValueError, match="100 Hz, but"):
        restored.transform(X, sampling_rate=100)
    with pytest.raises(ValueError, match="fitted on"):
        restored.transform(X, channel_names=NAMES[::-1])


def test_the_columns_of_a_frame_are_saved_as_names(tmp_path):
    model = untrained(channel_names=pd.DataFrame(columns=NAMES).columns).fit(X)
    model.save_pretrained(tmp_path / "model")
    restored = RandomEncoderTransformer.from_pretrained(tmp_path / "model")
    assert list(restored.channel_names) == restored.channel_names_in_.tolist() == NAMES
    restored.fit(X).save_pretrained(tmp_path / "again")


def test_a_model_of_an_earlier_version_is_read(tmp_path):
    untrained().fit(X).save_pretrained(tmp_path / "model")
    config = read_config(tmp_path / "model")
    for name in ("sampling_rate", "channel_names"):
        del config["parameters"][name], config["fitted"][f"{name}_in_"]
    write_config(tmp_path / "model", config)
    restored = RandomEncoderTransformer.from_pretrained(tmp_path / "model")
    assert restored.sampling_rate_in_ is None and restored.channel_names_in_ is None
    restored.transform(X, sampling_rate=100)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sampling_rate_in_", -64.0),
        ("sampling_rate_in_", 32.0),
        ("sampling_rate_in_", "64"),
        ("channel_names_in_", ["ecg", "ecg"]),
        ("channel_names_in_", ["ecg"]),
        ("channel_names_in_", {"array": ["ppg", "ecg"], "dtype": "O"}),
        ("channel_names_in_", 2),
    ],
)
def test_files_that_contradict_themselves(fitted, tmp_path, name, value):
    fitted.save_pretrained(tmp_path / "model")
    config = read_config(tmp_path / "model")
    config["fitted"][name] = value
    write_config(tmp_path / "model", config)
    with pytest.raises(ValueError, match=f"config.json .*{name.removesuffix('_in_')}"):
        RandomEncoderTransformer.from_pretrained(tmp_path / "model")


def test_a_rate_that_was_set_after_fit_is_not_saved(tmp_path):
    model = untrained().fit(X).set_params(sampling_rate=64)
    with pytest.raises(ValueError, match="sampling_rate is 64.0, but it was None at fit"):
        model.save_pretrained(tmp_path / "model")


def test_a_published_checkpoint_can_be_told(tmp_path):
    state = to_reference_state(pulse(max_epochs=1).fit(X))
    model = from_reference_checkpoint(state, sampling_rate=64, channel_names=NAMES)
    with pytest.raises(ValueError, match="100 Hz, but PulseTransformer was fitted on 64 Hz"):
        model.transform(X, sampling_rate=100)


def test_near_rates_are_those_of_clocks():
    encoder = untrained(sampling_rate=173.61).fit(X)
    with pytest.raises(ValueError, match="at 173.6 Hz.*fitted on 173.61 Hz: clocks .*state 173.61"):
        encoder.transform(X, sampling_rate=173.6)
    encoder.transform(X, sampling_rate=173.61)


@pytest.mark.parametrize("cls", [FineTuneClassifier, FineTuneRegressor])
def test_fine_tuning_compares_the_rate_of_the_encoder(cls):
    encoder = untrained(sampling_rate=64).fit(X)
    start = FrozenEstimator(encoder)
    with pytest.raises(ValueError, match="X is sampled at 100 Hz.*fitted on 64 Hz: resample X"):
        cls(start, max_epochs=1, sampling_rate=100).fit(X, y)
    cls(start, max_epochs=1, sampling_rate=64).fit(X, y)
    cls(start, max_epochs=1).fit(X, y)  # a rate that is not known is not compared
