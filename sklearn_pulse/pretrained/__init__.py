"""Fitted transformers that come with the package, each with a card that says what it is worth."""

from __future__ import annotations

from typing import Any

from .. import _shipped
from .._parameters import check_option
from .._persistence import PretrainedMixin

__all__ = ["available", "card", "load"]


def available() -> dict[str, str]:
    """Return the names of the models that come with the package, and what each is.

    Returns
    -------
    dict of str to str
        From each name, in alphabetical order, to one sentence.

    See Also
    --------
    card : All that is known of a model.

    Examples
    --------
    >>> from sklearn_pulse import pretrained
    >>> list(pretrained.available())
    ['eeg-174hz']
    """
    return {name: _summary(_shipped.card(name)) for name in _shipped.names()}


def card(name: str) -> str:
    """Return the card of a model.

    Parameters
    ----------
    name : str
        One of :func:`available`.

    Returns
    -------
    str
        The card, in Markdown: data and their licence, sampling rate, channels, unit, windows,
        settings, scores on recordings that the model never saw beside those of controls, what the
        model is not for, versions, and the command that makes it again.

    Raises
    ------
    TypeError
        If `name` is no text.
    ValueError
        If no model has this name.

    Examples
    --------
    >>> from sklearn_pulse import pretrained
    >>> "CC BY 4.0" in pretrained.card("eeg-174hz")
    True
    """
    check_option("name", name, tuple(_shipped.names()))
    return _shipped.card(name)


def load(name: str, *, device: Any = "auto") -> Any:
    """Read a model that comes with the package. No network is used.

    Parameters
    ----------
    name : str
        One of :func:`available`. A folder of this name in the working folder is not looked at.
    device : str or torch.device, default="auto"
        Parameter `device` of the transformer.

    Returns
    -------
    transformer
        The fitted transformer. `sklearn.base.clone`, and with it a grid search, drops the fit of
        a bare transformer: wrap it into :class:`~sklearn.frozen.FrozenEstimator`.

    Raises
    ------
    TypeError
        If `name` is no text, or `device` no device.
    ValueError
        If no model has this name, its files do not have the checksums that they were written with,
        or `device` is unknown or not there.

    See Also
    --------
    sklearn_pulse.load_pretrained : Read a folder, or a model by its name.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn_pulse import pretrained
    >>> eeg = pretrained.load("eeg-174hz")
    >>> X, y = 50 * np.random.default_rng(0).normal(size=(12, 178, 1)), np.arange(12) % 2
    >>> classifier = make_pipeline(FrozenEstimator(eeg), StandardScaler(), LogisticRegression())
    >>> classifier.fit(X, y).predict(X).shape
    (12,)
    """
    check_option("name", name, tuple(_shipped.names()))
    with _shipped.folder(name) as path:
        return PretrainedMixin.from_pretrained(path, device=device)


def _summary(text: str) -> str:
    """Return the paragraph under the title of a card."""
    return text.partition("\n# ")[2].split("\n\n")[1].replace("\n", " ")
