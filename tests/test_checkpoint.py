import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, EarlyStopping

from sklearn_pulse import PulseTransformer
from sklearn_pulse._training._checkpoint import Checkpoint
from tests.helpers import SMALL_PULSE, make_windows

X = make_windows()[0]


class Kill(Callback):
    """Raise at one batch of one epoch, as a kill would end a run."""

    def __init__(self, epoch, batch):
        self.epoch = epoch
        self.batch = batch

    def on_batch_begin(self, net, training, **kwargs):
        if training and (len(net.history), len(net.history[-1, "batches"])) == (
            self.epoch,
            self.batch,
        ):
            raise KeyboardInterrupt


def pulse(**params):
    return PulseTransformer(**(SMALL_PULSE | {"max_epochs": 7, "batch_size": 4} | params))


def histories_match(first, second):
    keys = ("train_loss", "valid_loss", "epoch")
    return [[epoch[k] for k in keys] for epoch in first] == [
        [epoch[k] for k in keys] for epoch in second
    ]


@pytest.mark.parametrize(
    ("at", "select", "interval"),
    [
        *((at, "trailing_mean", 0.0) for at in [(1, 3), (2, 1), (4, 3), (6, 1), (7, 4)]),
        *(((4, 3), select, 0.0) for select in ("min_val", "last")),
        *((at, "trailing_mean", 60.0) for at in ((1, 3), (4, 3))),
    ],
)
def test_a_killed_run_resumes_to_the_same_bits(tmp_path, monkeypatch, at, select, interval):
    """With a state after each batch (`interval` 0), and with states after epochs only."""
    monkeypatch.setattr(Checkpoint, "interval", interval)
    params = {"select": select, "deterministic_validation": False}
    expected = pulse(**params).fit(X)
    with pytest.raises(KeyboardInterrupt):
        pulse(**params, checkpoint_dir=tmp_path, callbacks=[Kill(*at)]).fit(X)
    resumed = pulse(**params, checkpoint_dir=tmp_path).fit(X)
    assert histories_match(resumed.history_, expected.history_)
    np.testing.assert_array_equal(resumed.transform(X), expected.transform(X))
    for mine, theirs in zip(
        resumed.net_.module_.parameters(), expected.net_.module_.parameters(), strict=True
    ):
        assert torch.equal(mine, theirs)


def test_a_run_killed_in_the_middle_of_an_epoch_repeats_no_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "interval", 0.0)

    class Count(Callback):
        n_batches = 0

        def on_batch_end(self, net, training, **kwargs):
            self.n_batches += training

    with pytest.raises(KeyboardInterrupt):
        pulse(checkpoint_dir=tmp_path, callbacks=[Kill(3, 3)]).fit(X)
    resumed = pulse(checkpoint_dir=tmp_path, callbacks=[Count()]).fit(X)
    (count,) = [cb for _, cb in resumed.net_.callbacks_ if isinstance(cb, Count)]
    batches_an_epoch = 5  # 17 windows in batches of 4
    assert count.n_batches == 7 * batches_an_epoch - (2 * batches_an_epoch + 2)
    assert resumed.history_[2]["train_batch_count"] == batches_an_epoch


def test_a_finished_run_is_not_run_again(tmp_path):
    class Count(Callback):
        def on_batch_begin(self, net, **kwargs):
            raise AssertionError("trained again")

    first = pulse(checkpoint_dir=tmp_path).fit(X)
    again = pulse(checkpoint_dir=tmp_path, callbacks=[Count()]).fit(X)
    np.testing.assert_array_equal(first.transform(X), again.transform(X))


def test_early_stopping_is_remembered(tmp_path):
    def stopping():
        return [EarlyStopping("train_loss", patience=2, threshold=10.0, sink=lambda text: None)]

    first = pulse(checkpoint_dir=tmp_path, callbacks=stopping()).fit(X)
    again = pulse(checkpoint_dir=tmp_path, callbacks=stopping()).fit(X)
    assert first.n_iter_ == again.n_iter_ < 7


def test_every_combination_of_parameters_and_data_has_its_folder(tmp_path):
    pulse(checkpoint_dir=tmp_path, max_epochs=1).fit(X)
    pulse(checkpoint_dir=tmp_path, max_epochs=1, verbose=0, num_threads=1).fit(X)
    assert len(list(tmp_path.iterdir())) == 1
    pulse(checkpoint_dir=tmp_path, max_epochs=2).fit(X)
    pulse(checkpoint_dir=tmp_path, max_epochs=1, random_state=1).fit(X)
    pulse(checkpoint_dir=tmp_path, max_epochs=1).fit(X + 1e-3)
    pulse(checkpoint_dir=tmp_path, max_epochs=1).fit(X, groups=np.arange(20) // 2)
    assert len(list(tmp_path.iterdir())) == 5
    assert not list(tmp_path.rglob("*.partial"))


def test_a_damaged_checkpoint_is_named(tmp_path):
    pulse(checkpoint_dir=tmp_path, max_epochs=1).fit(X)
    (path,) = tmp_path.rglob("checkpoint.pt")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(OSError, match=f"{path.name} is no checkpoint.*delete"):
        pulse(checkpoint_dir=tmp_path, max_epochs=1).fit(X)


def test_a_process_killed_outright_resumes(tmp_path):
    script = textwrap.dedent(
        """
        import os, signal, sys
        from skorch.callbacks import Callback
        from tests.test_checkpoint import X, pulse

        class Die(Callback):
            def on_batch_begin(self, net, training, **kwargs):
                if len(net.history) == 4:
                    os.kill(os.getpid(), signal.SIGKILL)

        pulse(checkpoint_dir=sys.argv[1], callbacks=[Die()]).fit(X)
        """
    )
    env = os.environ | {"PYTHONPATH": os.getcwd()}
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], env=env, check=False)
    assert killed.returncode == -signal.SIGKILL
    resumed = pulse(checkpoint_dir=tmp_path).fit(X)
    np.testing.assert_array_equal(resumed.transform(X), pulse().fit_transform(X))
