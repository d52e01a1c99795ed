"""Frozen transformers that serve as the encoder of a network."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._data._embedded import Embed
from .._data._windows import Block, CheckedWindows
from .._parameters import default_of
from .._pipelines import steps_of
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
    if not steps_of(frozen):
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
    """Compare rate and channels with those of the encoder, which fill in what X leaves open."""
    for step, fitted in _known_signals(transformer):
        given = noted(estimator)
        compare(given, fitted, f"the frozen {type(step).__name__}")
        note(estimator, agreed(given, fitted))


def _known_signals(estimator: Any) -> Iterator[tuple[Any, Signals]]:
    """Yield the steps that know the rate or the channels of the input, each with what it knows."""
    keeps_rate = True
    for step in steps_of(estimator):
        for part, signals in [pair for inner in _parts(step) for pair in _known_signals(inner)]:
            yield part, signals if keeps_rate else signals._replace(sampling_rate=None)
        if not isinstance(step, FeatureUnion):
            rate, names = (getattr(step, f"{name}_in_", None) for name in Signals._fields)
            rate = rate if keeps_rate else None
            yield step, Signals(rate, None if names is None else tuple(names))
        # Steps of preprocessing keep the channels that they know, and know no rate; after any
        # other step, the signals are no longer those of the input.
        if not hasattr(step, "channel_names_in_") or hasattr(step, "sampling_rate_in_"):
            return
        keeps_rate = keeps_rate and not hasattr(step, "to_rate")


def kept(value: Any) -> Any:
    """Copy a fitted estimator and its steps, so that a later fit of the originals changes no copy.

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
    last = steps_of(transformer)[-1]
    try:
        width = len(last.get_feature_names_out())
    except AttributeError as error:
        raise TypeError(
            f"encoder ends with a {type(last).__name__}, which does not tell how many features it"
            " returns: give it a get_feature_names_out, or freeze another transformer."
        ) from error
    return FixedEncoder(partial(_frozen_features, transformer), width)


def embedder(encoder: FixedEncoder, windows: CheckedWindows) -> Embed:
    """Return a function that embeds blocks of `windows` by a frozen transformer.

    The transformer reads the windows as they were given, so that its steps may treat missing values
    in their own way. Rows are NaN if they are not finite, and zero for a window without an observed
    step.
    """

    def embed(index: NDArray[np.intp], block: Block) -> NDArray[np.float32]:
        width = encoder.embedding_dim
        rows = np.zeros((len(index), width), np.float32)
        whole = block.observed is None
        seen = np.ones(len(index), bool) if whole else np.asarray(block.observed).any(1)
        # Copies, which the transformer may write to.
        x = block.x.copy() if whole else windows.values(index[seen])
        if not len(x):
            return rows
        features = encoder.features(x)
        if features.shape != (len(x), width):
            raise TypeError(
                f"encoder returns features of shape {features.shape} for {len(x)} windows, but"
                f" names {width} features: freeze a transformer that returns a row per window."
            )
        # Infinities become NaN too, since a decoder may turn an infinity into a number.
        rows[seen] = np.where(np.isfinite(features).all(1, keepdims=True), features, np.nan)
        return rows

    return embed


def _frozen_features(encoder: FrozenEstimator, X: NDArray[np.float32]) -> Any:
    """Compute a frozen transformer's features of windows, channels last."""
    leaves = list(_leaves(encoder))
    first = leaves[0]  # a step that may be a function, which knows no layout
    names = ("input_layout", "input_layout_")  # the latter of fine-tuned estimators
    layouts = (getattr(leaf, name, None) for leaf in leaves for name in names)
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


def _leaves(estimator: Any) -> Iterator[Any]:
    """Yield the steps of a transformer, the first one first, and those of a union in its place."""
    for step in steps_of(estimator):
        parts = _parts(step)
        yield from itertools.chain(*map(_leaves, parts)) if parts else [step]


def _parts(step: Any) -> list[Any]:
    """Return the transformers that a union joins; an empty list if the step is no union."""
    listed = step.transformer_list if isinstance(step, FeatureUnion) else []
    return [part for _, part in listed if part not in ("drop", "passthrough")]
