"""Full-state checkpoints: a killed training resumes to the same bits."""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from torch import Tensor, nn

from .._share import Share
from ._callback_state import CallbackStates
from ._identity import fingerprint
from ._module_state import decoded_attributes, encoded_attributes, restore_attributes
from ._plain import Decoder, Encoder
from ._state_file import DamagedError, newest_state, remove_left_overs, store_state

# Their kernels read moments of the shape of the parameter, without a check.
_FUSED = torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad


def run_folder(
    directory: Any, identity: Mapping[str, Any], module: nn.Module, *datasets: Any
) -> Path:
    """Return the folder of one run, so that candidates of a search do not share a folder.

    Parameters
    ----------
    directory : path-like
        Folder that all runs share.
    identity : mapping
        Parameters and seed of the run, by name.
    module : torch.nn.Module
        Module with the weights that the run starts from.
    *datasets : WindowBatches or None
        Data to train and to validate on.

    Returns
    -------
    pathlib.Path
        Folder in `directory`, named by a hash of the arguments; it is created if it is missing.

    Raises
    ------
    OSError
        If the folder cannot be created.
    TypeError
        If a parameter cannot be told from others; the message names it.
    """
    digest = hashlib.blake2b(digest_size=12)
    for name, value in sorted(identity.items()):
        try:
            digest.update(fingerprint((name, value)))
        except TypeError as error:
            raise TypeError(
                f"{name}: {error}, so checkpoint_dir cannot tell this run from others. Set"
                " checkpoint_dir=None."
            ) from error
    digest.update(fingerprint(dict(module.state_dict())))
    digest.update(fingerprint(_trained(module)))
    _add_contents(digest, *datasets)
    # Absolute, since the working folder may change in the course of a training.
    folder = Path(directory).absolute() / digest.hexdigest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"checkpoint_dir={str(directory)!r} cannot hold a folder ({error.strerror})"
        raise OSError(error.errno, f"{message}: name another one", str(folder)) from error
    return folder


def data_fingerprint(*datasets: Any) -> bytes:
    """Digest data sets, each of which is a `WindowBatches` or None."""
    digest = hashlib.blake2b(digest_size=16)
    _add_contents(digest, *datasets)
    return digest.digest()


def _add_contents(digest: Any, *datasets: Any) -> None:
    for dataset in datasets:
        digest.update(repr(None if dataset is None else len(dataset)).encode())
        if dataset is not None:
            for batch in dataset.contents():
                for name, tensor in sorted(batch.items()):
                    digest.update(f"{name}{tuple(tensor.shape)}".encode())
                    digest.update(np.ascontiguousarray(tensor.cpu().numpy()).data)


