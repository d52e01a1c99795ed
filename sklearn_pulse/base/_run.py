"""Run of a training: its seed, its place among several processes, and its checkpoint."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from .._parameters import as_path, check_distributed
from .._seeds import draw_seed
from .._share import Share
from .._training._callback_state import callbacks_fingerprint
from .._training._checkpoint import Checkpoint, data_fingerprint, run_folder
from .._training._identity import fingerprint
from .._training._net import SSLNet
from .._training._processes import (
    check_agreement,
    check_batches,
    check_divisible,
    is_launched,
    join,
)
from .._training._progress import may_stop
from .._training._user_callbacks import named
from ._fit_data import Parts

# Parameters that leave the result of a training as it is.
_WITHOUT_EFFECT = (
    "bag_pooling",
    "channel_names",
    "checkpoint_dir",
    "distributed",
    "random_state",
    "sampling_rate",
    "verbose",
)

# Parameters that each of several processes may set for itself; seeds are compared separately.
_OF_A_PROCESS = ("callbacks", "checkpoint_dir", "device", "distributed", "random_state", "verbose")


def join_others(estimator: Any) -> Share | None:
    """Meet the processes that `distributed` asks for; None means to train alone."""
    distributed = estimator.distributed
    check_distributed(distributed)
    if not distributed or (distributed == "auto" and not is_launched()):
        return None
    reason = estimator._objective_class.indivisible
    if reason is not None:
        raise ValueError(
            f"{type(estimator).__name__} cannot train in several processes, since {reason}: set"
            " distributed=False."
        )
    return join(distributed, estimator.device)


def seed_of_run(estimator: Any, share: Share | None) -> int:
    """Draw the integer that seeds everything in a fit, in all processes."""
    unseeded = estimator.random_state is None or estimator.random_state is np.random
    if estimator.checkpoint_dir is not None and unseeded:
        raise ValueError(
            "checkpoint_dir needs a random_state: without a seed no run repeats another, and"
            " there is nothing to resume. Pass for example random_state=0."
        )
    seed = draw_seed(estimator.random_state)
    if share is None:
        return seed
    first = share.of_first(seed)  # all processes ask, even if only one has no seed
    return first if unseeded else seed


def identity_of(estimator: Any) -> dict[str, Any]:
    """Return what identifies a run, beside its seed, its data and its first weights."""
    ignored = set(_WITHOUT_EFFECT) - set(estimator._objective_names)
    identity = {name: value for name, value in _params(estimator).items() if name not in ignored}
    # "auto" may find another device than before, whose generators have states of another form.
    identity["device"] = estimator._device
    identity["callbacks"] = callbacks_fingerprint(named(estimator.callbacks))
    others = may_stop(estimator)
    if others:
        identity["callbacks of scikit-learn"] = others
    return identity | {"class": type(estimator)}


def check_others(estimator: Any, share: Share, net: SSLNet, seed: int, parts: Parts) -> None:
    """Raise a ValueError unless all processes train the same net on the same data."""
    check_divisible(net.module_)
    for name, batches in (("train", parts.train), ("validate", parts.valid)):
        if batches is not None:
            drop_last = estimator.drop_last and name == "train"
            check_batches(share, name, estimator._iterator(batches, drop_last).smallest)
    facts = {
        "the data": data_fingerprint(parts.train, parts.valid),
        "random_state": fingerprint(seed),
        "the weights at the start": fingerprint(dict(net.module_.state_dict())),
        "whether checkpoint_dir is None": fingerprint(estimator.checkpoint_dir is None),
    }
    for name, value in _params(estimator).items():
        if name not in _OF_A_PROCESS:
            # Some objects cannot be told from others; a difference shows in the weights.
            with contextlib.suppress(TypeError):
                facts[name] = fingerprint(value)
    check_agreement(share, torch.device(net.device), facts)


def add_checkpoint(
    estimator: Any, net: SSLNet, seed: int, parts: Parts, share: Share | None
) -> None:
    """Add the callback that stores the run, if `checkpoint_dir` names a folder."""
    if estimator.checkpoint_dir is None:
        return
    folder = None
    if share is None or share.is_first:
        identity = estimator._identity() | {"seed": seed}
        directory = as_path("checkpoint_dir", estimator.checkpoint_dir)
        folder = run_folder(directory, identity, net.module_, parts.train, parts.valid)
    checkpoint = Checkpoint(folder, share)
    checkpoint.check(net)
    # It comes last, since it stores what the other callbacks have done.
    net.callbacks_.append(("checkpoint", checkpoint))


def _params(estimator: Any) -> dict[str, Any]:
    """Return the parameters, including those that a subclass sets without exposing them."""
    classes: list[Any] = [cls for cls in type(estimator).__mro__ if issubclass(cls, BaseEstimator)]
    names = sorted({name for cls in classes for name in cls._get_param_names()})
    return {name: getattr(estimator, name) for name in names}
