"""Settings by name: per data set, as published, and the grid of the paper's search.

One file a method; it holds plain tables: ``PARAMS`` (what differs from the estimator's defaults),
``PUBLISHED`` (what the released code does beyond that), ``WINDOWS`` and ``SEARCH_SPACE``. Some have
``OFFICIAL`` (what the code of the method's own authors does), ``PUBLISHED_WINDOWS``, or
``ABLATIONS`` (what the paper takes out of the method).
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any

from .._parameters import check_option

__all__ = ["ablations", "get", "methods", "search_space", "windows"]

_COMMON_SEARCH_SPACE = {
    "max_epochs": [50, 100, 200],
    "lr": [1e-3, 5e-4, 1e-4],
    "weight_decay": [1e-3, 1e-4, 1e-5],
}


def methods() -> list[str]:
    """Return the names of the methods that have presets.

    Returns
    -------
    list of str
        Sorted.

    Examples
    --------
    >>> from sklearn_pulse import presets
    >>> "pulse" in presets.methods()
    True
    """
    files = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return [name.removeprefix("_") for name in files if name != "_cut"]


def get(
    method: str, dataset: str, *, published: bool = False, official: bool = False
) -> dict[str, Any]:
    """Return the parameters of a method for a data set.

    Parameters
    ----------
    method : str
        One of :func:`methods`.
    dataset : {"har", "ecg", "ppg", "eeg", "synthetic", "har-transfer", "eeg-transfer"}
        The data set; the last two are the pre-training of the transfer experiments.
    published : bool, default=False
        Whether to add what the published code does and the defaults do not; for PULSE that is
        validation with fresh crops and dropout.
    official : bool, default=False
        Whether to add instead what the code of a baseline's own authors does, for the methods
        that have such a preset (whose tables hold ``OFFICIAL``).

    Returns
    -------
    dict
        Keyword arguments of the estimator (paper, Appendix G, as published in code).

    Raises
    ------
    ValueError
        For a name that is not known, or a preset that a method does not have.

    Examples
    --------
    >>> from sklearn_pulse import PulseTransformer, presets
    >>> PulseTransformer(**presets.get("pulse", "ppg"), random_state=0)
    PulseTransformer(gru_num_layers=4, init_dilation=2, init_kernel_size=5,
                     lr=0.0001, min_crop_length=64, random_state=0)
    """
    tables = _tables(method)
    params = dict(_row(tables.PARAMS, dataset))
    if published and official:
        raise ValueError("published and official are different presets: set one of them to False")
    if official and not hasattr(tables, "OFFICIAL"):
        known = [name for name in methods() if hasattr(_tables(name), "OFFICIAL")]
        raise ValueError(f"{method!r} has no official preset, {known} have: set official=False")
    if official:
        return params | _row(tables.OFFICIAL, dataset)
    return params | _row(tables.PUBLISHED, dataset) if published else params


def windows(method: str, dataset: str, *, published: bool = False) -> dict[str, Any]:
    """Return how a method's pre-training windows of a data set are cut.

    Parameters
    ----------
    method, dataset : str
        As in :func:`get`.
    published : bool, default=False
        Whether they are what the published code arrives at, where that differs from what its
        configurations name (TS2Vec takes its fraction twice).

    Returns
    -------
    dict
        ``mode`` ("random": :func:`~sklearn_pulse.windows.random_windows`; "labeled": the windows
        that carry labels), ``length`` (time steps after ``downsample``), ``stride`` and
        ``stride_val`` (of random windows, training and validation), ``fraction`` and
        ``fraction_val`` of the windows that are used, ``n_channels``.

    Raises
    ------
    ValueError
        For a name that is not known.

    Examples
    --------
    >>> from sklearn_pulse import presets
    >>> presets.windows("pulse", "har")["stride"]
    32
    """
    tables = _tables(method)
    row = dict(_row(tables.WINDOWS, dataset))
    return row | getattr(tables, "PUBLISHED_WINDOWS", {}).get(dataset, {}) if published else row


def search_space(method: str, *, prefix: str = "") -> dict[str, list[Any]]:
    """Return the grid that the paper searched at random, 30 settings by validation performance.

    Parameters
    ----------
    method : str
        One of :func:`methods`.
    prefix : str, default=""
        Put before each name, for a step of a pipeline: ``"pulse__"``.

    Returns
    -------
    dict of str to list
        ``param_distributions`` of :class:`~sklearn.model_selection.RandomizedSearchCV`: every
        value is as likely as the others (paper, Appendix G).

    Raises
    ------
    ValueError
        For a name that is not known.

    Examples
    --------
    >>> from sklearn_pulse import presets
    >>> presets.search_space("pulse", prefix="pulse__")["pulse__n_crops"]
    [1, 2, 3]
    """
    space = _COMMON_SEARCH_SPACE | _tables(method).SEARCH_SPACE
    return {prefix + name: list(values) for name, values in space.items()}


def ablations(method: str) -> dict[str, dict[str, Any]]:
    """Return what the paper takes out of a method, by name.

    Parameters
    ----------
    method : str
        One of :func:`methods`.

    Returns
    -------
    dict of str to dict
        Parameters to set beside those of :func:`get` (paper, Section 5.4); empty for a method
        that was not taken apart.

    Raises
    ------
    ValueError
        For a name that is not known.

    Examples
    --------
    >>> from sklearn_pulse import presets
    >>> presets.ablations("pulse")["direct-reconstruction"]
    {'n_crops': 0}
    """
    tables = getattr(_tables(method), "ABLATIONS", {})
    return {name: dict(params) for name, params in tables.items()}


def _tables(method: str) -> ModuleType:
    check_option("method", method, methods())
    return importlib.import_module(f"._{method}", __name__)


def _row(table: dict[str, dict[str, Any]], dataset: str) -> dict[str, Any]:
    return table[check_option("dataset", dataset, sorted(table))]
