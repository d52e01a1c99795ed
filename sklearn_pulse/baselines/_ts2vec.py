"""TS2Vec: contrast of overlapping crops step by step, at every scale of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from .._parameters import is_auto
from .._typing import (
    BagPooling,
    Distributed,
    InputLayout,
    LayerNorm,
    PathLike,
    Pooling,
    Precision,
    RandomState,
    Schedule,
    SelectOrAverage,
)
from ..base import (
    ContrastiveTransformer,
    WindowBatches,
    check_integer,
    check_option,
    check_real,
    complete_docstring,
)
from ..functional import hierarchical_contrast, keep_mask
from ..networks import mask_steps
from ..objectives import ContrastiveObjective
from ..sampling import finest_float, random_integers, take_steps

_MASK_MODES = ("binomial", "continuous", "none", "last_samples")
_GAPS, _GAP_LENGTH = 5, 0.1  # number and length (fraction of the crop) of hidden gaps


class Crops(NamedTuple):
    """Two overlapping crops, in steps counted from the start of the window.

    The first runs over ``[outer_left, right)`` and the second over ``[left, outer_right)``; they
    share ``[left, right)``. Each window of the batch adds its own offset.
    """

    outer_left: int
    left: int
    right: int
    outer_right: int
    offset: Tensor  # (batch,)


@complete_docstring
class HierarchicalContrast(ContrastiveObjective):
    """Loss of TS2Vec (paper, Appendix C).

    Two overlapping crops of each window are encoded, with random steps hidden after the input
    layer. The representation of each step that both crops hold is contrasted with those of the
    other windows at the same step, and with those of the other steps of the same window, at every
    scale of time.

    Parameters
    ----------
    n_channels : int
        Number of channels of the windows.
    layer_norm : {"embedding", "everywhere", "none"}, default="embedding"
        Where the encoder's layer normalisation acts: in the embedding alone, so it is never trained
        (published code), in the loss too, or nowhere (TS2Vec's own code).
    mask_mode : {"binomial", "continuous", "none", "last_samples"}, default="binomial"
        Steps that are hidden after the encoder's input layer, in training and validation.
        "binomial" hides each step with `mask_probability`, "continuous" five gaps of a tenth of the
        crop each, "none" no step. "last_samples" hides the last two windows of every batch instead
        of steps, as the published code does by an error.
    mask_probability : float, default=0.5
        Probability that a step is hidden under "binomial".
    temporal_unit : int, default=0
        First scale at which the steps of a window are contrasted with each other; a step of this
        scale spans ``2 ** temporal_unit`` steps of the signal.
    instance_weight : float, default=0.5
        Weight of the contrast between windows; the contrast between steps has the weight
        ``1 - instance_weight``.
    **representation
        The encoder, dropout and seed, as in :class:`ContrastiveObjective`.

    Examples
    --------
    >>> import torch
    >>> objective = HierarchicalContrast(2, embedding_dim=8, encoder_hidden_dim=8, encoder_depth=3)
    >>> objective(x=torch.randn(4, 32, 2)).shape
    torch.Size([])
    """

    def __init__(
        self,
        n_channels: int,
        *,
        layer_norm: LayerNorm = "embedding",
        mask_mode: Literal["binomial", "continuous", "none", "last_samples"] = "binomial",
        mask_probability: float = 0.5,
        temporal_unit: int = 0,
        instance_weight: float = 0.5,
        loss_reduction: Literal["mean", "published"] = "mean",
        **representation: Any,
    ) -> None:
        super().__init__(n_channels, layer_norm=layer_norm, **representation)
        self.mask_mode = mask_mode
        self.mask_probability = mask_probability
        self.temporal_unit = temporal_unit
        self.instance_weight = instance_weight
        self.loss_reduction = loss_reduction

    def forward(
        self, x: Tensor, observed: Tensor | None = None, crops: Crops | None = None
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            True where a step was observed; None means that every step was observed.
        crops : Crops or None, default=None
            The crops to take; None draws them.

        Returns
        -------
        Tensor, scalar
            The loss.
        """
        if crops is None:
            crops = self.draw_crops(x)
        n_shared = crops.right - crops.left
        spans = (crops.outer_left, crops.right), (crops.left, crops.outer_right)
        first, second = (self._encode_crop(x, observed, crops.offset, *span) for span in spans)
        shared = None
        if observed is not None:
            shared = take_steps(observed, crops.offset + crops.left, n_shared)
        loss = hierarchical_contrast(
            first[:, first.shape[1] - n_shared :],
            second[:, :n_shared],
            observed=shared,
            instance_weight=self.instance_weight,
            temporal_unit=self.temporal_unit,
        )
        return loss / len(x) if self.loss_reduction == "published" else loss

    def draw_crops(self, x: Tensor) -> Crops:
        """Draw two overlapping crops for the batch, and their position in each window.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows.

        Returns
        -------
        Crops
            Crops that share at least ``2 ** (temporal_unit + 1)`` steps, or the whole window.
        """
        batch, n_timesteps, _ = x.shape
        generator = self.generator(x.device)
        dtype = finest_float(x.device)
        uniform = torch.rand(4, generator=generator, device=x.device, dtype=dtype).tolist()
        shortest = min(2 ** (self.temporal_unit + 1), n_timesteps)
        n_shared = shortest + int(uniform[0] * (n_timesteps - shortest + 1))
        left = int(uniform[1] * (n_timesteps - n_shared + 1))
        right = left + n_shared
        outer_left = int(uniform[2] * (left + 1))
        outer_right = right + int(uniform[3] * (n_timesteps - right + 1))
        bounds = torch.tensor([[-outer_left], [n_timesteps - outer_right]], device=x.device)
        low, high = bounds.expand(-1, batch)
        offset = random_integers(low, high, generator)
        return Crops(outer_left, left, right, outer_right, offset)

    def _encode_crop(
        self, x: Tensor, observed: Tensor | None, offset: Tensor, start: int, stop: int
    ) -> Tensor:
        """Encode every step of a crop, with some steps hidden after the input layer."""
        x = take_steps(x, offset + start, stop - start)
        if observed is not None:
            observed = take_steps(observed, offset + start, stop - start)
        generator = self.generator(x.device)
        hidden = self.encoder.input(mask_steps(x, observed))
        batch, n_timesteps = hidden.shape[:2]
        visible = self.draw_visible(batch, n_timesteps, generator)
        hidden = hidden * visible.unsqueeze(-1)
        return self.represent_steps(hidden, observed, recurring=False)

    def draw_visible(self, batch: int, n_timesteps: int, generator: torch.Generator) -> Tensor:
        """Draw the steps that the blocks of the encoder see.

        Parameters
        ----------
        batch : int
            Number of windows.
        n_timesteps : int
            Number of time steps of a crop.
        generator : torch.Generator
            Source of the draws.

        Returns
        -------
        Tensor of bool, of shape (batch, n_timesteps)
            False where the input layer's output is set to zero.
        """
        device = generator.device
        if self.mask_mode == "none":
            return torch.ones(batch, n_timesteps, dtype=torch.bool, device=device)
        if self.mask_mode == "continuous":
            length = max(1, int(_GAP_LENGTH * n_timesteps))
            n_gaps = max(1, min(_GAPS, n_timesteps // 2))
            low = torch.zeros(batch, n_gaps, 1, dtype=torch.int64, device=device)
            start = random_integers(low, low + n_timesteps - length, generator)
            steps = torch.arange(n_timesteps, device=device)
            return ~((steps >= start) & (steps < start + length)).any(1)
        visible = keep_mask((batch, n_timesteps), self.mask_probability, generator)
        if self.mask_mode == "binomial":
            return visible
        # The released code inverts the bits of an integer mask: its zeros become the index -1
        # and its ones the index -2, of windows in the batch, and those are zeroed whole.
        rows = torch.arange(batch, device=device)
        last = (rows == batch - 1) & ~visible.all()
        before = (rows == batch - 2) & visible.any()
        return ~(last | before).unsqueeze(1).expand(-1, n_timesteps)


class TS2VecTransformer(ContrastiveTransformer):
    """Embed windows so that two crops of a window agree wherever they overlap (TS2Vec).

    Every step that two overlapping crops share must be told from the same step of the other windows
    and from the other steps of its window, at every scale of time. The embedding is pooled over
    time, as PULSE's is.

    Parameters
    ----------
    layer_norm : {"embedding", "everywhere", "none"}, default="embedding"
        Where the encoder's layer normalisation acts: in the embedding alone, so it is never trained
        (published code), in the loss too, or nowhere (TS2Vec's own code).
    mask_mode : {"binomial", "continuous", "none", "last_samples"}, default="binomial"
        Steps that are hidden after the encoder's input layer, in training and validation.
        "binomial" hides each step with `mask_probability`, "continuous" five gaps of a tenth of the
        crop each, "none" no step. "last_samples" hides the last two windows of every batch instead
        of steps, as the published code does by an error.
    mask_probability : float, default=0.5
        Probability that a step is hidden under "binomial".
    temporal_unit : int, default=0
        First scale at which the steps of a window are contrasted with each other; a step of this
        scale spans ``2 ** temporal_unit`` steps of the signal.
    instance_weight : float, default=0.5
        Weight of the contrast between windows; the contrast between steps has the weight
        ``1 - instance_weight``.
    representation_dropout : float, default=0.0
        Dropout probability of the encoder's output in training; 0.1 in TS2Vec's own code.
    max_updates : int, "auto" or None, default=None
        Number of updates of the weights after which training ends, in place of `max_epochs`; the
        last epoch may be cut short. "auto" is the rule of TS2Vec's own code: 200 updates, or 600 if
        the training windows hold more than 100,000 values. None counts epochs.
    drop_last : bool, default=False
        Whether an epoch leaves out the windows that do not fill a batch, as TS2Vec's own code does.
        Fewer windows than `batch_size` form one batch all the same.
    gradient_clip_value : float or None, default=None
        Largest absolute value of each element of the gradient; larger ones are clipped. None does
        not clip, as in the published code.

    References
    ----------
    Yue, Z. et al. (2022). TS2Vec: towards universal representation of time series. AAAI. Settings
    as in the paper, Appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import TS2VecTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))
    >>> ts2vec = TS2VecTransformer(embedding_dim=16, max_epochs=2, random_state=0)
    >>> ts2vec.fit_transform(X).shape
    (20, 16)
    """

    _objective_class = HierarchicalContrast
    _objective_names = (
        "embedding_dim",
        "encoder_hidden_dim",
        "encoder_depth",
        "pooling",
        "layer_norm",
        "mask_mode",
        "mask_probability",
        "temporal_unit",
        "instance_weight",
        "loss_reduction",
        "representation_dropout",
    )
    _one_step = (
        "they have no crops and hold no dynamics, so nothing of a signal is learnt from them"
    )

    def __init__(
        self,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        layer_norm: LayerNorm = "embedding",
        mask_mode: Literal["binomial", "continuous", "none", "last_samples"] = "binomial",
        mask_probability: float = 0.5,
        temporal_unit: int = 0,
        instance_weight: float = 0.5,
        loss_reduction: Literal["mean", "published"] = "mean",
        representation_dropout: float = 0.0,
        max_epochs: int = 100,
        max_updates: int | Literal["auto"] | None = None,
        drop_last: bool = False,
        lr: float = 1e-3,
        weight_decay: float = 1e-5,
        schedule: Schedule = "one_cycle",
        betas: tuple[float, float] | None = None,
        batch_size: int = 128,
        gradient_clip_value: float | None = None,
        validation_fraction: float = 0.15,
        validation_every: int = 2,
        deterministic_validation: bool = True,
        select: SelectOrAverage = "trailing_mean",
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
        self.pooling = pooling
        self.layer_norm = layer_norm
        self.mask_mode = mask_mode
        self.mask_probability = mask_probability
        self.temporal_unit = temporal_unit
        self.instance_weight = instance_weight
        self.loss_reduction = loss_reduction
        self.representation_dropout = representation_dropout
        self.max_epochs = max_epochs
        self.max_updates = max_updates
        self.drop_last = drop_last
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

    def _check_params(self) -> None:
        super()._check_params()
        check_option("mask_mode", self.mask_mode, _MASK_MODES)
        check_real("mask_probability", self.mask_probability, 0.0, 1.0)
        check_integer("temporal_unit", self.temporal_unit, 0)
        check_real("instance_weight", self.instance_weight, 0.0, 1.0, open_maximum=False)
        check_option("loss_reduction", self.loss_reduction, ("mean", "published"))
        if self.max_updates is not None and not is_auto(self.max_updates):
            check_integer("max_updates", self.max_updates, 1, or_auto=True)

    def _check_window_length(self, n_timesteps: int) -> None:
        super()._check_window_length(n_timesteps)
        if self.instance_weight == 0 and not n_timesteps >> (self.temporal_unit + 1):
            raise ValueError(
                f"instance_weight=0 contrasts steps alone, and temporal_unit={self.temporal_unit}"
                f" leaves windows of {n_timesteps} time steps no two of them: lower temporal_unit,"
                " raise instance_weight, or pass longer windows."
            )

    def _n_updates(self, train: WindowBatches) -> int | None:
        if self.max_updates != "auto":
            return super()._n_updates(train)
        n_values = len(train) * train.windows.n_timesteps * train.windows.n_channels
        return 200 if n_values <= 100_000 else 600
