"""Fine-tuning of a pretrained encoder: what its classifier and its regressor have in common."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted
from skorch.callbacks import LRScheduler
from torch.optim.lr_scheduler import ExponentialLR

from .._data._batches import WindowBatches
from .._parameters import as_path, check_integer, check_option, check_share, default_of
from .._persistence import PretrainedMixin
from .._signals import agreed, compare, note, noted
from .._threads import limited_threads
from ..objectives import Source
from ._encoder import WindowEmbedder, settings_of
from ._labeled import LabeledEmbedder
from ._training import Callbacks

_ENCODER_PARAMS = ("embedding_dim", "encoder_hidden_dim", "encoder_depth", "pooling")


class FineTuner(LabeledEmbedder):
    """A head on a pretrained encoder that is copied and trained further.

    Parameters
    ----------
    pretrained : FrozenEstimator, path-like or None, default=None
        The encoder to start from: ``FrozenEstimator(transformer)`` around a fitted transformer of
        this package, the folder of a saved transformer, or None, which trains a new encoder from
        scratch. A bare transformer is refused: scikit-learn's `clone`, and with it every search and
        cross-validation, would drop its fit.
    freeze_epochs : int, default=0
        Number of epochs at the start in which only the head, and the map of the channels, are
        trained. After these epochs the whole encoder is trained, including weights that a callback
        has frozen.
    select : {"last", "min_val"}, default="last"
        Epoch whose weights are kept: the last epoch, as in the published code, or the epoch of the
        lowest validation loss.
    embedding_dim : int, default=320
        Width of the embedding of a new encoder. With `pretrained` the encoder keeps its width, and
        another value here is an error.
    encoder_hidden_dim : int, default=64
        Width of the residual blocks of a new encoder. With `pretrained` the encoder keeps its
        width, and another value here is an error.
    encoder_depth : int, default=10
        Number of residual blocks of a new encoder before the last block. With `pretrained` the
        encoder keeps its depth, and another value here is an error.
    pooling : {"max", "mean"}, default="max"
        How a new encoder pools its output over time. With `pretrained` the encoder keeps its
        pooling, and another value here is an error.
    max_epochs : int, default=40
        Number of passes through the training samples.
    lr : float, default=3e-4
        Learning rate of Adam in the first step; `lr_decay` lowers it.
    weight_decay : float, default=1e-6
        L2 penalty, which is added to the gradient before Adam scales it (not decoupled). The paper
        says 1e-5, which the published code does not read.
    lr_decay : float, default=0.9999
        Factor that multiplies the learning rate after each batch; 1 keeps it constant.
    batch_size : int, default=30
        Number of distinct samples per training step.
    input_layout : {"ntc", "nct"} or None, default=None
        Order of a window's axes, time before channels or channels before time. None means the
        layout in which the pretrained encoder was fitted, and "ntc" for a new encoder. Another
        layout than that of the encoder is an error.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The fine-tuned encoder; ``net_.module_.in_head`` is the map of the channels before it.
    input_layout_ : {"ntc", "nct"}
        Order of a window's axes at `fit`.
    """

    _objective_names = (*LabeledEmbedder._objective_names, "freeze_epochs")
    _optimizer = torch.optim.Adam
    _layouts = ("ntc", "nct", None)
    _holds: Mapping[str, type] = {"pretrained": WindowEmbedder}

    pretrained: Any
    freeze_epochs: int
    _pretrained: WindowEmbedder | None = None  # a copy as of `fit`, which no later fit changes
    lr_decay: float
    input_layout_: str

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("freeze_epochs", self.freeze_epochs, 0)
        check_share("lr_decay", self.lr_decay)

    def _load_pretrained(self) -> WindowEmbedder | None:
        return None if self.pretrained is None else _fitted_transformer(self.pretrained)

    def _load_source(self, pretrained: WindowEmbedder | None, n_timesteps: int) -> Source | None:
        self._variable_length = self._reads_scale = True
        self._pretrained = copy.copy(pretrained)  # a later fit gives the original another net
        if pretrained is None:
            return None
        self._check_encoder_params(pretrained)
        self._check_signals(pretrained)
        fitted = pretrained.n_timesteps_in_
        self._variable_length = pretrained._variable_length
        self._reads_scale = pretrained._reads_scale
        if not self._variable_length and n_timesteps != fitted:
            raise ValueError(
                f"X has windows of {n_timesteps} time steps, but the pretrained"
                f" {type(pretrained).__name__} was fitted on windows of {fitted} and takes no"
                f" other length: cut X into windows of {fitted} steps."
            )
        # n_timesteps_in_ is set by now: at `fit` from X, in a loaded model from its file.
        self.n_timesteps_trained_ = max(self._longest_trained(), pretrained._longest_trained())
        return Source(
            copy.deepcopy(pretrained.net_.module_),
            pretrained.n_channels_in_,
            pretrained._n_features_out,
            pretrained._min_batch_size,
        )

    def _check_encoder_params(self, transformer: WindowEmbedder) -> None:
        """Raise if a parameter asks for another encoder than the pretrained one."""
        for name in _ENCODER_PARAMS:
            asked, fitted = getattr(self, name), _fitted_with(transformer, name)
            if asked not in (default_of(self, name), fitted):
                raise ValueError(
                    f"{name}={asked!r}, but the pretrained encoder has {fitted!r}: leave {name} at"
                    " its default, or set pretrained=None to train a new encoder."
                )

    def _check_signals(self, transformer: WindowEmbedder) -> None:
        """Compare rate and channels with those of the encoder, which fill in what X leaves open."""
        given, fitted = noted(self), noted(transformer)
        others = given.channel_names and set(given.channel_names) != {*(fitted.channel_names or ())}
        if others or self.n_channels_in_ != transformer.n_channels_in_:
            fitted = fitted._replace(channel_names=None)  # a map from other channels is learnt
        compare(given, fitted, f"the pretrained {type(transformer).__name__}")
        note(self, agreed(given, fitted))

    @property
    def _layout(self) -> str:
        return self.input_layout or self.input_layout_

    def _choose_layout(self, pretrained: WindowEmbedder | None) -> str:
        fitted = None
        # A table has no layout, so an encoder that was fitted on one agrees with either.
        if pretrained is not None and not pretrained._fitted_on_table:
            fitted = pretrained._layout
        if None not in (self.input_layout, fitted) and self.input_layout != fitted:
            raise ValueError(
                f"input_layout={self.input_layout!r}, but the pretrained"
                f" {type(pretrained).__name__} was fitted in the layout {fitted!r}: leave"
                " input_layout at None, which means the layout of the encoder, and arrange X so."
            )
        self.input_layout_ = self.input_layout or fitted or "ntc"
        return self.input_layout_

    def _restored_settings(self) -> dict[str, Any]:
        check_option("input_layout_", self.input_layout_, ("ntc", "nct"))
        return super()._restored_settings()

    def _identity(self) -> dict[str, Any]:
        identity = super()._identity()
        source = self._load_pretrained()
        if source is not None:
            # The run is also known by the weights that it starts from, the encoder's among them.
            # Parameters may have changed since the encoder's fit, so settings of its net count too.
            params, settings = source._objective_params(), settings_of(source.net_)
            identity["pretrained"] = (type(source), params, settings)
        return identity

    def _schedule(self, train: WindowBatches) -> Callbacks:
        decay = LRScheduler(ExponentialLR, step_every="batch", gamma=float(self.lr_decay))
        return [("lr_scheduler", decay)]

    def _threads(self) -> AbstractContextManager[None]:
        """Compute on `num_threads` threads, in torch and in the linear algebra of numpy."""
        return limited_threads(self.num_threads)

    def _held(self) -> dict[str, Any]:
        return {} if self._pretrained is None else {"pretrained": self._pretrained}

    def _hold(self, name: str, transformer: Any) -> None:
        self.pretrained = FrozenEstimator(transformer)
        self._pretrained = transformer


def _fitted_with(transformer: WindowEmbedder, name: str) -> Any:
    """Return the value of a parameter with which the encoder of a transformer was built."""
    while isinstance(transformer, FineTuner) and transformer._pretrained is not None:
        transformer = transformer._pretrained  # whose parameters built the encoder
    # The net counts: the parameter may have changed since the fit.
    settings, own = vars(transformer.net_), f"module__{name}"
    return settings[own] if own in settings else getattr(transformer, name)


def _fitted_transformer(pretrained: Any) -> WindowEmbedder:
    """Return the fitted transformer that the parameter `pretrained` stands for."""
    if isinstance(pretrained, str | os.PathLike):
        as_path("pretrained", pretrained)  # whose message names the parameter
        return WindowEmbedder.from_pretrained(pretrained, device="cpu")
    if isinstance(pretrained, WindowEmbedder):
        raise TypeError(
            f"pretrained is a bare {type(pretrained).__name__}, whose fit scikit-learn's clone"
            " would drop: pass sklearn.frozen.FrozenEstimator(transformer)."
        )
    if not isinstance(pretrained, FrozenEstimator):
        raise TypeError(
            "pretrained must be a FrozenEstimator around a fitted transformer of sklearn_pulse, a"
            f" folder written by save_pretrained, or None, got {pretrained!r}"
        )
    transformer = pretrained.estimator
    no_weights = (
        f"pretrained freezes a {type(transformer).__name__} %s no weights to fine-tune: fit a"
        " classifier or a regressor of scikit-learn on its output."
    )
    if isinstance(transformer, PretrainedMixin) and not isinstance(transformer, WindowEmbedder):
        raise TypeError(no_weights % "that has")
    if not isinstance(transformer, WindowEmbedder):
        raise TypeError(
            f"pretrained freezes a {type(transformer).__name__}, which has no encoder to"
            " fine-tune: freeze the fitted transformer of sklearn_pulse alone (of a Pipeline,"
            " that step alone), and apply the steps before it to X."
        )
    check_is_fitted(
        transformer, msg="pretrained freezes a %(name)s that is not fitted: fit it first."
    )
    if next(transformer.encoder_.parameters(), None) is None:
        raise TypeError(no_weights % "whose encoder has")
    return transformer
