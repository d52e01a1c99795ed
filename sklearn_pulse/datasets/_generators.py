"""Generators of trajectories of chaotic systems."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._parameters import check_boolean, check_integer, check_real, check_seed
from .._seeds import as_seed
from ._simulate import (
    N_TIMESTEPS,
    N_TRIALS,
    check_backend,
    diffusion_scale,
    simulate,
    standardize_trials,
)
from ._systems import SYSTEMS


def make_lorenz(
    rho: float = 28.0,
    noise: float = 0.0,
    n_trials: int = N_TRIALS,
    random_state: int | np.random.RandomState | None = None,
    *,
    n_timesteps: int = N_TIMESTEPS,
    standardize: bool = False,
    backend: Literal["midpoint", "torchsde"] = "midpoint",
) -> NDArray[np.float32]:
    """Simulate trajectories of the Lorenz system with additive dynamical noise.

    The equations are::

        dx = a * 10 (y - x) dt + d dB1
        dy = a * (x (rho - z) - y) dt + d dB2
        dz = a * (x y - 8/3 z) dt + d dB3

    with a speed ``a`` that falls from 16 at rho = 28 to 8 at rho = 152, and a diffusion ``d`` in
    proportion to ``noise``. (The paper prints 28 instead of the factor 10; its code has 10.)
    Trials begin at standard normal states. The first 200 time steps are left out as burn-in. A
    time step is 0.00118 units of time.

    Parameters
    ----------
    rho : float, default=28.0
        Bifurcation parameter. Published: 28, 41, 55, 69, 83, 96, 110, 124, 138, 152.
    noise : float, default=0.0
        Noise level. Published: 0, 1, 3, 5. The diffusion is ``noise`` times an amplitude of the
        noise-free trajectories with the same seed. It depends on `n_timesteps`, and a system at
        rest has almost none.
    n_trials : int, default=20
        Number of trajectories.
    random_state : int, RandomState instance or None, default=None
        Seed of initial states and Brownian motion. An int gives the same trajectories each time.
        The seed of each published set is the index of its parameter value, 0 to 9, with 20
        trials.
    n_timesteps : int, default=10_000
        Number of time steps in a trajectory.
    standardize : bool, default=False
        Whether to centre each channel and divide by the standard deviation of all values, over
        all trials, as in the published sets.
    backend : {"midpoint", "torchsde"}, default="midpoint"
        Integrator of the noisy equation. "torchsde" needs an optional package, draws the
        published Brownian motion and takes many times as long. Both integrators solve the same
        equation by the same rule.

    Returns
    -------
    ndarray of shape (n_trials, n_timesteps, 3), dtype float32
        The trajectories.

    Raises
    ------
    TypeError
        If a parameter has a wrong type.
    ValueError
        If a parameter has a wrong value, or a trajectory leaves the range of float32.
    ImportError
        If ``backend="torchsde"`` and torchsde is not installed.

    See Also
    --------
    make_system_classification : Task of telling parameter values of a system apart.

    References
    ----------
    Paper, Appendix B. Lorenz, E. (1963). Deterministic nonperiodic flow. J. Atmos. Sci. 20.

    Examples
    --------
    >>> from sklearn_pulse.datasets import make_lorenz
    >>> X = make_lorenz(rho=28.0, noise=1.0, n_trials=3, random_state=0, n_timesteps=500)
    >>> X.shape
    (3, 500, 3)
    """
    return _make_trials(
        "lorenz", rho, noise, n_trials, random_state, n_timesteps, standardize, backend
    )


def make_thomas(
    b: float = 0.2,
    noise: float = 0.0,
    n_trials: int = N_TRIALS,
    random_state: int | np.random.RandomState | None = None,
    *,
    n_timesteps: int = N_TIMESTEPS,
    standardize: bool = False,
    backend: Literal["midpoint", "torchsde"] = "midpoint",
) -> NDArray[np.float32]:
    """Simulate trajectories of the Thomas system with additive dynamical noise.

    The equations are::

        dx = 128 (sin(y) - b x) dt + d dB1
        dy = 128 (sin(z) - b y) dt + d dB2
        dz = 128 (sin(x) - b z) dt + d dB3

    with a diffusion ``d`` in proportion to ``noise``. A time step is 0.00196 units of time.

    Parameters
    ----------
    b : float, default=0.2
        Friction, the bifurcation parameter. Published: 0.025, 0.05, ..., 0.25.
    noise : float, default=0.0
        Noise level. Published: 0, 1, 3, 5. The diffusion is ``noise / 8`` times an amplitude of
        the noise-free trajectories with the same seed. It depends on `n_timesteps`, and a system at
        rest has almost none.
    n_trials : int, default=20
        Number of trajectories.
    random_state : int, RandomState instance or None, default=None
        Seed of initial states and Brownian motion. An int gives the same trajectories each time.
        The seed of each published set is the index of its parameter value, 0 to 9, with 20
        trials.
    n_timesteps : int, default=10_000
        Number of time steps in a trajectory.
    standardize : bool, default=False
        Whether to centre each channel and divide by the standard deviation of all values, over
        all trials, as in the published sets.
    backend : {"midpoint", "torchsde"}, default="midpoint"
        Integrator of the noisy equation. "torchsde" needs an optional package, draws the
        published Brownian motion and takes many times as long. Both integrators solve the same
        equation by the same rule.

    Returns
    -------
    ndarray of shape (n_trials, n_timesteps, 3), dtype float32
        The trajectories.

    Raises
    ------
    TypeError
        If a parameter has a wrong type.
    ValueError
        If a parameter has a wrong value, or a trajectory leaves the range of float32.
    ImportError
        If ``backend="torchsde"`` and torchsde is not installed.

    See Also
    --------
    make_system_classification : Task of telling parameter values of a system apart.

    References
    ----------
    Paper, Appendix B. Thomas, R. (1999). Deterministic chaos seen in terms of feedback circuits.
    Int. J. Bifurcation Chaos 9.

    Examples
    --------
    >>> from sklearn_pulse.datasets import make_thomas
    >>> make_thomas(b=0.1, n_trials=3, random_state=0, n_timesteps=500).shape
    (3, 500, 3)
    """
    return _make_trials(
        "thomas", b, noise, n_trials, random_state, n_timesteps, standardize, backend
    )


def make_hindmarsh_rose(
    current: float = 3.0,
    noise: float = 0.0,
    n_trials: int = N_TRIALS,
    random_state: int | np.random.RandomState | None = None,
    *,
    n_timesteps: int = N_TIMESTEPS,
    standardize: bool = False,
    backend: Literal["midpoint", "torchsde"] = "midpoint",
) -> NDArray[np.float32]:
    """Simulate a bursting Hindmarsh-Rose neuron with additive dynamical noise.

    The equations of membrane potential x, recovery y and adaptation z are::

        dx = 32 (y - x^3 + 3 x^2 - z + current) dt + d dB1
        dy = 32 (1 - 5 x^2 - y) dt + d dB2
        dz = 32 * 0.005 (4 (x + 1.6) - z) dt + d dB3

    with a diffusion ``d`` in proportion to ``noise``. A time step is 0.00392 units of time.

    Parameters
    ----------
    current : float, default=3.0
        External current, the bifurcation parameter. Published: 1, 1.33, 1.66, 2, 2.33, 2.66, 3,
        3.33, 3.66, 4.
    noise : float, default=0.0
        Noise level. Published: 0, 1, 3, 5. The diffusion is ``noise / 5`` times an amplitude of
        the noise-free trajectories with the same seed. It depends on `n_timesteps`, and a system at
        rest has almost none.
    n_trials : int, default=20
        Number of trajectories.
    random_state : int, RandomState instance or None, default=None
        Seed of initial states and Brownian motion. An int gives the same trajectories each time.
        The seed of each published set is the index of its parameter value, 0 to 9, with 20
        trials.
    n_timesteps : int, default=10_000
        Number of time steps in a trajectory.
    standardize : bool, default=False
        Whether to centre each channel and divide by the standard deviation of all values, over
        all trials, as in the published sets.
    backend : {"midpoint", "torchsde"}, default="midpoint"
        Integrator of the noisy equation. "torchsde" needs an optional package, draws the
        published Brownian motion and takes many times as long. Both integrators solve the same
        equation by the same rule.

    Returns
    -------
    ndarray of shape (n_trials, n_timesteps, 3), dtype float32
        The trajectories.

    Raises
    ------
    TypeError
        If a parameter has a wrong type.
    ValueError
        If a parameter has a wrong value, or a trajectory leaves the range of float32.
    ImportError
        If ``backend="torchsde"`` and torchsde is not installed.

    See Also
    --------
    make_system_classification : Task of telling parameter values of a system apart.

    References
    ----------
    Paper, Appendix B. Hindmarsh, J. and Rose, R. (1984). A model of neuronal bursting using three
    coupled first order differential equations. Proc. R. Soc. B 221.

    Examples
    --------
    >>> from sklearn_pulse.datasets import make_hindmarsh_rose
    >>> make_hindmarsh_rose(current=2.0, n_trials=3, random_state=0, n_timesteps=500).shape
    (3, 500, 3)
    """
    return _make_trials(
        "hindmarsh_rose", current, noise, n_trials, random_state, n_timesteps, standardize, backend
    )


def make_fitzhugh_nagumo(
    current: float = 0.5,
    noise: float = 0.0,
    n_trials: int = N_TRIALS,
    random_state: int | np.random.RandomState | None = None,
    *,
    n_timesteps: int = N_TIMESTEPS,
    standardize: bool = False,
    backend: Literal["midpoint", "torchsde"] = "midpoint",
) -> NDArray[np.float32]:
    """Simulate a spiking FitzHugh-Nagumo neuron with additive dynamical noise.

    This system is not in the paper. The equations of membrane potential v and recovery w are::

        dv = 32 (v - v^3 / 3 - w + current) dt + d dB1
        dw = 32 * 0.08 (v + 0.7 - 0.8 w) dt + d dB2

    with a diffusion ``d`` in proportion to ``noise``. The neuron rests if the current is small and
    spikes without end if the current lies between about 0.33 and 1.42. A time step is 0.00392
    units of time.

    Parameters
    ----------
    current : float, default=0.5
        External current, the bifurcation parameter.
    noise : float, default=0.0
        Noise level. The diffusion is ``noise / 5`` times an amplitude of the
        noise-free trajectories with the same seed. It depends on `n_timesteps`, and a system at
        rest has almost none.
    n_trials : int, default=20
        Number of trajectories.
    random_state : int, RandomState instance or None, default=None
        Seed of initial states and Brownian motion. An int gives the same trajectories each time.
    n_timesteps : int, default=10_000
        Number of time steps in a trajectory.
    standardize : bool, default=False
        Whether to centre each channel and divide by the standard deviation of all values, over
        all trials, as in the sets of the other systems.
    backend : {"midpoint", "torchsde"}, default="midpoint"
        Integrator of the noisy equation. "torchsde" needs an optional package, draws
        another Brownian motion and takes many times as long. Both integrators solve the same
        equation by the same rule.

    Returns
    -------
    ndarray of shape (n_trials, n_timesteps, 2), dtype float32
        The trajectories.

    Raises
    ------
    TypeError
        If a parameter has a wrong type.
    ValueError
        If a parameter has a wrong value, or a trajectory leaves the range of float32.
    ImportError
        If ``backend="torchsde"`` and torchsde is not installed.

    See Also
    --------
    make_system_classification : Task of telling parameter values of a system apart.

    References
    ----------
    FitzHugh, R. (1961). Impulses and physiological states in theoretical models of nerve
    membrane. Biophys. J. 1.

    Examples
    --------
    >>> from sklearn_pulse.datasets import make_fitzhugh_nagumo
    >>> make_fitzhugh_nagumo(n_trials=3, random_state=0, n_timesteps=500).shape
    (3, 500, 2)
    """
    return _make_trials(
        "fitzhugh_nagumo", current, noise, n_trials, random_state, n_timesteps, standardize, backend
    )


def _make_trials(
    name: str,
    value: Any,
    noise: Any,
    n_trials: Any,
    random_state: Any,
    n_timesteps: Any,
    scale: bool,
    backend: Literal["midpoint", "torchsde"],
) -> NDArray[np.float32]:
    """Simulate trials at one parameter value and noise level."""
    system = SYSTEMS[name]
    value = check_real(system.parameter, value, -np.inf)
    noise = check_real("noise", noise)
    n_trials = check_integer("n_trials", n_trials, 1)
    n_timesteps = check_integer("n_timesteps", n_timesteps, 1)
    check_boolean("standardize", scale)
    check_backend(backend)
    size = {"n_trials": n_trials, "n_timesteps": n_timesteps}
    check_seed("random_state", random_state)
    seed = as_seed(random_state)
    trials = simulate(system, [value], [seed], [0.0], **size)[0]
    if noise > 0:
        diffusion = diffusion_scale(system, trials, noise)
        trials = simulate(system, [value], [seed], [diffusion], backend=backend, **size)[0]
    return standardize_trials(trials) if scale else np.ascontiguousarray(trials)
