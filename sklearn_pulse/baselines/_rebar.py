"""REBAR: contrast with the window of the same recording that reconstructs a window best."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from .._data._windows import CheckedWindows
from .._parameters import LARGEST_FLOAT32, plain
from .._training._callbacks import SelectWeights
from .._training._checkpoint import Checkpoint
from .._training._net import SSLNet
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
from .._warnings import warn_user
from ..base import (
    Callbacks,
    CandidateBatches,
    ContrastiveTransformer,
    Parts,
    WindowBatches,
    check_integer,
    check_odd,
    check_option,
    check_real,
    check_steps_or_fraction,
)
from ..objectives import REBARContrast, REBARReconstruction

_ATTENTION_PARAMS = {
    "hidden_dim": "attention_hidden_dim",
    "kernel_size": "attention_kernel_size",
    "bottleneck_dim": "attention_bottleneck_dim",
    "depth": "attention_depth",
}


class _FirstStage(SSLNet):
    """Net that trains the cross-attention."""

    lr_name = "attention_lr"


class REBARTransformer(ContrastiveTransformer):
    """Embed windows by contrast with the window of their recording that explains them best.

    REBAR trains in two stages. First a cross-attention learns to reconstruct a hidden block of a
    window from the window itself. Then the encoder learns. Candidates are drawn from the recording
    of each anchor. The candidate from which the cross-attention best reconstructs the anchor is its
    positive. The other candidates are negatives, as are the other anchors of the batch.

    Candidates of a window are other windows of `X` from its recording. So pass windows that know
    their recording: lazy windows (``sliding_windows(recordings, length, stride, lazy=True).X``, the
    natural input), bags of one recording each, or any windows with ``groups``, which then names the
    recording of each window. Bare windows without `groups` are taken as one recording: candidates
    are drawn from all of `X`.

    Parameters
    ----------
    layer_norm : {"everywhere", "embedding", "none"}, default="everywhere"
        Where the encoder's layer normalisation acts: in the loss and the embedding, in the
        embedding alone (so it is never trained), or nowhere (REBAR's own code).
    representation_dropout : float, default=0.0
        Dropout probability of the encoder's output in training; 0.1 in REBAR's own code.
    n_candidates : int, default=10
        Number of candidates per anchor, drawn with replacement; at least 2. Each is embedded, so a
        step costs ``n_candidates + 1`` times that of a method without candidates.
    alpha : float, default=0.0
        Weight of the contrast with the other anchors; the contrast with the other candidates has
        the weight ``1 - alpha``.
    temperature : float, default=1.0
        Divisor of the cosine similarities in both contrasts.
    anchors : {"windows", "recordings"}, default="windows"
        Anchors of an epoch: every window once, or one window of each recording, at the same
        relative position in all recordings of a batch (published code). For the very positions of
        the published code, pass windows at a stride of 1.
    mask_length : int or float, default=0.12
        Length of the block that is hidden in the first stage: a number of time steps (int) or a
        fraction of the steps from the first observed one to the last (float); at least one of
        these steps stays. The block may lie at the end of the window too, which the
        published draws never reach.
    attention_hidden_dim : int, default=256
        Width of the cross-attention.
    attention_kernel_size : int, default=15
        Kernel size of the convolutions of the cross-attention, in steps; odd.
    attention_bottleneck_dim : int, default=32
        Width of the input of the cross-attention's dilated convolutions.
    attention_depth : int, default=1
        Number of dilated blocks of the cross-attention. Each doubles the number of steps that it
        sees (``double_receptivefield`` in REBAR's own code).
    attention_dropout : float, default=0.1
        Dropout probability of the attention weights in the first stage.
    attention_epochs : int, default=300
        Number of epochs of the first stage. It reads the parts of the recordings that lazy windows
        cover, cut anew into windows that do not overlap. If the starts of the windows are not
        known, it reads all windows.
    attention_lr : float, default=1e-3
        Learning rate of the first stage, which trains by Adam without schedule, weight decay or
        clipping.
    attention_batch_size : int, default=32
        Number of windows per training step of the first stage, which keeps the weights of the
        lowest validation error: the mean over the hidden entries of a batch, averaged over batches.
    max_epochs : int, default=100
        Number of passes through the training windows in the second stage. For a short trial lower
        `attention_epochs` too.
    lr : float, default=1e-3
        Learning rate of AdamW in the second stage. The one-cycle schedule rises to this value.
    schedule : {"one_cycle", "constant"}, default="one_cycle"
        Schedule of the second stage's learning rate. "one_cycle" rises to `lr` and falls again,
        with one step per batch. "constant" keeps it at `lr`, which the published code amounts to.
    weight_decay : float, default=1e-5
        Decoupled weight decay of AdamW in the second stage.
    batch_size : int, default=128
        Number of anchors per training step of the second stage; at least 2.
    gradient_clip_value : float or None, default=None
        Largest absolute value of each element of the gradient in the second stage; larger ones are
        clipped. None does not clip, as in the published code.
    validation_every : int, default=2
        Number of epochs of the second stage from one validation to the next.
    deterministic_validation : bool, default=True
        Whether every validation uses the same candidates and hidden steps, and no dropout.
    callbacks : list of skorch callbacks or None, default=None
        Callbacks of the second stage. `fit` uses copies, which are found in ``net_.callbacks_``.

    Attributes
    ----------
    net_ : skorch.NeuralNet
        The net of the second stage; ``net_.module_`` is the objective.
    cross_attention_net_ : skorch.NeuralNet
        The net of the first stage, with its ``history``; a loaded transformer does not have it.
    history_ : list of dict
        One dictionary per epoch of the second stage, with ``train_loss``, ``valid_loss`` and
        ``dur`` (its duration in seconds).
    n_iter_ : int
        Number of epochs run in the second stage.

    Notes
    -----
    The candidates of an anchor are windows of `X` other than the anchor. The published code draws
    anchors at any step. Candidates keep half a window away from both ends of the recording, and
    may overlap the anchor.

    References
    ----------
    Xu et al., "REBAR: retrieval-based reconstruction for time-series contrastive learning",
    ICLR 2024; paper, Appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import REBARTransformer
    >>> from sklearn_pulse.windows import sliding_windows
    >>> recordings = np.random.default_rng(0).normal(size=(4, 320, 3))
    >>> w = sliding_windows(recordings, length=32, stride=32, lazy=True)
    >>> rebar = REBARTransformer(
    ...     embedding_dim=16, attention_hidden_dim=16, attention_epochs=2, max_epochs=2,
    ...     random_state=0,
    ... )
    >>> rebar.fit(w.X, groups=w.groups).transform(w.X).shape
    (40, 16)
    """

    _objective_class = REBARContrast
    _objective_names = (
        "embedding_dim",
        "encoder_hidden_dim",
        "encoder_depth",
        "pooling",
        "layer_norm",
        "representation_dropout",
        "n_candidates",
        "alpha",
        "temperature",
        "loss_reduction",
    )
    _one_step = "no part of a step can be reconstructed, so positives are chosen at random"
    _unstored = ("net_", "cross_attention_net_")
    _min_batch_size = 2
    _uses_recordings = True

    def __init__(
        self,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        layer_norm: LayerNorm = "everywhere",
        representation_dropout: float = 0.0,
        n_candidates: int = 10,
        alpha: float = 0.0,
        temperature: float = 1.0,
        anchors: Literal["windows", "recordings"] = "windows",
        loss_reduction: Literal["mean", "published"] = "mean",
        mask_length: int | float = 0.12,
        attention_hidden_dim: int = 256,
        attention_kernel_size: int = 15,
        attention_bottleneck_dim: int = 32,
        attention_depth: int = 1,
        attention_dropout: float = 0.1,
        attention_epochs: int = 300,
        attention_lr: float = 1e-3,
        attention_batch_size: int = 32,
        max_epochs: int = 100,
        lr: float = 1e-3,
        schedule: Schedule = "one_cycle",
        betas: tuple[float, float] | None = None,
        weight_decay: float = 1e-5,
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
        self.representation_dropout = representation_dropout
        self.n_candidates = n_candidates
        self.alpha = alpha
        self.temperature = temperature
        self.anchors = anchors
        self.loss_reduction = loss_reduction
        self.mask_length = mask_length
        self.attention_hidden_dim = attention_hidden_dim
        self.attention_kernel_size = attention_kernel_size
        self.attention_bottleneck_dim = attention_bottleneck_dim
        self.attention_depth = attention_depth
        self.attention_dropout = attention_dropout
        self.attention_epochs = attention_epochs
        self.attention_lr = attention_lr
        self.attention_batch_size = attention_batch_size
        self.max_epochs = max_epochs
        self.lr = lr
        self.schedule = schedule
        self.betas = betas
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

    def _attention_params(self) -> dict[str, int]:
        return {name: plain(getattr(self, param)) for name, param in _ATTENTION_PARAMS.items()}

    def _objective_params(self) -> dict[str, Any]:
        return super()._objective_params() | {"attention": self._attention_params()}

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("n_candidates", self.n_candidates, 2)
        check_real("alpha", self.alpha, 0.0, 1.0, open_maximum=False)
        check_real("temperature", self.temperature, open_minimum=True)
        check_option("anchors", self.anchors, ("windows", "recordings"))
        check_option("loss_reduction", self.loss_reduction, ("mean", "published"))
        check_steps_or_fraction("mask_length", self.mask_length)
        for name in ("hidden_dim", "bottleneck_dim", "epochs", "batch_size"):
            check_integer(f"attention_{name}", getattr(self, f"attention_{name}"), 1)
        check_odd("attention_kernel_size", self.attention_kernel_size)
        check_integer("attention_depth", self.attention_depth, 0)
        check_real("attention_dropout", self.attention_dropout, 0.0, 1.0)
        check_real(
            "attention_lr", self.attention_lr, 0, LARGEST_FLOAT32, open_minimum=True, example=1e-3
        )

    def _check_window_length(self, n_timesteps: int) -> None:
        super()._check_window_length(n_timesteps)
        if isinstance(self.mask_length, Integral) and self.mask_length >= n_timesteps:
            raise ValueError(
                f"mask_length={self.mask_length} steps would hide windows of {n_timesteps} time"
                " steps whole: set mask_length to a fraction such as 0.12, or pass longer windows."
            )

    def _batches(self, windows: CheckedWindows, index: NDArray[np.intp]) -> CandidateBatches:
        by_recording = self.anchors == "recordings"
        return CandidateBatches(windows, index, self._device, self.n_candidates, by_recording)

    def _check_samples(
        self, X: ArrayLike, groups: ArrayLike | None, *, reset: bool
    ) -> CheckedWindows:
        windows = super()._check_samples(X, groups, reset=reset)
        if reset and self.anchors == "recordings" and not windows.recording.any():
            raise ValueError(
                "anchors='recordings' takes one window of each recording, and X is one recording:"
                " pass lazy windows, bags, or groups, or set anchors='windows'."
            )
        return windows

    def _check_enough(self, n_samples: int, use: str, of: str = "") -> None:
        if self.anchors == "recordings" and n_samples < self._min_batch_size:
            raise ValueError(
                "anchors='recordings' contrasts one window of each recording, and one recording"
                f"{of} is left for {use}: pass more recordings, or set anchors='windows'."
            )
        super()._check_enough(n_samples, use, of)

    def _check_parts(self, parts: Parts) -> None:
        train, valid = cast(CandidateBatches, parts.train), parts.valid
        names_recordings = train.windows.groups is not None or train.windows.recording.any()
        if valid is not None and valid.windows is not train.windows and names_recordings:
            if not valid.windows.names_recordings:
                raise ValueError(
                    "X_val is an array of windows, and nothing says which recordings they are"
                    " from (groups belongs to X): pass X_val as bags, one bag per recording, or as"
                    " lazy windows."
                )
        if train.n_windows.max() == 1:
            warn_user(
                "X has one window of each recording, so each window is its own only candidate and"
                " there is little to learn: pass several windows per recording, or no groups."
            )
        elif names_recordings and self.alpha == 0 and train.n_windows.max() == 2:
            warn_user(
                "X has at most two windows of each recording, so all candidates of a window are"
                " the same and there is nothing to learn: pass three windows or more per recording,"
                " or set alpha above 0, which contrasts the other anchors too."
            )

    def _train(self, net: SSLNet, train: WindowBatches, valid: WindowBatches | None) -> None:
        attention = self._attention_net(net, valid is not None)
        pieces = [
            part and cast(CandidateBatches, part).apart().resident() for part in (train, valid)
        ]
        attention.partial_fit(tuple(pieces))
        net.module_.cross_attention.load_state_dict(attention.module_.encoder.state_dict())
        super()._train(net, train, valid)
        self.cross_attention_net_ = attention

    def _attention_net(self, net: SSLNet, validated: bool) -> SSLNet:
        """Build the net of the first stage; it starts from the second stage's cross-attention."""
        seed, objective_seed = np.random.SeedSequence((net.seed, 1)).generate_state(2).tolist()
        callbacks: Callbacks = []
        if validated:
            callbacks.append(("select_weights", SelectWeights("min_val")))
        checkpoint = dict(net.callbacks_).get("checkpoint")
        if checkpoint is not None:
            callbacks.append(("checkpoint", Checkpoint(checkpoint.folder / "cross_attention")))
        settings = {
            "module__n_channels": self.n_channels_in_,
            "module__attention": self._attention_params(),
            "module__mask_length": self.mask_length,
            "module__attention_dropout": self.attention_dropout,
            "module__seed": objective_seed,
            "optimizer": torch.optim.Adam,
            "max_epochs": self.attention_epochs,
            "lr": self.attention_lr,
            "batch_size": self.attention_batch_size,
            "deterministic_validation": self.deterministic_validation,
            "callbacks": callbacks,
            "verbose": int(self.verbose),
            **self._net_params(),
            "compile": False,
        }
        settings = {name: plain(value) for name, value in settings.items()}
        first = _FirstStage(REBARReconstruction, seed=seed, **settings).initialize()
        first.module_.encoder.load_state_dict(net.module_.cross_attention.state_dict())
        return first
