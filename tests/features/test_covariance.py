"""Logarithm of the covariance of delayed channels, against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import logm

from sklearn_pulse.features import CovarianceTransformer, EnvelopeCovarianceTransformer
from tests.helpers import make_windows


def literal(window, delays, scale, shrinkage):
    """Features of a window whose missing steps are NaN, one pair of steps after the other."""
    x = window / scale
    z = [np.concatenate([x[t - d] for d in delays]) for t in range(max(delays), len(x))]
    z = [row for row in z if np.isfinite(row).all()]
    S = np.cov(np.transpose(z), bias=True)
    shrunk = (1 - shrinkage) * S + (shrinkage * np.trace(S) / len(S) + 1e-6) * np.eye(len(S))
    log = logm(shrunk)
    return [
        log[a, b] * (1 if a == b else np.sqrt(2))
        for a in range(len(log))
        for b in range(a, len(log))
    ]


@pytest.mark.parametrize("delays", [(0,), (0, 2, 4, 8), (5, 1)])
@pytest.mark.parametrize("missing", [False, True])
def test_features_literally(delays, missing):
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(5, 30, 2)), axis=1).astype(np.float32) + 7.0
    if missing:
        X[1, :6], X[2, 10:13], X[3, 20:] = np.nan, np.nan, np.nan
    covariance = CovarianceTransformer(delays, 0.2).fit(X)
    scale = np.sqrt(np.nanvar(X.astype(np.float64), axis=1).mean(0))
    np.testing.assert_allclose(covariance.scale_, scale, rtol=1e-6)
    expected = [literal(x, sorted(delays), scale, 0.2) for x in X.astype(np.float64)]
    np.testing.assert_allclose(covariance.transform(X), expected, rtol=1e-4, atol=1e-5)


def test_a_feature_has_the_name_of_its_channels_and_delays():
    """Channel 1 follows channel 0 after three steps."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(4, 203))
    X = np.stack([signal[:, 3:], signal[:, :-3]], axis=2)
    covariance = CovarianceTransformer((0, 3)).fit(X)
    names = covariance.get_feature_names_out().tolist()
    assert len(names) == 10 and names[:2] == [
        "channel0_delay0_channel0_delay0",
        "channel0_delay0_channel1_delay0",
    ]
    row = dict(zip(names, covariance.transform(X)[0].tolist(), strict=True))
    pairs = {name: abs(value) for name, value in row.items() if name[:15] != name[-15:]}
    assert max(pairs, key=pairs.get) == "channel1_delay0_channel0_delay3"


@settings(max_examples=20, deadline=None)
@given(unit=st.tuples(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6)), level=st.floats(-100.0, 100.0))
def test_units_and_levels_do_not_matter(unit, level):
    X, _ = make_windows(6, 40, 2)
    other = (X + level) * np.array(unit)
    np.testing.assert_allclose(
        CovarianceTransformer().fit_transform(other),
        CovarianceTransformer().fit_transform(X),
        atol=1e-3,
    )


def test_a_gain_of_all_channels_moves_the_diagonal_alone():
    X, _ = make_windows(4, 60, 3)
    covariance = CovarianceTransformer().fit(X)
    diagonal = [name[:15] == name[-15:] for name in covariance.get_feature_names_out()]
    moved = covariance.transform(3 * X) - covariance.transform(X)
    expected = np.where(diagonal, 2 * np.log(3), 0.0)
    np.testing.assert_allclose(moved, np.tile(expected, (4, 1)), atol=1e-3)


@pytest.mark.filterwarnings("ignore:X has more channels")  # windows of one step
def test_long_delays_and_many_channels_are_left_out():
    rng = np.random.default_rng(0)
    for n_timesteps, expected in ((40, [0, 2, 4, 8]), (16, [0, 2, 4]), (4, [0]), (1, [0])):
        X = rng.normal(size=(3, n_timesteps, 2))
        assert CovarianceTransformer().fit(X).delays_.tolist() == expected
    for n_channels, n_delays in ((16, 4), (17, 3), (33, 1), (70, 1)):
        covariance = CovarianceTransformer().fit(rng.normal(size=(3, 90, n_channels)))
        assert len(covariance.delays_) == n_delays
        size = n_delays * n_channels
        assert covariance.transform(rng.normal(size=(2, 90, n_channels))).shape[1] == (
            size * (size + 1) // 2
        )


