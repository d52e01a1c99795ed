"""The published sets of trajectories: simulated once, kept in memory or on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from ._remote import get_data_home
from ._simulate import N_TIMESTEPS, N_TRIALS, diffusion_scale, n_steps, simulate
from ._systems import System

# Part of the folder's name; to be raised when the numbers change.
_VERSION = 1

# (index of the parameter value in the sweep, noise level)
Key = tuple[int, float]


class TrialStore:
    """Sets of trials of one system on disk, a file each, used like a dict.

    Files appear whole or not at all, so a run that was stopped goes on where it was.

    Parameters
    ----------
    data_home : str, path-like or None
        As in :func:`~sklearn_pulse.datasets.get_data_home`.
    system : System
        The system.
    backend : str
        What integrates the noisy equations; each backend has its own folder.
    """

    def __init__(self, data_home: str | os.PathLike[str] | None, system: System, backend: str):
        home = Path(get_data_home(data_home))
        self.folder = home / "synthetic" / f"{backend}-v{_VERSION}" / system.name
        self._system = system

    def path(self, key: Key) -> Path:
        """File of a set of trials."""
        index, noise = key
        value = f"{self._system.parameter}={self._system.sweep[index]:g}"
        return self.folder / f"{value}_noise={float(noise)!r}.npy"

    def __contains__(self, key: Key) -> bool:
        """Whether the file is there."""
        return self.path(key).is_file()

    def __getitem__(self, key: Key) -> np.ndarray:
        """Read a set of trials."""
        path = self.path(key)
        try:
            trials = np.load(path)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} is damaged; delete it to have it made again.") from error
        expected = (N_TRIALS, N_TIMESTEPS, len(self._system.feature_names))
        if trials.shape != expected or trials.dtype != np.float32:
            raise ValueError(
                f"{path} holds {trials.dtype} values of shape {trials.shape} instead of float32 "
                f"values of shape {expected}; delete it to have it made again."
            )
        return trials

    def __setitem__(self, key: Key, trials: np.ndarray) -> None:
        """Write a set of trials under another name, then rename it."""
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            with open(part, "wb") as file:
                np.save(file, trials)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)


def lacking_batches(
    store: TrialStore | dict[Key, np.ndarray], indices: Iterable[int], levels: Iterable[float]
) -> list[list[Key]]:
    """List what has to be simulated, in batches that depend on earlier ones only.

    The noise-free set of a parameter value comes first: it scales the noise of the others.

    Parameters
    ----------
    store : TrialStore or dict
        What is there.
    indices : iterable of int
        Indices into the sweep.
    levels : iterable of float
        Noise levels.

    Returns
    -------
    batches : list of list of (index, level)
        At most two, none of them empty.

    Examples
    --------
    >>> lacking_batches({(0, 0.0): None, (1, 3.0): None}, [0, 1], [3.0])
    [[(0, 3.0)]]
    >>> lacking_batches({}, [0], [0.0, 1.0, 5.0])
    [[(0, 0.0)], [(0, 1.0), (0, 5.0)]]
    """
    wanted = [(index, float(level)) for level in levels for index in indices]
    lacking = [key for key in dict.fromkeys(wanted) if key not in store]
    clean = list(dict.fromkeys((index, 0.0) for index, _ in lacking if (index, 0.0) not in store))
    noisy = [key for key in lacking if key[1] > 0]
    return [batch for batch in (clean, noisy) if batch]


def count_steps(system: System, batches: list[list[Key]]) -> int:
    """Count the (set, step) pairs behind some batches: the total of a progress bar."""
    return n_steps(system, N_TIMESTEPS) * sum(map(len, batches))


def fill(
    store: TrialStore | dict[Key, np.ndarray],
    system: System,
    indices: Iterable[int],
    levels: Iterable[float],
    *,
    n_timesteps: int = N_TIMESTEPS,
    backend: str = "midpoint",
    progress: Callable[[int], None] | None = None,
) -> None:
    """Simulate the sets of trials that a store lacks.

    The seed of a set is the index of its parameter value, at every noise level; so levels share
    initial states and Brownian motion.

    Parameters
    ----------
    store : TrialStore or dict
        Gets arrays of shape (20, n_timesteps, n_dims).
    system, n_timesteps, backend, progress
        As in :func:`~sklearn_pulse.datasets._simulate.simulate`.
    indices, levels
        As in :func:`lacking_batches`.
    """
    for batch in lacking_batches(store, indices, levels):
        sets = simulate(
            system,
            [system.sweep[index] for index, _ in batch],
            [index for index, _ in batch],
            _diffusions(store, system, batch),
            n_timesteps=n_timesteps,
            backend=backend,
            progress=progress,
        )
        for key, trials in zip(batch, sets, strict=True):
            store[key] = np.ascontiguousarray(trials)


def _diffusions(store, system: System, batch: list[Key]) -> list[float]:
    """Noise scale of each set, from the noise-free set of the same value."""
    if not any(level for _, level in batch):
        return [0.0] * len(batch)
    unit = {i: diffusion_scale(system, store[i, 0.0], 1.0) for i in dict(batch)}
    return [level * unit[i] for i, level in batch]
