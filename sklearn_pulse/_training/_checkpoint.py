"""Full-state checkpoints: a killed training resumes to the same bits."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback

_FILE = "checkpoint.pt"


def run_folder(directory: Any, identity: Mapping[str, Any], *datasets: Any) -> Path:
    """Folder of one run: a hash of its parameters and data, so that candidates do not clash.

    Parameters
    ----------
    directory : path-like
        Shared by all runs.
    identity : mapping
        Parameters and seed.
    *datasets : WindowBatches or None
        Each is sized and goes through its contents as dictionaries of tensors.

    Returns
    -------
    pathlib.Path
        Created if it was not there.
    """
    digest = hashlib.blake2b(digest_size=12)
    digest.update(repr(sorted(identity.items())).encode())
    for dataset in datasets:
        digest.update(repr(None if dataset is None else len(dataset)).encode())
        if dataset is not None:
            for batch in dataset.contents():
                for name, tensor in sorted(batch.items()):
                    digest.update(f"{name}{tuple(tensor.shape)}".encode())
                    digest.update(np.ascontiguousarray(tensor.cpu().numpy()).data)
    folder = Path(directory) / digest.hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Checkpoint(Callback):
    """Write the whole state of a training now and then, and read it before the first epoch.

    skorch's own checkpoint leaves out the learning-rate schedule and the generators, so what it
    resumes is another run.

    Parameters
    ----------
    folder : pathlib.Path
        Folder of this run alone.

    Attributes
    ----------
    interval : float
        Seconds between two states within an epoch. After each epoch a state is always written.
    """

    interval = 60.0

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Resume, if there is something to resume."""
        self._saved_at = time.monotonic()
        path = self.folder / _FILE
        if not path.exists():
            return
        try:
            state = torch.load(path, map_location=net.device, weights_only=True)
        except Exception as error:
            raise OSError(f"{path} is no checkpoint that can be read: delete it.") from error
        net.module_.load_state_dict(state["module"])
        net.module_.set_generator_state(state["generator"], torch.device(net.device))
        net.optimizer_.load_state_dict(state["optimizer"])
        net.stop_training_ = state["stop_training"]
        net.losses_ = state["losses"]
        for epoch in state["history"]:
            net.history.new_epoch()
            for name, value in epoch.items():
                net.history.record(name, value)
        for name, callback in net.callbacks_:
            _load_callback(callback, state["callbacks"].get(name, {}))

    def on_batch_end(self, net: NeuralNet, training: bool, **kwargs: Any) -> None:
        """Write the state in the middle of an epoch, if the last one is old."""
        if training and time.monotonic() - self._saved_at >= self.interval:
            self._write(net, net.history[:-1])

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Write the state."""
        self._write(net, net.history)

    def _write(self, net: NeuralNet, epochs: list[dict[str, Any]]) -> None:
        """Write the state atomically, with the finished `epochs`."""
        state = {
            "module": net.module_.state_dict(),
            "generator": net.module_.generator_state(),
            "optimizer": net.optimizer_.state_dict(),
            "stop_training": bool(net.stop_training_),
            "losses": net.losses_.clone(),
            "history": [
                {name: value for name, value in epoch.items() if name != "batches"}
                for epoch in epochs
            ],
            "callbacks": {name: _callback_state(callback) for name, callback in net.callbacks_},
        }
        partial = self.folder / f"{_FILE}.{os.getpid()}.partial"
        torch.save(state, partial)
        os.replace(partial, self.folder / _FILE)
        self._saved_at = time.monotonic()


def _callback_state(callback: Callback) -> dict[str, Any]:
    """Return the learnt attributes of a callback that are plain values or have a `state_dict`."""
    state = {}
    for name, value in vars(callback).items():
        if not name.endswith("_") or name == "policy_":
            continue
        if hasattr(value, "state_dict"):
            state[name] = value.state_dict()
        elif value is None or isinstance(value, bool | str | dict):
            state[name] = value
        elif isinstance(value, Integral):
            state[name] = int(value)
        elif isinstance(value, Real):
            state[name] = float(value)
    return state


def _load_callback(callback: Callback, state: dict[str, Any]) -> None:
    for name, value in state.items():
        if hasattr(getattr(callback, name, None), "load_state_dict"):
            getattr(callback, name).load_state_dict(value)
        else:
            setattr(callback, name, value)
