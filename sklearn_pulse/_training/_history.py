"""Histories of several trainings of the same weights, one after the other."""

from __future__ import annotations

from skorch import NeuralNet


def prepend_history(net: NeuralNet, earlier: NeuralNet) -> None:
    """Put the epochs of an earlier training before those of a net that went on from its weights.

    Epochs count on, the selected epoch included. Each epoch says by ``fit``, counted from 1, which
    training it belongs to.

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
    net.history[:0] = before
    if selected_epoch(net) is not None:
        dict(net.callbacks_)["select_weights"].epoch_ += len(before)


def selected_epoch(net: NeuralNet) -> int | None:
    """Return the epoch whose weights a net kept, from 0; None where it kept those of the last."""
    return getattr(dict(net.callbacks_).get("select_weights"), "epoch_", None)
