"""Conversion between published checkpoints and fitted transformers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ._pulse import PulseTransformer

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
        The state dictionary, or the path of a file with it. :func:`torch.load` reads the file with
        ``weights_only=True``, so that nothing in the file is executed.
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
        If a parameter is unknown or of the wrong type.
    ValueError
        If a name is missing or unknown, or a size that was passed disagrees with the shapes.

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
    state = {_our_name(name): value for name, value in _read(state_or_path).items()}
    state = {name: _our_shape(name, value) for name, value in state.items()}
    sizes = _sizes(state)
    for name in set(params) & set(sizes):
        if params[name] != sizes[name]:
            raise ValueError(
                f"{name}={params[name]!r} disagrees with the shapes of the checkpoint, from which"
                f" it is {sizes[name]!r}: leave {name} out."
            )
    estimator = PulseTransformer(**{**params, **sizes})
    estimator._check_params()
    n_channels = state["encoder.input.weight"].shape[1]
    estimator.n_channels_in_ = estimator.n_features_in_ = n_channels
    estimator.n_timesteps_in_ = None  # type: ignore[assignment]  # not in a checkpoint
    estimator._fitted_on_table = False
    try:
        estimator._restore(state)
    except RuntimeError as error:
        raise ValueError(f"the checkpoint is not a checkpoint of PULSE: {error}") from error
    return estimator


def to_reference_state(estimator: PulseTransformer) -> dict[str, Tensor]:
    """Return the weights of a fitted `PulseTransformer` under the published names.

    Parameters
    ----------
    estimator : PulseTransformer
        A fitted transformer with the published two-layer observation map
        (``observation="mlp"``).

    Returns
    -------
    dict of str to Tensor
        State dictionary that :func:`from_reference_checkpoint` reads.

    Raises
    ------
    ValueError
        With ``observation="linear"``, which the published code does not have.

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
    if estimator.observation != "mlp":
        raise ValueError("observation='linear' has no published names: fit with observation='mlp'")
    return {
        _published_name(name): value.unsqueeze(-1) if name.endswith("skip.weight") else value
        for name, value in estimator.net_.module_.state_dict().items()
    }


def _read(state_or_path: Any) -> dict[str, Tensor]:
    """Return a state dictionary of tensors."""
    if not isinstance(state_or_path, Mapping):
        state_or_path = torch.load(state_or_path, map_location="cpu", weights_only=True)
    return {
        name: value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
        for name, value in state_or_path.items()
    }


def _our_name(name: str) -> str:
    """Return the name of a weight in `PulseTransformer`."""
    for theirs, ours in _PREFIXES:
        if name.startswith(theirs):
            rest = name.removeprefix(theirs)
            return ours + rest.replace(".conv.", ".").replace("projector.", "skip.")
    raise ValueError(f"the checkpoint is not a checkpoint of PULSE: it holds {name!r}")


def _published_name(name: str) -> str:
    """Return the name of a weight in the published code."""
    for theirs, ours in _PREFIXES:
        if name.startswith(ours):
            rest = name.removeprefix(ours).replace("skip.", "projector.")
            if ours == "encoder.blocks.":
                rest = rest.replace("conv1.", "conv1.conv.").replace("conv2.", "conv2.conv.")
            return theirs + rest
    raise KeyError(name)


def _our_shape(name: str, value: Tensor) -> Tensor:
    """Drop the last axis of a convolution of width 1, which is a linear map here."""
    return value.squeeze(-1) if name.endswith("skip.weight") else value


def _sizes(state: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the parameters that follow from the shapes of the weights."""
    try:
        hidden_dim, n_channels = state["encoder.input.weight"].shape
        init_hidden_dim, init_channels, init_kernel_size = state[
            "initial_condition.conv1.weight"
        ].shape
        embedding_dim = len(state["encoder.norm.weight"])
        gru_hidden_dim = state["decoder.gru.weight_hh_l0"].shape[1]
    except KeyError as error:
        raise ValueError(
            f"the checkpoint is not a checkpoint of PULSE: it lacks {error}"
        ) from error
    blocks = {name.split(".")[2] for name in state if name.startswith("encoder.blocks.")}
    time_varying = state.get("time_varying.conv1.bias", torch.empty(0))
    sizes = {
        "embedding_dim": embedding_dim,
        "encoder_hidden_dim": hidden_dim,
        "encoder_depth": len(blocks) - 1,
        "time_varying_dim": len(time_varying),
        "init_kernel_size": init_kernel_size,
        "init_hidden_dim": init_hidden_dim,
        "gru_num_layers": sum(name.startswith("decoder.gru.weight_hh") for name in state),
        "gru_hidden_dim": gru_hidden_dim,
        "observation": "mlp",
    }
    if embedding_dim != n_channels:  # otherwise both kinds have the same shape
        sizes["shared_encoder"] = init_channels == embedding_dim
    return sizes
