"""What a fitted PulseTransformer makes of windows."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from sklearn_pulse import PulseTransformer
from sklearn_pulse.windows import RecordingWindows
from tests.helpers import SMALL_PULSE, make_windows

X, _ = make_windows(24)


@pytest.fixture(scope="module")
def fitted():
    return PulseTransformer(**SMALL_PULSE).fit(X)


def test_a_spike_is_an_error_and_what_is_not_predicted_is_not(fitted):
    spiked = X.copy()
    spiked[5, 3] = 1e25
    with pytest.raises(ValueError, match=r"not finite in 1 sample\(s\) \(5\)"):
        fitted.reconstruct(spiked)
    ended = X.copy()
    ended[5, 2:] = np.nan  # no step to predict after the start
    assert np.isnan(fitted.reconstruct(ended, start=2)[5]).all()


def literal(estimator, x, start):
    """Run the parts of the model on one complete window, one step of the decoder at a time."""
    objective = estimator.net_.module_.eval()
    with torch.no_grad():
        window = torch.from_numpy(x)[None]
        steps = objective.encoder.encode_steps(window, None)
        theta = objective.encoder.pool(steps, None)
        drive = objective.time_varying(steps, None)
        state = objective.initial_condition(window, None)[:, start]
        expected = np.full(x.shape, np.nan)
        for stop in range(start + 1, len(x)):
            inputs = torch.stack(
                [torch.cat([theta, drive[:, step]], -1) for step in range(start + 1, stop + 1)]
            )
            expected[stop] = objective.decoder(inputs, state)[-1, 0].numpy()
    return expected


@pytest.mark.parametrize("start", [0, 3, 14])
def test_literally(fitted, start):
    got = fitted.reconstruct(X, start)
    assert got.shape == X.shape and got.dtype == np.float32
    assert np.isnan(got[:, : start + 1]).all()
    assert np.isfinite(got[:, start + 1 :]).all()
    for i in (0, 7):
        np.testing.assert_allclose(got[i], literal(fitted, X[i], start), atol=1e-5)


def test_full_pass_is_what_training_scores():
    """The mean squared error against the window is the loss of the full pass."""
    pulse = PulseTransformer(**SMALL_PULSE, n_crops=0).fit(X)
    objective = pulse.net_.module_.eval()
    with torch.no_grad():
        loss = 2 * objective(x=torch.from_numpy(X)).item()  # half of the full pass
    error = (pulse.reconstruct(X) - X)[:, 1:]
    assert np.mean(error**2) == pytest.approx(loss, rel=1e-5)


def test_training_makes_it_better():
    rng = np.random.default_rng(0)
    level = rng.normal(size=(48, 1, 1)).astype(np.float32) * np.ones((1, 8, 1), np.float32)
    errors = []
    for max_epochs in (1, 20):
        params = SMALL_PULSE | {"max_epochs": max_epochs, "lr": 1e-2}
        pulse = PulseTransformer(**params, select="last").fit(level)
        errors.append(np.nanmean((pulse.reconstruct(level) - level) ** 2))
    assert errors[1] < 0.2 * errors[0]


def test_rows_do_not_depend_on_one_another(fitted):
    many = np.concatenate([X, make_windows(300, seed=1)[0]])
    whole = fitted.reconstruct(many)
    np.testing.assert_array_equal(fitted.reconstruct(many[5:6])[0], whole[5])
    np.testing.assert_array_equal(fitted.reconstruct(many[::-1])[::-1], whole)
    np.testing.assert_array_equal(fitted.reconstruct(many[290:]), whole[290:])


@pytest.mark.parametrize("params", [{"pairing": "random"}, {"crop": "fixed", "crop_length": 4}])
def test_training_options_do_not_matter(params, fitted):
    """No window is reconstructed from another's embedding, none ends early, none is drawn."""
    other = PulseTransformer(**SMALL_PULSE, **params).fit(X)
    other.net_.module_.load_state_dict(fitted.net_.module_.state_dict())
    np.testing.assert_array_equal(other.reconstruct(X, 2), fitted.reconstruct(X, 2))


def test_no_dropout_and_no_change():
    pulse = PulseTransformer(**SMALL_PULSE | {"dropout": 0.9}).fit(X)
    before, generator = pickle.dumps(pulse), pulse.net_.module_.generator_state()
    pulse.net_.module_.train()
    np.testing.assert_array_equal(pulse.reconstruct(X), pulse.reconstruct(X))
    kept = pulse.net_.module_.generator_state()
    assert (generator is None and kept is None) or torch.equal(generator, kept)
    np.testing.assert_array_equal(pickle.loads(before).reconstruct(X), pulse.reconstruct(X))


@pytest.mark.parametrize("params", [{}, {"time_varying_dim": 0}, {"shared_encoder": True}])
def test_missing_steps_are_filled_in(params):
    pulse = PulseTransformer(**SMALL_PULSE, **params).fit(X)
    holes = X[:4].copy()
    holes[0, 5:8] = np.nan
    holes[1, 12:] = np.nan
    holes[2, 4, 1] = np.nan
    got = pulse.reconstruct(holes)
    assert np.isnan(got[:, 0]).all() and np.isfinite(got[:, 1:]).all()
    np.testing.assert_array_equal(got[3], pulse.reconstruct(X)[3])
    # What is predicted within the unpadded window is what that window alone gives.
    alone = pulse.reconstruct(X[1:2, :12])
    np.testing.assert_allclose(got[1, 1:12], alone[0, 1:], atol=1e-6)


