"""Gradients that are added up over the processes of a training."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from .._share import Share


class SharedGradients:
    """An objective whose gradient is that of the whole batch, in every process.

    Parameters
    ----------
    module : torch.nn.Module
        The objective. It computes the part of the loss that belongs to its share.
    share : Share
        Place of this process among the others.
    """

    def __init__(self, module: nn.Module, share: Share) -> None:
        self.module = module
        self.share = share
        self._parallel: DistributedDataParallel | None = None
        self._followed: list[bool] = []

    def __call__(self, **batch: Tensor) -> Tensor:
        """Return a loss to call `backward` on: this process's part, times the number of processes.

        The factor makes up for the mean that DistributedDataParallel takes of the gradients.
        """
        return self._synchronised()(**batch) * self.share.size

    def _synchronised(self) -> DistributedDataParallel:
        """Return the wrapped module; it is wrapped again when callbacks freeze or release weights.

        A wrapper follows the weights that are trained when it is made.
        """
        trained = [parameter.requires_grad for parameter in self.module.parameters()]
        if self._parallel is None or trained != self._followed:
            self._parallel = None  # which removes its hooks before the next wrapper adds its own
            self._parallel = DistributedDataParallel(
                _Forwarding(self.module), find_unused_parameters=True
            )
            self._followed = trained
        return self._parallel


class _Forwarding(nn.Module):
    """A module with a weight that is never used.

    Weights may be without a gradient in some processes, or in all. torch looks for them, and writes
    a warning to the standard error of each process when it finds none.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        self.unused = nn.Parameter(next(module.parameters()).new_zeros(1))

    def forward(self, **batch: Tensor) -> Tensor:
        return self.module(**batch)
