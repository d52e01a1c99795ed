"""Features of windows that are standardized one by one."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_pulse.features import (
    HydraTransformer,
    IntervalQuantileTransformer,
    RandomConvolutionTransformer,
)
from tests.helpers import make_windows

POOLINGS = ("ppv", "mean", "position", "stretch")
KINDS = {
    "minirocket": RandomConvolutionTransformer(168, random_state=0),
    "multirocket": RandomConvolutionTransformer(
        84, poolings=POOLINGS, difference=True, random_state=0
    ),
    "hydra": HydraTransformer(4, random_state=0),
    "quantiles": IntervalQuantileTransformer(3),
}


@pytest.fixture(params=KINDS)
def kind(request):
    """An unfitted transformer that reads windows as they are."""
    return clone(KINDS[request.param])


def literal(X):
    """Standardize one channel of one window after the other, over the steps that are observed."""
    found = X.astype(float)
    for window in found:
        missing = np.isnan(window).any(1)
        window[missing] = np.nan
        for c in range(window.shape[1]):
            seen = window[~missing, c]
            spread = seen.std()
            window[~missing, c] = (seen - seen.mean()) / spread if spread > 1e-9 else 0.0
    return found.astype(np.float32)


def gaps(X):
    """Return windows with missing steps: within, in one channel only, and at both ends."""
    X = X.copy()
    X[0, 5:9], X[1, 12, 1], X[2, :7], X[3, 30:] = np.nan, np.nan, np.nan, np.nan
    return X


@pytest.mark.parametrize("change", [lambda X: X, gaps], ids=["complete", "gaps"])
def test_features_are_those_of_standardized_windows(kind, change):
    X = change(make_windows(12, 40, 3)[0] * [1.0, 100.0, 0.01] + [5.0, -300.0, 0.0])
    expected = clone(kind).fit(literal(X)).transform(literal(X))
    features = kind.set_params(standardize=True).fit_transform(X)
    assert features.shape == expected.shape
    # Rounding may move an output across a threshold, which counts by one step.
    close = np.isclose(features, expected, rtol=1e-4, atol=1e-4)
    assert close.mean() > 0.999


def test_gain_and_level_of_a_window_leave_no_trace(kind):
    X = make_windows(12, 40, 2)[0].astype(np.float32)
    rng = np.random.default_rng(0)
    fitted = kind.set_params(standardize=True).fit(X)
    gain = 2.0 ** rng.integers(-9, 9, size=(12, 1, 2)).astype(np.float32)  # changes no digit
    np.testing.assert_array_equal(fitted.transform(gain * X), fitted.transform(X))
    moved = X + rng.normal(size=(12, 1, 2)).astype(np.float32)
    assert np.isclose(fitted.transform(moved), fitted.transform(X), atol=1e-3).mean() > 0.998
    raw = clone(kind).set_params(standardize=False).fit(X)
    assert not np.isclose(raw.transform(gain * X), raw.transform(X), atol=1e-3).all()


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6, 1 / 3])
def test_a_constant_channel_is_zero(kind, value):
    X = make_windows(12, 40, 2)[0].astype(np.float32)
    X[3, :, 1], X[5, 4:, 0] = value, np.nan
    zero = X.copy()
    zero[3, :, 1] = 0.0
    fitted = kind.set_params(standardize=True).fit(X)
    np.testing.assert_array_equal(fitted.transform(X), fitted.transform(zero))
    assert np.isfinite(fitted.transform(X)).all()


def test_file_and_parameter(kind, tmp_path):
    X = make_windows(12, 40, 2)[0]
    with pytest.raises(TypeError, match="standardize must be True or False, got 1"):
        clone(kind).set_params(standardize=1).fit(X)
    fitted = kind.set_params(standardize=True).fit(X)
    features = fitted.transform(X)
    fitted.save_pretrained(tmp_path / "model")
    loaded = type(kind).from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), features)
    fitted.set_params(standardize=False)  # acts at the next fit
    np.testing.assert_array_equal(fitted.transform(X), features)
    with pytest.raises(ValueError, match="fitted with standardize=True"):
        fitted.save_pretrained(tmp_path / "changed")
