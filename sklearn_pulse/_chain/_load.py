"""Loading of a chain from a folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from .._persistence import PretrainedMixin, decode
from .._persistence._files import (
    CONFIG,
    STEP,
    WEIGHTS,
    blamed,
    read_config,
    read_weights,
    undisturbed,
)
from .._persistence._hub import local_folder
from .._persistence._load import load
from .._training._device import resolve_device
from ._steps import (
    FROZEN,
    LABELED,
    LOCAL,
    NAMES,
    PIPELINE,
    STEPS,
    UNSET,
    check_fitted,
    class_of,
    computing_steps,
    set_classes,
)

_MOST_STEPS, _DEEPEST = 64, 8
_KIND = {
    "n_features_in_": int,
    "n_channels_in_": int,
    "_fitted_on_table": bool,
}


def load_pretrained(
    folder: str | os.PathLike[str], *, device: Any = "auto", revision: str | None = None
) -> Any:
    """Read a fitted chain or transformer, without importing or executing what a file holds.

    Parameters
    ----------
    folder : path-like
        A folder that :func:`save_pretrained` has written, the name of a model of
        :mod:`sklearn_pulse.pretrained`, or that of a repository of the Hugging Face Hub,
        "organisation/name".
    device : str or torch.device, default="auto"
        Device of the encoders.
    revision : str or None, default=None
        Branch, tag or commit of the repository; None means its main branch.

    Returns
    -------
    Pipeline or estimator
        The fitted chain.

    Raises
    ------
    FileNotFoundError
        If the folder or a file is missing, or the name is neither a folder, nor a model of the
        package, nor a repository.
    ValueError
        If a file is damaged, was changed, was written by another program, has a later format or an
        unknown step, or its parts do not fit each other; or for a `revision` of what is no
        repository.

    See Also
    --------
    save_pretrained : Write a chain.

    Notes
    -----
    The folder may come from a stranger: `SECURITY.md` says what is bounded, and by how much.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from sklearn_pulse import RandomEncoderTransformer, load_pretrained
    >>> X = np.random.default_rng(0).normal(size=(8, 32, 2))
    >>> with tempfile.TemporaryDirectory() as home:
    ...     RandomEncoderTransformer(embedding_dim=16).fit(X).save_pretrained(home)
    ...     load_pretrained(home, device="cpu").transform(X).shape
    (8, 16)
    """
    resolve_device(device)
    with local_folder(folder, revision) as path:
        return undisturbed(path, lambda: _model(path, device))


def _model(path: Path, device: Any) -> Any:
    """Return what a folder holds: a transformer, or a chain of several steps."""
    config = read_config(path)
    if "chain" not in config:
        return load(PretrainedMixin, path, device)
    with blamed(path / CONFIG):
        weights = config["weights"]
        n_bytes, checksum = weights["n_bytes"], weights["sha256"]
    tensors = read_weights(path / WEIGHTS, n_bytes, checksum)
    with blamed(path):
        reader = Reader(path, tensors, device)
        model = reader.step(config["chain"])
        reader.check_all_used()
        check_widths(model)
    return model


class Reader:
    """Steps of a chain from its nodes.

    Parameters
    ----------
    folder : Path
        Folder of the chain.
    tensors : dict of str to Tensor
        Content of its file of weights.
    device : str or torch.device
        Device of the encoders.
    """

    def __init__(self, folder: Path, tensors: dict[str, Tensor], device: Any) -> None:
        self.folder, self.tensors, self.device = folder, tensors, device
        self._n_steps = 0
        self._used: set[str] = set()
        _check_numbers(tensors)

    def step(self, node: Any, depth: int = 0) -> Any:
        """Return the step that a node describes.

        Parameters
        ----------
        node : object
            Value of JSON.
        depth : int, default=0
            Number of steps that this step is inside of.

        Returns
        -------
        estimator or "passthrough"
            The fitted step.

        Raises
        ------
        ValueError
            If the node describes no step that is known, or its parts do not fit each other.
        """
        self._n_steps += 1
        if self._n_steps > _MOST_STEPS or depth > _DEEPEST:
            raise ValueError(
                f"it has more than {_MOST_STEPS} steps, or steps that lie deeper than {_DEEPEST}."
            )
        if node == "passthrough":
            return node
        if not isinstance(node, dict):
            raise ValueError("a step is described by no dictionary: save the model again.")
        step = self._folder(node) if "folder" in node else self._listed(node, depth)
        if "output" in node:
            step.set_output(
                transform=_one_of(_entry(node, "output"), ("default", "pandas", "polars"))
            )
        return step

    def check_all_used(self) -> None:
        """Raise if the file of weights holds more than the steps need."""
        for name in sorted(self.tensors.keys() - self._used):
            raise ValueError(f"no step has the weights {name!r}: save the model again.")

    def _folder(self, node: dict[str, Any]) -> Any:
        """Return the transformer of a folder in the folder."""
        name = _entry(node, "folder")
        if not isinstance(name, str) or not STEP.fullmatch(name):
            raise ValueError(f"{name!r} is no folder of a step: save the model again.")
        path = self.folder / name
        if path.exists() and not stat.S_ISDIR(os.lstat(path).st_mode):
            raise ValueError(f"{path} is a link or no folder, and is not followed.")
        config = read_config(path)
        if "chain" in config:
            raise ValueError(f"{path} holds a chain, not a transformer: save the model again.")
        if config["checksum"] != _entry(node, "checksum"):
            raise ValueError(f"{path} is of another model: copy the whole folder again.")
        return load(PretrainedMixin, path, self.device)

    def _listed(self, node: dict[str, Any], depth: int) -> Any:
        """Return a step of a listed class."""
        name = _one_of(_entry(node, "class"), (*STEPS, PIPELINE, FROZEN, LABELED))
        cls = class_of(name)
        params = {
            key: decode(value)
            for key, value in _entry(node, "parameters").items()
            if value != UNSET  # which earlier versions wrote
        }
        allowed = set(cls._get_param_names()) - {*LOCAL, "steps", "estimator"}
        for key in sorted(params.keys() - allowed):
            raise ValueError(
                f"{cls.__name__} has no parameter {key!r} that a file may set: install the version"
                " of scikit-learn that wrote the file, which it names under 'versions'."
            )
        if name == PIPELINE:
            parts = [(label, self.step(part, depth + 1)) for label, part in _entry(node, "steps")]
            _check_labels([label for label, _ in parts])
            return cls(parts, **params)
        if name == FROZEN:
            return cls(self.step(_entry(node, "estimator"), depth + 1), **params)
        if name == LABELED:
            return self._labeled(cls, node, params, depth)
        step = cls(**params)
        self._restore(step, name, node)
        return step

    def _labeled(self, cls: type, node: dict[str, Any], params: Any, depth: int) -> Any:
        """Return a classifier of the labelled rows."""
        fitted = self.step(_entry(node, "estimator"), depth + 1)
        step: Any = cls(None if _entry(node, "is_default") is True else clone(fitted), **params)
        step.estimator_, step.classes_ = fitted, decode(_entry(node, "classes_"))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(step, name, getattr(fitted, name))
        if not np.array_equal(step.classes_, getattr(fitted, "classes_", step.classes_)):
            raise ValueError("its classes are not those of the classifier inside.")
        return step

    def _restore(self, step: Any, name: str, node: dict[str, Any]) -> None:
        """Set what a step has learnt; raise unless it all fits."""
        known = STEPS[name]
        facts = {key: decode(value) for key, value in _entry(node, "facts").items()}
        _check_facts(facts, known.facts, known.is_classifier)
        if known.is_classifier:
            set_classes(step, facts.pop("classes_"))
        if "n_channels_in_" in facts:
            facts.setdefault("channel_names_in_", None)  # names that are unknown are in no file
        vars(step).update(facts)
        for attribute in known.arrays:
            key = f"{node['prefix']}.{attribute}"
            if attribute in _entry(node, "none"):
                setattr(step, attribute, None)
            elif key in self.tensors:
                self._used.add(key)
                array = self.tensors[key].numpy()[()]
                if attribute in _entry(node, "columns_first"):
                    array = np.asfortranarray(array)[: node.get("first_rows", {}).get(attribute)]
                if attribute in node.get("rows_reversed", ()):  # as those of an "arpack" PCA
                    array = np.ascontiguousarray(array[::-1])[::-1]
                if attribute in node.get("plain", ()):  # which earlier versions did not write
                    array = array.item()
                setattr(step, attribute, array)
        for check in known.checks:
            getattr(step, check)()
        check_fitted(name, step)


def _check_numbers(tensors: dict[str, Tensor]) -> None:
    """Raise if what a step has learnt is not finite."""
    for name, value in tensors.items():
        if not torch.isfinite(value).all():
            raise ValueError(f"{name!r} holds NaN or infinity: fit the chain again.")


def _entry(node: dict[str, Any], name: str) -> Any:
    """Return an entry of a node; raise if it is missing."""
    if name not in node:
        raise ValueError(f"a step lacks {name!r}: save the model again.")
    return node[name]


def _check_facts(facts: dict[str, Any], names: tuple[str, ...], is_classifier: bool) -> None:
    """Raise unless the facts of a step are those of its class, and of the right types."""
    expected = {*names} | ({"classes_"} if is_classifier else set())
    if facts.keys() - {of for of, number in NAMES.items() if number in names} != expected:
        raise ValueError(f"a step has the facts {sorted(facts)} instead of {sorted(expected)}.")
    for name in names:
        if type(facts[name]) is not _KIND[name] or (_KIND[name] is int and facts[name] < 1):
            raise ValueError(f"{name} is {facts[name]!r}: save the model again.")
    for of, number in NAMES.items():
        if of not in facts:
            continue
        held: Any = facts[of]
        is_array = isinstance(held, np.ndarray) and held.shape == (facts[number],)
        if not is_array or not all(type(each) is str for each in held):
            what = "feature" if of == "feature_names_in_" else "channel"
            raise ValueError(f"{of} must hold one string per {what}.")


def _check_labels(labels: list[Any]) -> None:
    """Raise unless the names of a pipeline's steps are different plain strings."""
    is_text = all(isinstance(label, str) and "__" not in label for label in labels)
    if not labels or not is_text or len(set(labels)) != len(labels):
        raise ValueError("the names of its steps must be different strings: save the model again.")


def _one_of(value: Any, known: tuple[str, ...]) -> str:
    """Return a name of a file that is known; raise for any other."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(
            f"{value!r} is unknown; known are {', '.join(known)}. Install a later version of"
            " sklearn_pulse, or save the chain with skops."
        )
    return value


def check_widths(model: Any) -> None:
    """Raise unless each step of a chain takes what the step before it gives.

    Parameters
    ----------
    model : estimator
        The chain.

    Raises
    ------
    ValueError
        If two steps do not fit each other.
    """
    width = None
    for step in computing_steps(model):
        wanted = step.n_features_in_
        if width is not None and not hasattr(step, "n_channels_in_") and wanted != width:
            raise ValueError(
                f"{type(step).__name__} takes {wanted} features, but {width} come before it."
            )
        width = _width(step)


def _width(step: Any) -> int | None:
    """Return the number of features that a step gives; None for windows, or no features."""
    if isinstance(step, PretrainedMixin):
        return int(step._n_features_out)  # type: ignore[attr-defined]
    if hasattr(step, "components_"):
        return len(step.components_)
    if hasattr(step, "n_channels_in_") or not hasattr(step, "transform"):
        return None
    return int(step.n_features_in_)
