"""Export of a chain: a network and the linear steps after it as one graph."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from .._export import FORMATS, check_equal, check_packages, program_of, write
from .._parameters import as_path, check_option
from .._version import __version__
from ._layers import last_layer, layer_of
from ._steps import computing_steps, refuse_search

_TOLERANCE = {"float32": 1e-5, "bfloat16": 5e-2}
# Parameters of estimators that wrap another one.
_OF_WRAPPERS = ("estimator", "estimators", "regressor")
_PROBE_STEPS = 64  # time steps of the example where the length at fit is unknown


def export(
    model: Any,
    path: str | os.PathLike[str],
    *,
    format: str = "onnx",
    units: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Write the computation of a fitted chain as one graph, for programs without Python.

    The graph reads windows of shape (batch, n_timesteps, n_channels), float32, channels last, in
    batches of one window or more and, as far as the method allows, of every length. NaN is missing,
    as in `transform`. Before the file is written, its results are compared with those of the chain.

    Parameters
    ----------
    model : Pipeline or transformer
        A fitted estimator with a network, or a pipeline of such an estimator and of linear steps
        of scikit-learn after it. A `ChannelWhitener` may come before it, and a `WindowScaler` but
        for ``per="recording"``.
    path : path-like
        The file; an earlier file is replaced. A leading ``~`` is the user's home.
    format : {"onnx", "torch"}, default="onnx"
        "onnx" for onnxruntime and others, which needs the extra ``export``; "torch" for
        :func:`torch.export.load`.
    units : sequence of str or None, default=None
        Unit of each channel, for the signature.

    Returns
    -------
    dict
        The signature, which the file holds too, as JSON: names, axes and units of the input, its
        sampling rate, and the name, axes and classes of the output. In ONNX it is the entry
        "signature" of the metadata, in a file of torch the extra file "signature.json".

    Raises
    ------
    ImportError
        If a package that the format needs is not installed.
    IsADirectoryError
        If `path` is a folder.
    NotFittedError
        If a step is not fitted.
    TypeError
        If a step has no graph, such as a filter, a bag, a search, a threshold, or features that
        are no network.
    ValueError
        If torch cannot write the network as a graph for every batch, or the graph computes
        something else than the chain.

    See Also
    --------
    save_pretrained : Save the chain itself.

    Notes
    -----
    The output is called "embedding" (of a transformer), "probabilities" (of a classifier with
    `predict_proba`, and a column per class; of an `SGDClassifier` with ``loss="log_loss"`` alone),
    "scores" (the `decision_function` of the other classifiers) or "prediction" (of a regressor).
    `FineTuneClassifier`, `FineTuneRegressor` and `SupervisedClassifier` predict as the last step,
    and embed before it. A
    window without an observed step, which `transform` refuses, gives results that are not finite.

    The comparison is of the program of torch, on one and three windows of the length of `fit`, of
    half of it and of seven steps more, with missing steps, to 1e-5 (5e-2 for
    ``precision="bfloat16"``, since the graph is in float32).

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, torch
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_pulse import RandomEncoderTransformer, export
    >>> X, y = np.random.default_rng(0).normal(size=(20, 32, 2)), np.arange(20) % 2
    >>> small = {"embedding_dim": 8, "encoder_hidden_dim": 8, "encoder_depth": 2}
    >>> encoder = RandomEncoderTransformer(**small, sampling_rate=64, random_state=0)
    >>> chain = make_pipeline(encoder, LogisticRegression()).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as home:
    ...     path = os.path.join(home, "chain.pt2")
    ...     signature = export(chain, path, format="torch")
    ...     program = torch.export.load(path).module()
    >>> signature["input"]["sampling_rate"], signature["output"]["name"]
    (64.0, 'probabilities')
    >>> rows = program(torch.tensor(X[:5], dtype=torch.float32)).detach()
    >>> bool(np.allclose(rows, chain.predict_proba(X[:5]), atol=1e-5))
    True
    """
    check_option("format", format, FORMATS)
    check_packages(format)  # before the tracing, which takes long
    path = as_path("path", path)
    if path.is_dir():
        raise IsADirectoryError(f"path={str(path)!r} is a folder: name a file in it.")
    steps = computing_steps(model)
    for step in steps:
        check_is_fitted(step)
        refuse_search(step)
    place = _place_of_encoder(steps)
    encoder = steps[place]
    layers = [layer_of(step, takes_windows=True) for step in steps[:place]]
    layers.append(encoder._as_graph())
    layers += [layer_of(step) for step in steps[place + 1 : -1]]
    method, output = "transform", {"name": "embedding", "dims": ["batch", "feature"]}
    if place < len(steps) - 1 or hasattr(encoder, "head_"):
        layer, method, output = last_layer(steps[-1])
        layers.append(layer)
    signature = {
        "sklearn_pulse": __version__,
        "steps": [type(step).__name__ for step in steps],
        "input": _input_of(encoder, units),
        "output": output | {"dtype": "float32"},
    }
    try:
        program = _checked_program(Chain(layers), getattr(model, method), steps[0], encoder)
    except ValueError as error:
        raise ValueError(f"{_called(steps)} is not exported: {error}") from error
    write(program, path, format, signature)
    return signature


