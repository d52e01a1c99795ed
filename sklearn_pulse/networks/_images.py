"""Windows as images of one line, which is how oneDNN convolves steps that lie side by side."""

from __future__ import annotations

import torch
from torch import Tensor


def as_images(steps: Tensor) -> Tensor:
    """View windows (n_timesteps, batch, n_channels) as images (batch, n_channels, 1, n_timesteps).

    Examples
    --------
    >>> as_images(torch.zeros(5, 2, 3)).shape
    torch.Size([2, 3, 1, 5])
    """
    return steps.permute(1, 2, 0).unsqueeze(2)


def as_steps(images: Tensor) -> Tensor:
    """Undo :func:`as_images`.

    Examples
    --------
    >>> as_steps(torch.zeros(2, 3, 1, 5)).shape
    torch.Size([5, 2, 3])
    """
    return images.squeeze(2).permute(2, 0, 1)


def as_taps(weight: Tensor) -> Tensor:
    """Lay out the taps of a convolution of windows for one of images.

    The taps (out_channels, in_channels, n_taps) get an axis before the last, and lie in memory with
    the channels side by side.

    Examples
    --------
    >>> as_taps(torch.zeros(4, 2, 3)).stride()
    (6, 1, 6, 2)
    """
    return weight.unsqueeze(2).contiguous(memory_format=torch.channels_last)
