"""Whether a network is being written as a graph, which must hold for every batch and length."""

from __future__ import annotations

import torch

# Torch's own function, since torch.compile knows it and traces through it. Torch before 2.7 has no
# such function, and exports nothing here.
is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)
