"""At home in sktime: our transformers as sktime's, on panels of every kind.

This module needs sktime (``pip install sklearn-pulse[sktime]``); nothing else in the package
imports it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from ._embedding import WindowEmbedder
from ._progress import CallbackSupportMixin, with_callbacks
from ._pulse import PulseTransformer
from .windows._panel import Panel, is_panel_frame, read_frame, read_frames

try:
    from sktime.transformations.base import BaseTransformer
except ImportError as error:
    raise ImportError(
        "sklearn_pulse.panel needs sktime: pip install sklearn-pulse[sktime]"
    ) from error

__all__ = ["PanelTransformer", "PulsePanelTransformer", "as_panel_transformer"]

_MTYPES = ["numpy3D", "pd-multiindex", "df-list", "nested_univ", "pd_multiindex_hier"]
# What scikit-learn's callbacks store in an estimator, before its fit and during it.
_CALLBACK_STATE = (
    "_parent_callback_ctx",
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
)
_SMALL: dict[str, Any] = {
    "embedding_dim": 4,
    "encoder_hidden_dim": 4,
    "encoder_depth": 1,
    "max_epochs": 1,
    "num_threads": 1,
    "random_state": 0,
}


class _PanelAdapter(CallbackSupportMixin, BaseTransformer):
    """A transformer of windows behind sktime's interface.

    A subclass stores its parameters in `__init__` and says in `_build_estimator` which
    transformer they mean.
    """

    _tags = {
        "authors": "sklearn_pulse developers",
        "maintainers": "sklearn_pulse developers",
        "python_dependencies": ["torch", "skorch"],
        "scitype:transform-input": "Series",
        "scitype:transform-output": "Primitives",
        "scitype:instancewise": False,  # one encoder is trained on all instances
        "X_inner_mtype": _MTYPES,
        "y_inner_mtype": "None",
        "requires_y": False,
        "fit_is_empty": False,
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:unequal_length:removes": True,
        "capability:missing_values": True,
        "capability:missing_values:removes": True,
        "capability:categorical_in_X": False,
        "capability:random_state": True,
        "property:randomness": "derandomized",
    }

    def _build_estimator(self) -> Any:
        """Return the transformer that is to be fitted."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it wraps")

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> _PanelAdapter:
        """Train the encoder on all instances; labels are never used.

        Parameters
        ----------
        X : panel
            Of one of sktime's mtypes: "numpy3D" (n_instances, n_channels, n_timesteps),
            "pd-multiindex", "df-list", "nested_univ", or "pd_multiindex_hier", whose series are
            the instances. A single series is a panel of one. Series may differ in length, and
            NaN is missing: what lacks is masked.
        y : Ignored
            Present for pipelines.

        Returns
        -------
        self
            The fitted transformer.

        Raises
        ------
        TypeError, ValueError
            For a parameter out of its range, an irregular time index, channels of different names,
            an infinity, or an instance without a finite step.
        """
        self._init_callback_context(max_subtasks=1)
        return super().fit(X, y)

    def reset(self) -> _PanelAdapter:
        """Forget what was fitted, and keep what scikit-learn's callbacks have stored.

        sktime's `fit` begins with a reset, inside the context that a pipeline or search of
        scikit-learn (1.9 and later) has set up and will take down.
        """
        kept = {name: vars(self)[name] for name in _CALLBACK_STATE if name in vars(self)}
        super().reset()
        vars(self).update(kept)
        return self

    def _fit(self, X: Any, y: None = None) -> _PanelAdapter:
        panel = _read(X)
        windows = _as_windows(panel)
        estimator = self._build_estimator()
        windows = _in_layout(windows, estimator)
        context = getattr(self, "_callback_fit_ctx", None)  # none before scikit-learn 1.9
        if context is None:
            estimator.fit(windows, None)
        else:
            data = {"X": X, "y": None}
            context.call_on_fit_task_begin(estimator=self, **data)
            subcontext = context.subcontext(task_name="fit-encoder")
            with subcontext.propagate_callback_context(estimator):
                subcontext.call_on_fit_task_begin(estimator=self, **data)
                estimator.fit(windows, None)
                subcontext.call_on_fit_task_end(estimator=self, **data)
            context.call_on_fit_task_end(estimator=self, **data)
        self.estimator_ = estimator
        self.channel_names_ = panel.channels
        self.unequal_length_ = _is_unequal(panel)
        return self

    def _transform(self, X: Any, y: None = None) -> Any:
        from pandas import DataFrame

        panel = _read(X)
        self._check_channel_names(panel.channels)
        windows = _as_windows(panel, self._padded_length(panel))
        embedding = np.asarray(self.estimator_.transform(_in_layout(windows, self.estimator_)))
        return DataFrame(embedding, index=panel.instances, columns=self.get_feature_names_out())

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` gives.

        Parameters
        ----------
        input_features : Ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        ndarray of str
            Those of the wrapped transformer, "pulsetransformer0" and so on.
        """
        self.check_is_fitted()
        return self.estimator_.get_feature_names_out()

    def set_output(self, *, transform: str | None = None) -> _PanelAdapter:
        """Take part in `set_output` of a scikit-learn pipeline; the output is pandas anyway.

        Parameters
        ----------
        transform : {"default", "pandas"} or None, default=None
            Changes nothing.

        Returns
        -------
        self
            The transformer.

        Raises
        ------
        ValueError
            For another container.
        """
        if transform not in (None, "default", "pandas"):
            raise ValueError(
                f"{type(self).__name__} gives a pandas DataFrame, as sktime's transformers do, not"
                f" {transform!r}: set transform='pandas', or convert its output."
            )
        return self

    def _padded_length(self, panel: Panel) -> int:
        """Return how long series must be made at least.

        Where lengths differ, series are filled up to those of fit, so that an embedding does not
        depend on how long the other instances of the panel happen to be.
        """
        if self.unequal_length_ or _is_unequal(panel):
            return self.estimator_.n_timesteps_in_ or 0
        return 0

    def _check_channel_names(self, channels: list[str] | None) -> None:
        known = self.channel_names_
        if known is None or channels is None or channels == known:
            return
        raise ValueError(
            f"X has the channels {channels}, but {type(self).__name__} was fitted on {known}:"
            f" select and order them, X[{known}], or rename them if they mean the same."
        )


class PanelTransformer(_PanelAdapter):
    """Any transformer of windows as one of sktime's, on panels.

    Parameters
    ----------
    estimator : transformer of this package
        For example `PulseTransformer` or `TS2VecTransformer`, in either `input_layout`. A clone is
        fitted. A fitted one stays as it is inside :class:`sklearn.frozen.FrozenEstimator`.

    Attributes
    ----------
    estimator_ : transformer
        The fitted one, on arrays in its `input_layout`.
    channel_names_ : list of str or None
        The channels of `fit`, where they had names.
    unequal_length_ : bool
        Whether the instances of `fit` differed in length.

    See Also
    --------
    PulsePanelTransformer : PULSE, with its own parameters.
    as_panel_transformer : The same as a function.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import RandomEncoderTransformer
    >>> from sklearn_pulse.panel import PanelTransformer
    >>> X = np.random.default_rng(0).normal(size=(5, 3, 40))  # numpy3D: 3 channels, 40 steps
    >>> encoder = PanelTransformer(RandomEncoderTransformer(embedding_dim=8, random_state=0))
    >>> encoder.fit_transform(X).shape
    (5, 8)
    """

    # The wrapped transformer has a random_state, as sktime's composites have it.
    _tags = {"capability:random_state": False, "property:randomness": "stochastic"}

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        super().__init__()

    def _build_estimator(self) -> Any:
        _check_estimator(self.estimator)
        return clone(self.estimator)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return small parameters for sktime's tests.

        Parameters
        ----------
        parameter_set : str, default="default"
            There is one set.

        Returns
        -------
        list of dict
            Parameters of `__init__`.
        """
        from .baselines import RandomEncoderTransformer

        random = {name: _SMALL[name] for name in ("embedding_dim", "num_threads", "random_state")}
        return [
            {"estimator": PulseTransformer(**_SMALL)},
            {"estimator": RandomEncoderTransformer(**random, input_layout="nct")},
        ]


class PulsePanelTransformer(_PanelAdapter):
    """PULSE as a transformer of sktime's, on panels.

    One encoder is trained on all instances, without labels, and gives each a row of
    `embedding_dim` numbers ("Primitives" in sktime's words).

    Parameters
    ----------
    embedding_dim, encoder_hidden_dim, encoder_depth, pooling, time_varying_dim, \
            time_varying_pool, init_kernel_size, init_dilation, init_hidden_dim, shared_encoder, \
            gru_num_layers, gru_hidden_dim, observation, n_crops, crop, crop_length, \
            min_crop_length, pairing, loss_reduction, dropout, max_epochs, lr, weight_decay, \
            batch_size, gradient_clip_value, validation_fraction, validation_every, \
            deterministic_validation, select, bag_pooling, checkpoint_dir, precision, compile, \
            device, num_threads, callbacks, random_state, verbose
        Those of :class:`~sklearn_pulse.PulseTransformer`, with its defaults. There is no
        `input_layout`, since sktime's containers say their own, and no `warm_start`, since
        sktime's `fit` begins anew.

    Attributes
    ----------
    estimator_ : PulseTransformer
        The fitted transformer, with ``input_layout="nct"``: it takes "numpy3D" arrays, and has
        ``history_``, ``reconstruct`` and ``save_pretrained``.
    channel_names_ : list of str or None
        The channels of `fit`, where they had names.
    unequal_length_ : bool
        Whether the instances of `fit` differed in length.

    See Also
    --------
    PanelTransformer : The same for every other transformer of the package.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pulse.panel import PulsePanelTransformer
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(12, 3, 40)), np.arange(12) % 2
    >>> pulse = PulsePanelTransformer(embedding_dim=8, max_epochs=1, random_state=0)
    >>> classifier = pulse * LogisticRegression()
    >>> classifier.fit(X, y).predict(X).shape
    (12,)
    """

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
        callbacks: list[Any] | None = None,
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
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose
        super().__init__()

    def _build_estimator(self) -> PulseTransformer:
        return PulseTransformer(**self.get_params(deep=False), input_layout="nct")

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return small parameters for sktime's tests.

        Parameters
        ----------
        parameter_set : str, default="default"
            There is one set.

        Returns
        -------
        list of dict
            Parameters of `__init__`.
        """
        return [
            _SMALL | {"init_hidden_dim": 4, "gru_hidden_dim": 4},
            _SMALL | {"n_crops": 0, "pooling": "mean", "crop": "fixed"},
        ]


def as_panel_transformer(estimator: Any) -> PanelTransformer:
    """Return a transformer of windows as one of sktime's.

    Parameters
    ----------
    estimator : transformer of this package
        One that needs no labels.

    Returns
    -------
    PanelTransformer
        Unfitted.

    Raises
    ------
    TypeError
        For a classifier, an oracle, a pipeline, or a transformer from elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import SimCLRTransformer
    >>> from sklearn_pulse.panel import as_panel_transformer
    >>> X = np.random.default_rng(0).normal(size=(6, 2, 32))
    >>> simclr = SimCLRTransformer(embedding_dim=8, max_epochs=1, random_state=0)
    >>> as_panel_transformer(simclr).fit_transform(X).columns[0]
    'simclrtransformer0'
    """
    _check_estimator(estimator)
    return PanelTransformer(estimator)


def _check_estimator(estimator: Any) -> None:
    """Raise unless this is a transformer of the package that needs no labels."""
    name = type(estimator).__name__
    from sklearn.frozen import FrozenEstimator

    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    if not isinstance(inner, WindowEmbedder):
        raise TypeError(
            f"estimator must be a transformer of sklearn_pulse, such as PulseTransformer(), got"
            f" {name}: wrap the transformer alone, and put what comes after it into a pipeline,"
            " as_panel_transformer(...) * LogisticRegression()."
        )
    if get_tags(inner).target_tags.required:
        raise TypeError(
            f"{name} learns from labels, and a panel transformer is fitted without: take a"
            " self-supervised one such as PulseTransformer(), or fit this one on a numpy3D array,"
            f" {name}(input_layout='nct').fit(X, y)."
        )


def _read(X: Any) -> Panel:
    """Read a panel of any mtype that is declared."""
    if isinstance(X, np.ndarray) and X.ndim == 3:
        return Panel(X.swapaxes(1, 2))
    if is_panel_frame(X):
        return read_frame(X, "X", hierarchical=True)
    if isinstance(X, list) and X and all(hasattr(x, "columns") for x in X):
        return read_frames(X, "X")
    raise TypeError(
        f"X is no panel that is known without conversion, but a {type(X).__name__}: pass one of"
        f" {_MTYPES}, or leave sktime's input_conversion on."
    )


def _is_unequal(panel: Panel) -> bool:
    return len({len(x) for x in panel.arrays}) > 1


def _as_windows(panel: Panel, n_timesteps: int = 0) -> ArrayLike:
    """Return windows of shape (n, n_timesteps, n_channels), filled up with NaN at the end."""
    arrays = panel.arrays
    n_timesteps = max(n_timesteps, *(len(x) for x in arrays))
    if isinstance(arrays, np.ndarray) and arrays.shape[1] == n_timesteps:
        return arrays
    windows = np.full((len(arrays), n_timesteps, arrays[0].shape[1]), np.nan, np.float32)
    with np.errstate(over="ignore"):  # too large is told as infinite, by the transformer
        for window, x in zip(windows, arrays, strict=True):
            window[: len(x)] = x
    return windows


def _in_layout(windows: Any, estimator: Any) -> Any:
    """Arrange windows as an estimator wants them."""
    return windows.swapaxes(1, 2) if estimator.input_layout == "nct" else windows
