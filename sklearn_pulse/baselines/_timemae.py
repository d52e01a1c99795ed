"""TimeMAE: prediction of the codes and the representations of hidden segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from skorch import NeuralNet
from skorch.callbacks import Callback
from torch import Tensor, nn

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
    check_heads,
    check_integer,
    check_real,
    check_steps_or_fraction,
    complete_docstring,
)
from ..networks import SegmentEncoder, SegmentTransformer
from ..networks._patches import attendable, patch_steps
from ..objectives import Objective
from ..sampling import whole_steps


@complete_docstring
class MaskedSegments(Objective):
    """Cross-entropy of the hidden segments' codes, and error of their representations.

    A tokeniser gives the codes, drawn by the Gumbel trick. A copy of the encoder that follows it
    slowly gives the representations (paper, Appendix C).

    Parameters
    ----------
    n_channels : int
        Number of channels of the windows.
    n_timesteps : int
        Number of time steps of the windows.
    embedding_dim : int, default=128
        Width of the embedding, a multiple of `n_heads`.
    encoder_hidden_dim : int, default=512
        Width of the feed-forward layers.
    encoder_depth : int, default=8
        Number of blocks of the encoder.
    regressor_depth : int, default=4
        Number of blocks of the transformer that predicts the hidden segments.
    vocab_size : int, default=192
        Number of codes of the tokeniser.
    mask_ratio : float, default=0.6
        Fraction of the segments that is hidden. At least one segment is hidden, and at least one
        is not.
    momentum : float or None, default=0.99
        Fraction of its own weights that the copy of the encoder keeps at each update; 0 makes the
        copy equal to the encoder. None leaves the copy at a random initialisation of its own, as in
        the published code.
    regression_weight : float, default=5.0
        Weight of the loss of the representations.
    classification_weight : float, default=1.0
        Weight of the loss of the codes.
    label_smoothing : float, default=0.2
        Label smoothing of the cross-entropy of the codes: the probability mass that is spread
        evenly over all codes.
    dropout : float, default=0.2
        Dropout probability in the encoder in training: of attention weights, feed-forward layers
        and branches.
    regressor_dropout : float, default=0.1
        Dropout probability in training in the transformer that predicts the hidden segments.
    **encoder
        Other parameters of :class:`~sklearn_pulse.networks.SegmentEncoder`.

    Examples
    --------
    >>> import torch
    >>> objective = MaskedSegments(2, 32, embedding_dim=8)
    >>> x = torch.randn(4, 32, 2)
    >>> objective(x=x).shape, objective.encode(x).shape
    (torch.Size([]), torch.Size([4, 8]))
    """

    encoder: SegmentEncoder
    evaluates_in_validation = True
    replayed = "whole"

    def __init__(
        self,
        n_channels: int,
        n_timesteps: int,
        *,
        embedding_dim: int = 128,
        encoder_hidden_dim: int = 512,
        encoder_depth: int = 8,
        n_heads: int = 4,
        regressor_depth: int = 4,
        vocab_size: int = 192,
        mask_ratio: float = 0.6,
        momentum: float | None = 0.99,
        regression_weight: float = 5.0,
        classification_weight: float = 1.0,
        label_smoothing: float = 0.2,
        dropout: float = 0.2,
        regressor_dropout: float = 0.1,
        seed: int = 0,
        **encoder: Any,
    ) -> None:
        super().__init__(seed)
        self.mask_ratio = mask_ratio
        self.momentum = momentum
        self.regression_weight = regression_weight
        self.classification_weight = classification_weight
        self.label_smoothing = label_smoothing
        self.dropout = dropout
        self.regressor_dropout = regressor_dropout
        sizes = embedding_dim, encoder_hidden_dim, encoder_depth
        self.encoder = SegmentEncoder(n_channels, n_timesteps, *sizes, n_heads, **encoder)
        block = embedding_dim, n_heads, encoder_hidden_dim
        self.momentum_encoder = SegmentTransformer(*block, encoder_depth)
        self.regressor = SegmentTransformer(*block, regressor_depth)
        self.mask_token = nn.Parameter(torch.randn(embedding_dim))
        self.tokenizer = nn.Linear(embedding_dim, vocab_size)
        self.apply(_initialize)
        self.momentum_encoder.requires_grad_(False)
        if momentum is not None:
            self.momentum_encoder.load_state_dict(self.encoder.transformer.state_dict())

    def forward(
        self,
        x: Tensor,
        observed: Tensor | None = None,
        order: Tensor | None = None,
        codes: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            True where a step was observed; None means that every step was observed.
        order : Tensor of int, of shape (n_patches,), or None, default=None
            Order of the segments of all windows, of which the last `n_hidden` are hidden; None
            draws it.
        codes : Tensor of int, of shape (batch, n_patches), or None, default=None
            Code of each segment; None draws them.

        Returns
        -------
        Tensor, scalar
            The weighted sum of both losses, each a mean over the observed hidden segments.
        """
        encoder = self.encoder
        if encoder.n_patches == 1:  # no segment is left to see
            return self.encode(x, observed).sum() * 0.0
        generator = self.generator(x.device)
        if order is None:
            order = torch.randperm(encoder.n_patches, generator=generator, device=x.device)
        shown, hidden = order[: -self.n_hidden], order[-self.n_hidden :]

        projected = encoder.project(x, observed)
        if codes is None:
            codes = self.draw_codes(projected)
        tokens = projected + encoder.positions
        seen = None if observed is None else encoder.visible(observed)
        context, hidden_context, scored = _visible(seen, shown, hidden)
        drop = self._drop(self.dropout, x.device)
        memory = encoder.transformer(tokens[:, shown], visible=context, drop=drop)
        with torch.no_grad():
            target = self.momentum_encoder(tokens[:, hidden], visible=hidden_context, drop=drop)
        queries = (self.mask_token + encoder.positions[hidden]).expand(len(x), -1, -1)
        predicted = self.regressor(
            queries, memory, context, self._drop(self.regressor_dropout, x.device)
        )
        return self._loss(predicted, target, codes[:, hidden], scored)

    @property
    def n_hidden(self) -> int:
        """Number of hidden segments: at least one, and at least one is left to see."""
        n_patches = self.encoder.n_patches
        return max(1, min(whole_steps(self.mask_ratio * n_patches), n_patches - 1))

    def draw_codes(self, projected: Tensor) -> Tensor:
        """Draw the code of each segment from the tokeniser's softmax, by the Gumbel trick.

        Parameters
        ----------
        projected : Tensor of shape (batch, n_patches, embedding_dim)
            Tokens before their positions are added.

        Returns
        -------
        Tensor of int, of shape (batch, n_patches)
            Between 0 and `vocab_size` - 1.
        """
        with torch.no_grad():
            # A cast that autocast kept from here would have no gradient in the loss.
            weight, bias = self.tokenizer.weight.detach(), self.tokenizer.bias.detach()
            logits = F.linear(projected, weight, bias).float()
            waits = torch.empty_like(logits).exponential_(generator=self.generator(logits.device))
            return (logits - waits.log()).argmax(-1)

    def update_momentum_encoder(self) -> None:
        """Move the copy of the encoder by ``1 - momentum`` of its way to the encoder."""
        if self.momentum is None:
            return
        trained = self.encoder.transformer.parameters()
        with torch.no_grad():
            for slow, fast in zip(self.momentum_encoder.parameters(), trained, strict=True):
                slow.lerp_(fast, 1.0 - self.momentum)

    def _loss(
        self, predicted: Tensor, target: Tensor, codes: Tensor, scored: Tensor | None
    ) -> Tensor:
        if scored is not None:
            predicted, target, codes = predicted[scored], target[scored], codes[scored]
        if not codes.numel():  # no window has an observed segment on both sides of the mask
            return predicted.sum() * 0.0
        logits = self.tokenizer(predicted).flatten(0, -2)
        classification = F.cross_entropy(
            logits, codes.flatten(), label_smoothing=self.label_smoothing
        )
        regression = F.mse_loss(predicted, target)
        return self.regression_weight * regression + self.classification_weight * classification


