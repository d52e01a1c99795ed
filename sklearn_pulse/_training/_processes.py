"""Processes that train one network together: how they meet, agree and end."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import socket
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import skorch.callbacks
import torch
import torch.distributed as dist
from joblib.parallel import get_active_backend
from skorch import NeuralNet
from skorch.callbacks import Callback, EarlyStopping
from skorch.utils import noop
from torch import nn

from .._share import Share
from ._device import resolve_device
from ._history import stored_event
from ._identity import fingerprint

if dist.is_available():
    # torch imports this module for a training. If there is a group by then, default arguments of
    # the module hold the group for good: its threads outlive `_leave`, and may abort the process.
    importlib.import_module("torch.distributed.nn.functional")

_LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # set by torchrun
_HOW = "torchrun --nproc-per-node 2 script.py"

# Callbacks of skorch that show or write what the training does; the first process alone has them.
_WRITERS = (
    skorch.callbacks.Checkpoint,
    skorch.callbacks.MlflowLogger,
    skorch.callbacks.NeptuneLogger,
    skorch.callbacks.PrintLog,
    skorch.callbacks.ProgressBar,
    skorch.callbacks.SacredLogger,
    skorch.callbacks.TensorBoard,
    skorch.callbacks.TrainEndCheckpoint,
    skorch.callbacks.WandbLogger,
)


def join(distributed: bool | str, device: Any) -> Share:
    """Meet the other processes of a training.

    The processes meet in torch's default process group. If there is none yet, it is made from what
    torchrun has put into the environment, and stays until the process ends.

    Parameters
    ----------
    distributed : True or "auto"
        Value of the parameter of that name.
    device : str or torch.device
        Value of the parameter of that name. On CUDA, the process takes the device of its
        ``LOCAL_RANK``.

    Returns
    -------
    Share
        Place of this process among the others.

    Raises
    ------
    ValueError
        If this process is not one of several, or they cannot train together.
    """
    if not is_launched(least=1):
        raise ValueError(
            "distributed=True, and this process is not one of several: launch the script by"
            f" '{_HOW}', or set distributed=False."
        )
    if get_active_backend()[0].nesting_level:
        raise ValueError(
            f"distributed={distributed!r} in a worker of joblib, where fits run side by side and"
            " would mix up what they exchange: set n_jobs=None, or distributed=False."
        )
    kind = resolve_device(device)
    if kind.type == "mps":
        raise ValueError("distributed needs device='cpu' or 'cuda': torch has no exchange on 'mps'")
    if kind.type == "cuda" and kind.index is None:
        torch.cuda.set_device(_local_device())
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if kind.type == "cuda" else "gloo")
        atexit.register(_leave)
    return Share(dist.get_rank(), dist.get_world_size())


def is_launched(least: int = 2) -> bool:
    """Whether this process is one of `least` or more that were launched together."""
    if not dist.is_available():
        return False
    if dist.is_initialized():
        return dist.get_world_size() >= least
    return all(name in os.environ for name in _LAUNCHED) and int(os.environ["WORLD_SIZE"]) >= least


def _local_device() -> int:
    """Return the number of this process's CUDA device."""
    number, visible = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if visible == 1:  # a launcher may show each process a device of its own
        return 0
    if number >= visible:
        raise ValueError(
            f"LOCAL_RANK={number}, and the machine shows {visible} CUDA devices: launch"
            f" {visible} processes per machine, or set device='cpu'."
        )
    return number


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


@contextlib.contextmanager
def among_others(share: Share | None) -> Iterator[None]:
    """Keep all processes but the first silent, and say so when another process has ended."""
    if share is None:
        yield
        return
    with warnings.catch_warnings():
        # It warns of the speed of small convolutions, whose gradients torch copies.
        warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
        if not share.is_first:
            warnings.simplefilter("ignore")
        try:
            yield
        except RuntimeError as error:
            if not _is_loss_of_a_process(error):
                raise
            raise RuntimeError(
                f"process {share.rank} of {share.size} lost another process, which has ended or"
                " does not answer: the output of that process says why. Launch all processes"
                " again; with checkpoint_dir, fit resumes."
            ) from error


def _is_loss_of_a_process(error: RuntimeError) -> bool:
    """Whether an error comes from the exchange between processes."""
    return isinstance(error, dist.DistError) or "gloo" in str(error).lower()