@pytest.mark.parametrize("observed", [slice(0, 11), slice(3, 16), slice(2, 9)])
@pytest.mark.parametrize("params", [{}, {"time_varying_pool": 4}, {"shared_encoder": True}])
def test_a_padded_window_is_reconstructed_and_scored_as_the_unpadded_one(params, observed):
    pulse = PulseTransformer(**SMALL_PULSE, **params).fit(X)
    with torch.no_grad():  # the edges matter
        for part in (pulse.net_.module_.time_varying, pulse.net_.module_.initial_condition):
            for weight in part.parameters():
                weight *= 5.0
    padded = np.full_like(X, np.nan)
    padded[:, observed] = X[:, observed]
    padded[1::2] = X[1::2]
    got, alone = pulse.reconstruct(padded), pulse.reconstruct(X[:, observed])
    np.testing.assert_allclose(got[::2, observed], alone[::2], atol=1e-5)
    np.testing.assert_allclose(got[1::2], pulse.reconstruct(X)[1::2], atol=1e-5)
    scores, scored = pulse.score_samples(padded), pulse.score_samples(X[:, observed])
    np.testing.assert_allclose(scores[::2], scored[::2], rtol=1e-5)


def test_a_missing_start_moves_to_the_next_observed_step(fitted):
    holes = X[:3].copy()
    holes[0, :5] = np.nan
    holes[1, 2:] = np.nan
    got = fitted.reconstruct(holes, start=3)
    assert np.isnan(got[0, :6]).all() and np.isfinite(got[0, 6:]).all()
    with torch.inference_mode():
        passes = fitted.net_.module_.eval().reconstruct(
            torch.from_numpy(np.nan_to_num(holes[:1])),
            torch.from_numpy(np.isfinite(holes[:1]).all(-1)),
            starts=torch.tensor([[5]]),
        )
    np.testing.assert_allclose(got[0, 6:], passes.prediction[:10, 0, 0].numpy(), atol=1e-6)
    assert np.isnan(got[1]).all()
    assert np.isfinite(got[2, 4:]).all()


def test_of_the_shape_and_layout_of_the_input(fitted):
    expected = fitted.reconstruct(X)
    first = PulseTransformer(**SMALL_PULSE, input_layout="nct").fit(X.swapaxes(1, 2))
    np.testing.assert_array_equal(first.reconstruct(X.swapaxes(1, 2)).swapaxes(1, 2), expected)
    before = X.copy()
    np.testing.assert_array_equal(fitted.reconstruct(X.astype(np.float64)), expected)
    np.testing.assert_array_equal(X, before)
    table = PulseTransformer(**SMALL_PULSE).fit(X[..., 0])
    frame = PulseTransformer(**SMALL_PULSE).fit(pd.DataFrame(X[..., 0]).add_prefix("step"))
    of_table = table.reconstruct(X[..., 0])
    assert of_table.shape == (24, 16)
    np.testing.assert_array_equal(
        frame.reconstruct(pd.DataFrame(X[..., 0]).add_prefix("step")), of_table
    )


def test_lazy_windows_are_reconstructed_as_arrays(fitted):
    lazy = RecordingWindows(X, recording=[0, 3, 3], start=[0, 0, 4], length=12)
    np.testing.assert_array_equal(fitted.reconstruct(lazy), fitted.reconstruct(np.asarray(lazy)))


@given(n_timesteps=st.integers(2, 20), start=st.integers(0, 18), n=st.integers(1, 3))
@example(n_timesteps=16, start=14, n=1)  # the last start that leaves a step to predict
@example(n_timesteps=16, start=15, n=1)
@settings(max_examples=20, deadline=None)
def test_any_length(fitted, n_timesteps, start, n):
    windows = np.ones((n, n_timesteps, 2), np.float32)
    if start > n_timesteps - 2:
        with pytest.raises(ValueError, match=f"start={start} leaves no step .* at most start="):
            fitted.reconstruct(windows, start)
        return
    if n_timesteps > 16:
        windows = windows[:, :16]
        start = min(start, 14)
    assert np.isnan(fitted.reconstruct(windows, start)).any(-1).sum(1).tolist() == [start + 1] * n


def test_bad_input(fitted):
    with pytest.raises(NotFittedError):
        PulseTransformer().reconstruct(X)
    for data in (X[None], X[:, :1]):
        with pytest.raises(ValueError, match="windows of at least two time steps"):
            fitted.reconstruct(data)
    with pytest.raises(TypeError, match="start must be an integer"):
        fitted.reconstruct(X, 1.5)
    with pytest.raises(ValueError, match="start must be an integer of at least 0, got -1"):
        fitted.reconstruct(X, -1)
    with pytest.raises(ValueError, match="expecting 2 channels"):
        fitted.reconstruct(X[..., :1])
    empty = X.copy()
    empty[2] = np.nan
    with pytest.raises(ValueError, match="no finite time step in sample 2"):
        fitted.reconstruct(empty)
