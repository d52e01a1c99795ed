import os
import signal
from functools import cache, partial

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, EarlyStopping

from sklearn_pulse import PulseTransformer
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse._training._net import SSLNet
from tests.deep.runs import RUNS, kills, outcome
from tests.helpers import make_windows, small
from tests.kills import killed

X = make_windows(n_timesteps=8)[0]
BRIEF = {"encoder_depth": 1, "gru_num_layers": 1, "max_epochs": 5, "batch_size": 4}
pulse = partial(small, PulseTransformer, **BRIEF)
# Of one update, or two: for what does not depend on how long a training is.
briefest = partial(pulse, max_epochs=1, batch_size=20)


def histories_match(first, second):
    keys = ("train_loss", "valid_loss", "epoch")
    return [[epoch[k] for k in keys] for epoch in first] == [
        [epoch[k] for k in keys] for epoch in second
    ]


@cache
def uninterrupted(**params):
    return pulse(**params).fit(X)


@pytest.mark.parametrize(
    ("at", "select", "interval", "precision"),
    [
        *((at, "trailing_mean", 0.0, "float32") for at in [(1, 3), (2, 1), (4, 3), (5, 3)]),
        ((4, 3), "min_val", 0.0, "float32"),
        ((4, 3), "trailing_mean", 60.0, "float32"),
        ((4, 3), "trailing_mean", 0.0, "bfloat16"),
        *(
            pytest.param(*cell, "float32", marks=pytest.mark.slow)  # as others, or easier
            for cell in [
                ((3, 1), "trailing_mean", 0.0),
                ((4, 3), "last", 0.0),
                ((1, 3), "trailing_mean", 60.0),
            ]
        ),
    ],
)
def test_a_killed_run_resumes_to_the_same_bits(
    tmp_path, monkeypatch, at, select, interval, precision
):
    """With a state after each batch (`interval` 0), and with states after epochs only."""
    monkeypatch.setattr(Checkpoint, "interval", interval)
    params = {"select": select, "deterministic_validation": False, "precision": precision}
    params["batch_size"] = 8  # three batches an epoch
    expected = uninterrupted(**params)
    with killed(*at):
        pulse(**params, checkpoint_dir=tmp_path).fit(X)
    resumed = pulse(**params, checkpoint_dir=tmp_path).fit(X)
    assert histories_match(resumed.history_, expected.history_)
    np.testing.assert_array_equal(resumed.transform(X), expected.transform(X))
    for mine, theirs in zip(
        resumed.net_.module_.parameters(), expected.net_.module_.parameters(), strict=True
    ):
        assert torch.equal(mine, theirs)


def test_a_run_killed_in_the_middle_of_an_epoch_repeats_no_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "interval", 0.0)

    with killed(3, 3):
        pulse(checkpoint_dir=tmp_path, max_epochs=4).fit(X)
    train_step, steps = SSLNet.train_step, []
    monkeypatch.setattr(SSLNet, "train_step", lambda *a: (steps.append(1), train_step(*a))[1])
    resumed = pulse(checkpoint_dir=tmp_path, max_epochs=4).fit(X)
    batches_an_epoch = 5  # 17 windows in batches of 4
    assert len(steps) == 4 * batches_an_epoch - (2 * batches_an_epoch + 2)
    assert resumed.history_[2]["train_batch_count"] == batches_an_epoch


def test_a_finished_run_is_not_run_again(tmp_path, monkeypatch):
    first = pulse(checkpoint_dir=tmp_path, max_epochs=2).fit(X)
    monkeypatch.delattr(SSLNet, "train_step_single")
    again = pulse(checkpoint_dir=tmp_path, max_epochs=2).fit(X)
    np.testing.assert_array_equal(first.transform(X), again.transform(X))


def test_the_folder_may_be_in_the_home_of_the_user(tmp_path, monkeypatch):
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    pulse(checkpoint_dir="~/runs", max_epochs=1).fit(X)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


class ChangesFolder(Callback):
    """Changes the working folder of the process in the course of a training."""

    def __init__(self, folder):
        self.folder = folder

    def on_epoch_begin(self, net, **kwargs):
        os.chdir(self.folder)


