"""Adapter of window transformers to sktime's interface."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags, get_tags
from sklearn.utils.validation import check_is_fitted
from sktime.transformations.base import BaseTransformer

from .._commit import unchanged_on_failure
from .._inputs._numbers import as_real_array
from .._inputs._panel import Panel, read_frame, read_frames
from .._inputs._tables import is_list, is_panel_frame
from .._inputs._times import compare_rate
from .._training._progress import CallbackSupportMixin, with_callbacks

_MTYPES = ["numpy3D", "pd-multiindex", "df-list", "nested_univ", "pd_multiindex_hier"]
# Attributes that scikit-learn's callbacks store in an estimator, before and during its fit.
_CALLBACK_STATE = (
    "_parent_callback_ctx",
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
)
# Parameters of a small encoder that trains quickly, for sktime's tests.
SMALL: dict[str, Any] = {
    "embedding_dim": 4,
    "encoder_hidden_dim": 4,
    "encoder_depth": 1,
    "max_epochs": 1,
    "num_threads": 1,
    "random_state": 0,
}


class PanelAdapter(CallbackSupportMixin, BaseTransformer):
    """A transformer of windows behind sktime's interface.

    A subclass stores its parameters in `__init__` and builds the wrapped transformer from them in
    `_build_estimator`.
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
        """Return the unfitted transformer to wrap."""
        # Reached only if a subclass forgets to override this.
        raise NotImplementedError(f"{type(self).__name__} must define _build_estimator")

    def __sklearn_tags__(self) -> Tags:
        """Return tags, by which scikit-learn's pipelines know a transformer that is fitted."""
        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float32"]),
            input_tags=InputTags(three_d_array=True, allow_nan=True),
        )

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> PanelAdapter:
        """Train the encoder on all instances, without labels.

        Parameters
        ----------
        X : panel
            Panel of one of sktime's mtypes: "numpy3D" (n_instances, n_channels, n_timesteps),
            "pd-multiindex", "df-list", "nested_univ", or "pd_multiindex_hier", of which every
            series is an instance. aeon's list of arrays of shape (n_channels, n_timesteps), or
            (n_timesteps,), is a panel too. A single series is a panel of one instance. Series may
            differ in length, and NaN means missing; missing steps are masked.
        y : Ignored
            Not used; present because pipelines pass labels to every step.

        Returns
        -------
        PanelAdapter
            The fitted transformer itself.

        Raises
        ------
        TypeError
            If a parameter or `X` is of the wrong type.
        ValueError
            If a parameter is out of its range, the time index is irregular, instances differ in
            the names of their channels, a value is infinite, or an instance has no finite step.
        """
        self._init_callback_context(max_subtasks=1)
        with unchanged_on_failure(self):
            return super().fit(_as_mtype(X), y)

    def transform(self, X: Any, y: Any = None) -> Any:
        """Embed all instances.

        Parameters
        ----------
        X : panel
            Panel in any form that :meth:`fit` takes.
        y : Ignored
            Not used; present because pipelines pass labels to every step.

        Returns
        -------
        DataFrame of shape (n_instances, embedding_dim)
            One row per instance.

        Raises
        ------
        NotFittedError
            If the transformer is not fitted.
        TypeError, ValueError
            For a panel that :meth:`fit` refuses, and for other channels than those of `fit`.
        """
        return super().transform(_as_mtype(X), y)

    def update(self, X: Any, y: Any = None, update_params: bool = True) -> PanelAdapter:
        """Accept further instances, and learn nothing from them, as most transformers of sktime.

        Parameters
        ----------
        X : panel
            Panel in any form that :meth:`fit` takes.
        y : Ignored
            Not used; present because pipelines pass labels to every step.
        update_params : bool, default=True
            Not used; present because sktime's pipelines pass it.

        Returns
        -------
        PanelAdapter
            The transformer itself, with what it has learnt in `fit`.

        Raises
        ------
        NotFittedError
            If the transformer is not fitted.
        TypeError
            If `X` is no panel.
        """
        return super().update(_as_mtype(X), y, update_params)

    def reset(self) -> PanelAdapter:
        """Drop all fitted attributes, but keep those of scikit-learn's callbacks.

        sktime's `fit` begins with a reset, inside the callback context that a pipeline or search of
        scikit-learn (1.9 and later) has set up and will later take down.

        Returns
        -------
        PanelAdapter
            The unfitted transformer itself.
        """
        kept = {name: vars(self)[name] for name in _CALLBACK_STATE if name in vars(self)}
        super().reset()
        for name, value in kept.items():
            setattr(self, name, value)
        return self

    def _fit(self, X: Any, y: None = None) -> PanelAdapter:
        panel = _read(X)
        windows = _as_windows(panel)
        estimator = self._build_estimator()
        if isinstance(estimator, FrozenEstimator):
            check_is_fitted(estimator)
        _check_lengths(panel, estimator)
        _compare_rate(estimator, X)
        _hand_on_names(estimator, panel.channels)
        self._train(estimator, _in_layout(windows, estimator), X)
        # The fit of a frozen estimator compares nothing.
        _check_number(panel.arrays[0].shape[1], estimator.n_channels_in_, "the estimator")
        self.estimator_ = estimator
        known = estimator.channel_names_in_
        self.channel_names_in_ = panel.channels if known is None else list(known)
        self.unequal_length_ = _is_unequal(panel)
        self.input_layout_ = "nct"
        return self

    def _train(self, estimator: Any, windows: Any, X: Any) -> None:
        """Fit the wrapped transformer, as a task of this fit for scikit-learn's callbacks."""
        context = getattr(self, "_callback_fit_ctx", None)  # absent before scikit-learn 1.9
        if context is None:
            estimator.fit(windows, None)
            return
        data = {"X": X, "y": None}
        context.call_on_fit_task_begin(estimator=self, **data)
        subcontext = context.subcontext(task_name="fit-encoder")
        with subcontext.propagate_callback_context(estimator):
            subcontext.call_on_fit_task_begin(estimator=self, **data)
            estimator.fit(windows, None)
            subcontext.call_on_fit_task_end(estimator=self, **data)
        context.call_on_fit_task_end(estimator=self, **data)

    def _transform(self, X: Any, y: None = None) -> Any:
        from pandas import DataFrame

        panel = _read(X)
        name = type(self).__name__
        _check_names(panel.channels, self.channel_names_in_, name)
        _check_number(panel.arrays[0].shape[1], self.estimator_.n_channels_in_, name)
        _compare_rate(self.estimator_, X)
        _check_lengths(panel, self.estimator_)
        windows = _as_windows(panel, self._padded_length(panel))
        embedding = np.asarray(self.estimator_.transform(_in_layout(windows, self.estimator_)))
        return DataFrame(embedding, index=panel.instances, columns=self.get_feature_names_out())

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of the output of `transform`.

        Parameters
        ----------
        input_features : Ignored
            Not used; present because scikit-learn's pipelines pass names to every step.

        Returns
        -------
        ndarray of str
            Names from the wrapped transformer, "pulsetransformer0" and so on.

        Raises
        ------
        NotFittedError
            If the transformer is not fitted.
        """
        self.check_is_fitted()
        return self.estimator_.get_feature_names_out()

    def set_output(self, *, transform: str | None = None) -> PanelAdapter:
        """Accept `set_output` of a scikit-learn pipeline; the output is always a pandas frame.

        Parameters
        ----------
        transform : {"default", "pandas"} or None, default=None
            Requested container. The output is the same for all three values.

        Returns
        -------
        PanelAdapter
            The transformer itself.

        Raises
        ------
        ValueError
            If another container is requested.
        """
        if transform not in (None, "default", "pandas"):
            raise ValueError(
                f"{type(self).__name__} returns a pandas DataFrame, as sktime's transformers do,"
                f" not {transform!r}: set transform='pandas', or convert its output."
            )
        return self

    def _padded_length(self, panel: Panel) -> int:
        """Return the minimum length to which series are padded, in time steps.

        If lengths differ, series are padded to the longest series of `fit`, so that an embedding
        does not depend on the lengths of the other instances in the panel.
        """
        if self.unequal_length_ or _is_unequal(panel):
            return self.estimator_.n_timesteps_in_ or 0
        return 0


def _as_mtype(X: Any) -> Any:
    """Return a list, in which aeon's arrays (channels first) are sktime's frames; else X itself."""
    if not is_list(X):
        return X
    if not len(X):
        raise ValueError("X is an empty list: pass at least one series.")
    if not all(isinstance(x, np.ndarray) and x.ndim in (1, 2) for x in X):
        return list(X)
    from pandas import DataFrame

    frames = [DataFrame(x.T) for x in X]  # the transpose of a 1-D array is the array
    for i, frame in enumerate(frames):
        if frame.shape[1] != frames[0].shape[1]:
            raise ValueError(
                f"X[{i}] has {frame.shape[1]} channels but X[0] has {frames[0].shape[1]}: in a list"
                " of arrays, as aeon's, every array has the shape (n_channels, n_timesteps)."
            )
    return frames


def _read(X: Any) -> Panel:
    """Read a panel of any declared mtype."""
    if isinstance(X, np.ndarray) and X.ndim == 3:
        if not len(X):
            raise ValueError(f"X has shape {X.shape}, and no series: pass at least one series.")
        return Panel(as_real_array(X).swapaxes(1, 2))
    if is_panel_frame(X):
        return read_frame(X, "X", hierarchical=True)
    if isinstance(X, list) and X and all(hasattr(x, "columns") for x in X):
        return read_frames(X, "X")
    raise TypeError(
        f"X must be a panel of one of the mtypes {_MTYPES}, got {type(X).__name__}: convert it, or"
        " leave sktime's input_conversion on."
    )


def _compare_rate(estimator: Any, X: Any) -> None:
    """Raise if the time index of a panel has another rate than an estimator states."""
    stated = getattr(estimator, "sampling_rate_in_", estimator.sampling_rate)
    if isinstance(stated, numbers.Real):  # anything else is refused in the estimator's fit
        compare_rate(float(stated), X, "sampling_rate", "X")


def _hand_on_names(estimator: Any, channels: list[str] | None) -> None:
    """Name the channels of an estimator as a panel does; raise if it names others."""
    if not channels or len({*channels}) < len(channels):
        return
    is_fitted = isinstance(estimator, FrozenEstimator)
    stated = estimator.channel_names_in_ if is_fitted else estimator.channel_names
    known = stated.tolist() if hasattr(stated, "tolist") else stated  # of an array or an index
    if isinstance(known, list | tuple):  # anything else is refused in the estimator's fit
        _check_names(channels, list(known), "the estimator")
    elif known is None and not is_fitted:
        estimator.set_params(channel_names=channels)


def _check_names(channels: list[str] | None, known: list[str] | None, owner: str) -> None:
    """Raise if channels have other names, or another order, than those that `owner` knows."""
    if known is None or channels is None or channels == known:
        return
    # sktime's pipelines convert arrays, which have no names, to frames with these columns.
    is_array = channels == [f"var_{i}" for i in range(len(known))]
    if not is_array or {*channels} & {*known}:
        raise ValueError(
            f"X has the channels {channels}, but {owner} has {known}: select and order them,"
            f" X[{known}], or rename them if they mean the same."
        )


def _check_number(n_channels: int, fitted: int, owner: str) -> None:
    """Raise, in the terms of a panel, unless there are as many channels as at `fit`."""
    if n_channels != fitted:
        raise ValueError(
            f"X has {n_channels} channels, but {owner} was fitted on {fitted}: pass the channels of"
            " fit (an array has the shape (n_instances, n_channels, n_timesteps))."
        )


def _is_unequal(panel: Panel) -> bool:
    """Return whether the series of a panel differ in length."""
    return len({len(x) for x in panel.arrays}) > 1


def _check_lengths(panel: Panel, estimator: Any) -> None:
    """Raise if the series differ in length, and the estimator masks no missing steps."""
    lengths = sorted(len(x) for x in panel.arrays)
    if lengths[0] < lengths[-1] and not get_tags(estimator).input_tags.allow_nan:
        raise ValueError(
            f"X has series of {lengths[0]} to {lengths[-1]} steps, and {type(estimator).__name__}"
            " takes series of one length alone: cut or resample them, or take another transformer."
        )


def _as_windows(panel: Panel, n_timesteps: int = 0) -> ArrayLike:
    """Return windows of shape (n_instances, n_timesteps, n_channels), padded with trailing NaN."""
    arrays = panel.arrays
    n_timesteps = max(n_timesteps, *(len(x) for x in arrays))
    if isinstance(arrays, np.ndarray) and arrays.shape[1] == n_timesteps:
        return arrays
    # The transformer warns where float32 does not hold the values.
    dtype = np.result_type(np.float32, *{x.dtype for x in arrays})
    windows = np.full((len(arrays), n_timesteps, arrays[0].shape[1]), np.nan, dtype)
    for window, x in zip(windows, arrays, strict=True):
        window[: len(x)] = x
    return windows


def _in_layout(windows: Any, estimator: Any) -> Any:
    """Arrange windows in the `input_layout` of an estimator."""
    return windows.swapaxes(1, 2) if estimator.input_layout == "nct" else windows
