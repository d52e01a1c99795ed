"""Task of telling parameter values of a chaotic system apart."""

from __future__ import annotations

import os
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state

from .._parameters import check_boolean, check_integer, check_option, check_real, check_seed
from ..windows import sliding_windows
from ._home import resolve_data_home
from ._simulate import (
    N_TIMESTEPS,
    N_TRIALS,
    check_backend,
    sampling_rate,
    standardize_trials,
)
from ._synthetic_cache import Key, TrialStore, fill
from ._systems import SYSTEMS, System

WINDOW_LENGTH = 100
# Part of each of the 20 trials of a class.
_TRIAL_SPLIT = np.array(["train"] * 14 + ["val"] * 3 + ["test"] * 3)
_DESCR = """\
{title}
{line}

:Source: simulated; dy = speed * f(y) dt + diffusion o dB
:Recordings: {n_recordings}, 20 trials per class, of 10,000 time steps ({duration:.1f} units)
:Channels: {n_dims}; {channels}
:Sampling rate: {rate:.1f} steps per unit of time
:Windows: {n_windows} of 100 time steps without overlap
:Classes: {n_classes}; {classes}

The task is to tell parameter values of a dynamical system apart, given 100 steps of one trajectory.
Noise, if its level is not 0, is part of the dynamics.

Simulation, as in the PULSE publication's code for its systems: standard normal initial states, the
explicit midpoint rule with steps of 0.001, and 200 outputs of burn-in. The diffusion is the noise
level times an amplitude of the noise-free trajectories of the same parameter value, divided by
{divisor:g}. The parameter value at place k of the sweep is simulated with seed k, whatever its
label in this task.

Scaling: the trials of a class are centred per channel and divided by the standard deviation of
all their values. **These statistics include the validation and test trials**, as published; so
does the amplitude that scales the noise.

Split: by trial, 14 / 3 / 3 of each class. ``groups`` is the trial (an index into
``recordings``): windows of one trajectory follow one another and belong in one fold.

.. rubric:: References

{reference}
"""
_REFERENCES = {
    "lorenz": "Lorenz, E. (1963). Deterministic nonperiodic flow. J. Atmos. Sci. 20.",
    "thomas": (
        "Thomas, R. (1999). Deterministic chaos seen in terms of feedback circuits. Int. J. "
        "Bifurcation Chaos 9."
    ),
    "hindmarsh_rose": (
        "Hindmarsh, J. and Rose, R. (1984). A model of neuronal bursting using three coupled "
        "first order differential equations. Proc. R. Soc. B 221."
    ),
    "fitzhugh_nagumo": (
        "FitzHugh, R. (1961). Impulses and physiological states in theoretical models of nerve "
        "membrane. Biophys. J. 1."
    ),
}


