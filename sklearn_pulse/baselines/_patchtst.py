"""PatchTST: reconstruction of hidden patches of each channel from the other patches."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

import torch
from torch import Tensor, nn

from .._typing import (
    BagPooling,
    Distributed,
    InputLayout,
    PathLike,
    Precision,
    RandomState,
    Schedule,
    Select,
)
from ..base import (
    BaseSSLTransformer,
    check_heads,
    check_integer,
    check_option,
    check_real,
    check_steps_or_fraction,
    complete_docstring,
)
from ..networks import PatchEncoder
from ..networks._patches import standardize
from ..objectives import Objective
from ..sampling import whole_steps

_INITIAL_STD = 0.02


def draw_hidden(
    shape: tuple[int, int, int],
    mask_ratio: float,
    generator: torch.Generator,
    visible: Tensor | None = None,
) -> Tensor:
    """Draw the patches to hide: for each channel all but ``n_patches * (1 - mask_ratio)``.

    The number of patches that are left is rounded down.

    Parameters
    ----------
    shape : tuple of int
        ``(batch, n_channels, n_patches)``.
    mask_ratio : float
        Fraction of the patches to hide.
    generator : torch.Generator
        Source of the draws.
    visible : Tensor of bool, of shape (batch, n_patches), or None, default=None
        Patches that may be hidden and that are counted; None means all patches.

    Returns
    -------
    Tensor of bool, of shape `shape`
        True for the hidden patches.

    Examples
    --------
    >>> import torch
    >>> hidden = draw_hidden((2, 3, 20), 0.4, torch.Generator().manual_seed(0))
    >>> hidden.sum(-1).unique()
    tensor([8])
    """
    draws = torch.rand(shape, generator=generator, device=generator.device)
    if visible is None:
        return draws.argsort(-1).argsort(-1) >= n_shown(shape[2], mask_ratio)
    shown = [n_shown(n, mask_ratio) for n in range(shape[2] + 1)]
    n_kept = torch.tensor(shown, device=generator.device)[visible.sum(-1)].view(-1, 1, 1)
    rank = draws.masked_fill(~visible.unsqueeze(1), 2.0).argsort(-1).argsort(-1)
    return (rank >= n_kept) & visible.unsqueeze(1)


def n_shown(n_patches: int, mask_ratio: float) -> int:
    """Return the number of patches that are not hidden.

    It is ``n_patches * (1 - mask_ratio)``, rounded down.

    Examples
    --------
    >>> n_shown(20, 0.4)
    12
    """
    return whole_steps(n_patches * (1.0 - mask_ratio))


@complete_docstring
class PatchReconstruction(Objective):
    """Mean squared error of the hidden patches, in standardised units (paper, Appendix C).

    Parameters
    ----------
    n_channels : int
        Number of channels of the windows.
    n_timesteps : int
        Number of time steps of the windows.
    embedding_dim : int, default=64
        Width of the embedding of each channel.
    encoder_hidden_dim : int, default=512
        Width of the feed-forward layers.
    encoder_depth : int, default=3
        Number of transformer blocks.
    dropout : float, default=0.0
        Dropout probability of the embedded patches and of each block's branches in training.
    mask_ratio : float, default=0.4
        Fraction of the patches that is hidden.
    loss_reduction : {"mean", "published"}, default="mean"
        "published" divides the mean loss by the batch size once more, as the published code does.
    **encoder
        Other parameters of :class:`~sklearn_pulse.networks.PatchEncoder`.

    Examples
    --------
    >>> import torch
    >>> objective = PatchReconstruction(2, 32, embedding_dim=8, patch_length=4)
    >>> x = torch.randn(4, 32, 2)
    >>> objective(x=x).shape, objective.encode(x).shape
    (torch.Size([]), torch.Size([4, 16]))
    """

    indivisible = "its batch normalisation needs the statistics of the whole batch"
    replayed = "whole"
    encoder: PatchEncoder

    def __init__(
        self,
        n_channels: int,
        n_timesteps: int,
        *,
        embedding_dim: int = 64,
        encoder_hidden_dim: int = 512,
        encoder_depth: int = 3,
        dropout: float = 0.0,
        mask_ratio: float = 0.4,
        loss_reduction: Literal["mean", "published"] = "mean",
        seed: int = 0,
        **encoder: Any,
    ) -> None:
        super().__init__(seed)
        self.dropout = dropout
        self.mask_ratio = mask_ratio
        self.loss_reduction = loss_reduction
        sizes = embedding_dim, encoder_hidden_dim, encoder_depth
        self.encoder = PatchEncoder(n_channels, n_timesteps, *sizes, **encoder)
        self.head = nn.Linear(self.encoder.embed.out_features, self.encoder.patch_length)
        self.apply(_initialize)
        nn.init.normal_(self.encoder.cls_token, std=_INITIAL_STD)

    def forward(
        self, x: Tensor, observed: Tensor | None = None, hidden: Tensor | None = None
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            True where a step was observed; None means that every step was observed.
        hidden : Tensor of bool, of shape (batch, n_channels, n_patches), or None, default=None
            True for the patches to hide; None draws them.

        Returns
        -------
        Tensor, scalar
            Mean over the hidden patches of the mean squared error over their observed steps.
        """
        encoder = self.encoder
        target = encoder.cut(standardize(x, observed))
        visible = None if observed is None else encoder.visible(observed)
        n_most = None
        if hidden is None:
            shape = len(x), x.shape[2], encoder.n_patches
            hidden = draw_hidden(shape, self.mask_ratio, self.generator(x.device), visible)
            if visible is None:  # known without a look at the device
                n_most = encoder.n_patches - n_shown(encoder.n_patches, self.mask_ratio)
        if n_most is None:
            n_most = int(hidden.sum(-1).max())
        shown = target.masked_fill(hidden.unsqueeze(-1), 0.0)
        # Hidden patches first: only these are reconstructed.
        order = hidden.byte().sort(dim=-1, descending=True, stable=True).indices
        needed = order[..., : max(1, n_most)]
        drop = self._drop(self.dropout, x.device)
        tokens = encoder.encode_patches(shown, visible, drop, needed)
        hidden, steps = hidden.gather(2, needed), needed.unsqueeze(-1)
        target = target.gather(2, steps.expand(-1, -1, -1, target.shape[3]))
        errors = (self.head(tokens) - target).square()
        if observed is None:
            errors = errors.mean(-1)
        else:
            scored = encoder.cut(observed.unsqueeze(-1)).expand(-1, x.shape[2], -1, -1)
            scored = scored.gather(2, steps.expand_as(target))
            errors = (errors * scored).sum(-1) / scored.sum(-1).clamp(min=1)
        loss = (errors * hidden).sum() / hidden.sum().clamp(min=1)
        return loss / len(x) if self.loss_reduction == "published" else loss


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=_INITIAL_STD)
        nn.init.zeros_(module.bias)


