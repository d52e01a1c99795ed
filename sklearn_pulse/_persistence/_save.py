"""Saving of a fitted transformer into a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._parameters import as_path
from .._warnings import warn_user
from ._card import model_card
from ._files import (
    check_reads_back,
    check_replaceable,
    header,
    new_folder,
    undisturbed,
    write_model,
)
from ._load import FITTED, LOCAL, construct, load, place
from ._probe import check_alike
from ._values import encode


def save(estimator: Any, folder: str | os.PathLike[str]) -> None:
    """Write a fitted transformer; see :meth:`PretrainedMixin.save_pretrained`."""
    check_is_fitted(estimator)
    folder = as_path("folder", folder)
    undisturbed(folder, lambda: check_replaceable(folder))
    left_out: list[str] = []
    weights, config = _weights(estimator), _describe(estimator, left_out)
    _check_unchanged(estimator, config)
    card = model_card(type(estimator), config, estimator._n_features_out, estimator._layout)
    with new_folder(folder) as partial:
        write_model(partial, config, weights, card)
        check_reads_back(estimator, lambda path: _read_back(estimator, path), partial, folder)
    for warning in left_out:  # not before, since what is refused is not saved at all
        warn_user(warning)


def _read_back(estimator: Any, folder: Path) -> None:
    """Raise unless the folder holds a transformer that embeds as this one does."""
    # On the same device: in bfloat16 another one rounds so differently that nothing is told.
    device = getattr(getattr(estimator, "net_", estimator), "device", "cpu")
    check_alike(estimator, load(type(estimator), folder, device))


def _weights(estimator: Any) -> dict[str, Tensor]:
    """Return the weights of an estimator, and those of the transformers that it holds."""
    weights = dict(estimator._weights())
    for name, held in estimator._held().items():
        weights |= {f"{name}/{key}": value for key, value in _weights(held).items()}
    return weights


def _describe(estimator: Any, left_out: list[str]) -> dict[str, Any]:
    """Return the configuration of a transformer: all that is stored beside its weights.

    `left_out` gets a warning for each transformer with parameters that a file cannot hold.
    """
    held = {name: _describe(part, left_out) for name, part in estimator._held().items()}
    history, selected_epoch, n_earlier = estimator._training_record()
    return {
        **header(estimator),
        "parameters": _parameters(estimator, left_out),
        "fitted_on_table": bool(estimator._fitted_on_table),
        "fitted": _fitted(estimator),
        "training": {
            "selected_epoch": selected_epoch,
            "n_earlier": n_earlier,  # epochs of fits before the last one, under warm_start
            "history": [_scalars(epoch) for epoch in history],
        },
        **({"held": held} if held else {}),
    }


def _parameters(estimator: Any, left_out: list[str]) -> dict[str, Any]:
    """Return the parameters that a file can hold; add a warning that names the others."""
    kept, dropped = {}, []
    for name, value in estimator.get_params(deep=False).items():
        if name in LOCAL or name in estimator._holds:
            continue
        try:
            kept[name] = encode(value)
        except TypeError:
            dropped.append(f"{name}={value!r}")
    if dropped:
        left_out.append(
            f"A file cannot hold {', '.join(dropped)}: left out, so the loaded"
            f" {type(estimator).__name__} has the default. Set it again after loading."
        )
    return kept


def _fitted(estimator: Any) -> dict[str, Any]:
    """Return the fitted attributes that a file of weights does not hold."""
    fitted = {}
    for name, value in vars(estimator).items():
        if name in estimator._unstored or not FITTED.fullmatch(name):
            continue
        try:
            fitted[name] = encode(value)
        except TypeError as error:
            raise ValueError(
                f"{type(estimator).__name__} has the attribute {name}, and {error}: pickle the"
                " transformer instead."
            ) from error
    return fitted


def _scalars(epoch: dict[str, Any]) -> dict[str, Any]:
    """Return the scalars of an epoch, without its duration, which depends on the machine."""
    scalars = {}
    for name, value in epoch.items():
        if name not in ("batches", "dur") and not isinstance(value, list | tuple):
            try:
                scalars[name] = encode(value)
            except TypeError:  # a callback may record anything
                continue
    return scalars


def _check_unchanged(estimator: Any, config: dict[str, Any]) -> None:
    """Raise unless the stored parameters are those of the fit; they may have been changed."""
    try:
        twin = construct(type(estimator), config)
        place(twin, "cpu")
        twin._check_params()
        estimator._check_unchanged(twin)
    except (TypeError, ValueError) as error:
        raise ValueError(f"this {type(estimator).__name__} cannot be saved: {error}") from error
