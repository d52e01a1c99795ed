"""The promises that scikit-learn's suite does not make for 3-D data."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from sklearn_pulse import FineTuneClassifier, PulseTransformer, RandomEncoderTransformer
from tests.helpers import INPUT_FORMS, SMALL_ENCODER, SMALL_PULSE, make_windows

from .tuning import STILL, TINY, scratch, tuned


def test_same_seed_same_bits_and_another_seed_others(pulse, windows, fitted):
    X, y = windows
    expected = fitted.predict_proba(X)
    torch.manual_seed(5)
    np.random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    np.testing.assert_array_equal(tuned(pulse).fit(X, y).predict_proba(X), expected)
    assert torch.equal(before[0], torch.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])
    np.testing.assert_array_equal(clone(fitted).fit(X, y).predict_proba(X), expected)
    assert not np.array_equal(tuned(pulse, random_state=1).fit(X, y).predict_proba(X), expected)


def test_threads_give_the_bits_of_one(pulse, windows):
    jobs = [joblib.delayed(tuned(pulse, random_state=i).fit)(*windows) for i in range(2)]
    first, second = (
        [c.predict_proba(windows[0]) for c in joblib.Parallel(n, backend="threading")(jobs)]
        for n in (1, 2)
    )
    np.testing.assert_array_equal(first, second)


def test_the_head_computes_with_as_many_threads_as_were_asked_for(windows):
    seen = []
    for num_threads in (1, 3):
        fitted = scratch(num_threads=num_threads).fit(*windows)
        fitted.head_.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
        fitted.predict_proba(windows[0])
    assert seen == [1, 3]


@pytest.mark.parametrize("score_with", ["head", "probe"])
def test_a_row_does_not_depend_on_the_others(pulse, score_with):
    X, y = make_windows(300, 16, 3)
    classifier = tuned(pulse, max_epochs=1, score_with=score_with).fit(X[:20], y[:20])
    tolerance = {"rtol": 0, "atol": 0 if score_with == "head" else 1e-12}
    expected = classifier.predict_proba(X)
    order = np.random.default_rng(0).permutation(300)
    np.testing.assert_allclose(classifier.predict_proba(X[order]), expected[order], **tolerance)
    np.testing.assert_allclose(classifier.predict_proba(X[[7]])[0], expected[7], **tolerance)
    X[8, 3:] = np.nan
    rest = np.delete(np.arange(300), 8)
    np.testing.assert_allclose(classifier.predict_proba(X)[rest], expected[rest], **tolerance)


@pytest.mark.parametrize("score_with", ["head", "probe"])
def test_pickle(pulse, windows, score_with):
    X, y = windows
    classifier = tuned(pulse, score_with=score_with).fit(X, y)
    restored = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(restored.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(restored.fit(X, y).predict_proba(X), classifier.predict_proba(X))


@pytest.mark.parametrize(
    "form",
    ["float64", "Fortran order", "read-only memory map", "torch", "nested list", "strided"],
)
def test_every_form_of_the_input_gives_the_same_bits(pulse, windows, fitted, form, tmp_path):
    X, y = windows
    before = X.copy()
    other = INPUT_FORMS[form](X, tmp_path)
    classifier = tuned(pulse).fit(other, list(y))
    np.testing.assert_array_equal(classifier.predict_proba(other), fitted.predict_proba(X))
    np.testing.assert_array_equal(X, before)


def test_channels_first_give_the_bits_of_channels_last(pulse, windows, fitted):
    X, y = windows
    swapped = X.swapaxes(1, 2)
    channels_first = copy.deepcopy(pulse).set_params(input_layout="nct")
    classifier = tuned(channels_first).fit(swapped, y)
    np.testing.assert_array_equal(classifier.predict_proba(swapped), fitted.predict_proba(X))
    assert classifier.input_layout_ == "nct"
    with pytest.raises(ValueError, match="looks transposed"):
        classifier.predict(X)
    with pytest.raises(ValueError, match="expecting 3 channels"):
        classifier.predict(swapped[:, :2])


@pytest.mark.parametrize("layout", ["ntc", "nct"])
def test_the_layout_is_that_of_the_encoder(layout, tmp_path):
    """As many channels as steps: neither a shape nor a warning tells the layouts apart."""
    X, y = make_windows(20, 12, 12)
    X = X if layout == "ntc" else np.ascontiguousarray(X.swapaxes(1, 2))
    encoder = RandomEncoderTransformer(**SMALL_ENCODER, random_state=0, input_layout=layout).fit(X)
    own = tuned(encoder, **STILL).fit(X, y)
    np.testing.assert_allclose(own.transform(X), encoder.transform(X), rtol=1e-5, atol=1e-6)
    validated = tuned(encoder, **STILL).fit(X, y, X_val=X[:8], y_val=y[:8])
    np.testing.assert_array_equal(validated.transform(X), own.transform(X))
    loss = -np.log(own.predict_proba(X)[np.arange(8), y[:8]]).mean()
    np.testing.assert_allclose(validated.history_[-1]["valid_loss"], loss, rtol=1e-5)
    same = tuned(encoder, **STILL, input_layout=layout).fit(X, y)
    np.testing.assert_array_equal(same.predict_proba(X), own.predict_proba(X))
    encoder.save_pretrained(tmp_path / "encoder")
    stored = FineTuneClassifier(tmp_path / "encoder", **TINY | STILL).fit(X, y)
    np.testing.assert_array_equal(stored.predict_proba(X), own.predict_proba(X))
    twice = tuned(own, **STILL).fit(X, y)
    assert twice.input_layout_ == layout
    other = {"ntc": "nct", "nct": "ntc"}[layout]
    message = f"input_layout='{other}', but the pretrained RandomEncoderTransformer.*'{layout}'"
    with pytest.raises(ValueError, match=message):
        tuned(encoder, input_layout=other).fit(X, y)


def test_an_encoder_of_tables_agrees_with_either_layout():
    X, y = make_windows(20, 12, 1)
    encoder = RandomEncoderTransformer(**SMALL_ENCODER, random_state=0).fit(X[:, :, 0])
    swapped = tuned(encoder, input_layout="nct").fit(X.swapaxes(1, 2), y)
    np.testing.assert_array_equal(
        swapped.predict_proba(X.swapaxes(1, 2)), tuned(encoder).fit(X, y).predict_proba(X)
    )


def test_pulse_reads_a_fine_tuned_encoder_in_its_layout():
    X, y = make_windows(12, 12, 12)
    swapped = X.swapaxes(1, 2)
    encoders = [
        scratch(input_layout=layout, max_epochs=1).fit(windows, y)
        for layout, windows in (("ntc", X), ("nct", swapped))
    ]
    encoders.append(tuned(encoders[1], **STILL).fit(swapped, y))  # knows it from its encoder
    settings = {name: SMALL_PULSE[name] for name in SMALL_PULSE if name not in SMALL_ENCODER}
    frozen = [PulseTransformer(encoder=FrozenEstimator(e), **settings) for e in encoders]
    rows = [pulse.fit(X).transform(X) for pulse in frozen]
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_allclose(rows[2], rows[0], rtol=1e-5, atol=1e-6)


def test_fitted_attributes_and_names(pulse, windows, fitted):
    X, y = windows
    assert (fitted.n_timesteps_in_, fitted.n_channels_in_, fitted.n_features_in_) == (16, 3, 3)
    assert fitted.n_iter_ == len(fitted.history_) == 2
    assert fitted.history_[0].keys() >= {"train_loss", "dur"}
    frame = pd.DataFrame(X[:, :, 0]).rename(columns=str)
    table = tuned(pulse).fit(frame, y)
    assert (table.n_features_in_, table.n_timesteps_in_, table.n_channels_in_) == (16, 16, 1)
    assert table.feature_names_in_.tolist() == list(map(str, range(16)))
    names = [f"finetuneclassifier{i}" for i in range(8)]
    assert table.set_output(transform="pandas").transform(frame).columns.tolist() == names
    assert table.predict(frame).shape == (20,)
    with pytest.raises(NotFittedError):
        tuned(pulse).predict(X)


def test_missing_steps(pulse, windows):
    X, y = windows
    X = X.copy()
    X[::2, 10:] = np.nan
    X[1::3, 4, 1] = np.nan
    before = X.copy()
    classifier = tuned(pulse).fit(X, y)
    np.testing.assert_array_equal(X, before)
    assert np.isfinite([epoch["train_loss"] for epoch in classifier.history_]).all()
    # A step that is missing in one channel is missing in all, the map of the channels included.
    wholly = X.copy()
    wholly[1::3, 4] = np.nan
    np.testing.assert_array_equal(classifier.predict_proba(wholly), classifier.predict_proba(X))
    np.testing.assert_allclose(
        classifier.predict_proba(X[::2]), classifier.predict_proba(X[::2, :10]), atol=1e-6
    )
    X[3] = np.nan
    with pytest.raises(ValueError, match="no finite time step in sample 3"):
        tuned(pulse).fit(X, y)
    X[3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        tuned(pulse).fit(X, y)


def test_a_pretrained_encoder_warns_only_beyond_what_it_has_seen(pulse, windows, recwarn, tmp_path):
    longer = tuned(pulse).fit(*make_windows(10, 40, 3))
    longer.save_pretrained(tmp_path / "longer")
    for model in (longer, FineTuneClassifier.from_pretrained(tmp_path / "longer")):
        assert model.n_timesteps_trained_ == 40  # pretraining has seen fewer
    X, y = make_windows(10, 6, 3)
    classifier = tuned(pulse).fit(X, y)
    classifier.predict(make_windows(4, 30, 3)[0])  # pretraining has seen as long ones
    new = scratch().fit(X, y)
    assert not [warning for warning in recwarn if "never trained" in str(warning.message)]
    with pytest.warns(UserWarning, match="never trained"):
        new.predict(make_windows(4, 30, 3)[0])


def test_bags_are_pooled_before_the_head(pulse):
    X, _ = make_windows(24, 16, 3)
    bags, y = X.reshape(6, 4, 16, 3).copy(), np.arange(6) % 2
    bags[2, 1:] = np.nan  # windows that only pad a bag
    bags[3, 0, 5:] = np.nan
    for bag_pooling in ("mean", "max"):
        classifier = tuned(pulse, **STILL, bag_pooling=bag_pooling)
        classifier.set_params(batch_size=6).fit(bags, y)
        usable = np.isfinite(bags).all(-1).any(-1)
        pooled = [
            getattr(np, bag_pooling)(classifier.transform(bag[keep]), axis=0)
            for bag, keep in zip(bags, usable, strict=True)
        ]
        np.testing.assert_allclose(classifier.transform(bags), pooled, rtol=1e-5)
        losses = -np.log(classifier.predict_proba(bags)[np.arange(6), y])
        np.testing.assert_allclose(classifier.history_[0]["train_loss"], losses.mean(), rtol=1e-5)


@settings(max_examples=15, deadline=None)
@given(
    X=st.tuples(st.integers(2, 5), st.integers(1, 6), st.integers(1, 3)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.floats(-1e3, 1e3) | st.just(np.nan))
    )
)
@pytest.mark.filterwarnings("ignore:X has more channels", "ignore:The scale of X is extreme")
@pytest.mark.filterwarnings("ignore:Channel . of X is")
@pytest.mark.filterwarnings("ignore:float32 does not hold the variation")  # of tiny values
def test_any_finite_values_and_any_missing_steps(X):
    X[:, 0] = np.nan_to_num(X[:, 0])  # one observed step at least
    classifier = scratch(max_epochs=1).fit(X, np.arange(len(X)) % 2)
    proba = classifier.predict_proba(X)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(1), 1)
