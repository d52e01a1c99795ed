"""Whether a network is being written as a graph, which must hold for every batch and length."""

from __future__ import annotations

import torch


def _never() -> bool:
    return False


# A name and not a function of ours, since torch.compile knows torch's own and traces through it.
# Before torch 2.7 there is none, and nothing is exported.
is_exporting = getattr(torch.compiler, "is_exporting", _never)
