"""Features that predict another view of the same recording, in closed form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ._closed_form._block_weights import (
    USUAL_WEIGHTS,
    all_weights,
    automatic_nearest,
    automatic_whitening,
    check_weights,
)
from ._closed_form._channels import arrays_of, restored
from ._closed_form._choice import Request, recordings_are_known
from ._closed_form._device_products import FixedShapeProduct
from ._closed_form._map_fit import MapSettings, fit_map
from ._closed_form._memory import as_memory, components, prepared_once
from ._closed_form._neighbours import Ordered, check_start, in_order, text_of_repeats
from ._closed_form._people import take_recordings
from ._closed_form._pieces import Run, in_turn
from ._closed_form._preparation import Preparation
from ._commit import unchanged_on_failure
from ._data._validation import check_windows
from ._data._windows import Block, CheckedWindows
from ._docstrings import complete_docstring
from ._parameters import (
    check_integer,
    check_option,
    check_real,
    check_seed,
    check_threads,
    check_verbose,
    is_auto,
)
from ._persistence import stored_array, tensor_of
from ._seeds import draw_seed
from ._threads import limited_threads
from ._training._device import resolve_device
from ._typing import BagPooling, InputLayout, RandomState
from ._warnings import warn_user
from .features._base import CHUNK, BaseFeatureTransformer, overflow_is_found
from .features._convolution_base import BaseConvolutionTransformer
from .features._convolutions import N_KERNELS
from .preprocessing import ChannelWhitener

_LARGEST_RHO = 1e6  # a larger ridge gives the same map, until it overflows
# Of the embedding, whose columns have a mean variance of about one. A column in which two labelled
# windows hardly differ would outweigh the others once it is scaled by their spread.
_DECIMALS = 2


@complete_docstring
class CrossPredictionTransformer(BaseFeatureTransformer):
    """Features that predict another view of the same recording, in closed form.

    Blocks of fixed features (statistics, autocorrelation, MiniRocket, MultiRocket, quantiles,
    Hydra, and one of three that the windows ask for) are stacked and reduced to their principal
    components. A linear map keeps what predicts the next window of the recording, or the other half
    of the window, and removes a share of what stays constant through a recording. No network is
    trained, and no label is used.

    Parameters
    ----------
    alpha : "auto" or float, default="auto"
        Share of the recording's constant part that is removed, from 0 to 1. The constant part
        tells who was recorded if recordings visit several states, and the state itself if a
        recording is one state. "auto" removes half of it, and less if the views share hardly more
        than the constant part (``sqrt(kappa_)``, with `kappa_` below 1/4). Where no recordings are
        known, or each window is one, there is no constant part, and `alpha` has no effect.
    views : {"auto", "adjacent", "halves"}, default="auto"
        Which views predict each other: adjacent windows of a recording, or the halves of a window.
        "auto" takes adjacent windows where the recordings are known and have adjacent windows,
        unless their order says nothing: if the statistics of the halves of a window have a state in
        common, and adjacent windows share less than 0.12 of it. So it is where trials come in
        random order, or where windows were shuffled. Where adjacent windows overlap, the nearest
        windows without a common step are paired.
    n_components : int, default=1200
        Largest number of principal components of the stacked features, and of the block with a map
        of its own.
    embedding_dim : int, default=4096
        Number of features. If it is below the number of components (up to `n_components`, and as
        many of the block with a map of its own), the directions that hold most of the variance of
        the embedding are kept.
    num_kernels : int, default=10_000
        Number of pairs of a kernel and a bias of MiniRocket, at least 84. MultiRocket has an
        eighth of it (at least 84), with four poolings each of the windows and of their differences,
        and Hydra 64 groups of eight kernels for 10,000.
    block_weights : "auto" or sequence of four to nine floats, default="auto"
        Shares of the variance of the blocks: statistics, autocorrelation, MiniRocket, MultiRocket,
        quantiles on intervals, Hydra, rhythm, covariance, and covariance of envelopes, each from 0
        to 1e6. A block of share 0, or without a share, is left out. "auto" takes
        ``(0.06, 0.03, 0.36, 0.15, 0.15, 0.25)``, and gives 0.15 of it to one of the last three:
        to the rhythm where the halves of windows predict more than 0.3 of the variance of its
        features (by ridge regressions whose ridge is 0.03 of the total variance); otherwise to the
        covariance if there are several channels, and to the envelopes of a single channel if its
        recordings are known and `kappa_` of the envelopes alone is above 1/2. Beside the rhythm,
        the six others have ``(0, 0.03, 0.32, 0.13, 0.3, 0.22)``; beside the covariance, if adjacent
        windows are the views, ``(0.6, 0.01, 0.15, 0.065, 0.065, 0.11)``.
    rho : float, default=1.5e-4
        Ridge of the regressions, as a share of the total variance; above 0 and at most 1e6.
    channels : {"auto", "recorded", "whitened"}, default="auto"
        Whether the channels are read as they were recorded, or as combinations that do not
        correlate (:class:`~sklearn_pulse.preprocessing.ChannelWhitener`). "auto" whitens four or
        more channels that share most of what they record, as electrodes of one head do: if the mean
        squared correlation of two of them is above 0.3, and the halves of windows do not predict
        the rhythm (above), as in ECGs of many leads.
    whitening : "auto" or float, default="auto"
        How far what views share is whitened, from 0 to 1. With 0 a direction counts by how much of
        the variance of the other view it predicts, with 1 by how well it predicts. "auto" is 0.5
        where ``block_weights="auto"`` takes the rhythm, and else 0. In ECGs the largest directions
        are the shapes of beats, which tell people apart.
    nearest : "auto" or float, default="auto"
        Weight of what a window shares with the nearest windows of other people, from 0 to 1,
        beside what it shares with the other view. So windows of one state come together, whoever
        they are of, which helps where labels are few. "auto" is 0.5 where no recording of two
        windows is known, as of trials, the covariance has a share in `block_weights_`, and the
        channels are read as they were recorded; and else 0, since some recordings gain and some
        lose.
    unpredicted : float, default=0.1
        Weight of what the other view need not predict, from 0 to 1, beside what it predicts. Single
        events, such as premature beats, of which the next window says little, ask for more of it.
    memory : None, str, path-like or joblib.Memory, default=None
        Folder where `fit` keeps what does not depend on `alpha`, `whitening`, `nearest`,
        `unpredicted` and `embedding_dim`, and `transform` the components of windows, so that a
        search over these parameters computes the features of each window once. It needs a
        `random_state` that is an int. A set of training windows takes about 300 MB there, and a
        window 5 KB: delete the folder after the search.
    device : str or torch.device, default="auto"
        Device of the convolutions, and of the products with their features; "auto" is CUDA where
        PyTorch finds a device.
    num_threads : int or None, default=None
        Number of threads of PyTorch and of the linear algebra, at most 1024. None keeps the
        present number.
    random_state : int, RandomState instance or None, default=None
        Seed of the kernels, of the sample of windows, and of the rotation.
    verbose : int, default=0
        Whether to show a progress bar of the pass over the windows, if they are more than 5,000.

    Attributes
    ----------
    alpha_ : float
        Share of the constant part that was removed.
    block_weights_ : ndarray of float64, of shape (9,)
        Shares of the blocks that were used.
    blocks_ : dict of str to transformer
        The fitted blocks, which read X in the layout, and pool bags, as the transformer did at
        `fit`; behind `channel_whitener_`, if there is one.
    channel_whitener_ : ChannelWhitener or None
        The fitted step that whitens the channels; None if they are read as they were recorded.
    channels_ : {"recorded", "whitened"}
        How the channels are read.
    kappa_ : float
        Share of what the views have in common that other windows of the recording lack.
        It is an estimate, from sums over pairs. Where pairs are few (less than about a hundred), or
        adjacent windows predict nothing (the directions of `predictability_`), it may lie far below
        0 or above 1: then it says nothing of the signal. It is 0 where the views have nothing in
        common, and NaN without a constant part.
        It falls as the people differ more, so that a small value does not say that recordings are
        one state each.
    n_pairs_ : int
        Number of pairs of views.
    nearest_ : float
        Weight of what the nearest windows of other people share.
    predictability_ : dict
        Share of the variance that the other view predicts: R2 of ridge regressions on half of the
        recordings, scored on the other half (a single recording is cut in the middle). It is
        negative where the mean would predict better, and NaN where nothing can be held out. Of
        fewer than about ten windows it says nothing, since features are centred by all of them.
        ``"directions"`` holds an array of the (at most) 20 directions with most of the variance of
        the embedding, the largest first, which tell whether there is anything to keep,
        ``"blocks"`` a number per block. A block is the mean of
        many columns, most of them noise of the sample, and may be negative where the directions
        are well predicted.
    small_directions_ : float
        Weight of the directions that hardly vary, each alone, and are many: of ``1 - unpredicted``,
        the share of what adjacent windows of held-out recordings have in common that lies there, at
        most 0.05. It is 0 where halves are the views or `whitening_` is above 0. Noise that is new
        in each window has nothing there.
    views_ : {"adjacent", "halves"}
        The views that were used.
    whitening_ : float
        How far what views share was whitened.

    See Also
    --------
    PulseTransformer : The trained encoder that keeps what predicts another crop.

    Notes
    -----
    Let f be the principal components of a window, V their second moments, C those of adjacent
    windows, and B those of all pairs of windows of a recording, weighted by the recording's
    number of windows. Then ``S = (1 - alpha) (C + B) / 2 + alpha (C - B)``,
    ``M = W S W^w`` and ``N = W (V - alpha B)``, where ``W = (V + rho tr V I)^-1`` and w is half of
    `whitening_`, each scaled to unit variance of f M and f N. The embedding is ``f R Q`` with
    ``R R' = (1 - u - t) M M' + u N N' + t D D'`` and a random rotation Q, so that scaling its
    columns does not whiten it. Here u is `unpredicted`, t is `small_directions_`, and D is a
    multiple of W. On half of the recordings, W and V of the other half leave
    ``tr (I - W V) C`` of what windows have in common; t is its share of ``tr C``, at most 0.05,
    times ``1 - u``. The rhythm, the covariance and the envelopes each have components, moments and
    a map R of their own, where t is 0, with their shares of the variance of the embedding. The
    variances of its columns have a mean of about one over the windows of `fit` (less where
    `embedding_dim` drops directions), and the columns of a window are rounded to hundredths. So
    columns in which two labelled windows hardly differ are equal there, and a probe leaves them
    out; else a scaler fitted on these two would give most weight to them.

    Adjacent windows overlap if their values say so: if the end of one and the beginning of the
    next, at least an eighth of a window and eight steps, are the same up to a shift and a scale.
    Then C and B are those of windows that share no step; of nearer ones, where this would leave
    less than half of the pairs.

    With a weight a of `nearest_`, S becomes ``(1 - a) S + a E[f_i f_j']`` over pairs of windows of
    different recordings each of which is among the nearest 5 % (at least three) of the other.
    Their distance is that of the embeddings ``f R`` with a weight of 0; of adjacent views, means
    of five windows are compared. Over the last twentieth of the squared distance that is near, the
    weight of a pair falls to 0. Windows whose recordings are not known count as recordings of
    their own.

    R holds eigenvectors, whose signs are fixed, so that fits on another number of threads or
    another device agree up to rounding. Directions of nearly equal weight may turn among
    themselves, which leaves scalar products and distances of embeddings as they are.

    Where halves predict each other, C is the covariance of f that the features of each half predict
    by a ridge regression, the mean over both, and without a constant part S is C. Windows of which
    one half is unobserved are left out: neither scales nor components nor variances take them in.

    Without two observed halves in any window, nothing predicts a window but the window itself: the
    embedding then holds the principal components, `n_pairs_` is 0, and a warning says so.

    The scales and principal components come from at most 5,000 windows, and so do the choices of
    ``views="auto"``, ``block_weights="auto"`` and ``channels="auto"``, the correlations of channels
    (of time steps at which all are observed), and the nearest windows; the other moments come
    from one pass over all windows. Memory does not grow with the number of windows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import CrossPredictionTransformer
    >>> X = np.random.default_rng(0).normal(size=(40, 64, 3))
    >>> cross = CrossPredictionTransformer(num_kernels=84, embedding_dim=32, random_state=0)
    >>> cross.fit(X, groups=np.arange(40) // 10).views_
    'adjacent'
    >>> cross.n_pairs_
    36
    >>> cross.transform(X).shape
    (40, 32)
    """

    predictability_: dict[str, Any]
    channels_: str
    channel_whitener_: ChannelWhitener | None
    whitening_: float
    nearest_: float
    small_directions_: float
    _unstored = ("block_weights_", "blocks_", "channel_whitener_")
    _uses_recordings = True
    _keeps_rows = False
    __metadata_request__fit = {"groups": None, "start": None, "recording": None}

    def __init__(
        self,
        alpha: str | float = "auto",
        *,
        views: str = "auto",
        n_components: int = 1200,
        embedding_dim: int = 4096,
        num_kernels: int = 10_000,
        block_weights: str | Sequence[float] = "auto",
        rho: float = 1.5e-4,
        channels: str = "auto",
        whitening: str | float = "auto",
        nearest: str | float = "auto",
        unpredicted: float = 0.1,
        memory: Any = None,
        bag_pooling: BagPooling = "mean",
        device: str | torch.device = "auto",
        num_threads: int | None = None,
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.views = views
        self.n_components = n_components
        self.embedding_dim = embedding_dim
        self.num_kernels = num_kernels
        self.block_weights = block_weights
        self.rho = rho
        self.channels = channels
        self.whitening = whitening
        self.nearest = nearest
        self.unpredicted = unpredicted
        self.memory = memory
        self.bag_pooling = bag_pooling
        self.device = device
        self.num_threads = num_threads
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        if not is_auto(self.alpha):
            check_real("alpha", self.alpha, 0.0, 1.0, open_maximum=False, or_auto=True)
        check_option("views", self.views, ("auto", "adjacent", "halves"))
        check_integer("n_components", self.n_components, 1)
        check_integer("embedding_dim", self.embedding_dim, 1)
        check_integer("num_kernels", self.num_kernels, N_KERNELS)
        check_weights(self.block_weights)
        check_real(
            "rho",
            self.rho,
            0.0,
            _LARGEST_RHO,
            open_minimum=True,
            open_maximum=False,
            example=1.5e-4,
        )
        check_option("channels", self.channels, ("auto", "recorded", "whitened"))
        if not is_auto(self.whitening):
            check_real("whitening", self.whitening, 0.0, 1.0, open_maximum=False, or_auto=True)
        if not is_auto(self.nearest):
            check_real("nearest", self.nearest, 0.0, 1.0, open_maximum=False, or_auto=True)
        check_real("unpredicted", self.unpredicted, 0.0, 1.0, open_maximum=False, example=0.1)
        resolve_device(self.device)
        check_seed("random_state", self.random_state)
        check_verbose(self.verbose)

    def _check_params_read_later(self) -> None:
        super()._check_params_read_later()
        check_threads(self.num_threads)
        as_memory(self.memory)

    def fit(
        self,
        X: ArrayLike,
        y: None = None,
        *,
        groups: ArrayLike | None = None,
        start: ArrayLike | None = None,
        recording: ArrayLike | None = None,
    ) -> CrossPredictionTransformer:
        """Fit the blocks, and the map to what predicts the other view.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows. 2-D data of shape (n_samples, n_timesteps) is univariate; 4-D data of shape
            (n_samples, n_windows, n_timesteps, n_channels) are bags of windows, each a recording.
        y : None
            Ignored; present for pipelines.
        groups : array-like of shape (n_samples,) or None, default=None
            Person of each window, whose constant part is removed; also its recording, unless
            `recording`, lazy windows or bags tell it. Groups that divide recordings of lazy windows
            are no people, and are not read. None under ``views="adjacent"``, where no recordings
            are known, means that all windows are of one recording.
        start : array-like of shape (n_samples,) or None, default=None
            Time of each window in its recording, numbers or `datetime64`; of shape
            (n_samples, n_windows) for bags, where windows that are missing may lack a time. Windows
            that are more than one and a half times as far apart as is usual in their recording (as
            the median; of two windows, in all recordings) are not adjacent. None means that the
            windows of a recording are given in order, without gaps.
        recording : array-like of shape (n_samples,) or None, default=None
            Recording of each window, if `groups` are people who have several; those that people
            share by number stay apart. It is not read where lazy windows or bags know theirs. None
            means `groups`.

        Returns
        -------
        CrossPredictionTransformer
            The fitted transformer.

        Raises
        ------
        TypeError
            If a parameter or `X` is of a wrong kind.
        ValueError
            If a parameter is out of its range, or `X` holds an infinity, a sample without an
            observed time step, or no windows at all; if `groups`, `start` or `recording` does not
            fit `X`; if `rho` is too small; or if no two windows are adjacent under
            ``views="adjacent"``.

        Warns
        -----
        UserWarning
            If no window has two observed halves where these are the views, if `start` is given
            under ``views="auto"`` and no recording of the windows is known, if `start` repeats
            within a recording, if all windows have the same features, or if `memory` is given
            without a `random_state`.
        """
        return self._fit_in_pieces(in_turn, X, groups, start, recording)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and embed the same windows.

        The embedding is that of `fit` and `transform`, in less time: up to 5,000 windows, whose
        features the fit holds in memory, have their features computed once. With a `memory`, they
        are computed again.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows, as in `fit`.
        y : None
            Ignored; present for pipelines.
        **fit_params : dict
            Other parameters of `fit` and `transform`.

        Returns
        -------
        ndarray of float32, of shape (n_samples, embedding_dim)
            One row per sample.
        """
        self._keeps_rows = self.memory is None  # else it would keep them on a disk
        try:
            return super().fit_transform(X, y, **fit_params)
        finally:
            self.__dict__.pop("_keeps_rows", None)
            if hasattr(self, "_stack"):
                self._stack.known = None

    def _fit_in_pieces(
        self,
        run: Run,
        X: Any,
        groups: ArrayLike | None,
        start: ArrayLike | None,
        recording: ArrayLike | None,
    ) -> CrossPredictionTransformer:
        """Fit, where `run` computes the sums over pieces of the windows, here or elsewhere."""
        self._check_params()
        with unchanged_on_failure(self), limited_threads(self.num_threads), overflow_is_found():
            windows = check_windows(self, X, reset=True, groups=groups)
            people = take_recordings(windows, recording)
            times = check_start(start, windows)  # before all windows are read
            usable = np.flatnonzero(windows.scan())
            order = in_order(windows, times, usable, people)
            self._seed = draw_seed(self.random_state)
            self._warn_of_start(windows, times, usable, is_given=start is not None)
            self._warn_of_memory()
            views, weights, prepared = prepared_once(
                as_memory(self.memory),
                self._preparation(all_weights(USUAL_WEIGHTS)),
                run,
                Request(windows, order, str(self.views), self.block_weights, str(self.channels)),
            )
            self.views_, self.block_weights_ = views, weights
            self._note_channels(prepared.stack.whitener)
            if views == "halves" and prepared.n_pairs == 0:
                warn_user(
                    "No window of X has an observed time step in both halves: nothing predicts a"
                    " window but itself, and the embedding holds the principal components of the"
                    " features. Pass longer windows, or groups."
                )
            self.whitening_ = self._choose_whitening()
            self.nearest_ = self._choose_nearest(windows, order)
            found = fit_map(prepared, self._map_settings())
            self._stack, self._map, self.n_pairs_ = prepared.stack, found.map, prepared.n_pairs
            self.alpha_, self.kappa_ = found.alpha, found.kappa
            self.small_directions_ = found.small_directions
            self.predictability_ = found.predictability
            if not self._map.any():
                warn_user(
                    "All windows of X have the same features, so that every embedding is zero: pass"
                    " windows that differ. If they differ by less than float32 holds, subtract the"
                    " mean of each channel first."
                )
            self.blocks_ = self._stack.by_name()
            self._note_params()
        return self

    def _warn_of_start(
        self,
        windows: CheckedWindows,
        times: NDArray[Any],
        usable: NDArray[np.intp],
        *,
        is_given: bool,
    ) -> None:
        """Warn if `start` was given and is not read, or repeats within a recording."""
        if not is_given or self.views == "halves":
            return
        if recordings_are_known(windows, self.views):
            if text := text_of_repeats(windows, times, usable):
                warn_user(text)
        else:
            warn_user(
                "start is not used, since no recording of the windows is known: pass groups, or set"
                " views='adjacent' if all windows are of one recording."
            )

    def _warn_of_memory(self) -> None:
        """Warn if no other fit can find what this one keeps."""
        seed: Any = self.random_state
        if self.memory is not None and (seed is None or seed is np.random):
            warn_user(
                "memory finds nothing that another fit kept, since each fit draws another seed:"
                " pass an int as random_state."
            )

    def _note_channels(self, whitener: ChannelWhitener | None) -> None:
        """Set how the channels are read."""
        self.channel_whitener_ = whitener
        self.channels_ = "recorded" if whitener is None else "whitened"

    def _choose_whitening(self) -> float:
        """Return how far to whiten, under the shares that were chosen."""
        if not isinstance(self.whitening, str):
            return float(self.whitening)
        chosen = isinstance(self.block_weights, str)
        return automatic_whitening(self.block_weights_) if chosen else 0.0

    def _choose_nearest(self, windows: CheckedWindows, order: Ordered) -> float:
        """Return the weight of the nearest windows, under the shares that are used."""
        if not isinstance(self.nearest, str):
            return float(self.nearest)
        if self.channel_whitener_ is not None:  # electrodes, whose nearest trials say little
            return 0.0
        known = recordings_are_known(windows, self.views_)
        if known and (np.diff(order.recording) == 0).any():  # some recording has two windows
            return 0.0
        return automatic_nearest(self.block_weights_)

    def _preparation(self, block_weights: NDArray[np.float64]) -> Preparation:
        """Return the settings of what is computed before the map, with shares of the blocks."""
        return Preparation(
            block_weights,
            n_components=int(self.n_components),
            num_kernels=int(self.num_kernels),
            rho=float(self.rho),
            seed=self._seed,
            device=self.device,
            num_threads=self.num_threads,
            verbose=int(self.verbose),
            bag_pooling=self.bag_pooling,
            input_layout=self.input_layout,
            keeps_rows=self._keeps_rows,
        )

    def _map_settings(self) -> MapSettings:
        """Return the settings of the map, of which "auto" was chosen."""
        return MapSettings(
            self.alpha,
            rho=float(self.rho),
            whitening=self.whitening_,
            nearest=self.nearest_,
            unpredicted=float(self.unpredicted),
            embedding_dim=int(self.embedding_dim),
            seed=self._seed,
        )

    def _weights(self) -> dict[str, Tensor]:
        seed = np.array(self._seed, dtype=np.int64)
        arrays: dict[str, NDArray[Any]] = {"map": self._map, "seed": seed}
        arrays |= self._stack.arrays() | arrays_of(self.channel_whitener_)
        if isinstance(self.block_weights, str):  # else the parameter says them
            arrays["block_weights"] = self.block_weights_
        blocks = {
            f"{name}.{weight}": value
            for name, block in self.blocks_.items()
            for weight, value in block._weights().items()
        }
        return {name: tensor_of(value) for name, value in arrays.items()} | blocks

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        self._seed = int(stored_array(weights, "seed", np.int64, ()))
        used: Any = self.block_weights
        if isinstance(used, str):
            used = stored_array(weights, "block_weights", np.float64, (None,))
            check_weights(used)
        self.block_weights_ = all_weights(used)
        self.whitening_ = getattr(self, "whitening_", 0.0)  # files of earlier versions lack it
        self.nearest_ = getattr(self, "nearest_", 0.0)
        self.small_directions_ = getattr(self, "small_directions_", 0.0)
        self._stack = self._preparation(self.block_weights_).new_stack()
        if getattr(self, "channels_", "recorded") == "whitened":
            self._stack.whitener = restored(weights, self.n_channels_in_, self.input_layout)
        self._note_channels(self._stack.whitener)
        self._stack.restore(weights, self.n_timesteps_in_, self.n_channels_in_)
        shape = (self._stack.components.shape[1], int(self.embedding_dim))
        self._map = stored_array(weights, "map", np.float32, shape)
        self.blocks_ = self._stack.by_name()
        self._note_params()

    def _check_input_length(self, n_timesteps: int) -> None:
        for block in self.blocks_.values():
            block._check_input_length(n_timesteps)

    def _features(self, block: Block) -> NDArray[np.float32]:
        return self._computation()(block)

    def _computation(self) -> Callable[[Block], NDArray[np.float32]]:
        # Once for all blocks: it hashes large matrices if there is a memory, or copies them to a
        # GPU.
        for transformer in self.blocks_.values():
            if isinstance(transformer, BaseConvolutionTransformer):
                transformer.device = self.device  # which may have been set since `fit`
        self._stack.device = self.device
        memory = as_memory(self.memory)
        project = components(memory, self._stack, self._stack.projection())
        embed = FixedShapeProduct(self._map, resolve_device(self.device))

        def compute(block: Block) -> NDArray[np.float32]:
            features = np.empty((len(block.x), self._n_features_out), dtype=np.float32)
            with limited_threads(self.num_threads):
                for first in range(0, len(features), CHUNK):
                    part = slice(first, first + CHUNK)
                    seen = None if block.observed is None else block.observed[part]
                    f = project(Block(block.x[part], seen))
                    features[part] = np.round(embed(f), _DECIMALS)
            return features

        return compute

    @property
    def _n_features_out(self) -> int:
        return int(self._map.shape[1])
