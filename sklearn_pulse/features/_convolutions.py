"""Convolutions of MiniRocket, and what is pooled from their outputs."""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._products import multiply
from ._stretch import longest_stretches

KERNEL_LENGTH = 9
# Weights of a kernel are 2 at three places and -1 elsewhere: all choices of three places.
KERNELS = np.full((math.comb(KERNEL_LENGTH, 3), KERNEL_LENGTH), -1.0, dtype=np.float32)
for _row, _places in zip(KERNELS, combinations(range(KERNEL_LENGTH), 3), strict=True):
    _row[list(_places)] = 2.0
N_KERNELS = len(KERNELS)
_MAX_DILATIONS = 32
_MOST_COMPARED = 2**24  # outputs that a GPU compares with biases at once, 64 MiB
_MOST_TAPS = 2**21  # values that are multiplied at once, 8 MiB
POOLINGS = ("ppv", "mean", "position", "stretch")


class ConvolutionBank(NamedTuple):
    """Convolutions of one representation of a window: a dilation has all kernels.

    Parameters
    ----------
    dilations : ndarray of int of shape (n_dilations,)
        Steps between the places of a kernel.
    biases : list of ndarray of float32, of shape (84, n_biases)
        Thresholds of the outputs of each kernel; one array per dilation.
    channels : list of ndarray of bool, of shape (84, n_channels)
        Channels that each kernel adds up; one array per dilation.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.features import ConvolutionBank
    >>> bank = ConvolutionBank(
    ...     np.array([1, 2]), [np.zeros((84, 3), np.float32)] * 2, [np.ones((84, 2), bool)] * 2
    ... )
    >>> sum(biases.size for biases in bank.biases)  # features of a window
    504
    """

    dilations: NDArray[np.int32]
    biases: list[NDArray[np.float32]]
    channels: list[NDArray[np.bool_]]


def spread_dilations(n_timesteps: int, n_per_kernel: int) -> tuple[NDArray[np.int32], list[int]]:
    """Spread dilations over powers of two, up to a kernel as long as the window.

    Parameters
    ----------
    n_timesteps : int
        Number of time steps of a window.
    n_per_kernel : int
        Number of biases of a kernel at all dilations together.

    Returns
    -------
    ndarray of int32, of shape (n_dilations,)
        Distinct dilations in increasing order.
    n_biases : list of int
        Number of biases at each dilation.

    Examples
    --------
    >>> spread_dilations(33, 10)
    (array([1, 2, 3, 4], dtype=int32), [5, 3, 1, 1])
    """
    n_levels = min(n_per_kernel, _MAX_DILATIONS)
    largest = math.log2(max(n_timesteps - 1, KERNEL_LENGTH - 1) / (KERNEL_LENGTH - 1))
    levels = np.logspace(0, largest, n_levels, base=2).astype(np.int32)
    dilations, counts = np.unique(levels, return_counts=True)
    n_biases = (counts * (n_per_kernel / n_levels)).astype(int)
    n_left = n_per_kernel - n_biases.sum()  # fewer than there are dilations
    n_biases[:n_left] += 1
    return dilations, n_biases.tolist()


def is_padded(level: int, n_timesteps: int) -> NDArray[np.bool_]:
    """Tell which kernels of a dilation count outputs whose places reach beyond the window.

    Every other kernel does, and all kernels where the window is shorter than a kernel.
    """
    if n_timesteps < KERNEL_LENGTH:
        return np.ones(N_KERNELS, dtype=bool)
    return (np.arange(N_KERNELS) + level) % 2 == 0


def convolve(x: Tensor, weight: Tensor, dilation: int, *, padded: bool = True) -> Tensor:
    """Convolve windows.

    Parameters
    ----------
    x : Tensor of shape (n, n_channels, n_timesteps)
        Windows.
    weight : Tensor of shape (n_kernels, n_channels * 9)
        Weights of each kernel.
    dilation : int
        Steps between the places of a kernel.
    padded : bool, default=True
        Whether every time step has an output, with zeros outside the window; otherwise only time
        steps whose places lie in the window have an output.

    Returns
    -------
    Tensor of shape (n_kernels, n, n_timesteps) or (n_kernels, n, n_timesteps - 8 * dilation)
        Outputs, centred on their time step.

    Examples
    --------
    >>> import torch
    >>> x = torch.arange(5.0).view(1, 1, 5)
    >>> fourth = torch.eye(9)[[3]]  # the value a dilation before
    >>> convolve(x, fourth, 2)
    tensor([[[0., 0., 0., 1., 2.]]])
    """
    taps = _taps(x, dilation, padded)
    # One product of matrices for all windows is much faster than one per window.
    columns = taps.permute(1, 2, 0, 3).reshape(weight.shape[1], -1)
    return multiply(weight, columns).view(len(weight), len(x), taps.shape[-1])


