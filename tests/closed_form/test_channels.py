"""Channels that share most of what they record are read whitened."""

import json

import numpy as np
import pytest
import torch
from joblib import parallel_config
from sklearn.base import clone

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse._closed_form._sample import sample_of
from sklearn_pulse._seeds import draw_seed
from sklearn_pulse.corpus import fit_dataset
from sklearn_pulse.preprocessing import ChannelWhitener

from .hearts import hearts
from .literal import SMALL

GROUPS = np.arange(40) // 10
# No choice is made of the other parameters, so that fits to other channels are comparable.
STATED = SMALL | {"block_weights": (0.3, 0.1, 0.2, 0.1, 0.1, 0.1, 0, 0.1), "nearest": 0.0}


def electrodes(n=40, n_channels=5, seed=0):
    """Windows of channels that share a signal, in units and with offsets of their own."""
    rng = np.random.default_rng(seed)
    x = 2 * rng.normal(size=(n, 60, 1)) + rng.normal(size=(n, 60, n_channels))
    signs = np.where(np.arange(n_channels) % 2, -1, 1)
    return np.float32(signs * x * 10.0 ** -np.arange(n_channels) + np.arange(n_channels))


def with_correlation(squared, n_channels):
    """Windows whose channels have this mean squared correlation, but for rounding."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(40 * 60, n_channels))
    noise -= noise.mean(0)
    noise = np.linalg.qr(noise)[0]
    P = np.full((n_channels, n_channels), np.sqrt(squared))
    np.fill_diagonal(P, 1.0)
    return (100 * noise @ np.linalg.cholesky(P).T).reshape(40, 60, n_channels)


@pytest.mark.parametrize(
    ("squared", "n_channels", "expected"),
    [
        (0.29, 4, "recorded"),
        (0.31, 4, "whitened"),
        (0.31, 3, "recorded"),
        (0.9, 3, "recorded"),
        (0.9, 7, "whitened"),
    ],
)
@pytest.mark.parametrize("groups", [None, GROUPS])
def test_the_rule(squared, n_channels, expected, groups):
    X = with_correlation(squared, n_channels)
    P = np.corrcoef(X.reshape(-1, n_channels).T)
    between = [P[i, j] ** 2 for i in range(n_channels) for j in range(n_channels) if i != j]
    assert np.mean(between) == pytest.approx(squared)
    cross = CrossPredictionTransformer(**SMALL).fit(X, groups=groups)
    assert cross.channels_ == expected
    assert (cross.channel_whitener_ is None) == (expected == "recorded")


@pytest.mark.parametrize("views", ["halves", "adjacent"])
def test_it_reads_what_the_step_gives(views):
    """A fit to whitened channels is the fit to the windows of the whitener, to the bit."""
    X = electrodes()
    X[3, 20:30] = np.nan
    X[5, :10, 2] = np.nan  # a step lacks a channel, so that it is not observed
    cross = CrossPredictionTransformer(views=views, **STATED).fit(X, groups=GROUPS)
    assert cross.channels_ == "whitened"
    observed = np.where(np.isnan(X).any(2, keepdims=True), np.nan, X)
    whitener = ChannelWhitener().fit(observed)
    for name in ("center_", "correlation_", "whitening_"):
        found = getattr(cross.channel_whitener_, name)
        np.testing.assert_allclose(found, getattr(whitener, name), rtol=1e-9, atol=1e-12)
    after = cross.channel_whitener_.transform(X)
    behind = CrossPredictionTransformer(views=views, channels="recorded", **STATED)
    expected = behind.fit(after, groups=GROUPS).transform(after)
    np.testing.assert_array_equal(cross.transform(X), expected)
    np.testing.assert_array_equal(clone(cross).fit_transform(X, groups=GROUPS), expected)
    assert cross.predictability_["blocks"] == behind.predictability_["blocks"]
    for name, block in cross.blocks_.items():
        features = behind.blocks_[name].transform(after)
        np.testing.assert_array_equal(block.transform(after), features)


def test_units_offsets_and_signs_do_not_matter():
    X = electrodes()
    other = X * [1e6, -1.0, 1e-3, 7.0, 1.0] + [0.0, 0.3, 1e-4, 0.1, -1e-3]
    one, two = (CrossPredictionTransformer(**STATED).fit(x) for x in (X, other))
    assert one.channels_ == two.channels_ == "whitened"
    first, second = (fitted.channel_whitener_ for fitted in (one, two))
    np.testing.assert_allclose(abs(first.correlation_), abs(second.correlation_), atol=1e-4)
    signs = np.sign(first.correlation_[0] * second.correlation_[0])
    np.testing.assert_allclose(second.transform(other) * signs, first.transform(X), atol=2e-2)


@pytest.mark.parametrize("channels", ["recorded", "whitened"])
@pytest.mark.parametrize("n_channels", [1, 2, 5])
def test_a_choice_of_the_user_holds(channels, n_channels):
    X = electrodes(n_channels=n_channels)
    cross = CrossPredictionTransformer(channels=channels, **STATED).fit(X)
    assert cross.channels_ == channels
    if channels == "whitened":
        after = cross.channel_whitener_.transform(X).reshape(-1, n_channels)
        np.testing.assert_allclose(np.cov(after.T), np.eye(n_channels), atol=0.15)


@pytest.mark.parametrize("weights", ["auto", (1, 1, 0, 0)])
def test_leads_of_a_heart_are_read_as_they_are(weights):
    """They share most of what they record too, and are known by the rhythm that lasts."""
    one, groups = hearts()
    rng = np.random.default_rng(0)
    X = one * [1.0, -0.7, 0.5, 1.3] + 0.02 * rng.normal(size=(*one.shape[:2], 4))
    squares = np.corrcoef(X.reshape(-1, 4).T) ** 2
    assert (squares > 0.3).all()
    params = SMALL | {"block_weights": weights}
    cross = CrossPredictionTransformer(**params).fit(X, groups=groups)
    assert cross.channels_ == "recorded"
    noise = rng.normal(size=(*X.shape[:2], 1)) + 0.1 * rng.normal(size=X.shape)
    assert cross.fit(noise, groups=groups).channels_ == "whitened"
    stated = CrossPredictionTransformer(channels="whitened", **params).fit(X, groups=groups)
    assert stated.channels_ == "whitened"
    assert ("rhythm" in stated.blocks_) == (weights == "auto")  # which the leads themselves tell


@pytest.mark.parametrize("bags", [False, True])
def test_saved_and_loaded(bags, tmp_path):
    """In another layout, and as bags; the whitener reads what the transformer reads."""
    X = electrodes().swapaxes(1, 2)
    X = X.reshape(10, 4, *X.shape[1:]) if bags else X
    cross = CrossPredictionTransformer(input_layout="nct", **SMALL).fit(X)
    assert cross.channels_ == "whitened"
    cross.save_pretrained(tmp_path / "model")
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), cross.transform(X))
    after = cross.channel_whitener_.transform(X)
    assert after.shape == X.shape
    np.testing.assert_array_equal(loaded.channel_whitener_.transform(X), after)
    np.testing.assert_array_equal(
        loaded.channel_whitener_.correlation_, cross.channel_whitener_.correlation_
    )
    np.testing.assert_array_equal(
        loaded.blocks_["covariance"].transform(after), cross.blocks_["covariance"].transform(after)
    )
    loaded.save_pretrained(tmp_path / "again")
    files = [tmp_path / name / "model.safetensors" for name in ("model", "again")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_file_says_how_the_channels_are_read(tmp_path):
    X = electrodes()
    for channels in ("recorded", "whitened"):
        cross = CrossPredictionTransformer(channels=channels, **STATED).fit(X)
        cross.save_pretrained(tmp_path / channels)
        config = json.loads((tmp_path / channels / "config.json").read_text())
        assert config["fitted"]["channels_"] == channels
        loaded = CrossPredictionTransformer.from_pretrained(tmp_path / channels)
        assert loaded.channels_ == channels
        np.testing.assert_array_equal(loaded.transform(X), cross.transform(X))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("center", lambda w: w[:-1]),
        ("correlation", lambda w: w * np.nan),
        ("whitening", lambda w: w[:, :-1]),
        ("whitening", None),
    ],
)
def test_files_of_other_channels_are_refused(tmp_path, monkeypatch, name, change):
    cross = CrossPredictionTransformer(**STATED).fit(electrodes())
    weights = {key: value.numpy() for key, value in cross._weights().items()}
    changed = weights.pop(f"whitener.{name}")
    if change is not None:
        weights[f"whitener.{name}"] = np.ascontiguousarray(change(changed))
    as_tensors = {key: torch.from_numpy(value) for key, value in weights.items()}
    monkeypatch.setattr(cross, "_weights", lambda: as_tensors)
    with pytest.raises(ValueError, match=f"cannot be saved: .*whitener.{name}"):
        cross.save_pretrained(tmp_path / "model")


@pytest.mark.parametrize(("channels", "expected"), [("auto", 0.0), ("recorded", 0.5)])
@pytest.mark.parametrize("groups", [None, np.arange(40)])
def test_trials_of_whitened_channels_have_no_nearest_windows(channels, expected, groups):
    params = SMALL | {"channels": channels}
    cross = CrossPredictionTransformer(**params).fit(electrodes(), groups=groups)
    assert cross.nearest_ == expected
    stated = CrossPredictionTransformer(nearest=0.3, **params).fit(electrodes(), groups=groups)
    assert stated.nearest_ == 0.3


def test_the_correlations_are_those_of_a_sample(monkeypatch):
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 30)
    X = electrodes()
    cross = CrossPredictionTransformer(**STATED, views="halves").fit(X, groups=GROUPS)
    drawn = sample_of(np.arange(40), draw_seed(0))
    assert len(drawn) == 30
    whitener = ChannelWhitener().fit(X[drawn])
    np.testing.assert_allclose(
        cross.channel_whitener_.whitening_, whitener.whitening_, rtol=1e-9, atol=1e-12
    )
    after = cross.channel_whitener_.transform(X)
    behind = CrossPredictionTransformer(**STATED, views="halves", channels="recorded")
    expected = behind.fit(after, groups=GROUPS).transform(after)
    np.testing.assert_array_equal(cross.transform(X), expected)


@pytest.mark.xdist_group("workers")
def test_two_workers_give_the_bits_of_one(monkeypatch):
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 30)
    X = electrodes()
    cross = CrossPredictionTransformer(**STATED, num_threads=1)
    expected = clone(cross).fit(X, groups=GROUPS).transform(X)
    with parallel_config("threading", n_jobs=2):
        fitted = fit_dataset(cross, X, groups=GROUPS)
    assert fitted.channels_ == "whitened"
    np.testing.assert_array_equal(fitted.transform(X), expected)


def test_a_memory_tells_them_apart(tmp_path):
    X = electrodes()
    params = STATED | {"memory": tmp_path}
    for _ in range(2):
        for channels in ("recorded", "whitened"):
            stated = CrossPredictionTransformer(channels=channels, **params).fit(X, groups=GROUPS)
            plain = clone(stated).set_params(memory=None).fit(X, groups=GROUPS)
            assert stated.channels_ == channels
            np.testing.assert_array_equal(stated.transform(X), plain.transform(X))


@pytest.mark.parametrize("n_alike", [5, 3])
def test_channels_that_are_the_same(n_alike):
    """Their difference is nothing, which is enlarged tenfold at most."""
    X = electrodes(n_channels=1).repeat(5, axis=2)
    X[:, :, n_alike:] = 1.0  # constant channels correlate with nothing
    cross = CrossPredictionTransformer(**SMALL).fit(X, groups=GROUPS)
    assert cross.channels_ == ("whitened" if n_alike == 5 else "recorded")
    assert np.isfinite(cross.transform(X)).all()


def test_pieces_of_windows_change_no_bit(monkeypatch):
    X = electrodes()
    X[3, 20:30] = np.nan
    expected = CrossPredictionTransformer(**STATED).fit_transform(X)
    whole = CrossPredictionTransformer(**STATED).fit(X)
    monkeypatch.setattr("sklearn_pulse._closed_form._channels._AT_ONCE", 7 * 60 * 5)
    np.testing.assert_array_equal(whole.transform(X), expected)
    in_pieces = CrossPredictionTransformer(**STATED).fit(X)
    for name in ("center_", "correlation_", "whitening_"):
        one, two = (getattr(cross.channel_whitener_, name) for cross in (whole, in_pieces))
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Channel 0 of X is .* times larger:UserWarning")
def test_values_beyond_those_of_fit():
    X = electrodes()
    cross = CrossPredictionTransformer(**STATED).fit(X)
    with pytest.raises(ValueError, match="not finite.* Scale X, or replace outliers by NaN"):
        cross.transform(X * np.float32(3e37))


def test_a_window_does_not_depend_on_the_others():
    X = electrodes()
    cross = CrossPredictionTransformer(**STATED).fit(X)
    embedding = cross.transform(X)
    for rows in (slice(1), slice(7, 20)):
        np.testing.assert_array_equal(cross.transform(X[rows]), embedding[rows])
