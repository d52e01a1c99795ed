"""Histories of several trainings of the same weights, one after the other."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Checkpoint, EarlyStopping
from skorch.history import History

from ._callbacks import KeepStored, LoadsWeights, SelectWeights


def prepend_history(net: NeuralNet, earlier: NeuralNet) -> None:
    """Put the epochs of an earlier training before those of a net that went on from its weights.

    Numbers of epochs count on, that of the selected epoch too. The entry ``fit`` of an epoch is the
    number of its training, counted from 1. A net that ran no epoch still holds the weights of the
    earlier training, and keeps its selected epoch.

    Parameters
    ----------
    net : NeuralNet
        Net whose training is over.
    earlier : NeuralNet
        Net whose weights it started from. It stays as it is.
    """
    before = [{"fit": 1, **epoch} for epoch in earlier.history]
    if not before:  # of weights that were converted
        return
    for epoch in net.history:
        epoch |= {"epoch": epoch["epoch"] + len(before), "fit": before[-1]["fit"] + 1}
    if not net.history:
        net.selected_epoch_ = earlier.selected_epoch_
    elif net.selected_epoch_ is not None:
        net.selected_epoch_ += len(before)
    net.history[:0] = before
    net.n_earlier_ = len(before)


def count_earlier(history: Sequence[Mapping[str, Any]]) -> int:
    """Count the epochs before the last training in a history that does not record their number."""
    fits = [epoch.get("fit") for epoch in history]
    return len(fits) - fits.count(fits[-1]) if fits else 0


def selected_epoch(net: NeuralNet) -> int | None:
    """Find the epoch whose weights callbacks have put back at the end of a training.

    Parameters
    ----------
    net : NeuralNet
        Net whose callbacks were told of the end, with the history of all epochs.

    Returns
    -------
    int or None
        The epoch, counted from 0; None if callbacks have put none back.
    """
    selected = None
    for _, callback in net.callbacks_:  # a later callback overrules those before it
        if isinstance(callback, SelectWeights) and callback.epoch_ is not None:
            selected = callback.epoch_
        elif isinstance(callback, EarlyStopping) and callback.load_best:
            if callback.best_epoch_:  # skorch counts from 1
                selected = callback.best_epoch_ - 1
        elif (event := stored_event(callback)) is not None:
            stored = [i for i, epoch in enumerate(net.history) if epoch.get(event)]
            selected = stored[-1] if stored else selected
    return selected


def as_if_ended(net: NeuralNet) -> NeuralNet:
    """Return a net as it would be if its training ended with the last epoch.

    Parameters
    ----------
    net : NeuralNet
        Net in training, after the end of an epoch. It stays as it is.

    Returns
    -------
    NeuralNet
        A copy with a history of its own; it shares the weights unless callbacks have kept others.
    """
    ended = copy.copy(net)
    ended.history_ = History(dict(epoch) for epoch in net.history)
    ended.selected_epoch_ = selected_epoch(net)
    kept = [
        weights
        for _, callback in net.callbacks_
        if isinstance(callback, LoadsWeights)
        and (weights := callback.weights_to_load(net)) is not None
    ]
    if kept:
        ended.module_ = copy.deepcopy(net.module_)
        ended.module_.load_state_dict(kept[-1])
    return ended


def stored_event(callback: Any) -> Any:
    """Return how the history marks epochs whose weights a callback stores, to load them later.

    Parameters
    ----------
    callback : Callback
        A callback of a training.

    Returns
    -------
    str, callable or None
        Name of the mark, or the monitor of a ``Checkpoint`` that records no mark. None if the
        callback loads no weights at the end of a training.
    """
    if isinstance(callback, KeepStored):
        return callback.event
    if isinstance(callback, Checkpoint) and callback.load_best and callback.monitor:
        return callback.event_name or callback.monitor
    return None
