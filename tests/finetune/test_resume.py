"""A run that was killed resumes to the same bits, and a run is known by what it starts from."""

import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from skorch.callbacks import Callback, Freezer

from sklearn_pulse import FineTuneClassifier, PulseTransformer, RandomEncoderTransformer
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse.baselines import PatchTSTTransformer, SimMTMTransformer, TimeMAETransformer
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, make_windows
from tests.kills import killed

from .tuning import TINY, same, scratch, state, tuned


class Steps(Callback):
    def on_batch_end(self, net, training, loss, **kwargs):
        self.losses_ = [*getattr(self, "losses_", []), loss.item()]


@pytest.mark.parametrize(
    ("params", "interval", "at"),
    [
        ({}, 0.0, (2, 2)),
        ({"freeze_epochs": 1}, 60.0, (2, 1)),
        ({"freeze_epochs": 2, "score_with": "probe", "lr_decay": 0.9}, 0.0, (2, 1)),
        ({"validation_fraction": 0.25, "select": "min_val", "patience": 2}, 0.0, (3, 2)),
        ({"callbacks": [Freezer("source.*", at=2)]}, 0.0, (2, 2)),
    ],
)
def test_a_killed_run_resumes_to_the_same_bits(
    pulse, windows, tmp_path, monkeypatch, params, interval, at
):
    monkeypatch.setattr(Checkpoint, "interval", interval)
    settings = params | {"max_epochs": 3, "callbacks": [*params.get("callbacks", []), Steps()]}
    expected = tuned(pulse, **settings).fit(*windows)
    with killed(*at):
        tuned(pulse, **settings, checkpoint_dir=tmp_path).fit(*windows)
    resumed = tuned(pulse, **settings, checkpoint_dir=tmp_path).fit(*windows)
    assert same(state(resumed.net_.module_), state(expected.net_.module_))
    np.testing.assert_array_equal(
        resumed.predict_proba(windows[0]), expected.predict_proba(windows[0])
    )
    losses = [dict(fit.net_.callbacks_)["Steps"].losses_ for fit in (resumed, expected)]
    assert losses[0] == losses[1]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_run_is_known_by_the_encoder_that_it_starts_from(pulse, windows, tmp_path):
    """By its weights and by what they are the weights of, wherever it was loaded from."""
    pulse.save_pretrained(tmp_path / "saved")
    other = PulseTransformer(**SMALL_PULSE | {"random_state": 1}).fit(
        make_windows(24, 32, 6, seed=1)[0]
    )
    mean = copy.deepcopy(pulse).set_params(pooling="mean")
    mean.net_.module_.encoder.pooling = "mean"
    stored = TINY | {"max_epochs": 1, "checkpoint_dir": tmp_path / "runs"}
    runs = []
    for source in (
        FrozenEstimator(pulse),
        tmp_path / "saved",
        FrozenEstimator(other),
        FrozenEstimator(mean),
        FrozenEstimator(pulse),
    ):
        classifier = FineTuneClassifier(source, **stored).fit(*windows)
        plain = clone(classifier).set_params(checkpoint_dir=None).fit(*windows)
        assert same(state(classifier.net_.module_), state(plain.net_.module_))
        runs.append(len(list((tmp_path / "runs").iterdir())))
    assert runs == [1, 1, 2, 3, 3]


def test_a_run_is_known_by_what_the_encoder_was_fitted_with(windows, tmp_path):
    """Not by a parameter that was set later."""
    sizes = SMALL_ENCODER | {"random_state": 0}
    before = RandomEncoderTransformer(**sizes, pooling="max").fit(windows[0])
    mean = RandomEncoderTransformer(**sizes, pooling="mean").fit(windows[0])
    for source in (before.set_params(pooling="mean"), mean):  # their weights are the same
        plain = tuned(source, max_epochs=1).fit(*windows)
        stored = tuned(source, max_epochs=1, checkpoint_dir=tmp_path).fit(*windows)
        assert same(state(stored.net_.module_), state(plain.net_.module_))


@pytest.mark.parametrize("cls", [SimMTMTransformer, PatchTSTTransformer, PulseTransformer])
def test_blank_windows_of_a_bag_change_nothing(cls):
    X, _ = make_windows(24, 32, 2, seed=1)
    encoder = cls(embedding_dim=8, max_epochs=1, batch_size=8, random_state=0).fit(X)
    bags, y = X.reshape(8, 3, 32, 2), np.arange(8) % 2
    padded = np.concatenate([bags, np.full((8, 4, 32, 2), np.nan)], axis=1)
    losses, outputs = [], []
    for windows in (bags, padded):
        fitted = tuned(encoder, max_epochs=3).fit(windows, y)
        losses.append([epoch["train_loss"] for epoch in fitted.history_])
        outputs.append(fitted.predict_proba(bags))
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    np.testing.assert_allclose(outputs[1], outputs[0], rtol=1e-4)


@pytest.mark.parametrize("cls", [PatchTSTTransformer, TimeMAETransformer])
def test_windows_of_a_bag_that_are_not_read_change_nothing(cls):
    """PatchTST reads no steps before its first patch, and TimeMAE none after its last segment."""
    X, _ = make_windows(16, 26, 2, seed=1)
    sizes = {"embedding_dim": 8, "encoder_hidden_dim": 8, "encoder_depth": 1, "patch_length": 6}
    encoder = cls(**sizes, max_epochs=1, batch_size=8, random_state=0).fit(X)
    unread = np.ones(26, dtype=bool)
    unread[encoder.encoder_.steps_read] = False
    assert unread.any()
    bags, y = np.stack([X[:8], X[8:]], axis=1), np.arange(8) % 2
    blank, glimpse = (np.concatenate([bags, np.full((8, 1, 26, 2), np.nan)], 1) for _ in range(2))
    glimpse[:, 2, unread] = 3.0
    fitted = [tuned(encoder, max_epochs=3).fit(windows, y) for windows in (blank, glimpse)]
    losses = [[epoch["train_loss"] for epoch in one.history_] for one in fitted]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)
    first, second = (one.predict_proba(glimpse) for one in fitted)
    np.testing.assert_allclose(second, first, rtol=1e-4)
    bags[0][:, ~unread] = np.nan  # no window of this bag is read
    assert np.isfinite(tuned(encoder).fit(bags, y).history_[-1]["train_loss"])


def test_the_pooling_of_bags_is_another_training(tmp_path):
    X, _ = make_windows(16)
    bags, y = X.reshape(8, 2, 16, 2), np.arange(8) % 2
    for pooling in ("mean", "max"):
        scratch(bag_pooling=pooling, checkpoint_dir=tmp_path).fit(bags, y)
    assert len(list(tmp_path.iterdir())) == 2
