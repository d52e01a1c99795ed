"""PULSE as a scikit-learn transformer."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ._data._validation import check_windows
from .base import (
    BaseSSLTransformer,
    check_integer,
    check_option,
    check_real,
    check_steps_or_fraction,
)
from .base._reconstruction import NETWORK_PARAMS, check_fits, check_reconstruction
from .objectives import CrossReconstruction

_OBJECTIVE_NAMES = (
    *NETWORK_PARAMS,
    "n_crops",
    "crop",
    "crop_length",
    "min_crop_length",
    "pairing",
    "loss_reduction",
    "dropout",
    "theta_dropout",
)


class PulseTransformer(BaseSSLTransformer):
    """Embed windows of physiological signals by the dynamical system behind them (PULSE).

    An encoder reads a whole window and estimates its system, a vector of `embedding_dim` numbers;
    a GRU decoder, started from the initial condition of a random crop, must reconstruct the crop
    from that estimate. What belongs to the system is kept, what belongs to the sample is dropped.
    Training uses no labels. The defaults are the published settings for human activity
    recognition; :mod:`sklearn_pulse.presets` has those of the other data sets.

    Parameters
    ----------
    embedding_dim : int, default=320
        Width of the embedding.
    encoder_hidden_dim : int, default=64
        Width of the encoder's blocks.
    encoder_depth : int, default=10
        Blocks of the encoder before the last, widening one, with dilations 1, 2, 4, ...; 10 means
        the published eleven residual blocks.
    pooling : {"max", "mean"}, default="max"
        How the encoder pools over time.
    time_varying_dim : int, default=1
        Width of the time-varying part that the decoder reads beside the embedding; 0 leaves it
        out. It is not part of the embedding.
    time_varying_pool : int, default=1
        Time steps that share a value of the time-varying part.
    init_kernel_size : int, default=3
        Kernel of the initial-condition encoder, odd.
    init_dilation : int, default=1
        Dilation of its second convolution.
    init_hidden_dim : int, default=64
        Its width.
    shared_encoder : bool, default=False
        Whether the initial condition is read from the encoder's steps rather than the signal (an
        ablation of the paper).
    gru_num_layers : int, default=2
        Layers of the decoder.
    gru_hidden_dim : int, default=64
        Width of the decoder.
    observation : {"mlp", "linear"}, default="mlp"
        Map from the decoder's state to the signal: two layers (published code) or one (paper).
    n_crops : int, default=2
        Crops of each window and step of training; 0 reconstructs the full window only.
    crop : {"suffix", "fixed"}, default="suffix"
        "suffix" crops run to the window's end (published code), "fixed" ones have a length of
        `crop_length` (paper).
    crop_length : int, float or None, default=None
        Time steps of a fixed crop, or its fraction of the window; None means `min_crop_length`.
    min_crop_length : int or float, default=0.5
        The least steps that a suffix crop predicts, or their fraction of the window; a fraction
        fits windows of any length.
    pairing : {"crops", "random"}, default="crops"
        "random" reconstructs another window of the batch (an ablation of the paper).
    loss_reduction : {"published", "valid"}, default="published"
        Whether the mean squared error counts the zeros past the end of shorter crops, as the
        published code does, or only valid entries.
    dropout : float, default=0.1
        On the decoder's input, in training.
    theta_dropout : {"step", "sequence"}, default="step"
        Whether the embedding's part of that input is dropped out anew at each time step, as
        published, or once for a whole crop, which trains faster but is another regularisation:
        the decoder can no longer average over the steps' masks.
    max_epochs : int, default=100
        Passes through the data.
    lr : float, default=1e-3
        Peak of the one-cycle learning rate.
    weight_decay : float, default=1e-5
        Of AdamW.
    batch_size : int, default=128
        Windows a step.
    gradient_clip_value : float or None, default=5.0
        Largest absolute value of each element of the gradient.
    validation_fraction : float, default=0.15
        Part of the samples that is held out to select weights; 0 holds out none. Without
        validation the last weights are kept.
    validation_every : int, default=2
        Validate every so many epochs.
    deterministic_validation : bool, default=True
        Whether every validation uses the same crops and no dropout; False is the published
        behaviour.
    select : {"trailing_mean", "min_val", "last"}, default="trailing_mean"
        Which epoch's weights to keep: the published rule (the mean of the last five validation
        losses is at most the loss when weights were last kept), the lowest validation loss, or
        the last.
    bag_pooling : {"mean", "max"}, default="mean"
        How the embeddings of a bag's windows are pooled.
    checkpoint_dir : path-like or None, default=None
        Where to keep a checkpoint of each epoch, in one subfolder for each combination of
        parameters and data. An interrupted fit that is started again resumes, to the same bits.
        Needs an integer `random_state`.
    precision : {"float32", "bfloat16"}, default="float32"
        "bfloat16" computes under autocast; weights and embeddings stay float32.
    compile : bool, default=False
        Whether to compile the encoder with :func:`torch.compile`, where it is called as a whole:
        in `transform`, while the training of PULSE reads its steps.
    device : str or torch.device, default="auto"
        "cpu", "cuda" or "cuda:1"; "auto" is CUDA where there is one.
    num_threads : int or None, default=None
        Torch threads during `fit` and `transform`; None leaves them alone. Results repeat to the
        bit for the same number of threads.
    input_layout : {"ntc", "nct"}, default="ntc"
        Whether time or channels come first in each window; "nct" is that of sktime, aeon and
        braindecode.
    callbacks : list of skorch callbacks or None, default=None
        Copied at `fit`; find them in ``net_.callbacks_``.
    warm_start : bool, default=False
        Start from the weights of the last fit, with a new schedule.
    random_state : int, RandomState instance or None, default=None
        Seed of initialisation, crops, dropout, batches and validation split.
    verbose : int, default=0
        1 prints a line an epoch, 2 shows a progress bar too.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The fitted encoder, (batch, n_timesteps, n_channels) to (batch, embedding_dim).
    net_ : skorch.NeuralNet
        The fitted net; ``net_.module_`` is the objective.
    history_ : list of dict
        One dictionary an epoch, with ``train_loss``, ``valid_loss`` and ``dur`` in seconds.
    n_iter_ : int
        Epochs run.
    n_timesteps_in_, n_channels_in_ : int
        Shape of a window at `fit`.
    n_features_in_ : int
        Columns of 2-D data at `fit`, channels of 3-D data.
    feature_names_in_ : ndarray of str
        Columns at `fit`, where X was a frame with names.

    References
    ----------
    "PULSE", ICML 2026; the objective is Eq. 3 of the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))  # 20 windows, 64 steps, 3 channels
    >>> pulse = PulseTransformer(embedding_dim=16, max_epochs=2, random_state=0)
    >>> pulse.fit_transform(X).shape
    (20, 16)
    """

    _objective_class = CrossReconstruction
    _objective_names = _OBJECTIVE_NAMES
    _one_step = "there is nothing to reconstruct, so the encoder stays as it was initialised"

    def __init__(
        self,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: str = "max",
        time_varying_dim: int = 1,
        time_varying_pool: int = 1,
        init_kernel_size: int = 3,
        init_dilation: int = 1,
        init_hidden_dim: int = 64,
        shared_encoder: bool = False,
        gru_num_layers: int = 2,
        gru_hidden_dim: int = 64,
        observation: str = "mlp",
        n_crops: int = 2,
        crop: str = "suffix",
        crop_length: int | float | None = None,
        min_crop_length: int | float = 0.5,
        pairing: str = "crops",
        loss_reduction: str = "published",
        dropout: float = 0.1,
        theta_dropout: str = "step",
        max_epochs: int = 100,
        lr: float = 1e-3,
        weight_decay: float = 1e-5,
        batch_size: int = 128,
        gradient_clip_value: float | None = 5.0,
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
        self.time_varying_dim = time_varying_dim
        self.time_varying_pool = time_varying_pool
        self.init_kernel_size = init_kernel_size
        self.init_dilation = init_dilation
        self.init_hidden_dim = init_hidden_dim
        self.shared_encoder = shared_encoder
        self.gru_num_layers = gru_num_layers
        self.gru_hidden_dim = gru_hidden_dim
        self.observation = observation
        self.n_crops = n_crops
        self.crop = crop
        self.crop_length = crop_length
        self.min_crop_length = min_crop_length
        self.pairing = pairing
        self.loss_reduction = loss_reduction
        self.dropout = dropout
        self.theta_dropout = theta_dropout
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
        self.input_layout = input_layout
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def reconstruct(self, X: ArrayLike, start: int = 0) -> NDArray[np.float32]:
        """Reconstruct windows from their embeddings.

        The decoder starts from the initial condition at one step and predicts all that follow,
        from the embedding of the whole window, whatever `pairing` and `crop` were in training.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows of at least two time steps; 2-D data is univariate.
        start : int, default=0
            The step that the decoder starts from, at most ``n_timesteps - 2``; in a window where
            it is missing, the next step that is not.

        Returns
        -------
        ndarray of float32, of the shape of `X`
            The reconstruction: missing steps are filled in; NaN at `start` and before, since these
            steps are never predicted.

        Raises
        ------
        TypeError, ValueError
            For bags, a `start` outside the window, and as for :meth:`transform`.

        Notes
        -----
        Source: paper, Eq. 3 (the crop that starts at `start`), without dropout.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pulse import PulseTransformer
        >>> X = np.random.default_rng(0).normal(size=(20, 32, 2))
        >>> pulse = PulseTransformer(embedding_dim=8, max_epochs=1, random_state=0).fit(X)
        >>> int(np.isnan(pulse.reconstruct(X, start=3)[0, :, 0]).sum())
        4
        """
        check_is_fitted(self)
        check_integer("start", start, 0)
        windows = check_windows(self, X, reset=False)
        if windows.is_bag or windows.n_timesteps < 2:
            raise ValueError(
                "X must hold single windows of at least two time steps to reconstruct: pass the"
                " windows of a bag one by one."
            )
        if start > windows.n_timesteps - 2:
            raise ValueError(
                f"start={start} leaves no step to predict in windows of {windows.n_timesteps} time"
                f" steps: pass at most start={windows.n_timesteps - 2}."
            )
        self._check_input_length(windows.n_timesteps)
        shape = windows.n_timesteps, windows.n_channels
        complete = partial(self.net_.module_.complete, start=start)
        reconstruction, _ = self._compute(windows, complete, shape)
        return windows.like_input(reconstruction)

    def _check_params(self) -> None:
        super()._check_params()
        check_reconstruction(self)
        check_integer("n_crops", self.n_crops, 0)
        check_option("crop", self.crop, ("suffix", "fixed"))
        check_option("pairing", self.pairing, ("crops", "random"))
        if self.crop_length is not None:
            check_steps_or_fraction("crop_length", self.crop_length)
        check_real("dropout", self.dropout, 0.0, 1.0)
        check_option("theta_dropout", self.theta_dropout, ("step", "sequence"))

    def _check_window_length(self, n_timesteps: int) -> None:
        super()._check_window_length(n_timesteps)
        names = ("min_crop_length", "crop_length") if self.crop == "fixed" else ("min_crop_length",)
        for name in names:
            check_fits(name, getattr(self, name), n_timesteps)
