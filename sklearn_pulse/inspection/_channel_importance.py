"""Importance of each channel for the score of a fitted model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import check_scoring
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import _num_samples

from .._groups import check_groups
from .._inputs._numbers import as_real_array
from .._inputs._panel import read_frame
from .._inputs._recordings import as_windows
from .._inputs._tables import has_columns, is_list, is_object_list, is_panel_frame
from .._parameters import check_integer, check_seed
from ._exchanged import exchanger


def channel_importance(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike | None,
    *,
    scoring: Any = None,
    n_repeats: int = 5,
    groups: ArrayLike | None = None,
    random_state: Any = None,
) -> Bunch:
    """Measure how much the score of a fitted model falls without each channel.

    The whole series of a channel is taken from another window, so that the channel keeps its
    dynamics but tells nothing about the window that it is put into. The importance of the channel
    is the fall of the score. It is low for a channel whose content other channels have too.

    Parameters
    ----------
    estimator : estimator
        A fitted model, for example a pipeline of a transformer of windows and a classifier.
    X : array-like of shape (n_samples, n_timesteps, n_channels)
        Windows, best of recordings that were held out of `fit`, in the `input_layout` of the first
        step of `estimator` that has this parameter. 2-D data is univariate; 4-D data are bags, of
        which whole bags exchange a channel. An array is copied once. Lazy windows and 3-D memory
        maps are never copied: a channel is exchanged when the model reads the windows, so the model
        must take lazy windows, as the models of this package do. The missing values of a channel
        go with it: a time step is missing after the exchange if the lent channel lacks it, or
        another channel of the window. For a model of sktime, pass one of its panels, an array
        (n_samples, n_channels, n_timesteps) or a frame, with series of one length.
    y : array-like of shape (n_samples,) or None
        Labels, or None for a scorer that needs none. Leave out samples without a label: most
        scorers take -1 for a class.
    scoring : str, callable or None, default=None
        Scorer, as in scikit-learn; higher is better. None takes the `score` of the model.
    n_repeats : int, default=5
        Number of random exchanges.
    groups : array-like of shape (n_samples,), default=None
        Recording of each window. The windows of a recording then take the channel from the windows
        of one other recording, in their order, from a random window on and then from the first.
        Without groups, a window may take the channel from its own recording, which tells the same
        if the recording has one label.
    random_state : int, RandomState instance or None, default=None
        Seed of the exchanges. All channels are exchanged alike.

    Returns
    -------
    Bunch
        As that of :func:`sklearn.inspection.permutation_importance`: ``importances``, an ndarray of
        shape (n_channels, n_repeats), and its mean and standard deviation over the repeats,
        ``importances_mean`` and ``importances_std``, of shape (n_channels,).

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong kind or out of its range, `scoring` gives several scores or
        no number, the windows differ in length, or there is no other window, or recording, to
        exchange with.

    See Also
    --------
    sklearn.inspection.permutation_importance : The same for the columns of a table.

    Notes
    -----
    Source: Fisher, Rudin and Dominici (2019), "All Models are Wrong, but Many are Useful", Journal
    of Machine Learning Research 20(177). A window never gets its own channel back, in contrast to
    a permutation.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_pulse.features import StatisticsTransformer
    >>> from sklearn_pulse.inspection import channel_importance
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(80, 32, 3)), np.arange(80) % 2
    >>> X[:, :, 1] *= 1 + y[:, None]  # the second channel tells the classes apart
    >>> model = make_pipeline(StatisticsTransformer(), LogisticRegression(max_iter=1000))
    >>> importance = channel_importance(model.fit(X[:40], y[:40]), X[40:], y[40:], random_state=0)
    >>> importance.importances.shape, int(importance.importances_mean.argmax())
    ((3, 5), 1)
    """
    check_integer("n_repeats", n_repeats, 1)
    check_seed("random_state", random_state)
    if isinstance(scoring, list | tuple | set | dict):
        raise _several_scores(scoring)
    scorer = check_scoring(estimator, scoring)
    # Only models of sktime take a panel in a frame, and their arrays have channels first.
    layout = "nct" if is_panel_frame(X) else _layout(estimator)
    windows = _with_shape(X, layout)
    n_samples = windows.shape[0]
    if not n_samples:
        raise ValueError("X holds no window: pass at least two, which exchange their channels.")
    if y is not None and _num_samples(y) != n_samples:
        raise ValueError(
            f"y has {_num_samples(y)} labels for {n_samples} windows: pass one for each."
        )
    donors = _draw_donors(groups, n_samples, n_repeats, check_random_state(random_state))
    n_channels, exchange = exchanger(windows, -2 if layout == "nct" else -1)
    # Frames are scored as they are once, so that the model compares their names and times.
    baseline = _score(scorer, estimator, X if _holds_frames(X) else windows, y, scoring)
    importances = np.empty((n_channels, n_repeats))
    for channel, repeat in np.ndindex(importances.shape):
        exchanged = exchange(channel, donors[repeat])
        try:
            fall = baseline - scorer(estimator, exchanged, y)
        except ValueError as error:
            raise ValueError(
                f"Windows with channel {channel} of other windows cannot be scored ({error}). After"
                " the exchange, a time step is missing if the lent channel lacks it, or another"
                " channel: if windows lack different steps, leave these windows out, or fill the"
                " gaps."
            ) from error
        importances[channel, repeat] = fall.item() if hasattr(fall, "item") else fall
    return Bunch(
        importances_mean=importances.mean(1),
        importances_std=importances.std(1),
        importances=importances,
    )


def _score(scorer: Any, estimator: Any, X: Any, y: Any, scoring: Any) -> Any:
    """Return the score of windows as they are; raise unless it is a single number."""
    score = scorer(estimator, X, y)
    if isinstance(score, dict):
        raise _several_scores(scoring)
    if not _is_one_number(score):
        raise TypeError(
            f"scoring must give a number, but {scoring!r} gives {score!r}: return a float."
        )
    return score


def _several_scores(scoring: Any) -> TypeError:
    return TypeError(f"scoring must give one score, got {scoring!r}: call once for each scorer.")


def _is_one_number(score: Any) -> bool:
    """Return whether a score is a number, or an array or a tensor with a single one."""
    with suppress(AttributeError, RuntimeError, ValueError):
        score = score.item()
    return isinstance(score, Real)


def _with_shape(X: Any, input_layout: str) -> Any:
    """Return X as it is where it has a shape, else as an array; raise unless it holds windows."""
    if is_panel_frame(X):  # whose rows are time steps, or whose cells are series
        panel = as_real_array(list(read_frame(X, "X", hierarchical=True).arrays))
        return panel.swapaxes(1, 2) if input_layout == "nct" else panel
    if not hasattr(X, "shape") or is_object_list(X):
        X = as_windows(X, input_layout)
    if len(X.shape) not in (2, 3, 4):
        raise ValueError(
            f"X has {len(X.shape)} axes: pass windows of shape (n_samples, n_timesteps,"
            " n_channels)."
        )
    return X


def _holds_frames(X: Any) -> bool:
    """Return whether X is a panel in a frame, or a list or 1-D array that holds a frame."""
    if is_panel_frame(X):
        return True
    return is_list(X) and any(map(has_columns, X))


def _draw_donors(
    groups: ArrayLike | None, n_samples: int, n_repeats: int, rng: np.random.RandomState
) -> list[NDArray[np.intp]]:
    """Draw for each repeat who lends a channel to whom; windows without groups stand alone."""
    names = check_groups(groups, n_samples, unit="window")
    codes = np.arange(n_samples) if names is None else np.unique(names, return_inverse=True)[1]
    if codes.max() == 0:
        what = "n_samples=1 leaves" if names is None else "groups holds one recording, which leaves"
        raise ValueError(f"{what} no other to exchange channels with: pass more windows.")
    return [_donors(codes, rng) for _ in range(n_repeats)]


def _donors(codes: NDArray[np.intp], rng: np.random.RandomState) -> NDArray[np.intp]:
    """Draw for each window the window that lends its channel.

    The groups form a random circle, and each group takes from the next group, from a random window
    on. So no group keeps its own channel, and recordings that follow one schedule do not exchange
    windows of the same stage.
    """
    circle = rng.permutation(codes.max() + 1)
    lender = np.empty_like(circle)
    lender[circle] = np.roll(circle, -1)
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    begins = np.cumsum(counts) - counts
    first = np.array([rng.randint(n) for n in counts[lender].tolist()])
    group = codes[order]
    rank = np.arange(len(order)) - begins[group]
    donors = np.empty_like(codes)
    donors[order] = order[begins[lender[group]] + (first[group] + rank) % counts[lender[group]]]
    return donors


def _layout(estimator: Any) -> str:
    """Return the layout of the windows that a fitted estimator expects."""
    layouts = list(_layouts(estimator, {}))
    if layouts and not any(layouts):
        raise ValueError(
            "estimator does not say whether its windows have channels last: set its input_layout to"
            ' "ntc" or "nct", and fit it again.'
        )
    return next(filter(None, layouts), "nct" if _is_of_sktime(estimator) else "ntc")


def _is_of_sktime(estimator: Any) -> bool:
    """Return whether a model is one of sktime, whose arrays have channels first."""
    return any(cls.__module__.startswith("sktime.") for cls in type(estimator).__mro__)


def _layouts(estimator: Any, seen: dict[int, Any]) -> Iterator[str | None]:
    """Yield the layouts that an estimator and its parts expect, the first step first.

    None stands for a layout that the estimator takes from a file when it is fitted. `seen` holds
    the visited estimators by id, since a part may refer to the whole, as a callback does.
    """
    if id(estimator) in seen:
        return
    seen[id(estimator)] = estimator
    for name in ("input_layout", "input_layout_"):  # the parameter may have been set since `fit`
        layout = getattr(estimator, name, "")
        if layout is None or (isinstance(layout, str) and layout):
            yield layout
    for part in _parts(estimator):
        yield from _layouts(part, seen)


def _parts(estimator: Any) -> Iterator[Any]:
    """Yield the parts of an estimator, fitted parts before the unfitted parts that were cloned.

    Fitted parts are in attributes such as ``best_estimator_`` and ``estimators_``.
    """
    fitted = [
        value for name, value in getattr(estimator, "__dict__", {}).items() if name.endswith("_")
    ]
    given = estimator.get_params().values() if hasattr(estimator, "get_params") else ()
    hidden = getattr(estimator, "estimator", None)  # of a frozen or a calibrated estimator
    for value in (*fitted, hidden, *given):
        for part in _flat(value):
            if not isinstance(part, type) and (
                hasattr(part, "get_params") or hasattr(part, "estimator")
            ):
                yield part


def _flat(value: Any) -> Iterator[Any]:
    """Yield the entries of lists in lists, such as the named steps of a pipeline, or the value."""
    if not isinstance(value, list | tuple):
        yield value
        return
    for entry in value:
        yield from _flat(entry)
