"""REBAR: contrast windows with the one of their recording that reconstructs them best."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from skorch.callbacks import Callback

from .._data._validation import CheckedWindows
from .._parameters import plain
from .._training._callbacks import SelectWeights
from .._training._checkpoint import Checkpoint
from .._training._device import resolve_device
from .._training._net import SSLNet
from ..base import (
    AVERAGES,
    BaseSSLTransformer,
    CandidateBatches,
    Parts,
    check_integer,
    check_odd,
    check_option,
    check_real,
    check_steps_or_fraction,
)
from ..objectives import REBARContrast, REBARReconstruction, check_contrastive

_ATTENTION_PARAMS = {
    "hidden_dim": "attention_hidden_dim",
    "kernel_size": "attention_kernel_size",
    "bottleneck_dim": "attention_bottleneck_dim",
    "depth": "attention_depth",
}


class REBARTransformer(BaseSSLTransformer):
    """Embed windows by contrast with the window of their recording that explains them best.

    REBAR trains twice. First a cross-attention learns to reconstruct a hidden block of a window
    from the window itself. Then the encoder learns: of some candidates from an anchor's
    recording, the one from which the cross-attention best reconstructs the anchor is its
    positive, and the others are negatives, as are the other anchors of the batch.

    Candidates of a window are other windows of `X` from its recording, so pass windows that know
    it: lazy ones (``sliding_windows(recordings, length, stride, lazy=True).X``, the natural
    input), bags, one a recording, or any windows with ``groups``, which then names the recording
    of each. Bare windows without `groups` are taken as one recording: candidates are drawn from
    all of `X`.

    Parameters
    ----------
    embedding_dim, encoder_hidden_dim, encoder_depth, pooling
        The encoder, as in :class:`~sklearn_pulse.PulseTransformer`.
    layer_norm : {"everywhere", "embedding", "none"}, default="everywhere"
        Where the encoder's layer normalisation acts: in loss and embedding, in the embedding
        alone, where it is never trained, or nowhere (REBAR's own code).
    representation_dropout : float, default=0.0
        On the encoder's output, in training; REBAR's own code has 0.1.
    n_candidates : int, default=10
        Candidates an anchor, drawn with replacement; at least 2. Each is embedded, so a step
        costs ``n_candidates + 1`` times that of a method without candidates.
    alpha : float, default=0.0
        Weight of the contrast with the other anchors; the one with the other candidates has
        ``1 - alpha``.
    temperature : float, default=1.0
        Of both contrasts.
    anchors : {"windows", "recordings"}, default="windows"
        Whether an epoch takes every window as the anchor once, or one window of each recording,
        at the same relative position in all recordings of a batch (published code; pass windows
        at a stride of 1 for its very positions).
    loss_reduction : {"mean", "published"}, default="mean"
        "published" divides the mean over the batch by the size of the batch once more.
    mask_length : int or float, default=0.12
        Steps of the block that is hidden in the first stage, or their fraction of the window. It
        lies anywhere, the end of the window included, which the published draws never reach.
    attention_hidden_dim : int, default=256
        Width of the cross-attention.
    attention_kernel_size : int, default=15
        Of its convolutions, odd.
    attention_bottleneck_dim : int, default=32
        Width that its dilated convolutions read.
    attention_depth : int, default=1
        Its dilated blocks; each doubles what it sees (``double_receptivefield`` in the code).
    attention_dropout : float, default=0.1
        On its weights, in the first stage.
    attention_epochs : int, default=300
        Epochs of the first stage. It reads what lazy windows cover of their recordings, cut anew
        into windows that do not overlap; all windows, where their starts are not known.
    attention_lr : float, default=1e-3
        Its learning rate: Adam, constant, without weight decay or clipping.
    attention_batch_size : int, default=32
        Its windows a step. It keeps the weights of the lowest validation error, the mean of a
        hidden entry, summed over batches.
    max_epochs : int, default=100
        Passes of the second stage.
    lr : float, default=1e-3
        Learning rate of the second stage; its peak under ``schedule="one_cycle"``.
    schedule : {"one_cycle", "constant"}, default="one_cycle"
        Of the second stage's learning rate; "constant" is what the published code comes to.
    betas : tuple of two floats or None, default=None
        Of AdamW under ``schedule="constant"``; None means torch's (0.9, 0.999). One cycle moves
        the first itself.
    weight_decay, batch_size
        Of the second stage, as in :class:`~sklearn_pulse.PulseTransformer`; `batch_size` is at
        least 2.
    gradient_clip_value : float or None, default=None
        As there, of the second stage; the paper's code clips nothing here.
    validation_fraction, validation_every
        As there; `validation_every` is that of the second stage.
    select : {"trailing_mean", "min_val", "last", "average", "average_min_val"}, \
default="trailing_mean"
        As there, of the second stage. "average" takes the mean of the weights after every update,
        and of the initial ones, whatever the validation loss. "average_min_val" takes that mean
        as it was after the epoch with the lowest validation loss, which stays that of the weights
        themselves (REBAR's own code).
    deterministic_validation : bool, default=True
        Whether every validation uses the same candidates and hidden steps, and no dropout.
    bag_pooling : {"mean", "max"}, default="mean"
        How the embeddings of a bag's windows are pooled.
    checkpoint_dir : path-like or None, default=None
        As there; both stages resume.
    precision, compile, device, num_threads, input_layout
        As there; `compile` is for the encoder.
    callbacks : list of skorch callbacks or None, default=None
        Of the second stage; copied at `fit`.
    warm_start, random_state, verbose
        As there.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The fitted encoder.
    net_ : skorch.NeuralNet
        The second stage.
    cross_attention_net_ : skorch.NeuralNet
        The first stage, with its ``history``.
    history_, n_iter_ : list of dict, int
        Epochs of the second stage.
    n_timesteps_in_, n_channels_in_, n_features_in_, feature_names_in_
        As in :class:`~sklearn_pulse.PulseTransformer`.

    Notes
    -----
    Candidates are windows of `X`, and another than their anchor. The published code draws them
    as it draws anchors, at any step of the recording that keeps half a window away from its start
    and a whole one from its end, so that they may overlap the anchor.

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
    _one_step = "half of it cannot be reconstructed, so candidates are chosen at random"
    _earlier_nets = ("cross_attention_net_",)
    _min_batch_size = 2
    _selections = {**BaseSSLTransformer._selections, **AVERAGES}

    def __init__(
        self,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: str = "max",
        layer_norm: str = "everywhere",
        representation_dropout: float = 0.0,
        n_candidates: int = 10,
        alpha: float = 0.0,
        temperature: float = 1.0,
        anchors: str = "windows",
        loss_reduction: str = "mean",
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
        schedule: str = "one_cycle",
        betas: tuple[float, float] | None = None,
        weight_decay: float = 1e-5,
        batch_size: int = 128,
        gradient_clip_value: float | None = None,
        validation_fraction: float = 0.15,
        validation_every: int = 2,
        deterministic_validation: bool = True,
        select: str = "trailing_mean",
        bag_pooling: str = "mean",
        checkpoint_dir: str | os.PathLike[str] | None = None,
        precision: str = "float32",
        compile: bool = False,
        device: str | torch.device = "auto",
        num_threads: int | None = None,
        input_layout: str = "ntc",
        callbacks: list[Any] | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
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
        self.input_layout = input_layout
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
        check_contrastive(self)
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
        check_real("attention_lr", self.attention_lr, open_minimum=True, example=1e-3)

    def _check_window_length(self, n_timesteps: int) -> None:
        super()._check_window_length(n_timesteps)
        if not isinstance(self.mask_length, float) and self.mask_length >= n_timesteps:
            raise ValueError(
                f"mask_length={self.mask_length} steps would hide windows of {n_timesteps} time"
                " steps whole: set mask_length to a fraction such as 0.12, or pass longer windows."
            )

    def _batches(self, windows: CheckedWindows, index: NDArray[np.intp]) -> CandidateBatches:
        device = resolve_device(self.device)
        by_recording = self.anchors == "recordings"
        return CandidateBatches(windows, index, device, self.n_candidates, by_recording)

    def _check_samples(
        self, X: ArrayLike, y: ArrayLike | None, groups: ArrayLike | None, *, reset: bool
    ) -> CheckedWindows:
        windows = super()._check_samples(X, y, groups, reset=reset)
        if reset and self.anchors == "recordings" and not windows.recording.any():
            raise ValueError(
                "anchors='recordings' takes one window of each recording, and X is one recording:"
                " pass lazy windows, bags, or groups, or set anchors='windows'."
            )
        return windows

    def _check_parts(self, parts: Parts) -> None:
        train, valid = parts.train, parts.valid
        names_recordings = train.windows.groups is not None or train.windows.recording.any()
        if valid is not None and valid.windows is not train.windows and names_recordings:
            if not valid.windows.names_recordings:
                raise ValueError(
                    "X_val is an array of windows, and nothing says which recordings they are"
                    " from (groups is of X): pass X_val as bags, one bag per recording, or as"
                    " lazy windows."
                )
        if train.n_windows.max() == 1:
            warnings.warn(
                "X has one window of each recording, so each is its own only candidate and there"
                " is little to learn: pass more windows of a recording, or no groups.",
                stacklevel=4,
            )

    def _train(self, net: SSLNet, train: CandidateBatches, valid: CandidateBatches | None) -> None:
        attention = self._attention_net(net, valid is not None)
        attention.partial_fit((train.apart().resident(), valid and valid.apart().resident()))
        net.module_.cross_attention.load_state_dict(attention.module_.encoder.state_dict())
        super()._train(net, train, valid)
        self.cross_attention_net_ = attention

    def _attention_net(self, net: SSLNet, validated: bool) -> SSLNet:
        """Build the first stage, which starts from the weights that the second one holds."""
        seed, objective_seed = np.random.SeedSequence((net.seed, 1)).generate_state(2).tolist()
        callbacks: list[tuple[str, Callback]] = []
        if validated:
            callbacks.append(("select_weights", SelectWeights("min_val")))
        checkpoint = dict(net.callbacks_).get("checkpoint")
        if checkpoint is not None:
            folder = checkpoint.folder / "cross_attention"
            folder.mkdir(exist_ok=True)
            callbacks.append(("checkpoint", Checkpoint(folder)))
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
        first = SSLNet(REBARReconstruction, seed=seed, **settings).initialize()
        first.module_.encoder.load_state_dict(net.module_.cross_attention.state_dict())
        return first
