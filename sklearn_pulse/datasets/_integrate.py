"""Explicit midpoint integration of Stratonovich stochastic differential equations.

Many trajectories advance together, as columns of one tensor: the cost of a step is that of
calling a few tensor operations, almost whatever the number of trajectories.

torch does the arithmetic, in the order of the torchsde package, so that trajectories without
noise are the same to the last bit: these systems are chaotic, and one bit becomes a different
trajectory. Source: paper, Appendix B (integrator and step).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

# A torch.Tensor. torch is imported where it is used: it takes seconds.
Tensor = Any

DT = 1e-3
# Steps whose Brownian increments are drawn at once.
_CHUNK = 256
# torchsde walks a tree of intervals by recursion, 1,200 levels deep at 40,000 steps.
_TORCHSDE_RECURSION = 10_000


def step_times(t_end: float, dt: float = DT, dtype: type = np.float32) -> np.ndarray:
    """Return the times at which steps of fixed length begin and end.

    Parameters
    ----------
    t_end : float
        End of the interval that begins at 0. The last step is cut there.
    dt : float, default=1e-3
        Length of a step.
    dtype : numpy dtype, default=float32
        Precision in which time is accumulated: it decides the number of steps.

    Returns
    -------
    times : ndarray of shape (n_steps + 1,)
        From 0 to ``t_end``, ascending.

    Examples
    --------
    >>> step_times(0.25, 0.1, float)
    array([0.  , 0.1 , 0.2 , 0.25])
    """
    # Rounding can shorten the accumulated time; a part in a hundred is ample.
    n_most = int(1.01 * t_end / dt) + 2
    times = np.cumsum(np.full(n_most, dt, dtype))
    inside = times[times < np.asarray(t_end, dtype)]
    return np.concatenate([[0], inside, [t_end]]).astype(dtype)


class BrownianIncrements:
    """Gaussian increments of independent Brownian motions, one path per seed.

    Parameters
    ----------
    seeds : sequence of int
        A seed for each block of columns; blocks of the same seed share their path.
    n_dims, n_trials : int
        Rows of the state, and columns of a block.

    Examples
    --------
    >>> path = BrownianIncrements([0, 1, 0], n_dims=3, n_trials=2)
    >>> increments = path(step_times(0.01))
    >>> tuple(increments.shape)
    (10, 3, 6)
    >>> bool((increments[..., :2] == increments[..., 4:]).all())
    True
    """

    def __init__(self, seeds: Sequence[int], n_dims: int, n_trials: int) -> None:
        self._seeds = list(seeds)
        self._shape = (n_dims, n_trials)
        # The second word keeps these numbers apart from the initial states: torch seeds the same
        # kind of generator with the bare seed.
        self._rng = {seed: np.random.RandomState([seed, 1]) for seed in self._seeds}

    def __call__(self, times: np.ndarray) -> Tensor:
        """Draw the increments of the steps between consecutive times.

        Parameters
        ----------
        times : ndarray of shape (n_steps + 1,)
            Ends of the steps; calls continue the paths.

        Returns
        -------
        increments : Tensor of shape (n_steps, n_dims, n_columns)
            Of variance ``times[k + 1] - times[k]``, dtype of ``times``.
        """
        import torch

        scale = np.sqrt(np.diff(times))[:, np.newaxis, np.newaxis]
        shape = (len(scale), *self._shape)
        drawn = {
            seed: rng.standard_normal(shape).astype(times.dtype) * scale
            for seed, rng in self._rng.items()
        }
        return torch.from_numpy(np.concatenate([drawn[seed] for seed in self._seeds], axis=-1))


def integrate_midpoint(
    drift: Callable[[Tensor], Tensor],
    y0: Tensor,
    t_out: Tensor,
    *,
    diffusion: Tensor | Callable[[Tensor], Tensor] | None = None,
    increments: Callable[[np.ndarray], Tensor] | None = None,
    dt: float = DT,
    n_discard: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Tensor:
    """Integrate dy = drift(y) dt + diffusion(y) o dB with the explicit midpoint rule.

    Each component has a Brownian motion of its own. Steps have a fixed length and do not depend
    on the output times; between the two steps around an output time the state is interpolated
    linearly. Strong order 1, order 2 without noise.

    Parameters
    ----------
    drift : callable
        From a state to its derivative, a tensor of the same shape.
    y0 : Tensor of shape (n_dims, n_columns)
        Initial states at time 0; its dtype is that of the arithmetic.
    t_out : Tensor of shape (n_out,)
        Ascending times from 0, of the dtype of ``y0``.
    diffusion : Tensor, callable or None, default=None
        Additive noise: a tensor that broadcasts against the state. Multiplicative noise: a
        callable like ``drift``. None integrates the equation without noise.
    increments : callable, default=None
        From consecutive step times of shape (n_steps + 1,) to Brownian increments of shape
        (n_steps, n_dims, n_columns), say :class:`BrownianIncrements`.
    dt : float, default=1e-3
        Length of a step.
    n_discard : int, default=0
        Leave out the first outputs.
    progress : callable, default=None
        Called with the number of steps done since the last call.

    Returns
    -------
    y : Tensor of shape (n_out - n_discard, n_dims, n_columns)
        States at the output times.
    """
    import torch

    t_out = t_out.numpy()
    times = step_times(t_out[-1], dt, t_out.dtype)
    n_steps = len(times) - 1
    end_step, weight_before, weight_after = _interpolation(t_out, times)
    # As Python numbers, which keep every bit and cost less than arrays of no dimension.
    lengths = np.diff(times)
    halves = (lengths.dtype.type(0.5) * lengths).tolist()
    lengths = lengths.tolist()
    y = y0
    out = torch.empty((len(t_out) - n_discard, *y0.shape), dtype=y0.dtype)
    if n_discard == 0:
        out[0] = y0
    j = 1
    with torch.inference_mode():
        for start in range(0, n_steps, _CHUNK):
            stop = min(start + _CHUNK, n_steps)
            noise = None if diffusion is None else increments(times[start : stop + 1])
            for k in range(start, stop):
                before = y
                if noise is None:
                    y = y + lengths[k] * drift(y + halves[k] * drift(y))
                else:
                    y = _noisy_step(drift, diffusion, y, lengths[k], halves[k], noise[k - start])
                while j < len(t_out) and end_step[j] == k + 1:
                    if j >= n_discard:
                        out[j - n_discard] = weight_before[j] * before + weight_after[j] * y
                    j += 1
            if progress is not None:
                progress(stop - start)
    return out


def integrate_torchsde(
    drift: Callable[[Tensor], Tensor],
    y0: Tensor,
    t_out: Tensor,
    *,
    diffusion: float,
    seed: int,
    n_discard: int = 0,
) -> Tensor:
    """Integrate as :func:`integrate_midpoint` does, by the torchsde package.

    Parameters
    ----------
    drift, y0, t_out, n_discard
        As in :func:`integrate_midpoint`.
    diffusion : float
        Scale of the additive noise.
    seed : int
        Entropy of the Brownian motion.

    Returns
    -------
    y : Tensor of shape (n_out - n_discard, n_dims, n_columns)
        States at the output times.

    Raises
    ------
    ImportError
        If torchsde is not installed.
    """
    torchsde = import_torchsde()
    import torch

    class Equation(torch.nn.Module):
        """The equation in torchsde's terms: its states are of shape (n_columns, n_dims)."""

        sde_type = "stratonovich"
        noise_type = "diagonal"

        def f(self, t: Tensor, y: Tensor) -> Tensor:
            return drift(y.T).T

        def g(self, t: Tensor, y: Tensor) -> Tensor:
            return torch.full_like(y, diffusion)

    y0 = y0.T.contiguous()
    brownian = torchsde.BrownianInterval(0.0, float(t_out[-1]), size=y0.shape, entropy=seed)
    with torch.inference_mode(), _recursion_limit(_TORCHSDE_RECURSION):
        y = torchsde.sdeint(Equation(), y0, t_out, bm=brownian, method="midpoint", dt=DT)
    return y[n_discard:].transpose(1, 2)


