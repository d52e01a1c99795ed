"""From checked windows to embeddings, through the encoder of an objective."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._data._batches import stream_blocks
from .._data._pooling import collect, pooled
from .._data._validation import check_fitted_length, check_windows
from .._data._windows import Block, CheckedWindows
from .._docstrings import complete_docstring
from .._export import EncoderGraph
from .._parameters import (
    LAYOUTS,
    check_boolean,
    check_integer,
    check_option,
    check_seed,
    check_spelled_out,
    check_threads,
    plain,
)
from .._persistence import (
    PretrainedMixin,
    check_finite,
    check_sizes,
    encode,
    same_when_stored,
)
from .._signals import SignalTransformerMixin, check_signals
from .._tags import WindowTags, of_windows
from .._threads import n_workers, threads
from .._training._device import memory_errors, resolve_device
from .._training._history import count_earlier
from .._training._iterator import Batch
from .._training._net import SSLNet
from .._training._torch_state import own_torch_state
from ..networks import run_parts
from ..objectives._base import Objective
from ._complete import embedding_width

_BLOCK_STEPS = {"cpu": 2**12, "cuda": 2**18, "mps": 2**16}  # time steps (or tokens) of a block
_CPU_STEPS_BFLOAT16 = 2**13  # products are so fast that the fixed costs of a block weigh more
_MAX_BLOCK = {"cpu": 256, "cuda": 4096, "mps": 1024}  # windows of a block
_BLOCKS_PER_THREAD = 4  # so that a thread that is held up does not keep the others waiting
_PROBE_STEPS = 256  # time steps of a window that tests whether stored weights embed
_TOO_MUCH = "The windows need too much memory: cut them shorter, or set device='cpu'."


@complete_docstring
class WindowEmbedder(
    PretrainedMixin,
    ClassNamePrefixFeaturesOutMixin,
    SignalTransformerMixin,
    BaseEstimator,
):
    """Windows to embeddings through the encoder of an objective, trained or not.

    A subclass stores its parameters in `__init__`, names the class of its objective in
    ``_objective_class`` and the parameters that build the objective in ``_objective_names``.
    Its docstring describes its own parameters and attributes; :func:`complete_docstring` fills in
    the shared ones.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The fitted encoder, from windows of shape (batch, n_timesteps, n_channels) to embeddings of
        shape (batch, embedding_dim).
    net_ : skorch.NeuralNet
        The fitted net; ``net_.module_`` is the objective.
    n_timesteps_in_ : int or None
        Number of time steps of a window at `fit`; None if it is unknown, as for converted
        weights.
    n_channels_in_ : int
        Number of channels at `fit`.
    sampling_rate_in_ : float or None
        Sampling rate of the windows at `fit`, in Hz; None if it is unknown.
    channel_names_in_ : ndarray of str of shape (n_channels,) or None
        Names of the channels at `fit`; None if they are unknown.
    amplitude_in_ : ndarray of float64, of shape (2, n_channels), or None
        The 5th and the 95th percentile of the root mean squares of 64 windows of `fit`. A warning
        tells of windows that are thirty times larger or smaller, as if they had another unit. NaN
        for a channel that is zero throughout; None if the fit is not known.
    n_features_in_ : int
        Number of columns of 2-D data at `fit`, or of channels of other data.
    feature_names_in_ : ndarray of str
        Names of the columns at `fit`, if X was a data frame with names.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from sklearn_pulse import RandomEncoderTransformer
    >>> from sklearn_pulse.base import WindowEmbedder
    >>> X = np.random.default_rng(0).normal(size=(4, 32, 2))
    >>> embedder = RandomEncoderTransformer(embedding_dim=8, random_state=0).fit(X)
    >>> isinstance(embedder, WindowEmbedder), embedder.transform(X[:, :20]).shape
    (True, (4, 8))
    >>> embedder.encoder_(torch.zeros(1, 20, 2)).shape  # the network, for a program of your own
    torch.Size([1, 8])
    """

    _objective_class: type[Objective]
    _objective_names: tuple[str, ...] = ("embedding_dim",)  # parameters passed to the objective
    _min_batch_size = 1  # a method that contrasts windows sets 2
    _variable_length = True  # whether `transform` takes windows of another length than `fit`
    _uses_recordings = False  # whether training reads which recording a window comes from
    _reads_scale = True  # whether windows in another unit have other features
    _poolings: tuple[str, ...] = ("max", "mean")  # what `pooling` may be
    _layouts: tuple[str | None, ...] = LAYOUTS  # what `input_layout` may be
    _unstored: tuple[str, ...] = ("net_",)
    _remedy_by_training = ""  # what to do if embeddings are not finite, beside a change of X
    net_: SSLNet

    # Parameters that every subclass has.
    embedding_dim: int
    encoder_hidden_dim: int
    encoder_depth: int
    pooling: str
    bag_pooling: str
    precision: str
    compile: bool
    device: str | torch.device
    num_threads: int | None

    # Parameters that some subclasses have, and what their absence means.
    sampling_rate: float | None = None
    channel_names: Sequence[str] | None = None

    # Set by `fit`.
    n_timesteps_in_: int
    n_channels_in_: int
    n_features_in_: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_spelled_out(cls)
        complete_docstring(cls)

    def _objective_params(self) -> dict[str, Any]:
        """Return the arguments that build the objective, beside `n_channels` and `seed`."""
        # Copies, since a module among them is trained, and a fit changes no parameter. Two names of
        # one module are copied together.
        return copy.deepcopy({name: getattr(self, name) for name in self._objective_names})

    def _check_params(self) -> None:
        """Raise if a parameter is out of its range."""
        for name in ("embedding_dim", "encoder_hidden_dim", "encoder_depth"):
            check_integer(name, getattr(self, name), 1)
        check_option("pooling", self.pooling, self._poolings)
        check_option("precision", self.precision, ("float32", "bfloat16"))
        check_boolean("compile", self.compile)
        self._check_params_read_later()
        check_seed("random_state", self.random_state)
        check_signals(self.sampling_rate, self.channel_names)

    def _check_params_read_later(self) -> None:
        """Raise if a parameter that is read after `fit` too is out of its range."""
        check_option("bag_pooling", self.bag_pooling, ("mean", "max"))
        check_option("input_layout", self.input_layout, self._layouts)
        check_threads(self.num_threads)

    @property
    def encoder_(self) -> torch.nn.Module:
        """The fitted encoder."""
        return self.net_.module_.encoder

    @property
    def _n_features_out(self) -> int:
        return embedding_width(self.net_.module_)

    @property
    def _device(self) -> torch.device:
        """Device that the parameter `device` names."""
        return resolve_device(self.device)

    def _net_params(self) -> dict[str, Any]:
        """Return the settings of the net that parameters of every estimator give."""
        return {
            "device": str(self._device),
            "precision": self.precision,
            "compile": self.compile,
        }

    def _build_net(self, seed: int, **settings: Any) -> SSLNet:
        # One integer seeds everything, through streams that do not overlap.
        net_seed, objective_seed = np.random.SeedSequence(seed).generate_state(2).tolist()
        params = self._objective_params() | {"n_channels": self.n_channels_in_}
        objective = {f"module__{name}": plain(value) for name, value in params.items()}
        objective["module__seed"] = objective_seed
        settings = self._net_params() | {name: plain(value) for name, value in settings.items()}
        return SSLNet(self._objective_class, seed=net_seed, **objective, **settings)

    def transform(
        self,
        X: ArrayLike,
        *,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> NDArray[np.float32]:
        """Embed windows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows; 2-D data is univariate, 4-D data are bags of windows, of shape (n_samples,
            n_windows, n_timesteps, n_channels), whose embeddings are pooled. The number of time
            steps of 3-D data may differ from that of `fit`.

        Returns
        -------
        ndarray of float32, of shape (n_samples, embedding_dim)
            One embedding per sample.

        Raises
        ------
        ValueError
            For channels or a sampling rate other than those of `fit`, an infinity, a sample without
            a finite step, or values so large that an embedding is not finite.
        """
        return self._embed(self._check_input(X, (sampling_rate, channel_names)))

    def _check_input(self, X: ArrayLike, stated: tuple[Any, Any]) -> CheckedWindows:
        """Check the input of a method that needs a fitted estimator."""
        check_is_fitted(self)
        self._check_params_read_later()
        windows = check_windows(self, X, reset=False, stated=stated, layout=self._layout)
        self._check_input_length(windows.n_timesteps)
        return windows

    def _embed(self, windows: CheckedWindows) -> NDArray[np.floating[Any]]:
        """Return one embedding per sample, which may be a bag."""
        width = self._n_features_out

        def encode(**batch: Tensor) -> Tensor:
            rows = self.net_.module_.encode(**batch)
            _check_embeddings(rows, (len(batch["x"]), width), self.net_.module_)
            return rows

        rows, usable = self._compute(windows, encode, (width,))
        return pooled(windows, rows, usable, self.bag_pooling)

    def _compute(
        self,
        windows: CheckedWindows,
        compute: Callable[..., torch.Tensor],
        shape: tuple[int, ...],
        *,
        nan_allowed: bool = False,
    ) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]:
        """Compute an array of `shape` for each window, and find the windows with a finite step."""
        with threads(self.num_threads), memory_errors(_TOO_MUCH):
            found = collect(
                windows,
                self._blocks(windows, compute),
                shape,
                self.net_.module_.steps_read,
                nan_allowed=nan_allowed,
                remedy=self._remedy_by_training,
            )
        self.net_.report_compilation()
        return found

    def _blocks(
        self, windows: CheckedWindows, compute: Callable[..., torch.Tensor]
    ) -> Iterator[tuple[NDArray[np.intp], Block, NDArray[np.float32]]]:
        """Yield what is computed of a few windows at a time.

        Every block has the same shape, filled up with zeros: kernels round differently for
        different shapes, and a row must not depend on the number of rows beside it.
        """
        net = self.net_
        device = torch.device(net.device)
        # A transformer may read several tokens per time step, such as one per channel.
        n_steps = windows.n_timesteps * net.module_.tokens_per_step
        most = _BLOCK_STEPS[device.type]
        if device.type == "cpu" and net.precision == "bfloat16":
            most = _CPU_STEPS_BFLOAT16
        size = max(1, min(most // n_steps, _MAX_BLOCK[device.type]))
        net.module_.eval()
        blocks = self._stream(windows, size, device)
        if device.type == "cpu":
            yield from _side_by_side(blocks, compute, net)
            return
        before = None  # the results of a block are read when the next block is under way
        for index, block, batch in blocks:
            with torch.inference_mode(), net.autocast():
                rows = compute(**batch).float()
            if before is not None:
                yield _fetched(*before)
            before = index, block, rows
        if before is not None:
            yield _fetched(*before)

    def _stream(
        self, windows: CheckedWindows, size: int, device: torch.device
    ) -> Iterator[tuple[NDArray[np.intp], Block, Batch]]:
        """Yield windows in blocks of `size`, with what the objective takes of each."""
        return stream_blocks(windows, size, device)

    def _check_input_length(self, n_timesteps: int) -> None:
        """Raise if windows have a length that the method does not take."""
        if not self._variable_length:
            check_fitted_length(self, n_timesteps)

    def _longest_trained(self) -> int:
        """Return the length of the longest windows that the weights were trained on, if known."""
        return max(self.n_timesteps_in_ or 0, vars(self).get("n_timesteps_trained_", 0))

    def _weights(self) -> dict[str, Tensor]:
        """Copy the weights of the net to the CPU.

        A weight that two names share is copied and written under both names, since safetensors
        refuses shared memory. The net that reads the weights ties them again.
        """
        weights = {}
        for name, value in self.net_.module_.state_dict().items():
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"the state of the net holds {name!r}, a {type(value).__name__} instead of a"
                    " tensor: pickle the transformer instead."
                )
            weights[name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
        return weights

    def _training_record(self) -> tuple[list[dict[str, Any]], int | None, int]:
        return list(self.net_.history), self.net_.selected_epoch_, self.net_.n_earlier_

    def _probe_length(self) -> int:
        if self._variable_length:
            return min(self.n_timesteps_in_ or _PROBE_STEPS, _PROBE_STEPS)
        return self.n_timesteps_in_

    def _check_unchanged(self, twin: Any) -> None:
        fitted, stored = settings_of(self.net_), settings_of(twin._build_net(seed=0))
        remedy = "Set the parameter back, or fit again."
        if fitted.keys() != stored.keys():  # a parameter chooses between objectives
            own, others = (
                sorted(a.keys() - b.keys()) for a, b in ((fitted, stored), (stored, fitted))
            )
            raise ValueError(
                f"its net was fitted with settings {own}, and the parameters that a file holds"
                f" would build it with {others} instead. {remedy}"
            )
        for name, value in fitted.items():
            if not same_when_stored(value, stored[name]):
                try:
                    encode(value)
                except TypeError:  # such as a module
                    remedy = "A file cannot hold the former: pickle the transformer instead."
                raise ValueError(
                    f"its net was fitted with {name}={value!r}, and the parameters that a file"
                    f" holds would build it with {stored[name]!r}. {remedy}"
                )

    def _restored_settings(self) -> dict[str, Any]:
        """Return the settings of a restored net that its parameters do not give."""
        return {}

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        net = self._build_net(seed=0, verbose=0, **self._restored_settings())
        with own_torch_state():
            check_sizes(lambda: net.module(**net.get_params_for("module")), weights)
        net.initialize()
        net.module_.load_state_dict(weights)
        check_finite(net.module_.named_parameters())
        self.net_ = net

    def _restore_training(
        self,
        history: Sequence[dict[str, Any]],
        selected_epoch: int | None,
        n_earlier: int | None,
    ) -> None:
        self.net_.history.extend({"batches": [], **epoch} for epoch in history)
        self.net_.selected_epoch_ = selected_epoch
        self.net_.n_earlier_ = count_earlier(history) if n_earlier is None else n_earlier

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "onnx",
        units: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Write the network as a graph, for programs without Python.

        The graph reads windows of shape (batch, n_timesteps, n_channels), float32, channels last,
        where NaN is missing. It gives what `transform` gives, that of a classifier what
        `predict_proba` gives, that of a regressor what `predict` gives.
        :func:`sklearn_pulse.export` does the same for a pipeline, and says more.

        Parameters
        ----------
        path : path-like
            The file; an earlier file is replaced.
        format : {"onnx", "torch"}, default="onnx"
            "onnx" for onnxruntime and others, which needs the extra ``export``; "torch" for
            :func:`torch.export.load`.
        units : sequence of str or None, default=None
            Unit of each channel, for the signature.

        Returns
        -------
        dict
            The signature, which the file holds too.

        Raises
        ------
        ImportError
            If a package that the format needs is not installed.
        ValueError
            If torch cannot write the network as a graph for every batch.
        """
        from .._chain import export  # loads what few users of an encoder need

        return export(self, path, format=format, units=units)

    def _as_graph(self) -> EncoderGraph:
        """Return a copy of the encoder as a network of its own, on the CPU."""
        return EncoderGraph(copy.deepcopy(self.net_.module_).cpu())

    def __sklearn_tags__(self) -> WindowTags:
        tags = WindowTags.of(
            super().__sklearn_tags__(),
            variable_length=self._variable_length,
            uses_recordings=self._uses_recordings,
        )
        return of_windows(tags)


