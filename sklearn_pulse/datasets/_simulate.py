"""Simulation of a system as published: initial states, noise scale, burn-in, scaling.

Source: paper, Appendix B. Where the published code differs from the paper, this follows the code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import check_option
from ._integrate import (
    BrownianIncrements,
    Tensor,
    import_torchsde,
    integrate_midpoint,
    integrate_torchsde,
    step_times,
)
from ._systems import System

N_TIMESTEPS = 10_000
N_TRIALS = 20
BURN_IN = 200
BACKENDS = ("midpoint", "torchsde")
# Spread of float32 values that differ by rounding alone, in proportion to them: a few units in the
# last place.
_ROUNDING = 1e-6


def simulate(
    system: System,
    values: Sequence[float],
    seeds: Sequence[int],
    diffusions: Sequence[float],
    *,
    n_trials: int = N_TRIALS,
    n_timesteps: int = N_TIMESTEPS,
    backend: Literal["midpoint", "torchsde"] = "midpoint",
    progress: Callable[[int], None] | None = None,
) -> NDArray[np.float32]:
    """Simulate trials at several parameter values and noise scales together.

    Parameters
    ----------
    system : System
        The system.
    values : sequence of float of length n_sets
        Parameter value of each set.
    seeds : sequence of int of length n_sets
        Seed of each set's initial states and Brownian motion. A set does not depend on the other
        sets that are simulated with it.
    diffusions : sequence of float of length n_sets
        Scale of each set's additive noise.
    n_trials : int, default=20
        Number of trajectories in a set.
    n_timesteps : int, default=10_000
        Number of time steps of each trajectory after the burn-in.
    backend : {"midpoint", "torchsde"}, default="midpoint"
        Integrator that solves a noisy equation and draws its Brownian motion. Without noise, both
        give the same bits, and the faster one is used.
    progress : callable, default=None
        Function that is called with the number of (set, step) pairs done since its last call.

    Returns
    -------
    y : ndarray of shape (n_sets, n_trials, n_timesteps, n_dims), dtype float32
        The trajectories, as a view that is not contiguous.

    Raises
    ------
    ValueError
        If a trajectory leaves the range of float32.
    """
    import torch

    n_sets, n_dims = len(values), len(system.channel_names)
    noisy = any(diffusions)
    y0 = torch.cat([initial_states(seed, n_trials, n_dims) for seed in seeds], dim=1)
    t_out = output_times(system, n_timesteps)
    if noisy and backend == "torchsde":
        y = _simulate_torchsde(system, values, seeds, diffusions, y0, t_out, progress)
    else:
        y = integrate_midpoint(
            drift_of(system, values, n_trials),
            y0,
            t_out,
            diffusion=_per_column(diffusions, n_trials) if noisy else None,
            increments=BrownianIncrements(seeds, n_dims, n_trials) if noisy else None,
            n_discard=BURN_IN,
            progress=None if progress is None else lambda steps: progress(n_sets * steps),
        )
    if not bool(torch.isfinite(y).all()):
        raise ValueError(
            f"a trajectory of {system.name} left the range of float32; choose a smaller noise or "
            f"a value of {system.parameter} nearer to {system.sweep[0]} ... {system.sweep[-1]}."
        )
    sets: NDArray[np.float32] = y.numpy().reshape(n_timesteps, n_dims, n_sets, n_trials)
    return sets.transpose(2, 3, 0, 1)


def initial_states(seed: int, n_trials: int, n_dims: int) -> Tensor:
    """Draw standard normal states of shape (n_dims, n_trials) from torch's generator.

    The states are those that ``torch.randn`` draws after ``torch.manual_seed(seed)``. They lie on
    the CPU and are float32, whatever torch's defaults are.

    Examples
    --------
    >>> tuple(initial_states(0, n_trials=20, n_dims=3).shape)
    (3, 20)
    """
    import torch

    generator = torch.Generator("cpu").manual_seed(seed)
    states = torch.randn(
        n_trials, n_dims, generator=generator, dtype=torch.float32, device=generator.device
    )
    return states.T.contiguous()


def output_times(system: System, n_timesteps: int) -> Tensor:
    """Return the output times, burn-in included, at the published spacing."""
    import torch

    n_out = n_timesteps + BURN_IN
    t_end = system.t_end * (n_out - 1) / (N_TIMESTEPS + BURN_IN - 1)
    # Use torch's own grid: another rounding moves noise-free Lorenz states by 0.03.
    return torch.linspace(0.0, t_end, n_out, dtype=torch.float32, device="cpu")


def n_steps(system: System, n_timesteps: int = N_TIMESTEPS) -> int:
    """Count the integration steps behind `n_timesteps` outputs."""
    return len(step_times(float(output_times(system, n_timesteps)[-1]))) - 1


def sampling_rate(system: System) -> float:
    """Return the number of outputs per unit of time."""
    return (N_TIMESTEPS + BURN_IN - 1) / system.t_end


def amplitude(clean: NDArray[Any]) -> float:
    """Return the amplitude of noise-free trials, shape (n_trials, n_timesteps, n_dims).

    The amplitude is the square root of the mean over trials and time of the Euclidean norm of the
    *squared* deviations from the per-component mean. The paper says root mean square, but the
    published code computes this amplitude.

    Examples
    --------
    >>> float(amplitude(np.array([[[-3.0, 5.0], [3.0, 5.0]]])))
    3.0
    """
    deviation = clean - clean.mean(axis=(0, 1), dtype=float)
    return float(np.sqrt(np.linalg.norm(deviation**2, axis=-1).mean()))


def diffusion_scale(system: System, clean: NDArray[Any], noise: float) -> float:
    """Return the scale of the additive noise at a level: ``noise * s / noise_divisor``."""
    return noise * amplitude(clean) / system.noise_divisor


def standardize_trials(trials: NDArray[Any]) -> NDArray[np.float32]:
    """Centre each component and divide all components by one number, as the published code does.

    The divisor is the unbiased standard deviation of *all* values before centring, so that it
    includes the offsets between components. Mean and divisor are computed over every trial of the
    set, test trials included.

    Parameters
    ----------
    trials : ndarray of shape (n_trials, n_timesteps, n_dims)
        Trials of one parameter value and noise level.

    Returns
    -------
    scaled : ndarray of shape (n_trials, n_timesteps, n_dims), dtype float32
        The scaled trials.

    Raises
    ------
    ValueError
        If all values are the same, up to the rounding of float32.

    Examples
    --------
    >>> standardize_trials(np.array([[[0.0, 4.0], [2.0, 6.0]]])).tolist()
    [[[-0.387..., -0.387...], [0.387..., 0.387...]]]
    """
    std = trials.std(ddof=1, dtype=float)
    if std <= _ROUNDING * np.abs(trials).max():
        raise ValueError(
            "all values of the trials are the same, so they cannot be standardized; choose "
            "another parameter value, or standardize=False."
        )
    centred = trials - trials.mean(axis=(0, 1), dtype=float)
    return np.ascontiguousarray(centred / std, dtype=np.float32)


def check_backend(backend: str) -> None:
    """Raise if the backend is unknown or its package is not installed."""
    check_option("backend", backend, BACKENDS)
    if backend == "torchsde":
        import_torchsde()


def _per_column(numbers: ArrayLike, n_trials: int) -> Tensor:
    """Repeat the number of each set for the columns of its trials."""
    import torch

    repeated = np.repeat(np.asarray(numbers, dtype=np.float64), n_trials)
    # torch makes a number beyond float32 infinite without the warning of numpy.
    return torch.from_numpy(repeated).to(torch.float32)


def drift_of(system: System, values: Sequence[float], n_trials: int) -> Callable[[Tensor], Tensor]:
    """Return the drift of states of shape (n_dims, n_sets * n_trials)."""
    import torch

    speed = _per_column(system.speeds(values), n_trials)
    parameter = _per_column(values, n_trials)
    n_dims = len(system.channel_names)

    def drift(y: Tensor) -> Tensor:
        derivative = torch.stack(system.field(y, parameter))
        if len(derivative) != n_dims:  # else it would be broadcast
            raise ValueError(
                f"the field of {system.name} has {len(derivative)} components for {n_dims} channel"
                " names: return a derivative for each."
            )
        return speed * derivative

    return drift


def _simulate_torchsde(
    system: System,
    values: Sequence[float],
    seeds: Sequence[int],
    diffusions: Sequence[float],
    y0: Tensor,
    t_out: Tensor,
    progress: Callable[[int], None] | None,
) -> Tensor:
    """Integrate the sets by torchsde one after the other, each with its own Brownian motion."""
    import torch

    n_trials = y0.shape[1] // len(values)
    sets = []
    for k, (value, seed, diffusion) in enumerate(zip(values, seeds, diffusions, strict=True)):
        sets.append(
            integrate_torchsde(
                drift_of(system, [value], n_trials),
                y0[:, k * n_trials : (k + 1) * n_trials],
                t_out,
                diffusion=diffusion,
                seed=seed,
                n_discard=BURN_IN,
            )
        )
        if progress is not None:
            progress(len(step_times(float(t_out[-1]))) - 1)
    return torch.cat(sets, dim=2)
