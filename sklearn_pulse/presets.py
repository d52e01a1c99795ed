"""Published settings, by name."""

from __future__ import annotations

from typing import Any

# Each row: the parameters of PulseTransformer that differ from its defaults (the HAR column).
_PULSE: dict[str, dict[str, Any]] = {
    "har": {"min_crop_length": 64},
    "ecg": {
        "batch_size": 64,
        "init_kernel_size": 11,
        "init_dilation": 2,
        "init_hidden_dim": 128,
        "min_crop_length": 250,
        "time_varying_pool": 100,
    },
    "ppg": {
        "lr": 1e-4,
        "gru_num_layers": 4,
        "init_kernel_size": 5,
        "init_dilation": 2,
        "min_crop_length": 64,
    },
    "eeg": {
        "batch_size": 64,
        "init_dilation": 2,
        "n_crops": 1,
        "min_crop_length": 500,
        "time_varying_pool": 2,
        "time_varying_dim": 2,
    },
    "synthetic": {
        "gru_num_layers": 3,
        "gru_hidden_dim": 128,
        "init_dilation": 2,
        "init_hidden_dim": 128,
        "n_crops": 3,
        "min_crop_length": 50,
        "time_varying_pool": 50,
    },
    "har-transfer": {
        "max_epochs": 50,
        "lr": 1e-4,
        "gru_hidden_dim": 128,
        "init_dilation": 2,
        "init_hidden_dim": 128,
        "n_crops": 1,
        "min_crop_length": 64,
    },
    "eeg-transfer": {
        "max_epochs": 50,
        "lr": 1e-4,
        "batch_size": 64,
        "gru_hidden_dim": 128,
        "init_kernel_size": 5,
        "init_hidden_dim": 128,
        "n_crops": 1,
        "min_crop_length": 100,
        "time_varying_pool": 20,
    },
}

_PULSE_PUBLISHED = {"deterministic_validation": False}


def _windows(
    mode: str,
    length: int,
    *,
    downsample: int = 1,
    stride: int | None = None,
    stride_val: int | None = None,
    fraction: float = 1.0,
    channels: int,
) -> dict[str, Any]:
    return {
        "mode": mode,
        "length": length,
        "downsample": downsample,
        "stride": stride,
        "stride_val": stride_val,
        "fraction": fraction,
        "n_channels": channels,
    }


_PULSE_WINDOWS = {
    "har": _windows("random", 128, stride=32, stride_val=128, channels=6),
    "ecg": _windows("labeled", 500, downsample=5, fraction=0.5, channels=2),
    "ppg": _windows("labeled", 960, downsample=4, channels=1),
    "eeg": _windows(
        "random", 1000, downsample=3, stride=350, stride_val=1000, fraction=0.5, channels=2
    ),
    "synthetic": _windows("random", 100, stride=50, stride_val=100, channels=3),
    "har-transfer": _windows("random", 128, stride=128, stride_val=128, channels=6),
    "eeg-transfer": _windows("random", 200, stride=200, stride_val=200, fraction=0.1, channels=1),
}


def get(method: str, dataset: str, *, published: bool = False) -> dict[str, Any]:
    """Return the parameters of a method for a data set.

    Parameters
    ----------
    method : {"pulse"}
        The method.
    dataset : {"har", "ecg", "ppg", "eeg", "synthetic", "har-transfer", "eeg-transfer"}
        The data set; the last two are the pre-training of the transfer experiments.
    published : bool, default=False
        Whether to add what the published code does and the defaults do not: validation with fresh
        crops and dropout.

    Returns
    -------
    dict
        Keyword arguments of the estimator (paper, Appendix G, as published in
        code).

    Raises
    ------
    ValueError
        For a name that is not known.

    Examples
    --------
    >>> from sklearn_pulse import PulseTransformer, presets
    >>> PulseTransformer(**presets.get("pulse", "ppg"), random_state=0)
    PulseTransformer(gru_num_layers=4, init_dilation=2, init_kernel_size=5,
                     lr=0.0001, min_crop_length=64, random_state=0)
    """
    params = dict(_look_up(_PULSE, method, dataset))
    return params | _PULSE_PUBLISHED if published else params


def windows(method: str, dataset: str) -> dict[str, Any]:
    """Return how a method's pre-training windows of a data set are cut.

    Parameters
    ----------
    method, dataset : str
        As in :func:`get`.

    Returns
    -------
    dict
        ``mode`` ("random": :func:`~sklearn_pulse.windows.random_windows`; "labeled": the windows
        that carry labels), ``length`` (time steps after ``downsample``), ``stride`` and
        ``stride_val`` (of random windows, training and validation), ``fraction`` of the windows
        that is used, ``n_channels``.

    Examples
    --------
    >>> from sklearn_pulse import presets
    >>> presets.windows("pulse", "har")["stride"]
    32
    """
    return dict(_look_up(_PULSE_WINDOWS, method, dataset))


def _look_up(table: dict[str, dict[str, Any]], method: str, dataset: str) -> dict[str, Any]:
    if method != "pulse":
        raise ValueError(f"method must be 'pulse', got {method!r}")
    if dataset not in table:
        raise ValueError(f"dataset must be one of {sorted(table)}, got {dataset!r}")
    return table[dataset]