def import_torchsde():
    """Return the module torchsde, or say how to install it."""
    try:
        import torchsde
    except ImportError as error:
        raise ImportError(
            'backend="torchsde" needs the package torchsde: pip install sklearn-pulse[sde], or '
            'use backend="midpoint".'
        ) from error
    return torchsde


@contextmanager
def _recursion_limit(limit: int) -> Iterator[None]:
    """Raise Python's recursion limit to at least ``limit`` for a while."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, before))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _noisy_step(drift, diffusion, y, length, half, increment):
    """One step; the same increment drives both stages."""
    scale = diffusion(y) if callable(diffusion) else diffusion
    push = scale * increment
    middle = y + half * drift(y) + 0.5 * push
    if callable(diffusion):
        push = diffusion(middle) * increment
    return y + length * drift(middle) + push


def _interpolation(t_out: np.ndarray, times: np.ndarray) -> tuple[list[int], list, list]:
    """Index of the step time at or after each output time, and the weights of its two sides."""
    after = np.searchsorted(times, t_out)
    after[0] = 1  # time 0 itself, which is not interpolated
    begin, end = times[after - 1], times[after]
    weight_before = (end - t_out) / (end - begin)
    weight_after = (t_out - begin) / (end - begin)
    return after.tolist(), weight_before.tolist(), weight_after.tolist()