def make_system_classification(
    system: str = "lorenz",
    noise: float = 0.0,
    n_classes: int = 5,
    random_state: int | np.random.RandomState | None = None,
    *,
    backend: Literal["midpoint", "torchsde"] = "midpoint",
    cache: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    return_X_y: bool = False,
) -> Bunch | tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Make the task of telling parameter values of a chaotic system apart.

    ``n_classes`` values are drawn from the ten values of the system's sweep. Each value is a
    class with 20 trials of 10,000 time steps: 14 training, 3 validation and 3 test trials. The
    simulation of a class takes seconds, reading it from a cache takes less;
    ``python -m sklearn_pulse.datasets`` fills the cache for all systems of the paper.

    =================   ==========================
    Classes                                      5
    Recordings                    100 (70 / 15 / 15)
    Windows                 7,000 / 1,500 / 1,500
    Window              100 steps, 3 channels
    =================   ==========================

    Parameters
    ----------
    system : {"lorenz", "thomas", "hindmarsh_rose", "fitzhugh_nagumo"}, default="lorenz"
        Name of the system. FitzHugh-Nagumo has 2 channels and is not in the paper.
    noise : float, default=0.0
        Noise level. Published: 0, 1, 3, 5.
    n_classes : int, default=5
        Number of parameter values, 2 to 10.
    random_state : int, RandomState instance or None, default=None
        Seed that draws the parameter values and their order. It does not draw the trajectories:
        a parameter value has the same trajectories in every task. The seeds 0 to 9 give the
        published tasks, up to the order in which a file system listed the sweep.
    backend : {"midpoint", "torchsde"}, default="midpoint"
        Integrator of the noisy equation. "torchsde" needs an optional package, draws the
        published Brownian motion and takes many times as long. Both integrators solve the same
        equation by the same rule.
    cache : bool, default=False
        Whether to read trajectories from ``data_home/synthetic``, and to write simulated
        trajectories to this folder (2.4 MB per class and noise level).
    data_home : str or path-like, default=None
        Data folder that holds the cache. None means the default of :func:`get_data_home`.
    return_X_y : bool, default=False
        If True, return ``(X, y)`` of all windows instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        recordings : list of ndarray of shape (10_000, n_channels), dtype float32
            The trials, standardised per class: 20 of the first class, 20 of the second, ...
        segments : ndarray of shape (n_recordings, 4), dtype int64
            Recording index, start (0), end (exclusive) and label of each recording.
        X : ndarray of shape (n_windows, 100, n_channels), dtype float32
            The windows, without overlap, recording by recording.
        y : ndarray of shape (n_windows,)
            Label of each window: index of its parameter value in ``parameter_values``.
        groups : ndarray of shape (n_windows,)
            Group of each window: its trial, as the index of its recording.
        recording : ndarray of shape (n_windows,)
            Index into ``recordings`` of each window.
        start : ndarray of shape (n_windows,)
            First time step of each window in its recording.
        split : ndarray of shape (n_windows,)
            "train", "val" or "test" for each window.
        recording_split : ndarray of shape (n_recordings,)
            "train", "val" or "test" for each recording.
        recording_target : ndarray of shape (n_recordings,)
            Label of each recording.
        recording_trial : ndarray of shape (n_recordings,)
            Number of each recording's trial within its class, 0 to 19.
        parameter_name : str
            Name of the bifurcation parameter.
        parameter_values : ndarray of shape (n_classes,)
            Value of the bifurcation parameter in each class.
        channel_names : list of str
            Names of the channels.
        target_names : list of str
            Names of the classes.
        sampling_rate : float
            Number of time steps per unit of time.
        DESCR : str
            Description of the data set.
    (X, y) : tuple of ndarray
        Windows and labels. Returned only if ``return_X_y`` is True.

    Raises
    ------
    TypeError
        If a parameter has a wrong type.
    ValueError
        If a parameter has a wrong value, a file of the cache is damaged, or a trajectory leaves
        the range of float32.
    OSError
        If ``data_home`` is a file, or the cache cannot be read or written.
    ImportError
        If ``backend="torchsde"`` and torchsde is not installed.

    See Also
    --------
    make_lorenz : Trajectories of the Lorenz system at one parameter value.

    References
    ----------
    Paper, Appendix B.

    Examples
    --------
    >>> from sklearn_pulse.datasets import make_system_classification
    >>> data = make_system_classification("lorenz", noise=1.0, random_state=0)  # doctest: +SKIP
    >>> data.target_names  # doctest: +SKIP
    ['rho=55', 'rho=138', 'rho=83', 'rho=152', 'rho=41']
    >>> data.X[data.split == "train"].shape  # doctest: +SKIP
    (7000, 100, 3)
    """
    check_option("system", system, sorted(SYSTEMS))
    facts = SYSTEMS[system]
    noise = check_real("noise", noise)
    n_classes = check_integer("n_classes", n_classes, 2, len(facts.sweep))
    check_backend(backend)
    check_seed("random_state", random_state)
    check_boolean("cache", cache)
    check_boolean("return_X_y", return_X_y)
    if data_home is not None:  # also where no cache needs it
        resolve_data_home(data_home)
    classes = check_random_state(random_state).permutation(len(facts.sweep))[:n_classes].tolist()
    store: TrialStore | dict[Key, NDArray[np.float32]]
    store = TrialStore(data_home, facts, backend) if cache else {}
    fill(store, facts, classes, [noise], backend=backend)
    data = _as_task(facts, noise, classes, [standardize_trials(store[k, noise]) for k in classes])
    return (data.X, data.y) if return_X_y else data


def _as_task(
    facts: System, noise: float, classes: list[int], trials: list[NDArray[np.float32]]
) -> Bunch:
    """Cut the trials of each class into windows and return the Bunch of the task."""
    recordings = [recording for of_class in trials for recording in of_class]
    target = np.repeat(np.arange(len(classes)), N_TRIALS)
    recording_split = np.tile(_TRIAL_SPLIT, len(classes))
    windows = sliding_windows(recordings, WINDOW_LENGTH, y=target)
    index = np.arange(len(recordings))
    values = [facts.sweep[k] for k in classes]
    data = Bunch(
        recordings=recordings,
        segments=np.stack([index, 0 * index, 0 * index + N_TIMESTEPS, target], axis=1),
        X=windows.X,
        y=windows.y,
        groups=windows.groups,
        recording=windows.recording,
        start=windows.start,
        split=recording_split[windows.recording],
        recording_split=recording_split,
        recording_target=target,
        recording_trial=np.tile(np.arange(N_TRIALS), len(classes)),
        parameter_name=facts.parameter,
        parameter_values=np.array(values),
        channel_names=list(facts.channel_names),
        target_names=[f"{facts.parameter}={value:g}" for value in values],
        sampling_rate=sampling_rate(facts),
    )
    data.DESCR = _describe(facts, noise, data)
    return data


def _describe(facts: System, noise: float, data: Bunch) -> str:
    """Return the description of the task."""
    name = facts.name.replace("_", "-").title()
    title = f"{name} system, one class per {facts.parameter}, noise level {noise:g}"
    return _DESCR.format(
        title=title,
        line="-" * len(title),
        n_recordings=len(data.recordings),
        duration=10_000 / data.sampling_rate,
        n_dims=len(data.channel_names),
        channels=", ".join(data.channel_names),
        rate=data.sampling_rate,
        n_windows=f"{len(data.X):,}",
        n_classes=len(data.target_names),
        classes=", ".join(data.target_names),
        divisor=facts.noise_divisor,
        reference=_REFERENCES.get(facts.name, facts.field.__doc__),
    )