class Chain(nn.Module):
    """Layers one after the other; the input is called `windows`.

    Parameters
    ----------
    layers : sequence of torch.nn.Module
        The layers.
    """

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, windows: Tensor) -> Tensor:
        """Apply the layers."""
        return self.layers(windows)


def _called(steps: list[Any]) -> str:
    """Return the name of a chain in an error."""
    names = ", ".join(type(step).__name__ for step in steps) or "no steps"
    return names if len(steps) == 1 else f"The chain of {names}"


def _place_of_encoder(steps: list[Any]) -> int:
    """Return the place of the only encoder of a chain."""
    places = [i for i, step in enumerate(steps) if hasattr(step, "_as_graph")]
    if len(places) != 1:
        wraps = [step for step in steps if any(hasattr(step, name) for name in _OF_WRAPPERS)]
        remedy = "Serve other chains by save_pretrained and load_pretrained."
        if wraps:
            name = type(wraps[0]).__name__
            remedy = f"Export the chain that {name} wraps, and apply its rule to the results."
        raise TypeError(
            f"{_called(steps)}: exactly one step must have a network, such as PulseTransformer or"
            f" FineTuneClassifier. {remedy}"
        )
    return places[0]


def _input_of(encoder: Any, units: Any) -> dict[str, Any]:
    """Return the part of the signature about the windows."""
    names, n_channels = encoder.channel_names_in_, encoder.n_channels_in_
    any_length = encoder._variable_length
    return {
        "name": "windows",
        "dims": ["batch", "time" if any_length else encoder.n_timesteps_in_, n_channels],
        "dtype": "float32",
        "missing": "NaN",
        "n_timesteps_at_fit": encoder.n_timesteps_in_,
        "channel_names": None if names is None else list(names),
        "units": _checked_units(units, n_channels),
        "sampling_rate": encoder.sampling_rate_in_,
    }


def _checked_units(units: Any, n_channels: int) -> list[str] | None:
    """Return one unit per channel, or None."""
    if units is None:
        return None
    is_list = isinstance(units, list | tuple | np.ndarray) and all(
        isinstance(unit, str) for unit in units
    )
    if not is_list or len(units) != n_channels:
        raise ValueError(
            f"units must be a list of {n_channels} strings, one per channel, got {units!r}; pass"
            " for example ['mV', 'mV'], or None"
        )
    return list(map(str, units))


def _checked_program(
    graph: nn.Module, reference: Callable[[Any], Any], first: Any, encoder: Any
) -> Any:
    """Return the program of a graph, after it was compared with the chain."""
    n_timesteps = encoder.n_timesteps_in_ or _PROBE_STEPS
    any_length, swapped = encoder._variable_length, encoder._layout == "nct"
    draw = _drawing(first, encoder.n_channels_in_)

    def computed(x: NDArray[np.float32]) -> Any:
        try:
            return reference(x.swapaxes(1, 2) if swapped else x)
        except ValueError as error:  # which speaks of X, but these windows were drawn here
            raise ValueError(
                f"it cannot compute the windows that it is compared on ({error}): check the"
                " numbers that its steps have learnt."
            ) from error

    # Torch takes an axis of one step for an axis that always has one.
    length = max(n_timesteps, 2) if any_length else n_timesteps
    program = program_of(graph, torch.from_numpy(draw((3, length))), any_length)
    tolerance = _TOLERANCE[encoder.net_.precision]
    check_equal(program, computed, n_timesteps, any_length, draw, tolerance)
    return program


def _drawing(first: Any, n_channels: int) -> Callable[[tuple[int, int]], NDArray[np.float32]]:
    """Return a function that draws windows of the scale that the first step takes."""
    rng = np.random.default_rng(0)
    center, scale = getattr(first, "center_", None), getattr(first, "scale_", None)

    def draw(shape: tuple[int, int]) -> NDArray[np.float32]:
        x = rng.normal(size=(*shape, n_channels))
        x = x * (1.0 if scale is None else scale) + (0.0 if center is None else center)
        return x.astype(np.float32)

    return draw
