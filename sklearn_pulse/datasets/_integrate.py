"""Explicit midpoint integration of Stratonovich stochastic differential equations.

Many trajectories advance together as columns of one tensor. A step costs the calls of a few
tensor operations, almost independently of the number of trajectories.

torch does the arithmetic in the same order as the torchsde package, so that both give the same
bits for trajectories without noise. This matters because the systems are chaotic: a difference of
one bit grows into a different trajectory. Source: paper, Appendix B (integrator and step).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._extras import needs

# Stands for torch.Tensor. Importing torch takes seconds, so functions import it when they run.
Tensor = Any

DT = 1e-3
# Number of steps whose Brownian increments are drawn at once.
_CHUNK = 256
# torchsde walks a tree of intervals by recursion, 1,200 levels deep for 40,000 steps.
_TORCHSDE_RECURSION = 10_000


def step_times(
    t_end: float, dt: float = DT, dtype: type | np.dtype[Any] = np.float32
) -> NDArray[np.floating[Any]]:
    """Return the times at which steps of fixed length begin and end.

    Parameters
    ----------
    t_end : float
        End of the interval, which begins at 0. The last step is shortened to end there.
    dt : float, default=1e-3
        Length of a step.
    dtype : numpy dtype, default=float32
        Precision in which time is accumulated. The number of steps depends on it.

    Returns
    -------
    times : ndarray of shape (n_steps + 1,)
        Ascending times from 0 to ``t_end``.

    Raises
    ------
    ValueError
        If the precision at `t_end` is coarser than a step.

    Examples
    --------
    >>> step_times(0.25, 0.1, float)
    array([0.  , 0.1 , 0.2 , 0.25])
    """
    if np.spacing(np.asarray(t_end, dtype)) > dt:
        raise ValueError(
            f"time {t_end:g} is so late that {np.dtype(dtype)} cannot tell steps of {dt:g} apart:"
            " make trajectories of fewer time steps."
        )
    # Rounding shortens the accumulated time by up to 2.4 % where steps are as short as its spacing.
    n_most = int(1.03 * t_end / dt) + 2
    times: NDArray[np.floating[Any]] = np.cumsum(np.full(n_most, dt, dtype))
    inside = times[times < np.asarray(t_end, dtype)]
    return np.concatenate([[0], inside, [t_end]]).astype(dtype)


class BrownianIncrements:
    """Gaussian increments of independent Brownian motions, one path per seed.

    Parameters
    ----------
    seeds : sequence of int
        Seed of each block of columns. Blocks with the same seed share their path.
    n_dims : int
        Number of rows of the state.
    n_trials : int
        Number of columns in a block.

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
        # torch seeds the same kind of generator with the seed alone and draws the initial states
        # from it. The second word makes the increments independent of them.
        self._rng = {seed: np.random.RandomState([seed, 1]) for seed in self._seeds}

    def __call__(self, times: NDArray[np.floating[Any]]) -> Tensor:
        """Draw the increments of the steps between consecutive times.

        Parameters
        ----------
        times : ndarray of shape (n_steps + 1,)
            Start of the first step and end of each step. Every call continues the paths.

        Returns
        -------
        increments : Tensor of shape (n_steps, n_dims, n_columns)
            Increments with variance ``times[k + 1] - times[k]`` and the dtype of ``times``.
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
    increments: Callable[[NDArray[np.floating[Any]]], Tensor] | None = None,
    dt: float = DT,
    n_discard: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Tensor:
    """Integrate dy = drift(y) dt + diffusion(y) o dB with the explicit midpoint rule.

    Each component has its own Brownian motion. Steps have a fixed length and do not depend on the
    output times; at an output time, the states before and after it are interpolated linearly.
    The scheme has strong order 1, and order 2 without noise.

    Parameters
    ----------
    drift : callable
        Function that returns the derivative of a state, a tensor of the same shape.
    y0 : Tensor of shape (n_dims, n_columns)
        Initial states at time 0. Its dtype is the dtype of the arithmetic.
    t_out : Tensor of shape (n_out,)
        Ascending output times from 0 on, with the dtype of ``y0``.
    diffusion : Tensor, callable or None, default=None
        Scale of the noise. For additive noise, a tensor that broadcasts against the state. For
        multiplicative noise, a function that returns the scale at a state, a tensor of the same
        shape. None integrates the equation without noise.
    increments : callable, default=None
        Function from consecutive step times of shape (n_steps + 1,) to Brownian increments of
        shape (n_steps, n_dims, n_columns), for example :class:`BrownianIncrements`. Required
        unless ``diffusion`` is None.
    dt : float, default=1e-3
        Length of a step.
    n_discard : int, default=0
        Number of outputs to leave out at the beginning.
    progress : callable, default=None
        Function that is called with the number of steps done since its last call.

    Returns
    -------
    y : Tensor of shape (n_out - n_discard, n_dims, n_columns)
        States at the output times.

    Raises
    ------
    ValueError
        If `diffusion` is given and `increments` is None.
    """
    import torch

    if diffusion is not None and increments is None:
        raise ValueError("increments is None: pass BrownianIncrements(...) beside diffusion.")
    t_out = t_out.numpy()
    times = step_times(t_out[-1], dt, t_out.dtype)
    n_steps = len(times) - 1
    end_step, weight_before, weight_after = _interpolation(t_out, times)
    # Python numbers keep every bit and cost less than zero-dimensional arrays.
    steps = np.diff(times)
    halves = (steps.dtype.type(0.5) * steps).tolist()
    lengths = steps.tolist()
    y = y0
    out = torch.empty((len(t_out) - n_discard, *y0.shape), dtype=y0.dtype, device=y0.device)
    if n_discard == 0:
        out[0] = y0
    j = 1
    with torch.inference_mode():
        for start in range(0, n_steps, _CHUNK):
            stop = min(start + _CHUNK, n_steps)
            if diffusion is None or increments is None:
                noise = None
            else:
                noise = increments(times[start : stop + 1])
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
    """Integrate dy = drift(y) dt + diffusion o dB by the torchsde package.

    Parameters
    ----------
    drift : callable
        Function that returns the derivative of a state, a tensor of the same shape.
    y0 : Tensor of shape (n_dims, n_columns)
        Initial states at time 0.
    t_out : Tensor of shape (n_out,)
        Ascending output times from 0 on, with the dtype of ``y0``.
    diffusion : float
        Scale of the additive noise.
    seed : int
        Seed of the Brownian motion.
    n_discard : int, default=0
        Number of outputs to leave out at the beginning.

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
        """Equation in the form that torchsde takes, with states of shape (n_columns, n_dims)."""

        sde_type = "stratonovich"
        noise_type = "diagonal"

        def f(self, t: Tensor, y: Tensor) -> Tensor:
            return drift(y.T).T

        def g(self, t: Tensor, y: Tensor) -> Tensor:
            return torch.full_like(y, diffusion)

    y0 = y0.T.contiguous()
    like = {"size": y0.shape, "dtype": y0.dtype, "device": y0.device}
    brownian = torchsde.BrownianInterval(0.0, float(t_out[-1]), entropy=seed, **like)
    with torch.inference_mode(), _recursion_limit(_TORCHSDE_RECURSION):
        y = torchsde.sdeint(Equation(), y0, t_out, bm=brownian, method="midpoint", dt=DT)
    return y[n_discard:].transpose(1, 2)