class PatchTSTTransformer(BaseSSLTransformer):
    """Embed windows by a transformer that reconstructs hidden patches (PatchTST).

    Every channel is standardised, cut into patches and read by the same transformer. Some patches
    are set to zero and must be reconstructed from the others. Windows at `transform` must have the
    length of those at `fit`.

    Parameters
    ----------
    embedding_dim : int, default=64
        Width of the embedding of each channel, a multiple of `n_heads`. The embedding of a window
        joins those of its channels and has ``embedding_dim * n_channels`` values.
    encoder_hidden_dim : int, default=512
        Width of the transformer's feed-forward layers.
    encoder_depth : int, default=3
        Number of transformer blocks.
    activation : {"gelu", "relu"}, default="gelu"
        Activation function of the feed-forward layers.
    dropout : float, default=0.0
        Dropout probability of the embedded patches and of each block's branches in training.
    pooling : {"cls", "mean", "max"}, default="cls"
        How the tokens of a channel become its embedding: "cls" takes the output of a learnt token
        that goes before the patches, "mean" and "max" pool over the patches.
    patch_length : int or float, default=12
        Length of a patch: a number of time steps (int) or a fraction of the window (float). It is
        at most half the window.
    patch_stride : int or float, default=0.5
        Steps from the start of a patch to that of the next (int), or their fraction of the patch
        (float). With 1.0 patches do not overlap, as in the code of the method's authors; with 1 a
        patch starts at every step, as in the published code. Below 1.0 a part of each hidden patch
        stays visible in its neighbours. Where the patch is a fraction, or was shortened, a stride
        in steps is at most the patch.
    mask_ratio : float, default=0.4
        Fraction of the patches that is hidden, drawn for each channel by itself.
    gradient_clip_value : float or None, default=None
        Largest absolute value of each element of the gradient; larger ones are clipped. None does
        not clip, as in the published code.
    deterministic_validation : bool, default=True
        Whether every validation hides the same patches, normalises by running statistics and
        applies no dropout; False is the published behaviour.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The fitted encoder, from windows of shape (batch, n_timesteps, n_channels) to embeddings of
        shape (batch, embedding_dim * n_channels).

    Notes
    -----
    The published runs leave the learning rate at a 25th of the given one, with ``betas=(0.95,
    0.999)``, and start a patch at every step: ``presets.get("patchtst", "har", published=True)``.
    The method's authors use ``patch_stride=1.0, n_heads=16, activation="relu", dropout=0.2,
    embedding_dim=128``.

    References
    ----------
    Nie et al., "A Time Series is Worth 64 Words", ICLR 2023; PULSE paper, Appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import PatchTSTTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))  # 20 windows, 64 steps, 3 channels
    >>> patchtst = PatchTSTTransformer(embedding_dim=8, max_epochs=2, random_state=0)
    >>> patchtst.fit_transform(X).shape
    (20, 24)
    """

    _objective_class = PatchReconstruction
    _objective_names = (
        "embedding_dim",
        "encoder_hidden_dim",
        "encoder_depth",
        "n_heads",
        "activation",
        "dropout",
        "pooling",
        "patch_length",
        "patch_stride",
        "mask_ratio",
        "loss_reduction",
    )
    _one_step = (
        "they are zero once they are standardised, so there is nothing to learn and every embedding"
        " is the same"
    )
    _variable_length = False
    _reads_scale = False  # each window is standardised
    _poolings = ("cls", "mean", "max")

    def __init__(
        self,
        *,
        embedding_dim: int = 64,
        encoder_hidden_dim: int = 512,
        encoder_depth: int = 3,
        n_heads: int = 4,
        activation: Literal["gelu", "relu"] = "gelu",
        dropout: float = 0.0,
        pooling: Literal["cls", "mean", "max"] = "cls",
        patch_length: int | float = 12,
        patch_stride: int | float = 0.5,
        mask_ratio: float = 0.4,
        loss_reduction: Literal["mean", "published"] = "mean",
        schedule: Schedule = "one_cycle",
        betas: tuple[float, float] | None = None,
        max_epochs: int = 100,
        lr: float = 1e-3,
        weight_decay: float = 1e-5,
        batch_size: int = 128,
        gradient_clip_value: float | None = None,
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
        self.embedding_dim = embedding_dim
        self.encoder_hidden_dim = encoder_hidden_dim
        self.encoder_depth = encoder_depth
        self.n_heads = n_heads
        self.activation = activation
        self.dropout = dropout
        self.pooling = pooling
        self.patch_length = patch_length
        self.patch_stride = patch_stride
        self.mask_ratio = mask_ratio
        self.loss_reduction = loss_reduction
        self.schedule = schedule
        self.betas = betas
        self.max_epochs = max_epochs
        self.lr = lr
        self.weight_decay = weight_decay
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
        check_heads(self.embedding_dim, self.n_heads)
        check_option("activation", self.activation, ("gelu", "relu"))
        check_real("dropout", self.dropout, 0.0, 1.0)
        check_steps_or_fraction("patch_length", self.patch_length)
        self._check_stride()
        check_real("mask_ratio", self.mask_ratio, 0.0, 1.0, open_minimum=True, open_maximum=False)
        check_option("loss_reduction", self.loss_reduction, ("mean", "published"))

    def _check_stride(self) -> None:
        stride, length = self.patch_stride, self.patch_length
        if not isinstance(stride, Integral):
            check_real("patch_stride", stride, 0.0, 1.0, open_minimum=True, open_maximum=False)
            return
        check_integer("patch_stride", stride, 1)
        if isinstance(length, Integral) and stride > length:
            raise ValueError(
                f"patch_stride={stride} leaves steps between patches of patch_length={length}: set"
                f" patch_stride={length}, or 1.0 for patches that touch."
            )
