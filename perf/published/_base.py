"""Base class of the literal losses."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from perf.literal import with_plain_products
from sklearn_pulse.objectives import Objective


class Published(nn.Module):
    """Literal loss with sizes, weights and draws of one of our objectives.

    Parameters
    ----------
    objective : Objective
        Objective to copy; the copy draws the random numbers, in the order of ours.
    """

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        # In a tuple, so that its unused modules are no parameters of the literal loss.
        self._held = (with_plain_products(objective),)

    @property
    def objective(self) -> Objective:
        """Copy of the objective."""
        return self._held[0]

    @property
    def generator(self) -> torch.Generator:
        """Generator of the draws."""
        return self.objective.generator(torch.device("cpu"))


def batch_norm(norm: nn.BatchNorm1d, x: Tensor) -> Tensor:
    """Normalise each channel over the batch and time, channels second."""
    return F.batch_norm(
        x, norm.running_mean, norm.running_var, norm.weight, norm.bias, norm.training
    )
