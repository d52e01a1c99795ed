"""What fits and embeddings of the same windows have in common, kept by joblib."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_memory

from .._data._windows import Block
from .._training._device import resolve_device
from .._training._identity import fingerprint
from .._version import __version__
from ._block_weights import all_weights
from ._channels import arrays_of
from ._choice import Chosen, Request, prepare
from ._pieces import Run
from ._preparation import Preparation
from ._stack import FeatureStack

Result = TypeVar("Result")
_FORMAT = 2  # of what is kept: one more where it changes within a version


def as_memory(memory: Any) -> Any:
    """Return the memory that a parameter names; None keeps nothing.

    Parameters
    ----------
    memory : None, str, path-like or object with the interface of joblib.Memory
        Parameter of an estimator.

    Returns
    -------
    None or object with the interface of joblib.Memory
        The memory.

    Raises
    ------
    TypeError
        If the parameter is of another kind.

    Examples
    --------
    >>> as_memory(3)
    Traceback (most recent call last):
        ...
    TypeError: memory must be None, a folder or a joblib.Memory, got 3; pass for example
    memory='cache'.
    """
    if memory is None:
        return None
    if isinstance(memory, os.PathLike):
        memory = os.fspath(memory)
    if not isinstance(memory, str) and not hasattr(memory, "cache"):
        raise TypeError(
            f"memory must be None, a folder or a joblib.Memory, got {memory!r}; pass for example"
            " memory='cache'."
        )
    return check_memory(memory)


def remembered(memory: Any, key: bytes, compute: Callable[[], Result]) -> Result:
    """Return what a function computes, or what was kept of an earlier call with this key.

    The key is a digest of all that the result depends on, beside the versions of this package, of
    its libraries and of what is kept. `memory` has the interface of joblib.Memory.
    """
    versions = __version__, _FORMAT, np.__version__, torch.__version__
    kept = memory.cache(_computed, ignore=["compute"])
    result: Result = kept((key, *map(str, versions)), compute)
    return result


def _computed(key: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
    """Compute a result; joblib keeps it under the key."""
    return compute()


def prepared_once(memory: Any, preparation: Preparation, run: Run, request: Request) -> Chosen:
    """Choose and prepare, or find in a memory what an earlier call prepared.

    Parameters
    ----------
    memory : None or object with the interface of joblib.Memory
        Where results are kept; None keeps nothing.
    preparation, run, request
        Arguments of :func:`~sklearn_pulse._closed_form._choice.prepare`.

    Returns
    -------
    Chosen
        Views, shares of the blocks, and what a map is fitted to.
    """
    if memory is None:
        return prepare(preparation, run, request)

    def compute() -> Chosen:
        chosen = prepare(preparation, run, request)
        return chosen._replace(prepared=preparation.held(chosen.prepared))

    windows, order, views, weights, channels = request
    shares = weights if isinstance(weights, str) else all_weights(weights)
    values = [fingerprint(tuple(block)) for _, block in windows.blocks()]
    settings = (
        preparation.n_components,
        preparation.num_kernels,
        preparation.rho,
        preparation.seed,
    )
    read = preparation.bag_pooling, preparation.input_layout, windows.knows_recordings
    asked = views, shares, channels
    key = values, tuple(order), asked, settings, read, _computer(preparation.device)
    return remembered(memory, fingerprint(key), compute)


def components(
    memory: Any, stack: FeatureStack, project: Callable[[Block], NDArray[np.float32]]
) -> Callable[[Block], NDArray[np.float32]]:
    """Let a projection of a few windows find what it has computed in a memory.

    Parameters
    ----------
    memory : None or object with the interface of joblib.Memory
        Where results are kept; None keeps nothing.
    stack : FeatureStack
        The fitted stack.
    project : callable
        Its projection.

    Returns
    -------
    callable
        Function from windows to their principal components.
    """
    if memory is None:
        return project
    blocks = {name: block._weights() for name, block in stack.by_name().items()}
    channels = arrays_of(stack.whitener)
    own = fingerprint((stack.arrays(), channels, blocks, _computer(stack.device)))
    return lambda block: remembered(
        memory, fingerprint((own, tuple(block))), lambda: project(block)
    )


def _computer(device: str | torch.device) -> tuple[str, int]:
    """Return what rounding depends on."""
    return str(resolve_device(device)), torch.get_num_threads()
