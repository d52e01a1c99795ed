"""Callbacks that users pass: checks that a training can run them, and copies."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from typing import Any

from sklearn.base import clone
from sklearn.metrics._scorer import _BaseScorer
from skorch.callbacks import (
    BatchScoring,
    Callback,
    Checkpoint,
    EarlyStopping,
    EpochScoring,
    InputShapeSetter,
    LoadInitState,
    LRScheduler,
)

from ._callback_state import own_attributes
from ._callbacks import KeepBest, KeepStored
from ._history import stored_event

_REFUSED: dict[type[Callback], str] = {
    BatchScoring: (
        "scores the predictions of a batch, and the net computes a loss alone. Use"
        " EpochScoring(function) with a function of (net, X, y)"
    ),
    InputShapeSetter: "sets the size of the input, which fit takes from X. Leave it out",
    LoadInitState: (
        "loads weights in the middle of a schedule that starts anew, so the training would be"
        " neither the old one nor a new one. Use checkpoint_dir to resume, or warm_start"
    ),
}
_ALWAYS_TAKEN = ("epoch_timer", "print_log", "report_epochs", "stop_together", "checkpoint")


def named(callbacks: Any) -> list[tuple[str, Any]]:
    """Return the names and the callbacks of a list; without a name, the name of the class.

    Parameters
    ----------
    callbacks : list, tuple or None
        Callbacks, functions or classes that make a callback, or pairs of a name and one of these.

    Returns
    -------
    list of (str, Callback or callable)
        In the same order.
    """
    pairs = []
    for entry in callbacks or ():
        if isinstance(entry, tuple | list):
            pairs.append((entry[0], entry[1]))
        else:
            # Classes and functions have a name of their own.
            pairs.append((getattr(entry, "__name__", type(entry).__name__), entry))
    return pairs


def check_callbacks(callbacks: Any) -> None:
    """Raise unless `callbacks` is a list of callbacks that a training can run.

    :func:`own_callbacks` checks the callbacks that functions make.

    Parameters
    ----------
    callbacks : Any
        Value of the parameter of that name.

    Raises
    ------
    TypeError
        If it is no list, or an entry is neither a callback nor a function that makes it.
    ValueError
        If an entry is a callback of skorch that cannot act on this net.

    Examples
    --------
    >>> check_callbacks([1])
    Traceback (most recent call last):
    ...
    TypeError: callbacks[0] must be a skorch callback or a pair (name, callback), or a function that
    makes a callback, got 1
    """
    if not isinstance(callbacks, list | tuple | None):
        raise TypeError(f"callbacks must be a list of skorch callbacks or None, got {callbacks!r}")
    for i, entry in enumerate(callbacks or ()):
        callback = entry
        if isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[0], str):
            callback = entry[1]
        is_factory = callable(callback) and not isinstance(callback, type | Callback)
        if not is_factory and not issubclass(_class(callback), Callback):
            raise TypeError(
                f"callbacks[{i}] must be a skorch callback or a pair (name, callback), or a"
                f" function that makes a callback, got {entry!r}"
            )
        _check_kind(f"callbacks[{i}]", callback)


def _check_kind(name: str, callback: Any) -> None:
    """Raise unless a callback, or a class of callbacks, can act on this net."""
    for kind, reason in _REFUSED.items():
        if issubclass(_class(callback), kind):
            raise ValueError(f"{name} is a {_class(callback).__name__}, which {reason}.")
    if isinstance(callback, EpochScoring):
        _check_scoring(name, callback.scoring)
    if isinstance(callback, LRScheduler):
        _check_schedule(name, callback)


def _check_scoring(name: str, scoring: Any) -> None:
    """Raise unless `scoring` can be called with the net."""
    is_metric = str(getattr(scoring, "__module__", "")).startswith("sklearn.")
    if not callable(scoring) or isinstance(scoring, _BaseScorer) or is_metric:
        raise ValueError(
            f"{name} is an EpochScoring with scoring={scoring!r}, which scores predictions, and"
            " the net computes a loss alone. Pass scoring a function of (net, X, y); X is the data"
            " set and y is None."
        )


def _check_schedule(name: str, callback: LRScheduler) -> None:
    """Raise unless skorch finds the schedule."""
    try:
        callback._get_policy_cls()
    except AttributeError as error:
        raise ValueError(
            f"{name} is an LRScheduler with policy={callback.policy!r}, which skorch does not know"
            " by this name. Pass the class, from torch.optim.lr_scheduler."
        ) from error


def check_names(callbacks: Any, taken: Collection[str]) -> None:
    """Raise a ValueError if a name of a pair is taken, by the training or by another pair."""
    taken = {*taken, *_ALWAYS_TAKEN}
    for entry in callbacks or ():
        if isinstance(entry, tuple | list):
            if entry[0] in taken:
                raise ValueError(
                    f"callbacks names two callbacks {entry[0]!r}, or the training has one of that"
                    " name: choose another name."
                )
            taken.add(entry[0])


def check_monitored(callbacks: Any, validated: bool) -> None:
    """Raise a ValueError if a callback needs a validation and nothing is validated."""
    if validated:
        return
    for name, callback in named(callbacks):
        if isinstance(callback, EpochScoring) and not callback.on_train:
            raise ValueError(
                f"callbacks holds {name!r}, an EpochScoring of the windows to validate on, and"
                " there are none: pass X_val, raise validation_fraction, or set its on_train=True,"
                " which scores the windows to train on."
            )
        monitor = getattr(callback, "monitor", None)
        if monitor in ("valid_loss", "valid_loss_best"):
            raise ValueError(
                f"callbacks holds {name!r}, which follows {monitor!r}, and there is nothing to"
                " validate on: pass X_val, raise validation_fraction, or let it follow"
                f" {monitor.replace('valid', 'train')!r}."
            )


def needs_best(callbacks: Any) -> bool:
    """Whether a callback reads which epoch was the best."""
    best = ("train_loss_best", "valid_loss_best")
    return any(isinstance(c, Checkpoint) and c.monitor in best for _, c in named(callbacks))


def with_keepers(callbacks: list[Any]) -> list[Any]:
    """Let keepers load the weights of the epoch that a callback of skorch has chosen.

    Parameters
    ----------
    callbacks : list
        Callbacks, or pairs of a name and a callback; they stay as they are.

    Returns
    -------
    list
        The same, with a :class:`KeepBest` after each ``EarlyStopping`` that loads. In place of
        each ``Checkpoint`` that loads, a copy that only stores, with a :class:`KeepStored` after
        it. A subclass of ``Checkpoint`` may store what it likes, and loads it itself.
    """
    kept: list[Any] = []
    for entry, (_, callback) in zip(callbacks, named(callbacks), strict=True):
        event = stored_event(callback) if type(callback) is Checkpoint else None
        if isinstance(event, str) and callback.f_params is not None:
            stores = copy.copy(callback)
            stores.load_best = False
            kept.append(stores if entry is callback else (entry[0], stores))
            kept.append(KeepStored(event))
        else:
            kept.append(entry)
        if isinstance(callback, EarlyStopping) and callback.load_best:
            kept.append(KeepBest())
    return kept


def own_callbacks(callbacks: Any) -> list[Any]:
    """Copy callbacks, so that the parameter of the estimator stays as it was passed.

    Parameters
    ----------
    callbacks : list, tuple or None
        Value of the parameter of that name.

    Returns
    -------
    list
        Copies, and what the functions make. What a callback refers to and cannot be copied, such as
        an open file or a writer of logs, is shared.

    Raises
    ------
    TypeError
        If a function makes something else than a callback.
    ValueError
        If a function makes a callback of skorch that cannot act on this net.
    """
    callbacks = list(callbacks or ())
    shared: dict[int, Any] = {}
    for value in _parts(callbacks):
        try:
            copy.deepcopy(value)
        except Exception:  # whatever a user's object raises, it cannot be copied
            shared[id(value)] = value
    return [_made(f"callbacks[{i}]", entry, shared) for i, entry in enumerate(callbacks)]


def _made(name: str, entry: Any, shared: dict[int, Any]) -> Any:
    """Return a copy of an entry of `callbacks`, made if it is a function or a class."""
    if isinstance(entry, tuple | list):
        return entry[0], _made(name, entry[1], shared)
    if isinstance(entry, Callback):
        return copy.deepcopy(entry, shared)
    callback = entry()
    if not isinstance(callback, Callback):
        raise TypeError(
            f"{name} is a function that must return a skorch callback, but it returns {callback!r}"
        )
    _check_kind(name, callback)
    return callback


def check_clones(callbacks: Any) -> None:
    """Raise a TypeError that names an entry of `callbacks` if the entry cannot be cloned.

    Parameters
    ----------
    callbacks : list, tuple or None
        Value of the parameter of that name.

    Raises
    ------
    TypeError
        If an entry cannot be cloned.
    """
    for i, (_, callback) in enumerate(named(callbacks)):
        try:
            clone(callback, safe=False)
        except Exception as error:  # a user's object may raise any error
            kind = _class(callback).__name__
            raise TypeError(
                f"callbacks[{i}] is a {kind} that cannot be cloned ({error}), as searches and"
                " cross-validation do. Pass a function that makes it, such as"
                f" callbacks=[make_callback] with def make_callback(): return {kind}(...)."
            ) from error


def sets_learning_rate(callbacks: Any) -> bool:
    """Whether a callback is a schedule of the learning rate, which replaces the estimator's own."""
    return any(isinstance(callback, LRScheduler) for _, callback in named(callbacks))


def _parts(callbacks: list[Any]) -> Iterator[Any]:
    """Yield what callbacks refer to."""
    for _, callback in named(callbacks):
        if isinstance(callback, Callback):
            yield from own_attributes(callback).values()


def _class(value: Any) -> type:
    return value if isinstance(value, type) else type(value)
