"""Frozen transformers that serve as the encoder of a network."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._parameters import default_of
from .._signals import Signals, agreed, compare, note, noted
from ..networks import FixedEncoder


def check_frozen(estimator: Any, trained: Sequence[str]) -> None:
    """Raise unless `encoder` freezes a fitted transformer, and no `trained` parameter is set."""
    encoder = estimator.encoder
    frozen = encoder.estimator if isinstance(encoder, FrozenEstimator) else None
    if isinstance(frozen, type) or not hasattr(frozen, "fit"):
        raise TypeError(
            "encoder must be a FrozenEstimator around a fitted transformer of windows, or None, got"
            f" {encoder!r}: pass sklearn.frozen.FrozenEstimator(transformer) of a fitted one."
        )
    if not _steps(frozen):
        raise TypeError(
            f"encoder={encoder!r} freezes a pipeline without steps, which embeds no windows: freeze"
            " a fitted transformer of windows."
        )
    check_is_fitted(frozen, msg="encoder freezes a %(name)s that is not fitted: fit it first.")
    for name in trained:
        if getattr(estimator, name) != default_of(estimator, name):
            raise ValueError(
                f"{name}={getattr(estimator, name)!r} belongs to an encoder that is trained: leave"
                f" {name} at its default, or set encoder=None."
            )


def adopt_signals(estimator: Any, transformer: FrozenEstimator) -> None:
    """Compare rate and channels with the first step of the encoder, and take what X leaves open."""
    first = _steps(transformer.estimator)[0]
    rate, names = (getattr(first, f"{name}_in_", None) for name in Signals._fields)
    # A step of preprocessing knows its channels, but no rate.
    given, fitted = noted(estimator), Signals(rate, None if names is None else tuple(names))
    compare(given, fitted, f"the frozen {type(first).__name__}")
    note(estimator, agreed(given, fitted))


def kept(value: Any) -> Any:
    """Copy a fitted estimator, and the steps in it, so that a later fit of theirs changes no copy.

    A fit sets attributes anew, so the copies share what was learnt.
    """
    if type(value) in (list, tuple):
        return type(value)(map(kept, value))
    if not isinstance(value, BaseEstimator):
        return value
    copied = copy.copy(value)
    for name, part in value.get_params(deep=False).items():
        setattr(copied, name, kept(part))
    return copied


def as_encoder(transformer: FrozenEstimator) -> FixedEncoder:
    """Return a frozen transformer as an encoder of a network."""
    last = _steps(transformer.estimator)[-1]
    try:
        width = len(last.get_feature_names_out())
    except AttributeError as error:
        raise TypeError(
            f"encoder ends with a {type(last).__name__}, which does not tell how many features it"
            " returns: give it a get_feature_names_out, or freeze another transformer."
        ) from error
    return FixedEncoder(partial(_frozen_features, transformer), width)


def _frozen_features(encoder: FrozenEstimator, X: NDArray[np.float32]) -> Any:
    """Compute a frozen transformer's features of windows, channels last."""
    steps = _steps(encoder.estimator)
    first = steps[0]  # which may be a function that knows no layout
    names = ("input_layout", "input_layout_")  # fine-tuned ones may know it from their fit
    layouts = (getattr(step, name, None) for step in steps for name in names)
    if next(filter(None, layouts), "ntc") == "nct":
        X = X.swapaxes(1, 2)
    try:
        return encoder.transform(X)
    except (TypeError, ValueError) as error:
        if get_tags(first).input_tags.three_d_array:
            raise
        raise type(error)(
            f"encoder begins with a {type(first).__name__}, which cannot transform windows of shape"
            f" {X.shape}: {error} Freeze a transformer of windows, or a pipeline that begins with"
            " one."
        ) from error


def _steps(estimator: Any) -> list[Any]:
    """Return the steps of a pipeline, those of pipelines in it included."""
    if not isinstance(estimator, Pipeline):
        return [estimator]
    steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
    return [inner for step in steps for inner in _steps(step)]
