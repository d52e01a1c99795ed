"""SimMTM: reconstruction of a window from its masked copies and from similar windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from skorch.callbacks import LRScheduler
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingLR

from .._typing import (
    BagPooling,
    Distributed,
    InputLayout,
    PathLike,
    Pooling,
    Precision,
    RandomState,
    Select,
)
from ..base import (
    BaseSSLTransformer,
    Callbacks,
    WindowBatches,
    check_integer,
    check_option,
    check_real,
    complete_docstring,
)
from ..networks import ConvEncoder, SystemEncoder, mask_steps
from ..objectives import Objective
from ..sampling import geometric_mask


@complete_docstring
class MaskedNeighbors(Objective):
    """Loss of SimMTM: contrast of masked copies, and reconstruction from similar windows.

    Each window has a few masked copies. The constraint loss asks that a window and its copies are
    similar to each other, and unlike all others. The reconstruction loss rebuilds a window from the
    encoded steps of all other windows and copies, weighted by their similarity to it. Two learnt
    scales weigh the losses.

    Parameters
    ----------
    n_channels : int
        Number of channels of the windows.
    n_timesteps : int
        Number of time steps of the windows; with ``backbone="dilated"`` they may have any length.
    backbone : {"cnn", "dilated"}, default="cnn"
        The encoder: "cnn" has the strided convolutions of the method's authors, "dilated" is the
        encoder of :class:`~sklearn_pulse.PulseTransformer`.
    encoder_hidden_dim : int, default=32
        Width of the first strided convolution; each further one has twice the width of the one
        before, except the last, which has `embedding_dim`. For the dilated encoder, the width of
        all blocks but the last.
    encoder_depth : int, default=3
        Number of strided convolutions. For the dilated encoder, the number of residual blocks
        before the last block.
    dropout : float, default=0.2
        Dropout probability after the first strided convolution in training; the dilated encoder has
        no dropout.
    projector_hidden_dim : int, default=256
        Width of the first of the projector's two layers.
    projector_dim : int, default=128
        Width of the projector's output, on which similarity is measured.
    n_masks : int, default=3
        Number of masked copies of each window.
    mask_ratio : float, default=0.5
        Fraction of the values that is masked, on average.
    mean_mask_length : float, default=3.0
        Mean length of a masked run, in steps.
    mask_chain : {"channel", "batch"}, default="channel"
        Order of values along which masked runs lie. "channel" follows the steps of one channel of
        one copy. "batch" follows all values of a batch: step after step and, within a step, channel
        after channel, as in the code of the method's authors.
    temperature : float, default=0.2
        Divisor of the cosine similarities.
    reconstruct : {"originals", "inputs"}, default="originals"
        Target of the reconstruction: the windows, or all inputs of the encoder, with the masked
        copies as masked. "inputs" is the classification code of the method's authors.

    Examples
    --------
    >>> import torch
    >>> objective = MaskedNeighbors(2, 32, embedding_dim=8)
    >>> x = torch.randn(4, 32, 2)
    >>> objective(x=x).shape, objective.encode(x).shape
    (torch.Size([]), torch.Size([4, 8]))
    """

    indivisible = "its batch normalisation needs the statistics of the whole batch"
    evaluates_in_validation = True
    replayed = "whole"
    encoder: ConvEncoder | SystemEncoder

    def __init__(
        self,
        n_channels: int,
        n_timesteps: int,
        *,
        backbone: Literal["cnn", "dilated"] = "cnn",
        embedding_dim: int = 128,
        encoder_hidden_dim: int = 32,
        encoder_depth: int = 3,
        pooling: Pooling = "max",
        dropout: float = 0.2,
        projector_hidden_dim: int = 256,
        projector_dim: int = 128,
        n_masks: int = 3,
        mask_ratio: float = 0.5,
        mean_mask_length: float = 3.0,
        mask_chain: Literal["channel", "batch"] = "channel",
        temperature: float = 0.2,
        reconstruct: Literal["originals", "inputs"] = "originals",
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        self.dropout = dropout
        self.n_masks = n_masks
        self.mask_ratio = mask_ratio
        self.mean_mask_length = mean_mask_length
        self.mask_chain = mask_chain
        self.temperature = temperature
        self.reconstruct = reconstruct
        sizes = encoder_hidden_dim, embedding_dim, encoder_depth, pooling
        if backbone == "cnn":
            self.encoder = ConvEncoder(n_channels, *sizes)
            projected = embedding_dim * self.encoder.n_steps(n_timesteps)
            self.head = nn.Linear(projected, n_channels * n_timesteps)
        else:
            # The head reads single steps: on all steps it would hold n_timesteps squared weights.
            self.encoder = SystemEncoder(n_channels, *sizes)
            projected = embedding_dim
            self.head = nn.Linear(embedding_dim, n_channels)
        self.projector = nn.Sequential(
            nn.Linear(projected, projector_hidden_dim),
            nn.BatchNorm1d(projector_hidden_dim),
            nn.ReLU(),
            nn.Linear(projector_hidden_dim, projector_dim),
        )
        self.loss_scale = nn.Parameter(torch.ones(2))

    def forward(
        self, x: Tensor, observed: Tensor | None = None, masked: Tensor | None = None
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            True where a step was observed; None means that every step was observed.
        masked : Tensor of bool, of shape (n_masks * batch, n_timesteps, n_channels), or None
            True for the masked values of the copies: a first copy of each window, then a second
            copy of each, and so on. None draws them.

        Returns
        -------
        Tensor, scalar
            Sum of the constraint and the reconstruction loss, each divided by ``2 * scale ** 2``
            and with ``log(1 + scale ** 2)`` added.
        """
        if masked is None:
            masked = self.draw_masks(x)
        copies = x.repeat(self.n_masks, 1, 1).masked_fill(masked, 0.0)
        views = torch.cat([x, copies])
        seen = None if observed is None else observed.repeat(1 + self.n_masks, 1)
        steps, projected = self._encode_views(views, seen)
        shares = self._log_shares(projected)
        losses = torch.stack(
            [
                self._constraint(shares, len(x)),
                self._reconstruction(shares, steps, views, seen, len(x)),
            ]
        )
        variances = self.loss_scale.square()
        return (losses / (2.0 * variances) + torch.log1p(variances)).sum()

    def draw_masks(self, x: Tensor) -> Tensor:
        """Draw the masked values of the copies of windows, as `forward` takes them.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows.

        Returns
        -------
        Tensor of bool, of shape (n_masks * batch, n_timesteps, n_channels)
            True for the masked values.
        """
        shape = self.n_masks * len(x), *x.shape[1:]
        chains = (1, shape[0] * shape[1] * shape[2], 1) if self.mask_chain == "batch" else shape
        masks = geometric_mask(
            chains, self.mask_ratio, self.mean_mask_length, self.generator(x.device)
        )
        return masks.view(shape)

    def _encode_views(self, views: Tensor, seen: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the encoded steps of all views, zero where missing, and their projections."""
        if isinstance(self.encoder, ConvEncoder):
            steps, _ = self.encoder.encode_steps(
                views, seen, self._drop(self.dropout, views.device)
            )
            return steps, self.projector(steps.flatten(1))
        steps = self.encoder.encode_steps(views, seen)
        return mask_steps(steps, seen), self.projector(self.encoder.pool(steps, seen))

    def _log_shares(self, projected: Tensor) -> Tensor:
        """Return the logarithm of each view's share in a row's similarity to all other views."""
        # Divided by a small temperature, a bfloat16 cosine loses all its digits.
        with torch.autocast(projected.device.type, enabled=False):
            rows = F.normalize(projected.float(), dim=1)
            logits = rows @ rows.T / self.temperature
            itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
            return logits.masked_fill(itself, -torch.inf).log_softmax(1)

    def _constraint(self, shares: Tensor, batch: int) -> Tensor:
        """Return the loss of telling a window's own views from those of other windows."""
        window = torch.arange(len(shares), device=shares.device) % batch
        positive = window.unsqueeze(1) == window
        positive.fill_diagonal_(False)
        return -shares.masked_fill(~positive, 0.0).sum(1).mean()

    def _reconstruction(
        self, shares: Tensor, steps: Tensor, views: Tensor, seen: Tensor | None, batch: int
    ) -> Tensor:
        """Return the error of windows (or all views) rebuilt from the other views' steps."""
        n_rows = batch if self.reconstruct == "originals" else len(views)
        pooled = shares[:n_rows].exp() @ steps.flatten(1).to(shares.dtype)
        if not isinstance(self.encoder, ConvEncoder):
            pooled = pooled.unflatten(1, steps.shape[1:])
        target = views[:n_rows]
        errors = self.head(pooled).view_as(target).float() - target
        if seen is None:
            return errors.square().mean()
        # Masked before they are squared: the square of a large value in a missing step overflows.
        n_values = seen[:n_rows].sum() * views.shape[2]
        return mask_steps(errors, seen[:n_rows]).square().sum() / n_values


class SimMTMTransformer(BaseSSLTransformer):
    """Embed windows by rebuilding each from its masked copies and from similar windows (SimMTM).

    Windows are encoded together with masked copies, in which runs of steps are masked in each
    channel by itself. The similarity of two windows or copies is the cosine of their projections.
    It decides how much the encoded steps of the first count when the second is rebuilt. A
    constraint pulls the copies of a window together and away from those of other windows.

    Parameters
    ----------
    backbone : {"cnn", "dilated"}, default="cnn"
        The encoder: "cnn" has the strided convolutions of the method's authors, "dilated" is the
        encoder of :class:`~sklearn_pulse.PulseTransformer`,
        which goes with ``embedding_dim=320, encoder_hidden_dim=64, encoder_depth=10``.
    encoder_hidden_dim : int, default=32
        Width of the first strided convolution; each further one has twice the width of the one
        before, except the last, which has `embedding_dim`. For the dilated encoder, the width of
        all blocks but the last.
    encoder_depth : int, default=3
        Number of strided convolutions. For the dilated encoder, the number of residual blocks
        before the last block.
    dropout : float, default=0.2
        Dropout probability after the first strided convolution in training; the dilated encoder has
        no dropout.
    projector_hidden_dim : int, default=256
        Width of the first of the projector's two layers.
    projector_dim : int, default=128
        Width of the projector's output, on which similarity is measured.
    n_masks : int, default=3
        Number of masked copies of each window.
    mask_ratio : float, default=0.5
        Fraction of the values that is masked, on average.
    mean_mask_length : float, default=3.0
        Mean length of a masked run, in steps.
    mask_chain : {"channel", "batch"}, default="channel"
        Order of values along which masked runs lie. "channel" follows the steps of one channel of
        one copy. "batch" follows all values of a batch: step after step and, within a step, channel
        after channel, as in the code of the method's authors.
    temperature : float, default=0.2
        Divisor of the cosine similarities.
    reconstruct : {"originals", "inputs"}, default="originals"
        Target of the reconstruction: the windows, or all inputs of the encoder, with the masked
        copies as masked. "inputs" is the classification code of the method's authors.
    schedule : {"one_cycle", "cosine", "constant"}, default="one_cycle"
        Schedule of the learning rate. "one_cycle" rises to `lr` and falls again, with one step per
        batch. "cosine" falls from `lr` to zero along half a cosine, with one step per epoch.
        "constant" keeps the learning rate at `lr`.
    batch_size : int, default=128
        Number of windows per training step; at least 2. A larger batch has more windows to rebuild
        from. An epoch leaves out the windows that do not fill a batch.
    validation_fraction : float, default=0.15
        Fraction of the samples that is held out to select the weights, or of the groups if `fit` is
        given `groups`. 0 holds out none; without validation, or with a single window to validate
        on, the last weights are kept.
    deterministic_validation : bool, default=True
        Whether every validation draws the same masks, so that losses of different epochs can be
        compared. False draws anew. Validation never applies dropout, and leaves the statistics of
        the batch normalisation as they are.

    Notes
    -----
    Windows at `transform` may have another length than at `fit`. With ``backbone="cnn"``, windows
    to validate on must have the length of those at `fit`, since its head rebuilds all steps at
    once. It reads steps in threes and pairs, counted from the first step. So a window with missing
    steps in front may have another embedding than the window without them; missing steps behind
    change nothing. ``backbone="dilated"`` has no such difference.

    The paper compares with SimMTM, but the published code holds no SimMTM. ``presets.get("simmtm",
    dataset, official=True)`` has the settings of the classification code of the method's authors.

    References
    ----------
    Dong et al., "SimMTM: A Simple Pre-Training Framework for Masked Time-Series Modeling",
    NeurIPS 2023; PULSE paper, Appendix E.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import SimMTMTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))  # 20 windows, 64 steps, 3 channels
    >>> simmtm = SimMTMTransformer(embedding_dim=16, max_epochs=2, random_state=0)
    >>> simmtm.fit_transform(X).shape
    (20, 16)
    """

    _objective_class = MaskedNeighbors
    _objective_names = (
        "backbone",
        "embedding_dim",
        "encoder_hidden_dim",
        "encoder_depth",
        "pooling",
        "dropout",
        "projector_hidden_dim",
        "projector_dim",
        "n_masks",
        "mask_ratio",
        "mean_mask_length",
        "mask_chain",
        "temperature",
        "reconstruct",
    )
    _one_step = "a masked step leaves no other step to see, so there is little to learn"
    _min_batch_size = 2
    drop_last = True  # as in the code of its authors
    _schedules = ("one_cycle", "cosine", "constant")

    def __init__(
        self,
        *,
        backbone: Literal["cnn", "dilated"] = "cnn",
        embedding_dim: int = 128,
        encoder_hidden_dim: int = 32,
        encoder_depth: int = 3,
        pooling: Pooling = "max",
        dropout: float = 0.2,
        projector_hidden_dim: int = 256,
        projector_dim: int = 128,
        n_masks: int = 3,
        mask_ratio: float = 0.5,
        mean_mask_length: float = 3.0,
        mask_chain: Literal["channel", "batch"] = "channel",
        temperature: float = 0.2,
        reconstruct: Literal["originals", "inputs"] = "originals",
        max_epochs: int = 100,
        lr: float = 1e-3,
        weight_decay: float = 1e-5,
        schedule: Literal["one_cycle", "cosine", "constant"] = "one_cycle",
        betas: tuple[float, float] | None = None,
        batch_size: int = 128,
        gradient_clip_value: float | None = 5.0,
        validation_fraction: float = 0.15,
        validation_every: int = 2,
        deterministic_validation: bool = True,
        select: Select = "trailing_mean",
        bag_pooling: BagPooling = "mean",
        checkpoint_dir: PathLike | None = None,
        precision: Precision = "float32",
        compile: bool = False,
        device: str | torch.device = "auto",
        num_threads: int | None = None,
        distributed: Distributed = False,
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
        callbacks: list[Any] | None = None,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.backbone = backbone
        self.embedding_dim = embedding_dim
        self.encoder_hidden_dim = encoder_hidden_dim
        self.encoder_depth = encoder_depth
        self.pooling = pooling
        self.dropout = dropout
        self.projector_hidden_dim = projector_hidden_dim
        self.projector_dim = projector_dim
        self.n_masks = n_masks
        self.mask_ratio = mask_ratio
        self.mean_mask_length = mean_mask_length
        self.mask_chain = mask_chain
        self.temperature = temperature
        self.reconstruct = reconstruct
        self.max_epochs = max_epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.betas = betas
        self.batch_size = batch_size
        self.gradient_clip_value = gradient_clip_value
        self.validation_fraction = validation_fraction
        self.validation_every = validation_every
        self.deterministic_validation = deterministic_validation
        self.select = select
        self.bag_pooling = bag_pooling
        self.checkpoint_dir = checkpoint_dir
        self.precision = precision
        self.compile = compile
        self.device = device
        self.num_threads = num_threads
        self.distributed = distributed
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _objective_params(self) -> dict[str, Any]:
        return super()._objective_params() | {"n_timesteps": self.n_timesteps_in_}

    def _check_params(self) -> None:
        super()._check_params()
        check_option("backbone", self.backbone, ("cnn", "dilated"))
        for name in ("projector_hidden_dim", "projector_dim", "n_masks"):
            check_integer(name, getattr(self, name), 1)
        check_real("dropout", self.dropout, 0.0, 1.0)
        check_real("mask_ratio", self.mask_ratio, 0.0, 1.0, open_minimum=True)
        check_real("mean_mask_length", self.mean_mask_length, 1.0)
        # Divided in this way, the largest ratio, such as 0.9 for 9 steps, is not lost to rounding.
        if self.mask_ratio > self.mean_mask_length / (1.0 + self.mean_mask_length):
            raise ValueError(
                f"mask_ratio={self.mask_ratio} leaves less than one step between two masked runs of"
                f" mean_mask_length={self.mean_mask_length}: lower mask_ratio, or raise"
                " mean_mask_length."
            )
        check_option("mask_chain", self.mask_chain, ("channel", "batch"))
        check_real("temperature", self.temperature, open_minimum=True)
        check_option("reconstruct", self.reconstruct, ("originals", "inputs"))

    def _check_validation_length(self, n_timesteps: int) -> None:
        if self.backbone == "cnn" and n_timesteps != self.n_timesteps_in_:
            raise ValueError(
                f"X_val has windows of {n_timesteps} time steps, X of {self.n_timesteps_in_}, and"
                " backbone='cnn' rebuilds windows of one length: cut both alike, or set"
                " backbone='dilated'."
            )

    def _schedule(self, train: WindowBatches) -> Callbacks:
        if self.schedule != "cosine":
            return super()._schedule(train)
        return [("lr_scheduler", LRScheduler(CosineAnnealingLR, T_max=int(self.max_epochs)))]
