"""Conversion of a chain of steps to values of JSON, arrays and folders of encoders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._persistence import PretrainedMixin, check_params_unchanged, encode
from .._persistence._files import read_config
from .._warnings import warn_user
from ._layers import dense
from ._steps import (
    FROZEN,
    LABELED,
    LOCAL,
    NAMES,
    PIPELINE,
    STEPS,
    UNSET,
    check_one_label,
    encoded_classes,
    name_of,
    refuse_search,
)


class Writer:
    """Nodes of a chain, and what their files hold.

    Parameters
    ----------
    folder : Path
        Folder of the chain, in which each transformer gets a folder of its own.

    Attributes
    ----------
    tensors : dict of str to Tensor
        Arrays of all steps.
    dropped : list of str
        Parameters that a file cannot hold.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tensors: dict[str, Tensor] = {}
        self.dropped: list[str] = []
        self._n_folders = self._n_steps = 0

    def node(self, step: Any) -> Any:
        """Return the node of a step, and keep its arrays.

        Parameters
        ----------
        step : estimator, "passthrough" or None
            A fitted step.

        Returns
        -------
        object
            Value of JSON.

        Raises
        ------
        TypeError
            If the step, or a step in it, is not one that a file may hold.
        ValueError
            If a parameter of a preprocessing step was changed after `fit`.
        """
        if step is None or isinstance(step, str):
            return "passthrough"
        if isinstance(step, PretrainedMixin):
            folder = self.folder / f"step{self._n_folders}"
            self._n_folders += 1
            step.save_pretrained(folder)
            checksum = read_config(folder)["checksum"]
            return {"folder": folder.name, "checksum": checksum, **_output(step)}
        name = name_of(step)
        if name is None:
            refuse_search(step)
            raise TypeError(
                f"a file cannot hold a {type(step).__module__}.{type(step).__qualname__}: only"
                " transformers of sklearn_pulse, its preprocessing, and linear steps of"
                " scikit-learn can be saved without code. Save the chain with skops"
                " (skops.io.dump), whose audit shows what a file would run."
            )
        node = {"class": name, "parameters": self._parameters(step), **_output(step)}
        if name == PIPELINE:
            return node | {"steps": [[label, self.node(part)] for label, part in step.steps]}
        if name == FROZEN:
            return node | {"estimator": self.node(step.estimator)}
        check_is_fitted(step)
        if name == LABELED:
            inner = self.node(step.estimator_)
            return node | {
                "is_default": step.estimator is None,
                "estimator": inner,
                "classes_": encode(np.asarray(step.classes_)),
            }
        return node | self._fitted(step, name)

    def _fitted(self, step: Any, name: str) -> dict[str, Any]:
        """Return the facts that a step learnt, and keep its arrays."""
        check_one_label(step)
        _check_unchanged(step)
        known, prefix = STEPS[name], str(self._n_steps)
        self._n_steps += 1
        facts = {name: getattr(step, name) for name in known.facts}
        for names in NAMES:
            if vars(step).get(names) is not None:
                facts[names] = getattr(step, names)
        encoded = {name: encode(value) for name, value in facts.items()}
        if known.is_classifier:
            encoded["classes_"] = encoded_classes(step)
        return {"prefix": prefix, **self._arrays(step, known.arrays, prefix), "facts": encoded}

    def _arrays(self, step: Any, names: Iterable[str], prefix: str) -> dict[str, Any]:
        """Keep the arrays that a step learnt; return what their tensors do not say of them."""
        empty, plain = [], []
        columns_first: list[str] = []
        rows_reversed: list[str] = []
        first_rows: dict[str, int] = {}
        for name in names:
            value = getattr(step, name, None)
            if value is None:
                empty.append(name)
                continue
            array = dense(value)
            if type(value) in (int, float):
                plain.append(name)  # it leaves a result in float32
            if array.ndim == 2 and array.strides[0] < array.strides[1]:
                # Products of another order of memory round in another order.
                (rows_reversed if array.strides[0] < 0 else columns_first).append(name)
                unused = array.strides[1] // array.itemsize - len(array)
                if unused > 0:  # it is a part of a larger array, as in a "randomized" PCA
                    first_rows[name] = len(array)
                    array = np.pad(array, ((0, unused), (0, 0)))
            self.tensors[f"{prefix}.{name}"] = torch.from_numpy(array.copy("C"))
        found = {"none": empty, "columns_first": columns_first, "plain": plain}
        rare = {"rows_reversed": rows_reversed, "first_rows": first_rows}
        return found | {kind: of_kind for kind, of_kind in rare.items() if of_kind}

    def _parameters(self, step: Any) -> dict[str, Any]:
        """Return the parameters that a file can hold; note the others."""
        kept = {}
        for name, value in step.get_params(deep=False).items():
            is_unset = isinstance(value, str) and value == UNSET
            if is_unset or name in (*LOCAL, "steps", "estimator"):
                continue
            try:
                kept[name] = encode(value)
            except TypeError:
                self.dropped.append(f"{type(step).__name__}({name}={value!r})")
        return kept

    def warn_of_dropped(self) -> None:
        """Warn of the parameters that were left out."""
        if self.dropped:
            warn_user(
                f"A folder cannot hold {', '.join(self.dropped)}: left out, so the loaded steps"
                " have the defaults. They predict alike; set them again before a new fit."
            )


def _check_unchanged(step: Any) -> None:
    """Raise if a step of ours, which notes its parameters in `fit`, has others by now."""
    try:
        check_params_unchanged(getattr(step, "_fit_params", {}), step.get_params(deep=False))
    except ValueError as error:
        raise ValueError(f"this {type(step).__name__} cannot be saved: {error}") from error


def _output(step: Any) -> dict[str, str]:
    """Return the container of a step's output, if it was chosen."""
    chosen = getattr(step, "_sklearn_output_config", {}).get("transform")
    return {} if chosen is None else {"output": str(chosen)}