def import_torchsde() -> Any:
    """Return the module torchsde, or raise an ImportError that says how to install it."""
    what = 'backend="midpoint" needs no package, but backend="torchsde" the package torchsde'
    with needs(what, "sde"):
        import torchsde
    return torchsde


@contextmanager
def _recursion_limit(limit: int) -> Iterator[None]:
    """Raise Python's recursion limit to at least ``limit`` inside the context."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, before))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _noisy_step(
    drift: Callable[[Tensor], Tensor],
    diffusion: Tensor | Callable[[Tensor], Tensor],
    y: Tensor,
    length: float,
    half: float,
    increment: Tensor,
) -> Tensor:
    """Return the state after one step; the same increment drives both stages."""
    scale = diffusion(y) if callable(diffusion) else diffusion
    push = scale * increment
    middle = y + half * drift(y) + 0.5 * push
    if callable(diffusion):
        push = diffusion(middle) * increment
    return y + length * drift(middle) + push


def _interpolation(
    t_out: NDArray[np.floating[Any]], times: NDArray[np.floating[Any]]
) -> tuple[list[int], list[float], list[float]]:
    """Return how to interpolate at each output time.

    Returns the index of the first step time at or after the output time, and the weights of the
    states before and after it.
    """
    after = np.searchsorted(times, t_out)
    after[0] = 1  # the output at time 0 is the initial state; its weights are not used
    begin, end = times[after - 1], times[after]
    weight_before = (end - t_out) / (end - begin)
    weight_after = (t_out - begin) / (end - begin)
    return after.tolist(), weight_before.tolist(), weight_after.tolist()