def check_agreement(share: Share, device: torch.device, facts: Mapping[str, bytes | str]) -> None:
    """Raise a ValueError unless all processes train the same net, on devices of their own.

    Parameters
    ----------
    share : Share
        Place of this process.
    device : torch.device
        Device that this process computes on.
    facts : mapping
        Digests of what must be the same in all processes, by name.
    """
    remedy = "give all processes the same data and parameters, on machines of one kind"
    _compare(share, {**facts, **_environment(device)}, remedy)
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        name = f"{socket.gethostname()} {torch.cuda.get_device_properties(index).uuid}"
        if len(set(share.of_all(name))) < share.size:
            raise ValueError(
                "two processes of a distributed fit compute on one CUDA device: set device='cuda',"
                " and launch no more processes per machine than it has devices."
            )


def _compare(share: Share, facts: Mapping[str, bytes | str], remedy: str) -> None:
    """Raise a ValueError, with a remedy, unless the facts are the same in all processes."""
    for rank, others in enumerate(share.of_all(facts)):
        differing = sorted(name for name in facts if others.get(name) != facts[name])
        if differing:
            raise ValueError(
                f"process {share.rank} and process {rank} of a distributed fit differ in"
                f" {', '.join(differing)}: {remedy}."
            )


def _environment(device: torch.device) -> dict[str, str]:
    """Return what the bits of a computation depend on, beside data and parameters."""
    if device.type == "cuda":
        kind = torch.cuda.get_device_name(device)
    else:
        kind = f"cpu ({torch.backends.cpu.get_cpu_capability()})"
    return {"the kind of device": kind, "the version of torch": torch.__version__}


def check_batches(share: Share, purpose: str, smallest: int) -> None:
    """Raise a ValueError if a batch has no window for a process.

    Parameters
    ----------
    share : Share
        Place of this process.
    purpose : {"train", "validate"}
        What the batches are for.
    smallest : int
        Number of windows of the smallest batch.
    """
    if smallest >= share.size:
        return
    remedy = "choose batch_size so that the last batch is larger"
    if purpose == "validate":
        remedy += ", validate on more windows, or set validation_fraction=0"
    raise ValueError(
        f"the smallest batch to {purpose} on holds {smallest} of the windows, fewer than the"
        f" {share.size} processes of a distributed fit: {remedy}."
    )


def check_divisible(module: nn.Module) -> None:
    """Raise a ValueError if a module normalises by statistics of the batch."""
    for name, layer in module.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise ValueError(
                f"the layer {name!r} is a {type(layer).__name__}, which would take the statistics"
                " of each process's share in place of the batch's: set distributed=False."
            )


def callbacks_of_process(callbacks: list[Any], share: Share) -> list[Any]:
    """Add a callback that stops all processes; only the first keeps callbacks that write."""
    callbacks = [*callbacks, ("stop_together", StopTogether(share))]
    if share.is_first:
        return callbacks
    kept = []
    for entry in callbacks:
        callback = entry[1] if isinstance(entry, tuple | list) else entry
        if isinstance(callback, _WRITERS):
            continue
        if isinstance(callback, EarlyStopping):
            callback.sink = noop
        kept.append(entry)
    return kept


def end_alike(net: Any, share: Share) -> None:
    """Give all processes the weights that a callback of the first process alone has loaded."""
    loads = any(stored_event(callback) is not None for _, callback in net.callbacks_)
    if not share.of_first(loads):
        return
    weights = {
        name: value.cpu() if isinstance(value, torch.Tensor) else value
        for name, value in net.module_.state_dict().items()
    }
    net.module_.load_state_dict(share.of_first(weights))
    net.selected_epoch_ = share.of_first(net.selected_epoch_)


class StopTogether(Callback):
    """Stop all processes after an epoch in which a callback has stopped one of them.

    A fit whose processes have come apart ends with an error: each would go on by itself, and
    nothing else would show it.

    Parameters
    ----------
    share : Share
        Place of this process.
    """

    def __init__(self, share: Share) -> None:
        self.share = share

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Ask the other processes, and compare weights and draws with theirs."""
        net.stop_training_ = self.share.any(net.stop_training_, net.device)
        facts = {
            f"the weights after epoch {len(net.history)}": dict(net.module_.state_dict()),
            f"the draws after epoch {len(net.history)}": net.module_.generator_state(),
        }
        remedy = (
            "let callbacks act alike in all processes, with a seed where they draw, and within"
            " net.module_.seeded(0) where the objective draws for them"
        )
        _compare(self.share, {name: fingerprint(fact) for name, fact in facts.items()}, remedy)
