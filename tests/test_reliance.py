"""How much the decoder of a fitted PulseTransformer relies on each of its inputs."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from sklearn_pulse import PulseTransformer
from sklearn_pulse.objectives import CrossReconstruction
from tests.helpers import SMALL_PULSE, make_windows

X, _ = make_windows(24)
NAMES = {"embedding", "time_varying", "initial_condition"}


def test_literally():
    """Each loss is the error of decoding with one input of the next window, step by step."""
    objective = CrossReconstruction(
        2, embedding_dim=8, encoder_hidden_dim=4, encoder_depth=2, gru_hidden_dim=6, n_crops=0
    ).eval()
    x = torch.randn(5, 12, 2)
    with torch.no_grad():
        losses = objective.exchanged_losses(x)
        own, drive, _ = objective.encode_window(x)
        state = objective.initial_condition(x)[:, 0]
        for name, got in losses.items():
            error = 0.0
            for i in range(5):
                j = (i + 1) % 5
                theta = own[j if name == "embedding" else i].expand(11, -1)
                varying = drive[j if name == "time_varying" else i, 1:]
                start = state[j if name == "initial_condition" else i]
                inputs = torch.cat([theta, varying], -1).unsqueeze(1)
                predicted = objective.decoder(inputs, start.unsqueeze(0))[:, 0]
                error += (predicted - x[i, 1:]).square().mean().item() / 5
            assert got.item() == pytest.approx(0.5 * error, rel=1e-5)
    assert set(losses) == NAMES | {"own"}
    assert losses["own"].item() == pytest.approx(objective(x).item(), rel=1e-5)


def test_an_input_without_effect_has_no_reliance():
    pulse = PulseTransformer(**SMALL_PULSE).fit(X)
    width = SMALL_PULSE["embedding_dim"]
    with torch.no_grad():
        pulse.net_.module_.decoder.gru.weight_ih_l0[:, :width] = 0.0
    reliance = pulse.decoder_reliance(X, random_state=0)
    assert reliance["embedding"] == pytest.approx(0.0, abs=1e-6)
    assert set(reliance) == NAMES and abs(reliance["initial_condition"]) > 1e-5


def test_what_must_be_told_apart_is_relied_on():
    rng = np.random.default_rng(0)
    level = rng.normal(size=(48, 1, 1)).astype(np.float32) * np.ones((1, 8, 1), np.float32)
    params = SMALL_PULSE | {"max_epochs": 20, "lr": 1e-2, "time_varying_dim": 0}
    pulse = PulseTransformer(**params, select="last").fit(level)
    reliance = pulse.decoder_reliance(level, random_state=0)
    assert set(reliance) == {"embedding", "initial_condition"}
    assert max(reliance.values()) > 1.0


def test_repeats_and_changes_nothing():
    pulse = PulseTransformer(**SMALL_PULSE).fit(X)
    before = pulse.transform(X), pulse.net_.module_.generator_state()
    first = pulse.decoder_reliance(X, n_repeats=2, random_state=3)
    assert first == pulse.decoder_reliance(X, n_repeats=2, random_state=3)
    assert first != pulse.decoder_reliance(X, n_repeats=2, random_state=4)
    np.testing.assert_array_equal(pulse.transform(X), before[0])
    after = pulse.net_.module_.generator_state()
    assert (before[1] is None and after is None) or torch.equal(before[1], after)


def test_threads_that_share_an_estimator_draw_apart():
    pulse = PulseTransformer(**SMALL_PULSE).fit(X)
    alone = pulse.decoder_reliance(X, random_state=3)
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda _: pulse.decoder_reliance(X, random_state=3), range(24))
    assert all(reliance == alone for reliance in found)


def test_missing_steps_at_the_end_change_nothing():
    pulse = PulseTransformer(**SMALL_PULSE | {"lr": 1e-2}).fit(X)
    padded = X.copy()
    padded[:, 10:] = np.nan
    expected = pulse.decoder_reliance(X[:, :10], random_state=0)
    assert pulse.decoder_reliance(padded, random_state=0) == pytest.approx(
        expected, rel=1e-3, abs=1e-4
    )


def test_bad_input():
    pulse = PulseTransformer(**SMALL_PULSE)
    with pytest.raises(NotFittedError):
        pulse.decoder_reliance(X)
    pulse.fit(X)
    with pytest.raises(ValueError, match="n_samples=1 leaves no other window"):
        pulse.decoder_reliance(X[:1])
    with pytest.raises(ValueError, match="at least two time steps"):
        pulse.decoder_reliance(X[None])
    with pytest.raises(ValueError, match="n_repeats"):
        pulse.decoder_reliance(X, n_repeats=0)
    with pytest.raises((TypeError, ValueError), match="random_state"):
        pulse.decoder_reliance(X, random_state="seed")
    outlier = np.where(np.arange(len(X))[:, None, None] == 3, 1e25 * X, X)
    with pytest.raises(ValueError, match="loss that is not finite: scale X as at fit"):
        pulse.decoder_reliance(outlier)
    lonely = np.where(np.arange(X.shape[1])[:, None] == 3, X, np.nan)
    with pytest.raises(ValueError, match="nothing to predict.*two time steps"):
        pulse.decoder_reliance(lonely)
