"""PULSE's decoder: a GRU that starts from an initial condition and is driven by the embedding."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from .._threads import n_workers
from ._aligned import align
from ._autocast import compute_dtype, recurrent_autocast
from ._packed_gru import run_gru
from ._packing import Packing
from ._parts import run_parts
from ._repeated_input import DropoutMask, SeededDropout, project_repeated
from ._row_pieces import RowLinear, map_table

_MIN_SEQUENCES = 64  # per part: fewer make the products of a step too small
_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class _Layer(NamedTuple):
    """Weights of one GRU layer, in the order of `_NAMES`."""

    input: Tensor
    state: Tensor
    input_bias: Tensor
    state_bias: Tensor

    def aligned(self, *, reads_states: bool) -> _Layer:
        """Add units up to an aligned number, which stay at zero and reach no other.

        The weights of the input get as many columns too if the layer `reads_states` of another.
        """
        weight, state, *biases = (gates.unflatten(0, (3, -1)) for gates in self)
        padded = (
            align(weight, -1, -2) if reads_states else align(weight, -2),
            align(state, -1, -2),
            *(align(bias, -1) for bias in biases),
        )
        return _Layer(*(gates.flatten(0, 1) for gates in padded))


class GRUDecoder(nn.Module):
    """Decoder that rolls a trajectory out from an initial state (paper, Eq. 2).

    Parameters
    ----------
    input_dim : int
        Width of the drive at each step.
    n_channels : int
        Channels of the reconstruction.
    hidden_dim : int, default=64
        Width of the GRU's state.
    num_layers : int, default=2
        Layers of the GRU. The initial condition is the initial state of the first layer; the other
        layers start at zero.
    observation : {"mlp", "linear"}, default="mlp"
        Map from state to signal: two layers as in the published code ("mlp"), or the linear map of
        the paper's text ("linear").

    Examples
    --------
    >>> import torch
    >>> decoder = GRUDecoder(321, n_channels=6)
    >>> decoder(torch.zeros(127, 8, 321), torch.zeros(8, 64)).shape
    torch.Size([127, 8, 6])
    """

    def __init__(
        self,
        input_dim: int,
        n_channels: int,
        hidden_dim: int = 64,
        num_layers: int = 2,
        observation: Literal["mlp", "linear"] = "mlp",
    ) -> None:
        super().__init__()
        self.n_channels = n_channels
        self.gru = nn.GRU(input_dim, hidden_dim, num_layers)
        self.observation: nn.Module = RowLinear(hidden_dim, n_channels)
        if observation == "mlp":
            self.observation = nn.Sequential(
                RowLinear(hidden_dim, hidden_dim), nn.ReLU(), self.observation
            )

    def initial_state(self, condition: Tensor) -> Tensor:
        """Build the initial state of all layers.

        Parameters
        ----------
        condition : Tensor of shape (batch, hidden_dim)
            Initial condition, the initial state of the first layer.

        Returns
        -------
        Tensor of shape (num_layers, batch, hidden_dim)
            Initial states; zero except in the first layer.
        """
        state = condition.new_zeros(self.gru.num_layers, *condition.shape)
        state[0] = condition
        return state

    def forward(self, drive: Tensor, condition: Tensor) -> Tensor:
        """Reconstruct sequences of equal length.

        Parameters
        ----------
        drive : Tensor of shape (n_steps, batch, input_dim)
            Drive of each step, time first: the layout in which PyTorch's CPU kernel is fastest.
        condition : Tensor of shape (batch, hidden_dim)
            Initial condition.

        Returns
        -------
        Tensor of shape (n_steps, batch, n_channels)
            The reconstruction.
        """
        state = self.initial_state(condition)
        with recurrent_autocast(drive):
            dtype = next(self.gru.parameters()).dtype
            states, _ = self.gru(drive.to(dtype), state.to(dtype))
        return self.observation(states)

    def roll_out(
        self,
        constant: Tensor,
        drive: Tensor,
        condition: Tensor,
        lengths: Tensor,
        drop: SeededDropout | None = None,
        whole: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Reconstruct sequences of unequal length from a constant and a varying drive.

        On the CPU, steps past the end of a sequence are not computed, and without dropout the
        constant drive is multiplied once per sequence rather than once per step. On CUDA, cuDNN
        runs the padded sequences.

        Parameters
        ----------
        constant : Tensor of shape (batch, n_constant)
            Part of the drive that is the same at every step.
        drive : Tensor of shape (n_steps, batch, n_varying)
            Part of the drive that varies from step to step; `n_varying` may be zero.
        condition : Tensor of shape (batch, hidden_dim)
            Initial condition.
        lengths : Tensor of int, of shape (batch,)
            Steps of each sequence, at most `n_steps`.
        drop : SeededDropout or None, default=None
            Dropout of the drive, with a new mask at each step; None drops nothing.
        whole : (Tensor, Tensor) or None, default=None
            Lengths of all sequences of a larger batch, and the numbers that these sequences have
            among them: each sequence then gets the mask that it would get in the larger batch.
            None means that the batch is whole.

        Returns
        -------
        Tensor of shape (n_steps, batch, n_channels)
            The reconstruction; zero past the end of each sequence.
        """
        n_steps = len(drive)
        if constant.device.type != "cpu":
            if drop is not None and whole is not None:
                steps = torch.arange(n_steps, device=lengths.device).unsqueeze(1)
                rows = (steps * len(whole[0]) + whole[1]).flatten()
                drop = drop.of_rows(rows, n_steps * len(whole[0]))
            return self._run_padded(constant, drive, condition, lengths, drop)
        packing = Packing.of(lengths, n_steps)
        if drop is not None and whole is not None:
            packing_of_all = Packing.of(whole[0], n_steps)
            rows = packing.rows_in(packing_of_all, whole[1])
            drop = drop.of_rows(rows, len(packing_of_all.positions))
            if not packing.sizes and packing_of_all.sizes:  # keep step with parts that draw
                drop.draw((0, constant.shape[1] + drive.shape[2]))
        if not packing.sizes:
            # Part of the graph, since a loss needs a gradient even of nothing.
            nothing = 0.0 * (constant.sum() + condition.sum())
            return drive.new_zeros(n_steps, len(constant), self.n_channels) + nothing
        dtype, running = compute_dtype(constant), packing.order[: packing.sizes[0]]
        # (n_running, ...): sequences that are not empty, the longest first
        constant, state = constant.to(dtype)[running], condition.to(dtype)[running]
        drive = packing.pack(drive.to(dtype))  # (sum(sizes), n_varying)
        # Drawn here, so that the masks do not depend on the number of parts.
        mask = None if drop is None else drop.mask((len(drive), self.gru.input_size))
        split = packing.split(max(1, min(n_workers(), len(running) // _MIN_SEQUENCES)))
        n_parts = len(split)
        parts = [
            (constant[part::n_parts], drive[rows], state[part::n_parts], rows, sizes, mask)
            for part, (rows, sizes) in enumerate(split)
        ]
        predicted = run_parts(self._run_packed, parts, self.parameters())
        packed = torch.cat([prediction for (prediction,) in predicted])
        return packing.take([rows for rows, _ in split]).pad(packed, n_steps)

    def _run_padded(
        self,
        constant: Tensor,
        drive: Tensor,
        condition: Tensor,
        lengths: Tensor,
        drop: SeededDropout | None,
    ) -> Tensor:
        """Run every sequence to the last step and zero the steps past its end."""
        # (n_steps, batch, n_constant + n_varying)
        inputs = torch.cat([constant.expand(len(drive), -1, -1), drive], dim=-1)
        if drop is not None:
            keep = drop.draw((inputs[..., 0].numel(), inputs.shape[-1])).view(inputs.shape)
            inputs = inputs * keep.to(inputs.dtype).mul_(drop.scale)
        # (n_steps, batch): whether a step lies inside its sequence
        running = torch.arange(len(drive), device=lengths.device).unsqueeze(1) < lengths
        return self(inputs, condition) * running.unsqueeze(-1)

    def _run_packed(
        self,
        constant: Tensor,
        drive: Tensor,
        state: Tensor,
        rows: Tensor | slice,
        sizes: list[int],
        mask: DropoutMask | None,
    ) -> tuple[Tensor]:
        """Predict packed sequences, which are `rows` of the mask: (sum(sizes), n_channels)."""
        mask = None if mask is None else mask.of(rows)
        hidden_dim = state.shape[1]
        # Autocast ignores in-place products. All tensors have been cast to the right type before.
        with torch.autocast(constant.device.type, enabled=False):
            first, *later = self._layers(constant.dtype)
            if not torch.is_grad_enabled():  # no row depends on its place then
                first = first.aligned(reads_states=False)
                later = [layer.aligned(reads_states=True) for layer in later]
                state = align(state, -1)
            inputs = project_repeated(constant, drive, first.input, first.input_bias, sizes, mask)
            states = run_gru(inputs, state, first.state, first.state_bias, sizes)
            for layer in later:
                inputs = map_table(states, layer.input, layer.input_bias)
                zeros = torch.zeros_like(state)
                states = run_gru(inputs, zeros, layer.state, layer.state_bias, sizes)
        return (self.observation(states[:, :hidden_dim]),)

    def _layers(self, dtype: torch.dtype) -> list[_Layer]:
        """Return the weights of each layer, cast to `dtype`."""
        return [
            _Layer(*(getattr(self.gru, f"{name}_l{layer}").to(dtype) for name in _NAMES))
            for layer in range(self.gru.num_layers)
        ]
