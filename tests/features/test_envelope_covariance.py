"""Logarithm of the covariance of the envelopes of octave bands, against its definition."""

import numpy as np
import pytest
from scipy.linalg import logm

from sklearn_pulse.features import EnvelopeCovarianceTransformer
from tests.persistence.helpers import change_weights


def literal_envelopes(channel, n_bands, length, power):
    """Logarithms of the power of frames, and which frames are whole; missing steps are NaN."""
    seen = np.flatnonzero(np.isfinite(channel))
    part = channel[seen[0] : seen[-1] + 1]
    steps, known = np.arange(len(part)), np.isfinite(part)
    low = np.interp(steps, steps[known], part[known])
    starts = range(0, len(part) - length + 1, max(1, length // 2))
    whole = np.array([known[start : start + length].all() for start in starts])
    envelopes = []
    for band in range(n_bands):
        half, smooth = 2**band, low
        for _ in range(2):
            mirrored = np.concatenate([smooth[:half][::-1], smooth, smooth[-half:][::-1]])
            smooth = np.array([mirrored[t : t + 2 * half + 1].mean() for t in range(len(low))])
        squares = (low - smooth) ** 2
        means = np.array([squares[start : start + length].mean() for start in starts])
        envelopes.append(np.log(means + 1e-3 * power[band]))
        low = smooth
    return np.array(envelopes), whole


def literal(window, fitted, shrinkage):
    """Features of a window."""
    shape = fitted.n_bands_, window.shape[1]
    power = fitted.power_.reshape(shape)
    parts = [
        literal_envelopes(window[:, c], fitted.n_bands_, fitted.frame_length_, power[:, c])
        for c in range(window.shape[1])
    ]
    whole = parts[0][1]
    signals = np.stack([part[0] for part in parts], axis=1).reshape(len(fitted.scale_), -1)
    x = signals.T / fitted.scale_
    z = [
        np.concatenate([x[t - d] for d in fitted.delays_])
        for t in range(fitted.delays_[-1], len(x))
        if all(whole[t - d] for d in fitted.delays_)
    ]
    S = np.cov(np.transpose(z), bias=True)
    S = (1 - shrinkage) * S + (shrinkage * np.trace(S) / len(S) + 1e-6) * np.eye(len(S))
    row, column = np.triu_indices(len(S))
    return logm(S)[row, column] * np.where(row == column, 1, np.sqrt(2))


def waves(n=6, n_timesteps=200, n_channels=1):
    """Noise whose power comes and goes."""
    rng = np.random.default_rng(0)
    waxing = 1.2 + np.sin(np.arange(n_timesteps) / rng.uniform(5, 30, size=(n, 1)))
    X = np.cumsum(rng.normal(size=(n, n_timesteps, n_channels)), axis=1) * 0.3
    return (waxing[..., None] * rng.normal(size=X.shape) + X + 5.0).astype(np.float32)


@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("missing", [False, True])
def test_features_literally(n_channels, missing):
    X = waves(n_channels=n_channels)
    if missing:
        X[1, :30], X[2, 100:104], X[3, 150:] = np.nan, np.nan, np.nan
    envelopes = EnvelopeCovarianceTransformer(3, 16, (0, 2), 0.2).fit(X)
    assert envelopes.n_bands_ == 3 and envelopes.frame_length_ == 16
    features = envelopes.transform(X)
    expected = [literal(x, envelopes, 0.2) for x in X.astype(np.float64)]
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-4)
    variances = []
    for x in X.astype(np.float64):
        power = envelopes.power_.reshape(3, n_channels)
        parts = [literal_envelopes(x[:, c], 3, 16, power[:, c]) for c in range(n_channels)]
        signals = np.stack([part[0] for part in parts], axis=1).reshape(3 * n_channels, -1)
        variances.append(signals[:, parts[0][1]].var(1))
    np.testing.assert_allclose(envelopes.scale_, np.sqrt(np.mean(variances, axis=0)), rtol=1e-5)
    frames = []
    for x in X.astype(np.float64):
        ones = np.ones((3, n_channels))
        parts = [literal_envelopes(x[:, c], 3, 16, ones[:, c]) for c in range(n_channels)]
        signals = np.stack([part[0] for part in parts], axis=1).reshape(3 * n_channels, -1)
        frames.append(np.exp(signals[:, parts[0][1]]) - 1e-3)
    np.testing.assert_allclose(envelopes.power_, np.hstack(frames).mean(1), rtol=1e-6)


def test_neither_gain_nor_level_nor_the_usual_spectrum_matters():
    X = waves()
    envelopes = EnvelopeCovarianceTransformer().fit(X)
    features = envelopes.transform(X)
    np.testing.assert_allclose(envelopes.transform(2 * X - 40), features, atol=0.05)
    unit = EnvelopeCovarianceTransformer().fit_transform(1e-3 * X.astype(np.float64))
    np.testing.assert_allclose(unit, features, atol=1e-3)


def test_which_bands_change_together():
    """The power of the highest band rises and falls; or that of a slow wave."""
    rng = np.random.default_rng(0)
    time = np.arange(600)
    swell = 1.5 + np.sin(2 * np.pi * time / 150)
    high, low = rng.normal(size=(2, 20, 600))
    slow = 3 * np.sin(2 * np.pi * time / 24 + rng.uniform(0, 6, size=(20, 1)))
    X = np.concatenate([swell * high + slow, high + swell * slow])[..., None]
    envelopes = EnvelopeCovarianceTransformer(delays=(0,)).fit(X)
    names = envelopes.get_feature_names_out().tolist()
    features = envelopes.transform(X)
    fast = features[:, names.index("channel0_band0_delay0_channel0_band0_delay0")]
    later = features[:, names.index("channel0_band3_delay0_channel0_band3_delay0")]
    assert fast[:20].min() > fast[20:].max()
    assert later[20:].min() > later[:20].max()


@pytest.mark.parametrize("part", [slice(20, None), slice(0, 150), slice(13, 170)])
def test_a_padded_window_is_the_shorter_window(part):
    X = waves()
    envelopes = EnvelopeCovarianceTransformer().fit(X)
    padded = np.full_like(X, np.nan)
    padded[:, part] = X[:, part]
    np.testing.assert_allclose(
        envelopes.transform(padded), envelopes.transform(X[:, part]), atol=1e-5
    )


@pytest.mark.parametrize("n_timesteps", [1, 2, 5, 9, 40])
def test_short_windows(n_timesteps):
    X = waves(n_timesteps=n_timesteps)
    envelopes = EnvelopeCovarianceTransformer().fit(X)
    assert envelopes.n_bands_ == {1: 1, 2: 1, 5: 1, 9: 1, 40: 3}[n_timesteps]
    assert envelopes.frame_length_ == {1: 1, 2: 1, 5: 1, 9: 1, 40: 5}[n_timesteps]
    X[0, 1:] = np.nan
    features = envelopes.transform(X)
    assert np.isfinite(features).all()
    # A window of one observed step has no frames that vary.
    varying = [
        name.split("_channel")[0] == name[name.index("_channel") + 1 :]
        for name in envelopes.get_feature_names_out()
    ]
    np.testing.assert_allclose(features[0, varying], np.log(1e-6), rtol=1e-5)


def test_windows_with_too_few_frames_are_refused():
    X = waves()
    envelopes = EnvelopeCovarianceTransformer().fit(X)
    assert envelopes.frame_length_ == 25 and envelopes.delays_.tolist() == [0, 1, 2]
    least = 25 + 4 * 12  # five frames
    assert np.isfinite(envelopes.transform(X[:, :least])).all()
    with pytest.raises(ValueError, match=f"{least - 1} time steps, too short .* least {least} "):
        envelopes.transform(X[:, : least - 1])


def test_many_bands_leave_delays_out():
    X = waves(n_channels=6)
    envelopes = EnvelopeCovarianceTransformer().fit(X)
    assert envelopes.n_bands_ == 5 and envelopes.delays_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_bands": 0}, "n_bands must be"),
        ({"frame_length": 0}, "frame_length must be"),
        ({"delays": (9,)}, "no delay below half of the 15 frames"),
        ({"shrinkage": 0}, "shrinkage must be"),
    ],
)
def test_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        EnvelopeCovarianceTransformer(**params).fit(waves())


