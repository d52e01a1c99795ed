"""Settings of each method by data set, and the grid of the paper's search.

Each method has one file of plain tables: ``PARAMS`` (parameters that differ from the estimator's
defaults), ``PUBLISHED`` (further settings of the released code), ``WINDOWS`` and ``SEARCH_SPACE``.
Some files also have ``OFFICIAL`` (settings in the code of the method's own authors),
``PUBLISHED_WINDOWS``, or ``ABLATIONS`` (parts that the paper removes from the method).
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from types import ModuleType
from typing import Any

from .._parameters import check_boolean, check_option

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
        Names, sorted.

    Examples
    --------
    >>> from sklearn_pulse import presets
    >>> "pulse" in presets.methods()
    True
    """
    return list(_methods())


@functools.cache
def _methods() -> tuple[str, ...]:
    """Read the names off the folder, once: a benchmark asks for them thousands of times."""
    files = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return tuple(name.removeprefix("_") for name in files if name != "_cut")


def get(
    method: str, dataset: str, *, published: bool = False, official: bool = False
) -> dict[str, Any]:
    """Return the parameters of a method for a data set.

    Parameters
    ----------
    method : str
        Name of the method, one of :func:`methods`.
    dataset : {"har", "ecg", "ppg", "eeg", "synthetic", "har-transfer", "eeg-transfer"}
        Name of the data set. The last two names stand for the pre-training of the transfer
        experiments. PULSE has ``"strong"`` too: the settings with which its decoder was trained on
        the closed form (`encoder` of :class:`~sklearn_pulse.PulseTransformer`).
    published : bool, default=False
        Whether to add the settings of the published code that differ from the defaults. For PULSE,
        these are validation with fresh crops and dropout.
    official : bool, default=False
        Whether to add the settings of the code of a baseline's own authors instead. Only methods
        whose tables hold ``OFFICIAL`` have this preset.

    Returns
    -------
    dict
        Keyword arguments of the estimator (paper, Appendix G, as published in code).

    Raises
    ------
    TypeError
        If a name is no text, or `published` or `official` is no boolean.
    ValueError
        If a name is unknown, if the method does not have the preset, or if both `published` and
        `official` are set.

    Examples
    --------
    >>> from sklearn_pulse import PulseTransformer, presets
    >>> PulseTransformer(**presets.get("pulse", "ppg"), random_state=0)
    PulseTransformer(gru_num_layers=4, init_dilation=2, init_kernel_size=5,
                     lr=0.0001, min_crop_length=64, random_state=0)
    """
    check_boolean("published", published)
    check_boolean("official", official)
    tables = _tables(method)
    params = dict(_row(tables.PARAMS, dataset))
    if published and dataset not in tables.PUBLISHED:
        raise ValueError(f"{dataset!r} was not published, so set published=False")
    if published and official:
        raise ValueError("published and official are different presets: set one of them to False")
    if official and not hasattr(tables, "OFFICIAL"):
        known = [name for name in methods() if hasattr(_tables(name), "OFFICIAL")]
        raise ValueError(f"{method!r} has no official preset, only {known} do: set official=False")
    if official:
        return params | _row(tables.OFFICIAL, dataset)
    return params | _row(tables.PUBLISHED, dataset) if published else params


def windows(method: str, dataset: str, *, published: bool = False) -> dict[str, Any]:
    """Return how the pre-training windows of a method are cut from a data set.

    Parameters
    ----------
    method : str
        Name of the method, one of :func:`methods`.
    dataset : {"har", "ecg", "ppg", "eeg", "synthetic", "har-transfer", "eeg-transfer"}
        Name of the data set. The last two names stand for the pre-training of the transfer
        experiments.
    published : bool, default=False
        Whether to return the effective values of the published code where they differ from its
        configurations (TS2Vec applies its fraction twice).

    Returns
    -------
    dict
        Settings: ``mode`` ("random": :func:`~sklearn_pulse.windows.random_windows`; "labeled": the
        windows that carry labels), ``length`` (in time steps after down-sampling), ``downsample``
        (factor), ``stride`` and ``stride_val`` (in time steps, of random windows for training and
        validation), ``fraction`` and ``fraction_val`` (shares of the training and validation
        windows that are used) and ``n_channels``.

    Raises
    ------
    TypeError
        If a name is no text, or `published` is no boolean.
    ValueError
        If a name is unknown.

    Examples
    --------
    >>> from sklearn_pulse import presets
    >>> presets.windows("pulse", "har")["stride"]
    32
    """
    check_boolean("published", published)
    tables = _tables(method)
    row = dict(_row(tables.WINDOWS, dataset))
    return row | getattr(tables, "PUBLISHED_WINDOWS", {}).get(dataset, {}) if published else row


def search_space(method: str, *, prefix: str = "") -> dict[str, list[Any]]:
    """Return the grid from which the paper drew 30 settings and selected one on validation data.

    Parameters
    ----------
    method : str
        Name of the method, one of :func:`methods`.
    prefix : str, default=""
        Text before each parameter name, for a step of a pipeline, such as ``"pulse__"``.

    Returns
    -------
    dict of str to list
        Values of each parameter, for ``param_distributions`` of
        :class:`~sklearn.model_selection.RandomizedSearchCV`, which draws all values with the same
        probability (paper, Appendix G).

    Raises
    ------
    TypeError
        If `method` or `prefix` is no text.
    ValueError
        If `method` is unknown.

    Examples
    --------
    >>> from sklearn_pulse import presets
    >>> presets.search_space("pulse", prefix="pulse__")["pulse__n_crops"]
    [1, 2, 3]
    """
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be text, got {prefix!r}; pass for example prefix='pulse__'")
    space = _COMMON_SEARCH_SPACE | _tables(method).SEARCH_SPACE
    return {prefix + name: list(values) for name, values in space.items()}


def ablations(method: str) -> dict[str, dict[str, Any]]:
    """Return the ablations of a method in the paper, by name.

    Parameters
    ----------
    method : str
        Name of the method, one of :func:`methods`.

    Returns
    -------
    dict of str to dict
        Parameters to set beside those of :func:`get` (paper, Section 5.4); empty for a method
        without ablations. The released code has no "random-pairs", which is our reading of the
        paper's text.

    Raises
    ------
    TypeError
        If `method` is no text.
    ValueError
        If `method` is unknown.

    Examples
    --------
    >>> from sklearn_pulse import presets
    >>> presets.ablations("pulse")["direct-reconstruction"]
    {'n_crops': 0}
    """
    tables = getattr(_tables(method), "ABLATIONS", {})
    return {name: dict(params) for name, params in tables.items()}


def _tables(method: str) -> ModuleType:
    """Import the file of a method."""
    check_option("method", method, methods())
    return importlib.import_module(f"._{method}", __name__)


def _row(table: dict[str, dict[str, Any]], dataset: str) -> dict[str, Any]:
    """Return the row of a data set."""
    return table[check_option("dataset", dataset, sorted(table))]
