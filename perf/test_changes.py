"""Gain of each change to the training step: ours against ours with one change undone."""

import pytest
import torch
from torch import nn

from perf.duel import duel
from perf.literal import LiteralEncoder
from perf.sizes import Size
from perf.step import make_step
from sklearn_pulse.functional import keep_mask
from sklearn_pulse.networks import SystemEncoder, _encoder
from sklearn_pulse.objectives import _trajectory


class PlainEncoder(SystemEncoder):
    """Published encoder behind the interface of ours: time last, every tap multiplied."""

    def __init__(self, encoder):
        nn.Module.__init__(self)  # without the layers of ours
        self.literal = LiteralEncoder.of(encoder)

    def encode_steps(self, x, observed=None):
        """Encode every step."""
        return self.literal.encode_steps(x)

    def pool(self, steps, observed=None):
        """Pool over time."""
        return steps.amax(1)


def plain_convolutions(objective):
    """Use PyTorch's convolutions, with channels before time."""
    objective.encoder = PlainEncoder(objective.encoder)
    return []


def whole_batches(objective):
    """Run the whole batch through each block before the next block."""
    return [(_encoder, "_CHUNK_STEPS", 2**30)]


def padded_gru(objective):
    """Decode by PyTorch's GRU, with every crop padded to the longest."""
    decoder = objective.decoder

    def roll_out(constant, drive, condition, lengths, drop=None, whole=None):
        return decoder._run_padded(constant, drive, condition, lengths, drop)

    decoder.roll_out = roll_out
    objective.computes_in_parts = False  # torch's GRU shares operations among all threads
    return []


def every_initial_state(objective):
    """Compute the initial condition at every step."""
    module = objective.initial_condition

    def at(starts, x, observed=None):
        return module(x, observed)[torch.arange(len(x)), starts]

    module.at = at
    return []


def boolean_masks(objective):
    """Draw dropout masks of Booleans."""
    return [(_trajectory, "keep_bits", keep_mask)]


CHANGES = {
    "time-first convolutions without dead taps": plain_convolutions,
    "a few windows through all blocks at a time": whole_batches,
    "our GRU on packed crops": padded_gru,
    "initial states at the starts alone": every_initial_state,
    "dropout masks of integers": boolean_masks,
}


@pytest.mark.parametrize("change", CHANGES)
def test_change(benchmark, change, monkeypatch):
    """Patches of a module last only while the slower step runs."""
    size, device = Size("har"), torch.device("cpu")
    x, starts = size.batch(device)
    ours, without = size.objective(), size.objective()
    patches = CHANGES[change](without)
    undone = make_step(without, x, starts)

    def slower():
        with monkeypatch.context() as patch:
            for target, name, value in patches:
                patch.setattr(target, name, value)
            undone()

    duel(
        benchmark,
        make_step(ours, x, starts),
        slower,
        device=device,
        n_windows=len(x),
        rounds=7,
        size=change,
        task="change",
    )