class Checkpoint(Callback):
    """Write the whole state of a training now and then, and read it before the first epoch.

    skorch's own checkpoint leaves out the learning-rate schedule and the generators, so what it
    resumes is another run. This callback must be the last one, since it stores what the others
    have done.

    Parameters
    ----------
    folder : pathlib.Path or None
        Folder of this run alone; None in all processes but the first of several, which alone reads
        and writes.
    share : Share or None, default=None
        Place of this process among those that train together; None if it trains alone.

    Attributes
    ----------
    interval : float
        Seconds between two states within an epoch. After each epoch a state is always written.
    """

    interval = 60.0

    def __init__(self, folder: Path | None, share: Share | None = None) -> None:
        self.folder = folder
        self.share = share
        self._states: Any = None  # CallbackStates, in a training
        self._unfinished: dict[str, Any] | None = None  # state in the middle of an epoch

    def check(self, net: NeuralNet) -> CallbackStates:
        """Raise a TypeError if the state of another callback cannot be stored."""
        return CallbackStates(net, [(n, c) for n, c in net.callbacks_ if c is not self])

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Resume from the newest state, if there is a state."""
        self._states = self.check(net)
        self._saved_at, self._is_verified = time.monotonic(), False
        stored = self._newest(net)
        if self.share is not None:
            stored = self.share.of_first(stored)
        if stored is None:
            return
        if stored["epoch"] is not None:
            # A copy, since callbacks get the other state now and may change it in place.
            self._unfinished = self._checked(net, copy.deepcopy(stored))
        state = self._checked(net, stored)
        self._restore(net, state)
        net.optimizer_.load_state_dict(state["optimizer"])
        net.stop_training_ = state["stop_training"]
        net.losses_ = state["losses"].to(net.device)
        for epoch in state["history"]:
            net.history.new_epoch()
            net.history[-1].update(epoch)

    def on_epoch_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Undo what the callbacks have done at the start of an epoch that is resumed midway."""
        if self._unfinished is None:
            return
        state, self._unfinished = self._unfinished, None
        self._restore(net, state)
        # The optimizer took copies of the moments; its settings may have been changed since.
        for group, stored in zip(
            net.optimizer_.param_groups, state["optimizer"]["param_groups"], strict=True
        ):
            group.update({name: value for name, value in stored.items() if name != "params"})
        net.history[-1].update(state["epoch"])

    def on_batch_end(self, net: NeuralNet, training: bool, **kwargs: Any) -> None:
        """Write the state in the middle of an epoch, if the last state is old."""
        if training and time.monotonic() - self._saved_at >= self.interval:
            self._write(net, net.history[:-1], net.history[-1])

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Write the state."""
        self._write(net, net.history, None)

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Let go of the net, which will hold this callback."""
        self._states = None

    def _newest(self, net: NeuralNet) -> dict[str, Any] | None:
        """Return the newest good state, as it is stored, if this process has a folder."""
        if self.folder is None:
            return None
        remove_left_overs(self.folder)
        check = partial(self._checked, net)
        stored, self._last_is_good = newest_state(self.folder, check)
        return stored

    def _restore(self, net: NeuralNet, state: Mapping[str, Any]) -> None:
        """Put back what callbacks may have touched."""
        net.module_.load_state_dict(state["module"])
        restore_attributes(net.module_, state["attributes"])
        net.module_.set_generator_state(state["generator"], torch.device(net.device))
        for name, parameter in net.module_.named_parameters():
            parameter.requires_grad_(state["trained"][name])
        self._states.restore(state["callbacks"])

    def _write(
        self, net: NeuralNet, finished: list[dict[str, Any]], current: dict[str, Any] | None
    ) -> None:
        """Write the state, with the finished epochs and the records of the current one."""
        if self.folder is None:
            return
        encoder = Encoder(self._states.weights)
        state = {
            "module": _encoded_weights(encoder, net.module_.state_dict()),
            "attributes": encoded_attributes(net.module_, encoder),
            "trained": _trained(net.module_),
            "generator": net.module_.generator_state(),
            "optimizer": encoder.encode(net.optimizer_.state_dict()),
            "stop_training": bool(net.stop_training_),
            "losses": net.losses_.clone(),
            "history": [
                # The net keeps the last batch of a finished epoch too.
                _encoded_records(encoder, epoch | {"batches": epoch["batches"][-1:]})
                for epoch in finished
            ],
            "epoch": None if current is None else _encoded_records(encoder, current),
            "callbacks": self._states.encode(encoder),
        }
        # All values are plain. Still, the first state of a training is read back and checked.
        check = None if self._is_verified else partial(self._checked, net)
        store_state(self.folder, state, check, rotate=self._last_is_good)
        self._saved_at, self._last_is_good, self._is_verified = time.monotonic(), True, True

    def _checked(self, net: NeuralNet, state: dict[str, Any]) -> dict[str, Any]:
        """Return what a file holds, decoded; DamagedError if it does not fit the net."""
        try:
            decoder = Decoder(net.device)
            module = {
                name: value if isinstance(value, Tensor) else decoder.decode(value)
                for name, value in state["module"].items()
            }
            optimizer = decoder.decode(state["optimizer"])
            _check_weights(module, net.module_.state_dict())
            _check_optimizer(optimizer, net.optimizer_)
            if state["trained"].keys() != _trained(net.module_).keys():
                raise ValueError("its parameters are others")
            return {
                "module": module,
                # Earlier versions stored none.
                "attributes": decoded_attributes(net.module_, decoder, state.get("attributes", {})),
                "optimizer": optimizer,
                "trained": state["trained"],
                "generator": state["generator"],
                "stop_training": bool(state["stop_training"]),
                "losses": state["losses"],
                "history": [_decoded_records(decoder, epoch) for epoch in state["history"]],
                "epoch": state["epoch"] and _decoded_records(decoder, state["epoch"]),
                "callbacks": self._states.decode(decoder, self._own(state["callbacks"])),
            }
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise DamagedError(f"it does not fit the net: {error}") from error

    def _own(self, states: dict[str, Any]) -> dict[str, Any]:
        """Leave out the states of the callbacks that the first process alone has."""
        if self.folder is not None:
            return states
        return {name: state for name, state in states.items() if name in self._states.names}


def _trained(module: nn.Module) -> dict[str, bool]:
    """Return which parameters are trained; callbacks may freeze some."""
    return {name: parameter.requires_grad for name, parameter in module.named_parameters()}


def _encoded_weights(encoder: Encoder, weights: Mapping[str, Any]) -> dict[str, Any]:
    """Encode the entries of a module's state that are no tensors."""
    return {
        name: value if isinstance(value, Tensor) else encoder.encode(value)
        for name, value in weights.items()
    }


def _encoded_records(encoder: Encoder, epoch: Mapping[str, Any]) -> dict[str, Any]:
    """Encode the records of an epoch in the history."""
    encoded = {}
    for name, value in epoch.items():
        try:
            encoded[name] = encoder.encode(value)
        except TypeError as error:
            raise TypeError(
                f"callbacks recorded {name!r} in the history, and checkpoint_dir cannot keep it:"
                f" {error}. Record a plain value, or set checkpoint_dir=None."
            ) from error
    return encoded


def _decoded_records(decoder: Decoder, epoch: Mapping[str, Any]) -> dict[str, Any]:
    return {name: decoder.decode(value) for name, value in epoch.items()}


def _check_weights(stored: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise a ValueError unless both hold tensors of the same names, shapes and kinds."""
    if stored.keys() != own.keys():
        raise ValueError(f"its weights differ in {min(stored.keys() ^ own.keys())!r}")
    for name, value in own.items():
        theirs = stored[name]
        if not isinstance(theirs, Tensor) or not isinstance(value, Tensor):
            same = type(theirs) is type(value)
        else:
            same = (theirs.shape, theirs.dtype) == (value.shape, value.dtype)
        if not same:
            raise ValueError(f"its weight {name!r} has another shape or kind")


def _check_optimizer(stored: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> None:
    """Raise a ValueError unless the stored state of an optimizer fits its parameters."""
    own = optimizer.state_dict()
    numbers = [number for group in own["param_groups"] for number in group["params"]]
    theirs = [number for group in stored["param_groups"] for number in group["params"]]
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if theirs != numbers or not stored["state"].keys() <= set(numbers):
        raise ValueError("its optimizer has other parameters")
    if type(optimizer) not in _FUSED:  # moments of others may have any shape
        return
    for number, moments in stored["state"].items():
        for name, value in moments.items():
            shape = getattr(value, "shape", ())
            if shape not in ((), parameters[number].shape):
                raise ValueError(f"its optimizer's {name!r} has another shape")
