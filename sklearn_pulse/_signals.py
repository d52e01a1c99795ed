"""Sampling rates and channel names: what is stated, carried by windows, and known from `fit`."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import TransformerMixin

from ._parameters import check_real

_TOLERANCE = 1e-5  # relative
_CLOCKS = 1e-3  # relative; a difference that the clocks of recorders may have


class Signals(NamedTuple):
    """Sampling rate in Hz and names of the channels; None where they are unknown."""

    sampling_rate: float | None = None
    channel_names: tuple[str, ...] | None = None


class SignalTransformerMixin(TransformerMixin):
    """Transformer whose `transform` compares a stated sampling rate and channel names.

    With metadata routing a pipeline passes what `transform` requests to `fit_transform`, whose
    default would pass it on to `fit`.
    """

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        sampling_rate: Any = None,
        channel_names: Any = None,
        **fit_params: Any,
    ) -> Any:
        """Fit, and transform the same windows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows, as in `fit`.
        y : array-like of shape (n_samples,), default=None
            Labels or targets, where `fit` reads them.
        sampling_rate : float or None, default=None
            Sampling rate of `X`, in Hz, as in `transform`.
        channel_names : sequence of str or None, default=None
            Names of the channels of `X`, as in `transform`.
        **fit_params : dict
            Other parameters of `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            What `transform` returns.
        """
        stated = {"sampling_rate": sampling_rate, "channel_names": channel_names}
        stated = {name: value for name, value in stated.items() if value is not None}
        labels = () if y is None else (y,)
        return self.fit(X, *labels, **fit_params).transform(X, **stated)


def check_signals(
    sampling_rate: Any, channel_names: Any, n_channels: int | None = None, *, owner: str = ""
) -> Signals:
    """Raise unless a sampling rate and channel names are possible.

    Parameters
    ----------
    sampling_rate : float or None
        The rate, in Hz.
    channel_names : sequence of str or None
        One name per channel.
    n_channels : int or None, default=None
        Number of channels; None leaves the number of names unchecked.
    owner : str, default=""
        Prefix of the two names in a message, such as ``"X."``.

    Returns
    -------
    Signals
        The rate as a float, the names as a tuple.

    Raises
    ------
    TypeError
        If the rate is no number, or the names are no sequence of strings.
    ValueError
        If the rate is not positive, a name occurs twice, or there are not as many as channels.

    Examples
    --------
    >>> check_signals(64, ["bvp", "bvp"])
    Traceback (most recent call last):
    ...
    ValueError: channel_names holds 'bvp' twice: give every channel a name of its own
    """
    if sampling_rate is not None:
        sampling_rate = check_real(
            f"{owner}sampling_rate",
            sampling_rate,
            open_minimum=True,
            meaning="it is in Hz, and None means unknown",
            example=64,
        )
    if channel_names is None:
        return Signals(sampling_rate)
    return Signals(sampling_rate, _check_names(f"{owner}channel_names", channel_names, n_channels))


def _check_names(name: str, values: Any, n_channels: int | None) -> tuple[str, ...]:
    """Return channel names as a tuple of strings; see :func:`check_signals`."""
    listed = values.tolist() if hasattr(values, "tolist") else values  # of an array or an index
    names = tuple(listed) if isinstance(listed, list | tuple) else ()
    if not names or not all(isinstance(value, str) for value in names):
        raise TypeError(
            f"{name} must be a list of strings, one per channel, got {values!r}; pass for example"
            f" {name}=['ecg', 'ppg'], or None"
        )
    if n_channels not in (None, len(names)):
        raise ValueError(
            f"{name} has {len(names)} names, but X has {n_channels} channels: give one name per"
            " channel, in the order of X's channels, or another input_layout if these are its time"
            " steps"
        )
    twice = [value for value, number in Counter(names).items() if number > 1]
    if twice:
        raise ValueError(f"{name} holds {twice[0]!r} twice: give every channel a name of its own")
    return tuple(map(str, names))


def agreed(stated: Signals, carried: Signals, what: str = "X") -> Signals:
    """Merge what a caller states with what X carries; raise where they contradict each other.

    Parameters
    ----------
    stated : Signals
        Parameters, or arguments of `transform`.
    carried : Signals
        Attributes of X.
    what : str, default="X"
        What X is called.

    Returns
    -------
    Signals
        The rate and the names that either of them knows.

    Raises
    ------
    ValueError
        If both state a rate, or names, and the two differ.
    """
    if not same_rate(stated.sampling_rate, carried.sampling_rate):
        raise ValueError(
            f"sampling_rate={stated.sampling_rate:g}, but {what} carries a sampling rate of"
            f" {carried.sampling_rate:g} Hz: correct one of them, or leave sampling_rate at None."
        )
    if not _same_names(stated.channel_names, carried.channel_names):
        raise ValueError(
            f"channel_names={list(stated.channel_names or ())}, but {what} carries the channel"
            f" names {list(carried.channel_names or ())}: correct one of them, or leave"
            " channel_names at None."
        )
    return Signals(
        carried.sampling_rate if stated.sampling_rate is None else stated.sampling_rate,
        carried.channel_names if stated.channel_names is None else stated.channel_names,
    )


def compare(given: Signals, fitted: Signals, name: str) -> None:
    """Raise if X has another sampling rate or other channels than those of `fit`.

    Parameters
    ----------
    given : Signals
        What is known of X.
    fitted : Signals
        What was known at `fit`.
    name : str
        Class of the estimator.

    Raises
    ------
    ValueError
        If a rate, or names, are known of both and differ.
    """
    rate, fitted_rate = given.sampling_rate, fitted.sampling_rate
    if not same_rate(rate, fitted_rate):
        own, wanted = f"{rate:.9g}", f"{fitted_rate:.9g}"
        remedy = (
            f"resample X by sklearn_pulse.preprocessing.Resampler(from_rate={own},"
            f" to_rate={wanted})"
        )
        if math.isclose(rate or 0.0, fitted_rate or 0.0, rel_tol=_CLOCKS):
            remedy = f"clocks differ by as much, so state {wanted} as the sampling rate of X"
        raise ValueError(
            f"X is sampled at {own} Hz, but {name} was fitted on {wanted} Hz: {remedy}."
        )
    names, fitted_names = given.channel_names, fitted.channel_names
    if names is None or fitted_names is None or names == fitted_names:
        return
    remedy = "pass the channels of fit, in that order"
    if sorted(names) == sorted(fitted_names):
        order = [names.index(channel) for channel in fitted_names]
        remedy = f"take the channels of X in the order {order}"
    raise ValueError(
        f"X has the channels {list(names)}, but {name} was fitted on {list(fitted_names)}:"
        f" {remedy}."
    )


def note_or_compare_names(estimator: Any, names: tuple[str, ...] | None, *, reset: bool) -> None:
    """Set ``channel_names_in_`` of a preprocessing step, or compare names with it.

    Parameters
    ----------
    estimator : estimator
        The step.
    names : tuple of str or None
        Names of the channels of X; None if they are unknown.
    reset : bool
        True in `fit`.

    Raises
    ------
    ValueError
        If the names are known of both and differ.
    """
    if reset:
        estimator.channel_names_in_ = None if names is None else np.array(names, dtype=object)
        return
    fitted = getattr(estimator, "channel_names_in_", None)
    known = Signals(None, None if fitted is None else tuple(fitted))
    compare(Signals(None, names), known, type(estimator).__name__)


def note(estimator: Any, signals: Signals) -> None:
    """Set the fitted attributes ``sampling_rate_in_`` and ``channel_names_in_``."""
    names = signals.channel_names
    estimator.sampling_rate_in_ = signals.sampling_rate
    estimator.channel_names_in_ = None if names is None else np.array(names, dtype=object)


def noted(estimator: Any) -> Signals:
    """Return what :func:`note` has set."""
    names = estimator.channel_names_in_
    return Signals(estimator.sampling_rate_in_, None if names is None else tuple(names))


def same_rate(first: float | None, second: float | None) -> bool:
    """Return whether two rates are equal, as far as both are known."""
    return first is None or second is None or math.isclose(first, second, rel_tol=_TOLERANCE)


def _same_names(first: tuple[str, ...] | None, second: tuple[str, ...] | None) -> bool:
    return first is None or second is None or first == second
