"""Conversion between published checkpoints and fitted transformers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ._inputs._shape import note_channels
from ._persistence import check_embedding, check_finite
from ._pulse import PulseTransformer
from ._signals import check_signals, note
from ._tensor_files import read_tensors
from .networks import FixedEncoder, GRUDecoder

# Pairs of a published prefix and ours. The first prefix that fits a name is used.
_PREFIXES = (
    ("encoder.ts_encoder.input_fc.", "encoder.input."),
    ("encoder.ts_encoder.feature_extractor.net.", "encoder.blocks."),
    ("encoder.context_norm.", "encoder.norm."),
    ("init_encoder.init_proj.", "initial_condition."),
    ("recon_net.recon_gru.", "decoder.gru."),
    ("recon_net.out_proj.fc1.", "decoder.observation.0."),
    ("recon_net.out_proj.fc2.", "decoder.observation.2."),
    ("tv_module.conv.", "time_varying."),
)


def from_reference_checkpoint(
    state_or_path: Mapping[str, Tensor | ArrayLike] | str | os.PathLike[str], **params: Any
) -> PulseTransformer:
    """Return a fitted `PulseTransformer` with the weights of a published checkpoint.

    Parameters
    ----------
    state_or_path : mapping of str to array, or path-like
        The state dictionary, or the path of a file that holds it, alone or under the key
        "state_dict". The file may come from a stranger: nothing in it is executed, and time and
        memory are bounded by its size.
    **params : dict
        Parameters of :class:`~sklearn_pulse.PulseTransformer` that do not follow from the shapes of
        the weights: `init_dilation`, `time_varying_pool`, `pooling`, `n_crops` and others. Sizes
        are read from the shapes; a size that is also passed must agree with them.

    Returns
    -------
    PulseTransformer
        Fitted transformer, whose objective is ``net_.module_``. A checkpoint does not hold the
        length of its training windows, so ``n_timesteps_in_`` is None.

    Raises
    ------
    TypeError
        If an argument is unknown or of the wrong type.
    OSError
        If the file cannot be read.
    ValueError
        If the file is damaged or holds other objects than tensors, a name is missing or unknown, a
        weight is no real number, NaN or infinite, an embedding is not finite, or a size that was
        passed disagrees with the shapes. The message names the file.

    See Also
    --------
    to_reference_state : The conversion in the other direction.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> from sklearn_pulse.interop import from_reference_checkpoint, to_reference_state
    >>> X = np.random.default_rng(0).normal(size=(8, 32, 2))
    >>> small = {"embedding_dim": 16, "encoder_hidden_dim": 8, "encoder_depth": 3}
    >>> pulse = PulseTransformer(**small, max_epochs=1, random_state=0).fit(X)
    >>> restored = from_reference_checkpoint(to_reference_state(pulse))
    >>> restored.embedding_dim, restored.encoder_depth
    (16, 3)
    >>> bool(np.all(restored.transform(X) == pulse.transform(X)))
    True
    """
    if isinstance(state_or_path, Mapping):
        source, state = "the state dictionary", state_or_path
    else:
        source = _file(state_or_path)
        _refuse_other_files(source)
        state = read_tensors(source)
    try:
        weights = _our_weights(_unwrapped(state))
        sizes = _sizes(weights)
    except ValueError as error:
        raise _no_checkpoint(source, error) from error
    _check_stated(params, sizes, source)
    estimator = PulseTransformer(**params | sizes)
    n_channels = weights["encoder.input.weight"].shape[1]
    estimator.n_timesteps_in_ = None  # type: ignore[assignment]  # not in a checkpoint
    note_channels(estimator, n_channels)
    note(estimator, check_signals(estimator.sampling_rate, estimator.channel_names, n_channels))
    try:
        estimator._check_params()
        estimator._restore(weights)
        check_embedding(estimator)
    except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
        raise _no_checkpoint(source, _in_published_names(error)) from error
    return estimator


def _refuse_other_files(path: str) -> None:
    """Raise for a saved model, and for another format of weights."""
    if os.path.isdir(path):
        raise ValueError(
            f"{path} is a folder: load a model that save_pretrained wrote by"
            " PulseTransformer.from_pretrained."
        )
    if path.endswith(".safetensors"):
        raise ValueError(
            f"{path} is a file of safetensors: pass safetensors.torch.load_file of it, or, if it is"
            " of a folder that save_pretrained wrote, call PulseTransformer.from_pretrained on the"
            " folder."
        )


def _check_stated(params: dict[str, Any], sizes: dict[str, Any], source: str) -> None:
    """Raise if a parameter that the user states is wrong, or disagrees with the weights."""
    stated = PulseTransformer(**params)
    stated._check_params()  # an error here, or of the device, is not blamed on the file
    stated._net_params()
    if stated.encoder is not None:
        raise ValueError(
            "encoder is given, but a checkpoint holds an encoder of its own: leave encoder out."
        )
    for name, size in sizes.items():
        if params.get(name, size) != size:
            raise ValueError(
                f"{name}={params[name]!r} disagrees with the shapes in {source}, from which it is"
                f" {size!r}: leave {name} out."
            )


def _in_published_names(error: Exception) -> str:
    """Return the message of an error with the names of weights that the file has."""
    found = re.sub(r"(?<=')[\w.]+(?=')", lambda name: _published_name(name[0]), str(error))
    return re.sub(": save (it|the model) again.$", "", found)


def _file(path: Any) -> str:
    """Return the path of a file, in which a leading ``~`` is the user's home."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            "state_or_path must be a state dictionary or the path of a file with it, got"
            f" {type(path).__name__}: of a module pass its state_dict()."
        )
    if not os.fspath(path) or "\0" in os.fspath(path):
        raise ValueError(f"state_or_path is {path!r}: pass the path of a file.")
    return os.fsdecode(os.path.expanduser(path))