def test_a_relative_folder_is_that_of_the_start(tmp_path, monkeypatch):
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(here)  # which sets the folder back at the end
    pulse(checkpoint_dir="runs", max_epochs=2, callbacks=[ChangesFolder(elsewhere)]).fit(X)
    assert len(list(here.glob("runs/*/checkpoint.pt"))) == 1
    assert not list(elsewhere.iterdir())


def test_early_stopping_is_remembered(tmp_path):
    def stopping():
        return [EarlyStopping("train_loss", patience=2, threshold=10.0, sink=lambda text: None)]

    first = pulse(checkpoint_dir=tmp_path, callbacks=stopping()).fit(X)
    again = pulse(checkpoint_dir=tmp_path, callbacks=stopping()).fit(X)
    assert first.n_iter_ == again.n_iter_ < 5


class ConstantPulse(PulseTransformer):
    """PULSE with a constant learning rate, which no parameter tells."""

    def _schedule(self, train):
        return []


def test_every_combination_of_class_parameters_and_data_has_its_folder(tmp_path):
    briefest(checkpoint_dir=tmp_path).fit(X)
    briefest(checkpoint_dir=tmp_path, verbose=0, num_threads=1).fit(X)
    assert len(list(tmp_path.iterdir())) == 1
    briefest(checkpoint_dir=tmp_path, max_epochs=2).fit(X)
    briefest(checkpoint_dir=tmp_path, random_state=1).fit(X)
    briefest(checkpoint_dir=tmp_path).fit(X + 1e-3)
    briefest(checkpoint_dir=tmp_path).fit(X, groups=np.arange(20) // 2)
    ConstantPulse(**briefest(checkpoint_dir=tmp_path).get_params()).fit(X)
    assert len(list(tmp_path.iterdir())) == 6


def test_a_warm_run_is_another_run(tmp_path):
    """It starts from other weights than a cold run, and than a warm run from other weights."""
    stored = briefest(max_epochs=2, warm_start=True, checkpoint_dir=tmp_path)
    plain = briefest(max_epochs=2, warm_start=True)
    for n_folders in (1, 2, 3):
        embeddings = [estimator.fit_transform(X) for estimator in (stored, plain)]
        np.testing.assert_array_equal(*embeddings)
        assert len(list(tmp_path.iterdir())) == n_folders


def test_a_cold_run_on_other_data_is_not_returned_for_a_warm_one(tmp_path):
    other = X[::-1] * 2
    warm = briefest(warm_start=True)
    expected = warm.fit(other).fit_transform(X)
    briefest(warm_start=True, checkpoint_dir=tmp_path).fit(X)
    stored = briefest(warm_start=True).fit(other).set_params(checkpoint_dir=tmp_path)
    np.testing.assert_array_equal(stored.fit_transform(X), expected)


def test_an_interrupted_warm_run_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "interval", 0.0)
    first = briefest(max_epochs=2, batch_size=10, warm_start=True).fit(X)
    expected = briefest(max_epochs=2, batch_size=10, warm_start=True).fit(X).fit_transform(X)
    with killed(2, 2):
        first.set_params(checkpoint_dir=tmp_path).fit(X)
    np.testing.assert_array_equal(first.fit_transform(X), expected)
    assert len(list(tmp_path.iterdir())) == 1


def test_an_interrupted_fit_draws_its_seed_again(tmp_path):
    brief = {"max_epochs": 2}
    expected = pulse(random_state=np.random.RandomState(0), **brief).fit(X)
    interrupted = pulse(random_state=np.random.RandomState(0), checkpoint_dir=tmp_path, **brief)
    with killed(2):
        interrupted.fit(X)
    np.testing.assert_array_equal(interrupted.fit_transform(X), expected.transform(X))
    assert len(list(tmp_path.iterdir())) == 1
    assert interrupted.random_state.randint(9) == expected.random_state.randint(9)


@pytest.mark.slow
def test_a_process_killed_at_any_moment_resumes(tmp_path):
    """A part of tests/deep/test_kills.py."""
    expected = outcome(RUNS["pulse"](None))
    for folder, code in kills("pulse", tmp_path, 2, (0.0,)):
        assert code in (0, -signal.SIGKILL)
        assert outcome(RUNS["pulse"](folder)) == expected
