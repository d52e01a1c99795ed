"""Cache of simulated sets of trials, in memory or on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ._arrays import is_intact, map_array, save_sealed, write_whole
from ._home import get_data_home, writable
from ._simulate import N_TIMESTEPS, N_TRIALS, diffusion_scale, n_steps, simulate
from ._systems import System

# Part of the folder's name. Raise it when the simulated numbers change.
_VERSION = 1

# (index of the parameter value in the sweep, noise level)
Key = tuple[int, float]


class TrialStore:
    """Sets of trials of one system on disk, one file per set, with the interface of a dict.

    A file appears only when it is complete, so that a run that was stopped can be resumed. A
    digest in it tells when its numbers have changed; files of earlier versions have none.

    Parameters
    ----------
    data_home : str, path-like or None
        The data folder. None means the default of
        :func:`~sklearn_pulse.datasets.get_data_home`.
    system : System
        The system.
    backend : {"midpoint", "torchsde"}
        Integrator of the noisy equations. Each backend has its own folder.
    """

    def __init__(
        self,
        data_home: str | os.PathLike[str] | None,
        system: System,
        backend: Literal["midpoint", "torchsde"],
    ) -> None:
        self._home = Path(get_data_home(data_home))
        self.folder = self._home / "synthetic" / f"{backend}-v{_VERSION}" / system.name
        self._system = system

    def path(self, key: Key) -> Path:
        """Return the path of the file of a set of trials."""
        index, noise = key
        value = f"{self._system.parameter}={self._system.sweep[index]:g}"
        return self.folder / f"{value}_noise={float(noise) + 0.0!r}.npy"  # -0.0 becomes 0.0

    def __contains__(self, key: Key) -> bool:
        """Return whether the file of a set of trials exists."""
        return self.path(key).is_file()

    def __getitem__(self, key: Key) -> NDArray[np.float32]:
        """Read a set of trials; raise a ValueError if it is not as it was written."""
        path, shape = self.path(key), (N_TRIALS, N_TIMESTEPS, len(self._system.channel_names))
        trials = map_array(path, np.float32, shape)
        if not is_intact(path, trials):
            raise ValueError(
                f"{path} is damaged: its numbers have changed since they were written; delete it,"
                " and the set is simulated again."
            )
        return np.array(trials)

    def __setitem__(self, key: Key, trials: NDArray[np.float32]) -> None:
        """Write a set of trials to a temporary file, then rename the file."""
        with writable(self._home):
            write_whole(self.path(key), lambda file: save_sealed(file, trials))


def missing_batches(
    store: TrialStore | dict[Key, NDArray[np.float32]],
    indices: Iterable[int],
    levels: Iterable[float],
) -> list[list[Key]]:
    """List the sets that a store lacks, in batches that depend only on earlier batches.

    The noise-free set of a parameter value comes first, since its amplitude scales the noise of
    the other sets.

    Parameters
    ----------
    store : TrialStore or dict
        Store with the sets that exist.
    indices : iterable of int
        Indices of the parameter values in the sweep.
    levels : iterable of float
        Noise levels.

    Returns
    -------
    batches : list of list of (index, level)
        At most two batches, none of them empty.

    Examples
    --------
    >>> missing_batches({(0, 0.0): None, (1, 3.0): None}, [0, 1], [3.0])
    [[(0, 3.0)]]
    >>> missing_batches({}, [0], [0.0, 1.0, 5.0])
    [[(0, 0.0)], [(0, 1.0), (0, 5.0)]]
    """
    wanted = [(index, float(level)) for level in levels for index in indices]
    missing = [key for key in dict.fromkeys(wanted) if key not in store]
    clean = list(dict.fromkeys((index, 0.0) for index, _ in missing if (index, 0.0) not in store))
    noisy = [key for key in missing if key[1] > 0]
    return [batch for batch in (clean, noisy) if batch]


def count_steps(system: System, batches: list[list[Key]]) -> int:
    """Return the number of (set, step) pairs of batches, the total of a progress bar."""
    return n_steps(system, N_TIMESTEPS) * sum(map(len, batches))


def fill(
    store: TrialStore | dict[Key, NDArray[np.float32]],
    system: System,
    indices: Iterable[int],
    levels: Iterable[float],
    *,
    n_timesteps: int = N_TIMESTEPS,
    backend: Literal["midpoint", "torchsde"] = "midpoint",
    progress: Callable[[int], None] | None = None,
) -> None:
    """Simulate the sets of trials that a store lacks.

    The seed of a set is the index of its parameter value, at every noise level. All levels thus
    share initial states and Brownian motion.

    Parameters
    ----------
    store : TrialStore or dict
        Store to fill with arrays of shape (20, n_timesteps, n_dims).
    system : System
        The system.
    indices : iterable of int
        Indices of the parameter values in the sweep.
    levels : iterable of float
        Noise levels.
    n_timesteps : int, default=10_000
        Number of time steps of each trajectory after the burn-in.
    backend : {"midpoint", "torchsde"}, default="midpoint"
        Integrator of the noisy equations.
    progress : callable, default=None
        Function that is called with the number of (set, step) pairs done since its last call.
    """
    for batch in missing_batches(store, indices, levels):
        for part in _parts(batch, backend):
            sets = simulate(
                system,
                [system.sweep[index] for index, _ in part],
                [index for index, _ in part],
                _diffusions(store, system, part),
                n_timesteps=n_timesteps,
                backend=backend,
                progress=progress,
            )
            for key, trials in zip(part, sets, strict=True):
                store[key] = np.ascontiguousarray(trials)


def _parts(batch: list[Key], backend: str) -> list[list[Key]]:
    """Divide a batch into sets that are simulated before the first of them is stored.

    torchsde simulates noisy sets slowly, one after the other, so a run that is stopped should lose
    one at most.
    """
    is_slow = backend == "torchsde" and any(level for _, level in batch)
    return [[key] for key in batch] if is_slow else [batch]


def _diffusions(
    store: TrialStore | dict[Key, NDArray[np.float32]], system: System, batch: list[Key]
) -> list[float]:
    """Return the noise scale of each set, from the noise-free set of the same value."""
    if not any(level for _, level in batch):
        return [0.0] * len(batch)
    unit = {i: diffusion_scale(system, store[i, 0.0], 1.0) for i in dict(batch)}
    return [level * unit[i] for i, level in batch]