def _no_checkpoint(source: str, error: Exception | str) -> ValueError:
    """Return the error for weights of another model, or of a damaged one."""
    return ValueError(
        f"{source} is not a checkpoint of PULSE: {str(error).rstrip('.')}. Pass the whole state"
        " dictionary of a model of the published code, or what to_reference_state returns; for a"
        " folder of save_pretrained call PulseTransformer.from_pretrained."
    )


def to_reference_state(estimator: PulseTransformer) -> dict[str, Tensor]:
    """Return the weights of a fitted `PulseTransformer` under the published names.

    Parameters
    ----------
    estimator : PulseTransformer
        A transformer that was fitted with the published two-layer observation map
        (``observation="mlp"``) and an encoder of its own (``encoder=None``).

    Returns
    -------
    dict of str to Tensor
        State dictionary that :func:`from_reference_checkpoint` reads. Its tensors are copies.

    Raises
    ------
    NotFittedError
        If the transformer is not fitted.
    TypeError
        If `estimator` is no `PulseTransformer`: the published code has no other method.
    ValueError
        If `estimator` was fitted with ``observation="linear"`` or on the frozen encoder of another
        transformer: the published code has neither.

    See Also
    --------
    from_reference_checkpoint : The conversion in the other direction.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> from sklearn_pulse.interop import to_reference_state
    >>> X = np.random.default_rng(0).normal(size=(8, 32, 2))
    >>> small = {"embedding_dim": 16, "encoder_hidden_dim": 8, "encoder_depth": 3}
    >>> pulse = PulseTransformer(**small, max_epochs=1, random_state=0).fit(X)
    >>> to_reference_state(pulse)["recon_net.out_proj.fc2.weight"].shape[0]  # channels
    2
    """
    check_is_fitted(estimator)
    # The net counts: parameters may have changed since the fit.
    module: Any = getattr(getattr(estimator, "net_", None), "module_", None)
    if not isinstance(getattr(module, "decoder", None), GRUDecoder):
        raise TypeError(
            f"estimator must be a fitted PulseTransformer, got {type(estimator).__name__}: of a"
            " pipeline pass the step; save another method by save_pretrained."
        )
    _check_published(module)
    return {
        _published_name(name): _published_shape(name, value).clone()
        for name, value in module.state_dict().items()
    }


def _check_published(module: Any) -> None:
    """Raise if a fitted net has parts that the published code does not have."""
    if isinstance(module.encoder, FixedEncoder):
        raise ValueError(
            "the transformer was fitted with encoder=FrozenEstimator(...), which has no published"
            " names: fit with encoder=None."
        )
    if isinstance(module.decoder.observation, torch.nn.Linear):
        raise ValueError(
            "the transformer was fitted with observation='linear', which has no published names:"
            " fit with observation='mlp'."
        )


def _unwrapped(state: Any) -> Mapping[str, Any]:
    """Return the state dictionary itself; raise where it is elsewhere in what was saved."""
    if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
        state = state["state_dict"]
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise ValueError("it holds no dictionary of weights with their names.")
    inner = [repr(name) for name, value in state.items() if isinstance(value, Mapping)]
    if inner:
        raise ValueError(
            f"it holds dictionaries under {', '.join(inner[:5])}: load it, and pass the one with"
            " the weights."
        )
    return state