def settings_of(net: SSLNet) -> dict[str, Any]:
    """Return the settings that the weights of a net depend on, except its seed and its source."""
    return {
        key.removeprefix("module__"): value
        for key, value in net.get_params(deep=False).items()
        if (key.startswith("module__") or key == "precision")
        and key not in ("module__seed", "module__source")
    }


def _side_by_side(
    blocks: Iterator[tuple[NDArray[np.intp], Block, Batch]],
    compute: Callable[..., torch.Tensor],
    net: SSLNet,
) -> Iterator[tuple[NDArray[np.intp], Block, NDArray[np.float32]]]:
    """Yield what is computed of several blocks at a time, each in a thread of its own.

    The bits of a block do not depend on the number of threads.
    """

    def rows_of(batch: Batch) -> tuple[torch.Tensor]:
        with threads(1):  # also if the block is alone, in the thread of the caller
            return (compute(**batch).float(),)

    while group := list(itertools.islice(blocks, _BLOCKS_PER_THREAD * n_workers())):
        with torch.inference_mode(), net.autocast():
            rows = run_parts(rows_of, [(batch,) for _, _, batch in group], ())
        for (index, block, _), (part,) in zip(group, rows, strict=True):
            yield _fetched(index, block, part)


def _check_embeddings(rows: Any, shape: tuple[int, int], objective: Objective) -> None:
    """Raise unless an objective, which may be a user's own, returned one row per window."""
    found = tuple(rows.shape) if isinstance(rows, Tensor) else type(rows).__name__
    if found != shape:
        raise TypeError(
            f"{type(objective).__name__}.encode must return one tensor of shape (batch,"
            f" embedding_dim), here {shape}, got {found}: let the encoder, or an encode of the"
            " objective, return embeddings alone, as wide as the encoder's embedding_dim says;"
            " where they are wider, let the estimator override _n_features_out."
        )


def _fetched(
    index: NDArray[np.intp], block: Block, rows: torch.Tensor
) -> tuple[NDArray[np.intp], Block, NDArray[np.float32]]:
    return index, block, rows[: len(index)].cpu().numpy()


class BaseEncoderTransformer(WindowEmbedder):
    """Windows to embeddings through an encoder that needs no labels, trained or not.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import RandomEncoderTransformer
    >>> from sklearn_pulse.base import BaseEncoderTransformer
    >>> bags = np.random.default_rng(0).normal(size=(4, 3, 32, 2))  # 4 bags of 3 windows
    >>> embedder = RandomEncoderTransformer(embedding_dim=8, random_state=0)
    >>> isinstance(embedder, BaseEncoderTransformer), embedder.fit_transform(bags).shape
    (True, (4, 8))
    """
