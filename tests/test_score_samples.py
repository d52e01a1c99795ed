"""How well a fitted transformer reconstructs each window."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from sklearn_pulse import PulseOracleTransformer, PulseTransformer
from sklearn_pulse.baselines import SimCLRTransformer
from sklearn_pulse.interop import from_reference_checkpoint, to_reference_state
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import RecordingWindows
from tests.helpers import SMALL_PULSE, make_windows

X, y = make_windows(24)
X = X * np.float32([1.0, 20.0])


@pytest.fixture(scope="module")
def fitted():
    return PulseTransformer(**SMALL_PULSE).fit(X)


def literal(estimator, X):
    """Negative squared errors of the reconstruction in units of the training variance."""
    errors = ((estimator.reconstruct(X) - X)[:, 1:] ** 2).mean(1)
    return -errors / np.var(np.float64(X), axis=(0, 1))


@pytest.mark.parametrize(
    "estimator",
    [
        PulseTransformer(**SMALL_PULSE),
        PulseTransformer(**SMALL_PULSE, n_crops=0, pairing="random"),
        PulseOracleTransformer(**SMALL_PULSE, kind="positive", init_source="anchor"),
        PulseOracleTransformer(**SMALL_PULSE, kind="negative"),
    ],
    ids=["pulse", "random pairs", "positive", "negative"],
)
def test_literally(estimator):
    estimator.fit(X, y)
    got = estimator.score_samples(X, per_channel=True)
    assert got.shape == (24, 2) and got.dtype == np.float64
    np.testing.assert_allclose(got, literal(estimator, X), rtol=1e-4)
    np.testing.assert_allclose(estimator.score_samples(X), got.mean(1))
    np.testing.assert_array_equal(estimator.score_samples(X), estimator.score_samples(X))


def test_an_artefact_scores_lowest_and_names_its_channel(fitted):
    spoilt = X.copy()
    spoilt[5, 6:9, 1] += 500.0
    scores = fitted.score_samples(spoilt, per_channel=True)
    assert fitted.score_samples(spoilt).argmin() == 5
    assert scores[5].argmin() == 1 and scores[:, 1].argmin() == 5


def test_rows_do_not_depend_on_one_another(fitted):
    many = np.concatenate([X, make_windows(300, seed=1)[0]])
    whole = fitted.score_samples(many)
    np.testing.assert_array_equal(fitted.score_samples(many[5:6])[0], whole[5])
    np.testing.assert_array_equal(fitted.score_samples(many[::-1])[::-1], whole)


def test_missing_steps_do_not_count(fitted):
    holes = X[:3].copy()
    holes[0, 12:] = np.nan
    holes[1, 7, 0] = np.nan
    got = fitted.score_samples(holes)
    np.testing.assert_allclose(got[0], fitted.score_samples(X[:1, :12])[0], rtol=1e-4)
    np.testing.assert_array_equal(got[2], fitted.score_samples(X)[2])
    prediction = fitted.reconstruct(holes)[1]
    errors = np.delete((prediction - X[1]) ** 2, [0, 7], axis=0).mean(0)
    np.testing.assert_allclose(got[1], -np.mean(errors / fitted.channel_scale_**2), rtol=1e-4)


def test_layouts_tables_bags_and_lazy_windows(fitted):
    expected = fitted.score_samples(X, per_channel=True)
    first = PulseTransformer(**SMALL_PULSE, input_layout="nct").fit(X.swapaxes(1, 2))
    np.testing.assert_array_equal(first.score_samples(X.swapaxes(1, 2), per_channel=True), expected)
    table = PulseTransformer(**SMALL_PULSE).fit(X[..., 0])
    assert table.score_samples(X[..., 0]).shape == (24,)
    bags = X.reshape(8, 3, 16, 2).copy()
    np.testing.assert_allclose(fitted.score_samples(bags), expected.mean(1).reshape(8, 3).mean(1))
    bags[0, 1] = np.nan  # left out, as in the embedding
    np.testing.assert_allclose(
        fitted.score_samples(bags)[0], expected.mean(1)[[0, 2]].mean(), rtol=1e-6
    )
    lazy = RecordingWindows(X, recording=[0, 3, 3], start=[0, 0, 4], length=12)
    np.testing.assert_array_equal(
        fitted.score_samples(lazy), fitted.score_samples(np.asarray(lazy))
    )


def test_a_constant_channel_is_measured_in_its_own_units():
    flat = X.copy()
    flat[..., 1] = 3.0
    pulse = PulseTransformer(**SMALL_PULSE).fit(flat)
    assert pulse.channel_scale_[1] == 1.0
    errors = (pulse.reconstruct(flat) - flat)[:, 1:, 1] ** 2
    scores = pulse.score_samples(flat, per_channel=True)
    np.testing.assert_allclose(scores[:, 1], -errors.mean(1), rtol=1e-4)


def test_missing_training_steps_have_no_scale():
    holes = X.copy()
    holes[:, 10:] = np.nan
    pulse = PulseTransformer(**SMALL_PULSE).fit(holes)
    np.testing.assert_allclose(pulse.channel_scale_, X[:, :10].std((0, 1)), rtol=1e-5)


def test_a_pipeline_scores_what_it_scales():
    pipe = make_pipeline(WindowScaler(), PulseTransformer(**SMALL_PULSE)).fit(X)
    np.testing.assert_array_equal(
        pipe.score_samples(X), pipe[-1].score_samples(pipe[0].transform(X))
    )


def test_saved_and_loaded(fitted, tmp_path):
    fitted.save_pretrained(tmp_path / "model")
    restored = PulseTransformer.from_pretrained(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(restored.score_samples(X), fitted.score_samples(X))


@pytest.mark.parametrize("scale", [[1.0], [1.0, 0.0], [1.0, float("inf")], ["a", "b"]])
def test_a_wrong_scale_is_an_error(fitted, scale):
    twin = from_reference_checkpoint(to_reference_state(fitted))
    twin.channel_scale_ = np.array(scale)
    with pytest.raises(ValueError, match="channel_scale_ must hold 2 positive numbers"):
        twin.score_samples(X)


def test_converted_weights_are_told_their_scale(fitted):
    twin = from_reference_checkpoint(to_reference_state(fitted))
    with pytest.raises(ValueError, match="set channel_scale_, the standard deviation"):
        twin.score_samples(X)
    twin.channel_scale_ = X.std((0, 1))
    np.testing.assert_allclose(twin.score_samples(X), fitted.score_samples(X), rtol=1e-5)


def test_bad_input(fitted):
    with pytest.raises(NotFittedError):
        PulseTransformer().score_samples(X)
    with pytest.raises(TypeError, match="per_channel must be True or False"):
        fitted.score_samples(X, per_channel="yes")
    with pytest.raises(ValueError, match="at least two time steps"):
        fitted.score_samples(X[:, :1])
    with pytest.raises(ValueError, match="expecting 2 channels"):
        fitted.score_samples(X[..., :1])
    ended = X.copy()
    ended[3, 1:] = np.nan
    with pytest.raises(ValueError, match=r"no step to score in sample 3 \(1 such"):
        fitted.score_samples(ended)
    spiked = X.copy()
    spiked[5, 3] = 1e25
    with pytest.raises(ValueError, match=r"not finite in 1 sample\(s\) \(5\)"):
        fitted.score_samples(spiked)
    assert not hasattr(SimCLRTransformer(), "score_samples")


def test_a_score_with_a_drive_of_odd_width_does_not_depend_on_its_place():
    X = np.random.default_rng(0).normal(size=(60, 40, 16))
    widths = {"embedding_dim": 14, "gru_hidden_dim": 16, "init_hidden_dim": 16}
    pulse = PulseTransformer(**SMALL_PULSE | widths, time_varying_dim=2).fit(X[:6])
    scores = pulse.score_samples(X)
    for first in range(1, 12):
        np.testing.assert_array_equal(pulse.score_samples(X[first:]), scores[first:])


@pytest.mark.parametrize("by_onednn", [False, True])
@pytest.mark.parametrize(("units", "observation"), [(3, "mlp"), (22, "mlp"), (35, "linear")])
def test_a_decoder_of_odd_width_does_not_depend_on_its_place(
    units, observation, by_onednn, monkeypatch
):
    if not by_onednn:  # as on most processors
        monkeypatch.setattr("sklearn_pulse._products._IS_FASTER", False)
    rng = np.random.default_rng(units)
    X = rng.normal(size=(40, 50, 7))
    widths = {"gru_hidden_dim": units, "gru_num_layers": 2, "observation": observation}
    pulse = PulseTransformer(**SMALL_PULSE | widths).fit(X[:6])
    scores, reconstructed = pulse.score_samples(X), pulse.reconstruct(X)
    for _ in range(8):
        rows = rng.permutation(40)[: rng.integers(1, 40)]
        np.testing.assert_array_equal(pulse.score_samples(X[rows]), scores[rows])
        np.testing.assert_array_equal(pulse.reconstruct(X[rows]), reconstructed[rows])