def _visible(
    seen: Tensor | None, shown: Tensor, hidden: Tensor
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the shown and the hidden segments that may be read, and the hidden ones that count."""
    if seen is None:
        return None, None, None
    readable, target = seen[:, shown], seen[:, hidden]
    scored = target & readable.any(1, keepdim=True)  # else nothing is left to predict from
    return attendable(readable), attendable(target), scored


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.xavier_normal_(module.weight)
        nn.init.constant_(module.bias, 0.1)


class MomentumUpdate(Callback):
    """Callback that lets the momentum encoder follow the encoder after each update."""

    def on_batch_end(self, net: NeuralNet, training: bool, **kwargs: Any) -> None:
        """Update the momentum encoder after a batch of training."""
        if training:
            net.module_.update_momentum_encoder()


class TimeMAETransformer(BaseSSLTransformer):
    """Embed windows by a transformer that predicts hidden segments (TimeMAE).

    A convolution makes a token of each segment of a window. Some segments, the same in a whole
    batch, are hidden; the encoder reads the others. From its output a second transformer predicts
    two things of each hidden segment: the code that a tokeniser gives it, and its representation by
    a copy of the encoder that follows it slowly. Windows at `transform` must have the length of
    those at `fit`.

    Parameters
    ----------
    embedding_dim : int, default=128
        Width of the embedding, a multiple of `n_heads`.
    encoder_hidden_dim : int, default=512
        Width of the transformers' feed-forward layers.
    encoder_depth : int, default=8
        Number of blocks of the encoder.
    pooling : {"mean", "max"}, default="mean"
        How the encoder pools its output over segments.
    patch_length : int or float, default=8
        Length of a segment ("wave length" in the paper): a number of time steps (int) or a fraction
        of the window (float). It is at most half the window.
    regressor_depth : int, default=4
        Number of blocks of the transformer that predicts the hidden segments.
    vocab_size : int, default=192
        Number of codes of the tokeniser.
    mask_ratio : float, default=0.6
        Fraction of the segments that is hidden. At least one segment is hidden, and at least one
        is not.
    momentum : float or None, default=0.99
        Fraction of its own weights that the copy of the encoder keeps at each update; 0 makes the
        copy equal to the encoder. None leaves the copy at a random initialisation of its own, as in
        the published code.
    regression_weight : float, default=5.0
        Weight of the loss of the representations.
    classification_weight : float, default=1.0
        Weight of the loss of the codes.
    label_smoothing : float, default=0.2
        Label smoothing of the cross-entropy of the codes: the probability mass that is spread
        evenly over all codes.
    dropout : float, default=0.2
        Dropout probability in the encoder in training: of attention weights, feed-forward layers
        and branches.
    regressor_dropout : float, default=0.1
        Dropout probability in training in the transformer that predicts the hidden segments.
    deterministic_validation : bool, default=True
        Whether every validation hides the same segments and draws the same codes, so that losses of
        different epochs can be compared. False draws anew, as the published code does. Validation
        never applies dropout.

    Notes
    -----
    The method's authors use ``embedding_dim=64, encoder_hidden_dim=256``. The default widths are
    those of the PULSE paper's comparison, the default vocabulary is the authors' 192; the released
    code of the comparison has 256: ``presets.get("timemae", dataset, published=True)``.

    References
    ----------
    Cheng et al., "TimeMAE: Self-Supervised Representations of Time Series with Decoupled Masked
    Autoencoders", 2023; PULSE paper, Appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import TimeMAETransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))  # 20 windows, 64 steps, 3 channels
    >>> timemae = TimeMAETransformer(embedding_dim=8, max_epochs=2, random_state=0)
    >>> timemae.fit_transform(X).shape
    (20, 8)
    """

    _objective_class = MaskedSegments
    _objective_names = (
        "embedding_dim",
        "encoder_hidden_dim",
        "encoder_depth",
        "n_heads",
        "pooling",
        "patch_length",
        "mask_ratio",
        "momentum",
        "vocab_size",
        "regressor_depth",
        "regression_weight",
        "classification_weight",
        "label_smoothing",
        "dropout",
        "regressor_dropout",
    )
    _one_step = "no segment is left to see, so the encoder stays as it was initialised"
    _variable_length = False

    def __init__(
        self,
        *,
        embedding_dim: int = 128,
        encoder_hidden_dim: int = 512,
        encoder_depth: int = 8,
        n_heads: int = 4,
        dropout: float = 0.2,
        pooling: Pooling = "mean",
        patch_length: int | float = 8,
        mask_ratio: float = 0.6,
        momentum: float | None = 0.99,
        vocab_size: int = 192,
        regressor_depth: int = 4,
        regressor_dropout: float = 0.1,
        regression_weight: float = 5.0,
        classification_weight: float = 1.0,
        label_smoothing: float = 0.2,
        max_epochs: int = 100,
        lr: float = 1e-3,
        weight_decay: float = 1e-5,
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
        self.embedding_dim = embedding_dim
        self.encoder_hidden_dim = encoder_hidden_dim
        self.encoder_depth = encoder_depth
        self.n_heads = n_heads
        self.dropout = dropout
        self.pooling = pooling
        self.patch_length = patch_length
        self.mask_ratio = mask_ratio
        self.momentum = momentum
        self.vocab_size = vocab_size
        self.regressor_depth = regressor_depth
        self.regressor_dropout = regressor_dropout
        self.regression_weight = regression_weight
        self.classification_weight = classification_weight
        self.label_smoothing = label_smoothing
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
        for name in ("vocab_size", "regressor_depth"):
            check_integer(name, getattr(self, name), 1)
        check_heads(self.embedding_dim, self.n_heads)
        check_steps_or_fraction("patch_length", self.patch_length)
        check_real("mask_ratio", self.mask_ratio, 0.0, 1.0, open_minimum=True)
        if self.momentum is not None:
            check_real("momentum", self.momentum, 0.0, 1.0, open_maximum=False)
        for name in ("dropout", "regressor_dropout", "label_smoothing"):
            check_real(name, getattr(self, name), 0.0, 1.0)
        for name in ("regression_weight", "classification_weight"):
            check_real(name, getattr(self, name))

    def _part_length(self, n_timesteps: int) -> int:
        return patch_steps(self.patch_length, n_timesteps)

    def _callbacks(self, train: WindowBatches, valid: WindowBatches | None) -> Callbacks:
        return [("momentum_update", MomentumUpdate()), *super()._callbacks(train, valid)]
