"""A method whose encoder draws noise in training."""

import torch

from sklearn_pulse import PulseTransformer
from sklearn_pulse.objectives import Objective


class Noisy(Objective):
    """An embedding that is noisy in training and passes a fixed map, for any other method."""

    def __init__(self, n_channels, *, width=6, seed=0):
        super().__init__(seed)
        self.encoder = torch.nn.Linear(n_channels, width)
        self.fixed = torch.nn.Linear(width, width).requires_grad_(False)
        self.norm = torch.nn.BatchNorm1d(width)
        self.unused = torch.nn.Linear(3, 3)

    def encode(self, x, observed=None):
        rows = self.norm(self.fixed(self.encoder(x).mean(1)))
        if self.training:
            rows = rows + torch.randn(rows.shape, generator=self.generator(x.device))
        return rows

    def forward(self, x, observed=None):
        return self.encode(x, observed).square().mean() + self.unused.weight.square().sum()


class NoisyTransformer(PulseTransformer):
    """Another method: windows of one length, at least two in a batch."""

    _objective_class = Noisy
    _variable_length = False
    _min_batch_size = 2
    __init__ = PulseTransformer.__init__

    def _objective_params(self):
        return {}

    @property
    def _n_features_out(self):
        return 6