def _our_weights(state: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return weights of float32 under our names; raise if a value is no weight."""
    weights: dict[str, Tensor] = {}
    for name, value in state.items():
        ours = _our_name(name)
        weight = _our_shape(ours, _as_float32(name, value))
        if ours in weights:
            raise ValueError(f"it holds two weights of the meaning of {name!r}.")
        check_finite([(name, weight)])
        weights[ours] = weight
    return weights


def _as_float32(name: str, value: Any) -> Tensor:
    """Return a weight as a tensor of float32 on the CPU; raise unless it holds real numbers."""
    if not isinstance(value, Tensor):
        array = np.asarray(value)
        kind: object = array.dtype
        tensor = None
        if array.dtype.kind == "f":  # of any size and byte order, which torch does not read
            with np.errstate(over="ignore"):  # an infinity is an error that names the weight
                tensor = torch.from_numpy(array.astype(np.float32))
    else:
        kind, tensor = value.dtype, value.detach()
    if tensor is None or not tensor.is_floating_point():
        raise ValueError(f"{name!r} is of type {kind}, and a weight is a floating-point number.")
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or tensor.is_quantized:
        raise ValueError(f"{name!r} is no plain tensor: save {name!r} as one.")
    return tensor.to("cpu", torch.float32)


def _our_name(name: str) -> str:
    """Return the name of a weight in `PulseTransformer`."""
    for theirs, ours in _PREFIXES:
        if name.startswith(theirs):
            rest = name.removeprefix(theirs)
            return ours + rest.replace(".conv.", ".").replace("projector.", "skip.")
    raise ValueError(f"it holds {name[:80]!r}, which is no name of a weight of PULSE.")


def _published_name(name: str) -> str:
    """Return the name of a weight in the published code; any other name as it is."""
    for theirs, ours in _PREFIXES:
        if name.startswith(ours):
            rest = name.removeprefix(ours).replace("skip.", "projector.")
            if ours == "encoder.blocks.":
                rest = rest.replace("conv1.", "conv1.conv.").replace("conv2.", "conv2.conv.")
            return theirs + rest
    return name


def _our_shape(name: str, value: Tensor) -> Tensor:
    """Drop the last axis of a convolution of width 1, which is a linear map here."""
    return value.squeeze(-1) if name.endswith("skip.weight") else value


def _published_shape(name: str, value: Tensor) -> Tensor:
    """Add the last axis that :func:`_our_shape` drops."""
    return value.unsqueeze(-1) if name.endswith("skip.weight") else value


def _sizes(state: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the parameters that follow from the shapes of the weights."""
    hidden_dim, n_channels = _shape(state, "encoder.input.weight", 2)
    init_hidden_dim, init_channels, init_kernel_size = _shape(
        state, "initial_condition.conv1.weight", 3
    )
    (embedding_dim,) = _shape(state, "encoder.norm.weight", 1)
    gru_hidden_dim = _shape(state, "decoder.gru.weight_hh_l0", 2)[1]
    blocks = {name.split(".")[2] for name in state if name.startswith("encoder.blocks.")}
    drive = "time_varying.conv1.bias"
    sizes = {
        "embedding_dim": embedding_dim,
        "encoder_hidden_dim": hidden_dim,
        "encoder_depth": len(blocks) - 1,
        "time_varying_dim": _shape(state, drive, 1)[0] if drive in state else 0,
        "init_kernel_size": init_kernel_size,
        "init_hidden_dim": init_hidden_dim,
        "gru_num_layers": sum(name.startswith("decoder.gru.weight_hh") for name in state),
        "gru_hidden_dim": gru_hidden_dim,
        "observation": "mlp",
    }
    if embedding_dim != n_channels:  # otherwise both kinds have the same shape
        sizes["shared_encoder"] = init_channels == embedding_dim
    return sizes


def _shape(state: Mapping[str, Tensor], name: str, n_axes: int) -> tuple[int, ...]:
    """Return the shape of a weight; raise if it is missing or has another number of axes."""
    if name not in state:
        raise ValueError(f"it lacks {_published_name(name)!r}.")
    shape = tuple(state[name].shape)
    if len(shape) != n_axes or 0 in shape:
        raise ValueError(f"{_published_name(name)!r} has the shape {shape}.")
    return shape