def convolve_each(x: Tensor, weight: Tensor, dilation: int) -> Tensor:
    """Convolve each window by its own kernel, with zeros outside the window.

    Parameters
    ----------
    x : Tensor of shape (n_kernels, n_channels, n_timesteps)
        Windows.
    weight : Tensor of shape (n_kernels, n_channels * 9)
        Weights of each kernel.
    dilation : int
        Steps between the places of a kernel.

    Returns
    -------
    Tensor of shape (n_kernels, n_timesteps)
        Outputs, centred on their time step.

    Examples
    --------
    >>> import torch
    >>> x = torch.arange(6.0).view(2, 1, 3)
    >>> convolve_each(x, torch.eye(9)[[4, 5]], 1)  # the value itself, and the next one
    tensor([[0., 1., 2.],
            [4., 5., 0.]])
    """
    at_once = max(1, _MOST_TAPS // (KERNEL_LENGTH * x[0].numel()))
    pieces = zip(x.split(at_once), weight.unsqueeze(1).split(at_once), strict=True)
    outputs = [own @ _taps(part, dilation, padded=True).flatten(1, 2) for part, own in pieces]
    return torch.cat(outputs).squeeze(1)


def _taps(x: Tensor, dilation: int, padded: bool) -> Tensor:
    """Return what each output reads, (n, n_channels, 9, n_outputs)."""
    if padded:
        reach = dilation * (KERNEL_LENGTH // 2)
        x = torch.nn.functional.pad(x, (reach, reach))
    return x.unfold(2, x.shape[2] - dilation * (KERNEL_LENGTH - 1), dilation)


def first_windows(outputs: Tensor, n: int) -> Tensor:
    """Return the outputs of the first `n` windows, side by side in memory.

    The windows lie on the last axis but one. Nothing is copied if there are `n` in all.

    Examples
    --------
    >>> import torch
    >>> first_windows(torch.zeros(84, 97, 128), 1).shape
    torch.Size([84, 1, 128])
    """
    return outputs.narrow(-2, 0, n).contiguous()


def pool_outputs(
    outputs: Tensor, biases: Tensor, counted: Tensor, poolings: tuple[str, ...]
) -> list[Tensor]:
    """Pool the outputs of convolutions over the time steps that count.

    Parameters
    ----------
    outputs : Tensor of shape (n_kernels, n, n_timesteps)
        Outputs; minus infinity at the time steps that do not count.
    biases : Tensor of shape (n_kernels, n_biases)
        Thresholds: an output above its threshold is positive.
    counted : Tensor of bool, of shape (1 or n, n_timesteps)
        Time steps that count.
    poolings : tuple of {"ppv", "mean", "position", "stretch"}
        What is pooled: the share of positive outputs, the mean excess of positive outputs over
        the threshold, the mean place of positive outputs among those that count (a share; -1
        without a positive output), and the longest stretch of positive outputs (a share). All
        are zero where no time step counts.

    Returns
    -------
    list of Tensor of shape (n, n_kernels, n_biases)
        One tensor per pooling.

    Examples
    --------
    >>> import torch
    >>> outputs = torch.tensor([[[3.0, -1.0, 2.0, 1.0]]])
    >>> steps = torch.ones(1, 4, dtype=torch.bool)
    >>> pooled = pool_outputs(outputs, torch.zeros(1, 1), steps, POOLINGS)
    >>> [value.item() for value in pooled]
    [0.75, 2.0, 0.4166666567325592, 0.5]
    """
    n_counted = counted.sum(-1).to(outputs.dtype)
    # (n_biases, n_kernels, n)
    counts = outputs.new_empty(biases.shape[1], *outputs.shape[:2])
    summed = [pooling for pooling in ("mean", "position") if pooling in poolings]
    pooled: dict[str, Tensor] = {pooling: torch.empty_like(counts) for pooling in summed}
    place = (counted.cumsum(-1) - 1).to(outputs.dtype)
    # A comparison that writes floats into memory at hand, and a sum of floats, are several times
    # faster than a count of Booleans. A GPU compares with many biases at once.
    at_once = 1 if outputs.device.type == "cpu" else max(1, _MOST_COMPARED // outputs.numel())
    at_once = min(at_once, len(counts))
    memory = outputs.new_empty(2, at_once, *outputs.shape)
    for first in range(0, len(counts), at_once):
        rows = slice(first, first + at_once)
        thresholds = biases.T[rows, :, None, None]
        positive, work = memory[:, : len(thresholds)]
        torch.gt(outputs, thresholds, out=positive)
        torch.sum(positive, -1, out=counts[rows])
        if "mean" in pooled:
            torch.sub(outputs, thresholds, out=work).relu_()
            torch.sum(work, -1, out=pooled["mean"][rows])
        if "position" in pooled:
            torch.mul(positive, place, out=work)
            torch.sum(work, -1, out=pooled["position"][rows])
    if "stretch" in poolings:
        pooled["stretch"] = longest_stretches(outputs, biases.T, at_once)
    some, all_counted = counts.clamp(min=1.0), n_counted.clamp(min=1.0)
    for pooling, values in pooled.items():
        if pooling != "stretch":
            values /= some
        if pooling != "mean":
            values /= all_counted
        if pooling == "position":
            values.masked_fill_((counts == 0) & (n_counted > 0), -1.0)
    pooled["ppv"] = counts / all_counted
    return [pooled[pooling].permute(2, 1, 0) for pooling in poolings]