def test_longer_windows_of_the_same_process_have_like_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2000, 2)) @ [[1.0, 0.8], [0.0, 0.6]]
    covariance = CovarianceTransformer().fit(X[:, :400])
    short, long = (covariance.transform(X[:, :n]).mean(0) for n in (400, 2000))
    np.testing.assert_allclose(long, short, atol=0.02)
    with pytest.raises(
        ValueError, match=r"16 time steps, too short for the delay of 8 steps .* least 17 "
    ):
        covariance.transform(X[:, :16])


@pytest.mark.parametrize("gap", ["constant", "quiet channel", "one step"])
def test_what_does_not_vary_is_finite(gap):
    X, _ = make_windows(6, 40, 2)
    X = X.copy()
    if gap == "constant":
        X[0] = 3.0
    elif gap == "quiet channel":
        X[..., 1] = 5.0
    else:
        X[0, 1:] = np.nan
    covariance = CovarianceTransformer().fit(X)
    features = covariance.transform(X)
    assert np.isfinite(features).all()
    if gap != "quiet channel":
        names = covariance.get_feature_names_out()
        diagonal = features[0, [name[:15] == name[-15:] for name in names]]
        np.testing.assert_allclose(diagonal, np.log(1e-6), rtol=1e-5)


@pytest.mark.parametrize(
    ("cls", "name"), [(CovarianceTransformer, "scale_"), (EnvelopeCovarianceTransformer, "power_")]
)
def test_one_artefact_does_not_make_other_windows_look_quiet(cls, name):
    X = np.random.default_rng(0).normal(size=(20, 200, 2)).astype(np.float32)
    X *= np.linspace(1, 300, 20)[:, None, None]  # some windows are louder, and are no artefacts
    hit = np.concatenate([X, X[:1]])
    hit[-1, 7:12, 0] = 1e9
    before, after = cls().fit(X), cls().fit(hit)
    # In the other channel the window counts.
    np.testing.assert_allclose(getattr(after, name)[::2], getattr(before, name)[::2])
    assert (getattr(after, name)[1::2] < getattr(before, name)[1::2]).all()
    assert np.isfinite(after.transform(hit)).all()
    mostly_dead = np.zeros_like(X)
    mostly_dead[:5] = X[:5]  # the median window has no variance, and says nothing
    louder = cls().fit(mostly_dead * 2)
    np.testing.assert_array_less(getattr(cls().fit(mostly_dead), name), getattr(louder, name))


@pytest.mark.filterwarnings("ignore:Channel 0 of X is")
def test_eigenvalues_that_rounding_makes_negative_have_logarithms():
    X, _ = make_windows(20, 40, 4)
    covariance = CovarianceTransformer(shrinkage=1e-15).fit(X)
    same = np.repeat(1e6 * X[..., :1], 4, axis=-1)  # one direction, beside which others are zero
    assert np.isfinite(covariance.transform(same)).all()


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"delays": 3}, TypeError, "delays must be a list or tuple of integers, got 3"),
        ({"delays": range(3)}, TypeError, "delays must be a list or tuple"),
        ({"delays": "02"}, TypeError, "delays must be a list or tuple"),
        ({"delays": ()}, ValueError, "delays must name one delay or more"),
        ({"delays": (1, 1)}, ValueError, "each only once"),
        ({"delays": (0, -1)}, ValueError, "each of delays must be"),
        ({"delays": (0.5,)}, TypeError, "each of delays must be an integer"),
        ({"delays": (20, 30)}, ValueError, "no delay below half of the 40 steps"),
        ({"shrinkage": 0.0}, ValueError, "shrinkage must be"),
        ({"shrinkage": 1.5}, ValueError, "shrinkage must be"),
    ],
)
def test_parameters(params, error, message):
    X, _ = make_windows(4, 40, 2)
    with pytest.raises(error, match=message):
        CovarianceTransformer(**params).fit(X)


def test_delays_may_be_an_array(tmp_path):
    X, _ = make_windows(4, 40, 2)
    covariance = CovarianceTransformer(np.array([4, 0])).fit(X)
    assert covariance.delays_.tolist() == [0, 4]
    covariance.set_params(delays=[4, 0]).fit(X).save_pretrained(tmp_path / "model")
    loaded = CovarianceTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), covariance.transform(X))
    np.testing.assert_array_equal(loaded.scale_, covariance.scale_)