def test_save_and_load(tmp_path):
    X = waves(n_channels=2)
    envelopes = EnvelopeCovarianceTransformer(4, 10).fit(X)
    envelopes.save_pretrained(tmp_path / "model")
    loaded = EnvelopeCovarianceTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), envelopes.transform(X))
    for name in ("power_", "scale_", "delays_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(envelopes, name))


@pytest.mark.parametrize("name", ["power", "scale"])
def test_a_file_holds_a_number_for_each_envelope(name, tmp_path):
    envelopes = EnvelopeCovarianceTransformer(2).fit(waves(n_channels=2))
    envelopes.save_pretrained(tmp_path / "model")
    change_weights(tmp_path / "model", lambda state: state | {name: state[name][:-1].clone()})
    with pytest.raises(ValueError, match=f"{name}.*shape"):
        EnvelopeCovarianceTransformer.from_pretrained(tmp_path / "model")


@pytest.mark.parametrize("n_timesteps", [200, 644, 718])
def test_a_dead_channel_has_envelopes_without_variance(n_timesteps):
    """Whatever their number: a mean of equal logarithms may round."""
    X = waves(n=3, n_timesteps=n_timesteps, n_channels=2)
    X[..., 1] = 0.1
    envelopes = EnvelopeCovarianceTransformer(2).fit(X)
    np.testing.assert_array_equal(envelopes.scale_[1::2], 1.0)


def test_windows_of_two_steps_have_envelopes_without_variance():
    """Both frames have the power of the other, up to rounding, which is no spread to divide by."""
    X = np.random.default_rng(0).normal(size=(12, 2, 1)).astype(np.float32)
    envelopes = EnvelopeCovarianceTransformer().fit(X)
    np.testing.assert_array_equal(envelopes.scale_, 1.0)
    assert np.ptp(envelopes.transform(X)) < 1e-4


def test_what_is_learnt_comes_from_windows_of_the_whole_data():
    """From at most 256 of them, which are spread evenly."""
    X = waves(n=300, n_timesteps=40)
    X[150:] *= 100
    envelopes = EnvelopeCovarianceTransformer(1).fit(X)
    half = EnvelopeCovarianceTransformer(1).fit(X[150:])
    np.testing.assert_allclose(envelopes.power_, half.power_ / 2, rtol=0.1)
