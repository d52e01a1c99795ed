"""PULSE's oracles, which know the windows that share a system, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ._data._labels import check_labels, check_together
from ._data._windows import CheckedWindows
from ._training._progress import with_callbacks
from ._typing import BagPooling, InputLayout, PathLike, Pooling, Precision, RandomState, Select
from ._warnings import warn_user
from .base import (
    FitData,
    PairBatches,
    Parts,
    ReconstructingTransformer,
    WindowTags,
    check_boolean,
    check_option,
    check_real,
)
from .base._reconstructing import NETWORK_PARAMS, check_fits, check_reconstruction
from .objectives import NegativePairs, PairReconstruction, PositivePairs


class PulseOracleTransformer(ReconstructingTransformer):
    """Embed windows by PULSE's oracles: labels tell which windows share a system.

    PULSE makes a pair of a window and its own crop. An oracle pairs windows of the same class, and
    draws the pairs anew for every batch. The positive oracle reconstructs a window from the system
    estimate of its partner, so the estimate keeps what the two windows share and drops what belongs
    to one of them. The negative oracle reads both windows, with time steps masked, and reconstructs
    both, so its estimate may keep what belongs to either. The oracles are no methods for practice,
    since they learn from every label; they show what the choice of pairs does (paper, Section 4).

    A window that is the only window of its class in the training part (or in the validation part)
    is its own partner: leave such classes out, or add windows to them.

    Parameters
    ----------
    kind : {"positive", "negative"}, default="positive"
        The oracle to train.
    init_source : {"target", "anchor", "published"}, default="target"
        Window whose initial state the positive oracle's decoder starts from: the "target", which is
        reconstructed (paper, Eq. 2), or the "anchor", whose system was estimated. "published" is
        what the published code does: "target" with `shared_encoder`, and "anchor" without. The
        negative oracle ignores it, since its two windows share one state.
    sample_init : bool, default=True
        Whether the decoder starts at a random step, as a suffix crop of PULSE does, or at the first
        step of the window.
    mask_probability : float, default=0.25
        Probability that the negative oracle sets a time step of its input to zero, in all channels
        together; the other steps are multiplied by ``1 / (1 - mask_probability)``. The positive
        oracle ignores it.
    min_crop_length : int or float, default=0.5
        Smallest number of time steps that are predicted from a random step (int), or their fraction
        of the window (float).
    loss_reduction : {"published", "valid"}, default="published"
        Entries that the mean squared error is averaged over. "published" includes the zeros past
        the end of shorter passes, as the published code does; "valid" leaves them out.
    validation_fraction : float, default=0.15
        Fraction of the samples that is held out to select the weights, or of the groups if `fit` is
        given `groups`. 0 holds out none; without validation the last weights are kept. The partners
        of validation windows come from the validation part.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The fitted encoder. The negative oracle's encoder reads two windows, and so takes twice the
        channels of one window.

    Notes
    -----
    Source: paper, Section 4, Eq. 2 and Theorem 1; details that the paper leaves open follow the
    published code. Of each class in a batch, twice as many windows are drawn as the batch has of
    it, without replacement, and its members take them in turn, each skipping itself. The published
    code pairs validation windows with training windows of unrelated classes; here both are
    validation windows of one class.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import PulseOracleTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 32, 3))
    >>> y = np.repeat(["slow", "fast"], 10)
    >>> oracle = PulseOracleTransformer(embedding_dim=16, max_epochs=2, random_state=0)
    >>> oracle.fit_transform(X, y).shape
    (20, 16)
    """

    def __init__(
        self,
        *,
        kind: Literal["positive", "negative"] = "positive",
        init_source: Literal["target", "anchor", "published"] = "target",
        sample_init: bool = True,
        mask_probability: float = 0.25,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        time_varying_dim: int = 1,
        time_varying_pool: int = 1,
        init_kernel_size: int = 3,
        init_dilation: int = 1,
        init_hidden_dim: int = 64,
        shared_encoder: bool = False,
        gru_num_layers: int = 2,
        gru_hidden_dim: int = 64,
        observation: Literal["mlp", "linear"] = "mlp",
        min_crop_length: int | float = 0.5,
        loss_reduction: Literal["published", "valid"] = "published",
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
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
        callbacks: list[Any] | None = None,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.kind = kind
        self.init_source = init_source
        self.sample_init = sample_init
        self.mask_probability = mask_probability
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
        self.min_crop_length = min_crop_length
        self.loss_reduction = loss_reduction
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
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _is_positive(self) -> bool:
        # An array compares to an array; `_check_params` refuses whatever is no text.
        return isinstance(self.kind, str) and self.kind == "positive"

    @property
    def _objective_class(self) -> type[PairReconstruction]:  # type: ignore[override]  # by `kind`
        return PositivePairs if self._is_positive else NegativePairs

    @property
    def _objective_names(self) -> tuple[str, ...]:  # type: ignore[override]
        own = "init_source" if self._is_positive else "mask_probability"
        return (*NETWORK_PARAMS, "sample_init", "min_crop_length", "loss_reduction", own)

    def _check_params(self) -> None:
        super()._check_params()
        check_option("kind", self.kind, ("positive", "negative"))
        check_option("init_source", self.init_source, ("target", "anchor", "published"))
        check_boolean("sample_init", self.sample_init)
        check_real("mask_probability", self.mask_probability, 0.0, 1.0)
        check_reconstruction(self)

    def _check_window_length(self, n_timesteps: int) -> None:
        super()._check_window_length(n_timesteps)
        if self.sample_init:
            check_fits("min_crop_length", self.min_crop_length, n_timesteps)

    @with_callbacks
    def fit(  # type: ignore[override]  # labels are needed
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> PulseOracleTransformer:
        """Train the encoder on pairs of windows of the same class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows. 2-D data is univariate, of shape (n_samples, n_timesteps); 4-D data are bags of
            windows, of shape (n_samples, n_windows, n_timesteps, n_channels), and each window has
            the label of its bag.
        y : array-like of shape (n_samples,)
            Labels, numbers or strings. -1 is a class like any other, so leave out samples without a
            label.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            For a parameter out of its range, an input outside the data contract, or labels that
            are no classes.
        FloatingPointError
            If a loss becomes NaN or infinite.

        Warns
        -----
        UserWarning
            If no class has two windows to train on, so that no window has a partner.
        """
        check_together(X_val, y_val)
        return self._fit(FitData(X, y, groups, X_val, y_val))

    def _take_labels(self, windows: CheckedWindows, y: ArrayLike | None, name: str) -> None:
        owner = type(self).__name__
        remedy = f", since {owner} takes -1, too, for a class"
        windows.labels = check_labels(y, windows.n_samples, owner, name, remedy=remedy)

    def _batches(self, windows: CheckedWindows, index: NDArray[np.intp]) -> PairBatches:
        return PairBatches(windows, index, self._device)

    def _check_parts(self, parts: Parts) -> None:
        train = cast(PairBatches, parts.train)
        if len(train) > 1 and train.n_windows.max() == 1:
            warn_user(
                "y gives every window to train on a class of its own, so each window is its own"
                " partner and labels teach nothing: pass classes of several windows."
            )

    def __sklearn_tags__(self) -> WindowTags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
