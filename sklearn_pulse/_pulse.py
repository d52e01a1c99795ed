"""PULSE as a scikit-learn transformer."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from torch import Tensor

from ._data._batches import WindowBatches, as_batch
from ._data._embedded import Embed, EmbeddedBatches, with_embeddings
from ._data._pooling import collect, pooled
from ._data._windows import Block, CheckedWindows
from ._export import EncoderGraph
from ._parameters import check_seed
from ._seeds import draw_seed
from ._threads import threads
from ._training._iterator import Batch
from ._typing import (
    BagPooling,
    Distributed,
    InputLayout,
    PathLike,
    Pooling,
    Precision,
    RandomState,
    Select,
)
from .base import (
    ReconstructingTransformer,
    check_integer,
    check_option,
    check_real,
    check_steps_or_fraction,
)
from .base._frozen import adopt_signals, as_encoder, check_frozen, embedder, kept
from .base._reconstructing import NETWORK_PARAMS, check_fits, check_reconstruction
from .networks import FixedEncoder
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
# Parameters of the encoder that is trained, and of the drive that reads its steps.
_OF_TRAINED_ENCODER = (
    "embedding_dim",
    "encoder_hidden_dim",
    "encoder_depth",
    "pooling",
    "time_varying_dim",
    "time_varying_pool",
    "shared_encoder",
)


class PulseTransformer(ReconstructingTransformer):
    """Embed windows of physiological signals by the dynamical system behind them (PULSE).

    An encoder reads a whole window and estimates its system, a vector of `embedding_dim` numbers.
    A GRU decoder starts from the initial condition of a random crop and must reconstruct the crop
    from that estimate. So the estimate keeps what belongs to the system, and drops what belongs to
    the single sample. Training uses no labels. The defaults are the published settings for human
    activity recognition; :mod:`sklearn_pulse.presets` has those of the other data sets.

    Parameters
    ----------
    n_crops : int, default=2
        Number of crops of each window in a training step. Every step reconstructs the full window
        too, which has the same weight as all crops together (published code; the paper has crops
        alone). 0 reconstructs nothing else.
    crop : {"suffix", "fixed"}, default="suffix"
        Kind of crop. A "suffix" runs from a random step to the end of the window (published code);
        a "fixed" crop has a length of `crop_length` (paper).
    crop_length : int, float or None, default=None
        Length of a fixed crop: a number of time steps (int) or a fraction of the window (float),
        from its first observed step to its last. None means `min_crop_length`.
    min_crop_length : int or float, default=0.5
        Smallest number of time steps that a suffix crop predicts (int), or its fraction of the
        window (float). A fraction fits windows of any length.
    pairing : {"crops", "random"}, default="crops"
        Window that is reconstructed from an embedding: "crops" takes crops of the same window,
        "random" takes another window of the batch (an ablation of the paper, which the published
        code lacks: all but the embedding comes from the other window).
    loss_reduction : {"published", "valid"}, default="published"
        Entries that the mean squared error is averaged over. "published" includes the zeros past
        the end of shorter crops, as the published code does; "valid" leaves them out.
    dropout : float, default=0.1
        Dropout probability of the decoder's input in training.
    theta_dropout : {"step", "sequence"}, default="step"
        Whether the embedding in the decoder's input is dropped out anew at each time step (as
        published) or once per crop. "sequence" trains faster, but regularises differently: the
        decoder can no longer average over the masks of the steps.
    encoder : FrozenEstimator or None, default=None
        Encoder to train the decoder on: ``FrozenEstimator(transformer)`` around a fitted
        transformer of windows, such as :class:`~sklearn_pulse.CrossPredictionTransformer`. The
        embedding is then that of the transformer, the decoder reads no time-varying drive, and
        training changes the decoder alone. `fit` keeps a copy of the transformer, which a later fit
        of the transformer does not change. `embedding_dim`, `encoder_hidden_dim`, `encoder_depth`,
        `pooling`, `time_varying_dim`, `time_varying_pool` and `shared_encoder` belong to an encoder
        that is trained: another value than the default is an error. The embeddings of all windows
        are computed once and stay in memory. None trains an encoder.

    References
    ----------
    Chen et al., "Self-supervised dynamical system representations for physiological time-series",
    ICML 2026; the objective is Eq. 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))  # 20 windows, 64 steps, 3 channels
    >>> pulse = PulseTransformer(embedding_dim=16, max_epochs=2, random_state=0)
    >>> pulse.fit_transform(X).shape
    (20, 16)

    A decoder on the embeddings of cross-prediction, to see what these keep of a window:

    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn_pulse import CrossPredictionTransformer
    >>> cross = CrossPredictionTransformer(num_kernels=84, embedding_dim=16, random_state=0).fit(X)
    >>> decoder = PulseTransformer(encoder=FrozenEstimator(cross), max_epochs=2, random_state=0)
    >>> decoder.fit(X).reconstruct(X).shape
    (20, 64, 3)
    """

    _objective_class = CrossReconstruction
    _length_may_be_unknown = True  # :func:`sklearn_pulse.interop` converts its weights
    _objective_names = _OBJECTIVE_NAMES

    def __init__(
        self,
        *,
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
        n_crops: int = 2,
        crop: Literal["suffix", "fixed"] = "suffix",
        crop_length: int | float | None = None,
        min_crop_length: int | float = 0.5,
        pairing: Literal["crops", "random"] = "crops",
        loss_reduction: Literal["published", "valid"] = "published",
        dropout: float = 0.1,
        theta_dropout: Literal["step", "sequence"] = "step",
        encoder: FrozenEstimator | None = None,
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
        self.encoder = encoder
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

    def decoder_reliance(
        self,
        X: ArrayLike,
        *,
        n_repeats: int = 5,
        random_state: RandomState = None,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> dict[str, float]:
        """Measure how much the reconstruction relies on each input of the decoder.

        The decoder reads the embedding, the time-varying drive and the initial condition. An input
        is exchanged between windows, and the training loss is computed again. An embedding that
        the decoder does not need has a reliance near 0: then the waveform reaches the decoder by
        the other inputs, or the decoder predicts the same for all windows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows of at least two time steps, best of recordings that were held out of `fit`;
            2-D data is univariate.
        n_repeats : int, default=5
            Number of random exchanges, over which the losses are averaged.
        random_state : int, RandomState instance or None, default=None
            Seed of the exchanges and of the crops.

        Returns
        -------
        dict of str to float
            Relative increase of the loss when ``"embedding"``, ``"time_varying"`` or
            ``"initial_condition"`` is exchanged: 0 for an input without effect, 1 where the loss
            doubles. ``"time_varying"`` is missing if `time_varying_dim` is 0, and with `encoder`.

        Raises
        ------
        TypeError, ValueError
            For bags, fewer than two windows, windows without a step to predict, values that lead to
            a loss that is not finite, and inputs that :meth:`transform` refuses.

        See Also
        --------
        sklearn.inspection.permutation_importance : The same for the columns of a table.

        Notes
        -----
        Source: the model reliance of Fisher, Rudin and Dominici (2019), Journal of Machine Learning
        Research 20(177), minus 1.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pulse import PulseTransformer
        >>> X = np.random.default_rng(0).normal(size=(20, 32, 2))
        >>> pulse = PulseTransformer(embedding_dim=8, max_epochs=1, random_state=0).fit(X)
        >>> sorted(pulse.decoder_reliance(X, random_state=0))
        ['embedding', 'initial_condition', 'time_varying']
        """
        check_integer("n_repeats", n_repeats, 1)
        check_seed("random_state", random_state)
        windows = self._check_reconstructed(X, (sampling_rate, channel_names))
        if len(windows) < 2:
            raise ValueError(
                "n_samples=1 leaves no other window to exchange with: pass more windows."
            )
        windows.scan()
        totals = self._exchanged_losses(windows, n_repeats, check_random_state(random_state))
        if not np.isfinite(list(totals.values())).all():
            raise ValueError(
                "The values of X lead to a loss that is not finite: scale X as at fit, or replace"
                " outliers by NaN, which masks their time steps."
            )
        own = totals.pop("own")
        if own == 0.0:
            raise ValueError(
                "X leaves the decoder nothing to predict, so its loss is 0: pass windows with two"
                " time steps or more that are not missing."
            )
        return {name: total / own - 1.0 for name, total in totals.items()}

    def _exchanged_losses(
        self, windows: CheckedWindows, n_repeats: int, rng: np.random.RandomState
    ) -> Counter[str]:
        """Add up the losses of all windows and repeats, by the input that is exchanged."""
        net = self.net_
        # A copy with draws of its own and the same weights: threads may share the estimator.
        objective = copy.copy(net.module_.eval())
        device, embed = torch.device(net.device), self._frozen_embedder(windows)
        totals: Counter[str] = Counter()
        with threads(self.num_threads), torch.inference_mode(), net.autocast():
            for _ in range(n_repeats):
                order = rng.permutation(len(windows))
                with objective.seeded(draw_seed(rng)):
                    for index in np.array_split(order, -(-len(order) // 256)):
                        block = windows.take(index)
                        batch = as_batch(block, device)
                        if embed is not None:
                            batch["embedding"] = torch.from_numpy(embed(index, block)).to(device)
                        for name, loss in objective.exchanged_losses(**batch).items():
                            totals[name] += len(index) * loss.item()
        return totals

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
        if self.encoder is not None:
            check_frozen(self, _OF_TRAINED_ENCODER)
            if not hasattr(self.encoder, "transform"):
                raise TypeError(
                    f"encoder={self.encoder!r} has no transform, so it embeds no windows: freeze a"
                    " transformer of windows, such as a pipeline without its classifier."
                )

    def _objective_params(self) -> dict[str, Any]:
        params = super()._objective_params()
        if self.encoder is None:
            return params
        return params | {"fixed_encoder": as_encoder(kept(self.encoder))}

    def _weights(self) -> dict[str, Tensor]:
        if isinstance(self.encoder_, FixedEncoder):
            raise ValueError(
                "a file cannot hold encoder=FrozenEstimator(...), as it was at fit: pickle the"
                " transformer instead."
            )
        return super()._weights()

    def _as_graph(self) -> EncoderGraph:
        if isinstance(self.encoder_, FixedEncoder):
            raise TypeError(
                "encoder=FrozenEstimator(...), as it was at fit, is no network and has no graph:"
                " pickle the transformer instead."
            )
        return super()._as_graph()

    def _check_samples(
        self, X: ArrayLike, groups: ArrayLike | None, *, reset: bool
    ) -> CheckedWindows:
        windows = super()._check_samples(X, groups, reset=reset)
        if reset and self.encoder is not None:
            adopt_signals(self, self.encoder)
        return windows

    def _batches(self, windows: CheckedWindows, index: NDArray[np.intp]) -> WindowBatches:
        if self.encoder is None:
            return super()._batches(windows, index)
        embed = embedder(as_encoder(self.encoder), windows)
        batches = EmbeddedBatches(windows, index, self._device, embed)
        finite = np.ones(len(windows), dtype=bool)
        finite[index] = batches.embedding.isfinite().all(1).numpy()
        remedy = " These results are the features of encoder."
        windows.check_computed(finite, np.ones_like(finite), remedy)
        return batches

    def _frozen_embedder(self, windows: CheckedWindows) -> Embed | None:
        """Return a function that embeds blocks of `windows` if the encoder is frozen, or None."""
        encoder = self.encoder_
        return embedder(encoder, windows) if isinstance(encoder, FixedEncoder) else None

    def _embed(self, windows: CheckedWindows) -> NDArray[np.floating[Any]]:
        embed = self._frozen_embedder(windows)
        if embed is None:
            return super()._embed(windows)
        found = ((index, block, embed(index, block)) for index, block in windows.blocks())
        rows, usable = collect(windows, found, (self._n_features_out,))
        return pooled(windows, rows, usable, self.bag_pooling)

    def _stream(
        self, windows: CheckedWindows, size: int, device: torch.device
    ) -> Iterator[tuple[NDArray[np.intp], Block, Batch]]:
        blocks = super()._stream(windows, size, device)
        embed = self._frozen_embedder(windows)
        return blocks if embed is None else with_embeddings(blocks, embed)

    def _check_window_length(self, n_timesteps: int) -> None:
        super()._check_window_length(n_timesteps)
        if self.n_crops:
            is_fixed = self.crop == "fixed" and self.crop_length is not None
            name = "crop_length" if is_fixed else "min_crop_length"
            check_fits(name, getattr(self, name), n_timesteps)
