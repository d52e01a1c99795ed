"""Vector fields of the synthetic systems, with the facts of their published data sets.

To add a system, write one decorated function that returns the terms of its equations.

Source: paper, Appendix B; speed, horizon and noise divisor as in the published code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A vector field: from the components of the state and the parameter to the derivatives.
Field = Callable[[Any, Any], tuple[Any, ...]]


@dataclass(frozen=True)
class System:
    """A system of differential equations dy/dt = speed * field(y, parameter).

    Attributes
    ----------
    name : str
        Name of its function in this module.
    field : callable
        Function ``field(y, parameter)`` that takes the components of y (torch tensors) and returns
        a tuple with the derivative of each component.
    parameter : str
        Name of the bifurcation parameter.
    sweep : tuple of float
        The ten published values of the parameter, ascending.
    speed : tuple of two float
        Time scale at the first and at the last value of the sweep. Between them, the time scale
        is linear in the index of the value.
    noise_divisor : float
        Divisor of the noise level that makes levels comparable across systems.
    t_end : float
        End of the published time interval, which begins at 0.
    channel_names : tuple of str
        Names of the components of y.
    """

    name: str
    field: Field
    parameter: str
    sweep: tuple[float, ...]
    speed: tuple[float, float]
    noise_divisor: float
    t_end: float
    channel_names: tuple[str, ...]

    def speeds(self, values: Sequence[float]) -> NDArray[np.float64]:
        """Return the time scale at each parameter value; beyond the sweep, that of its end."""
        return np.interp(values, self.sweep, np.linspace(*self.speed, len(self.sweep)))


SYSTEMS: dict[str, System] = {}


def _system(**facts: Any) -> Callable[[Field], Field]:
    """Return a decorator that enters a vector field in ``SYSTEMS`` under its name."""

    def enter(field: Field) -> Field:
        SYSTEMS[field.__name__] = System(name=field.__name__, field=field, **facts)
        return field

    return enter


@_system(
    parameter="rho",
    sweep=(28.0, 41.0, 55.0, 69.0, 83.0, 96.0, 110.0, 124.0, 138.0, 152.0),
    speed=(16.0, 8.0),
    noise_divisor=1.0,
    t_end=12.0,
    channel_names=("x", "y", "z"),
)
def lorenz(state: Any, rho: Any) -> tuple[Any, ...]:
    """Convection rolls: a butterfly of two lobes (Lorenz, 1963)."""
    x, y, z = state
    return 10 * (y - x), x * (rho - z) - y, x * y - (8 / 3) * z


@_system(
    parameter="b",
    sweep=(0.025, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.225, 0.25),
    speed=(128.0, 128.0),
    noise_divisor=8.0,
    t_end=20.0,
    channel_names=("x", "y", "z"),
)
def thomas(state: Any, b: Any) -> tuple[Any, ...]:
    """Cyclically symmetric labyrinth; b is the friction (Thomas, 1999)."""
    x, y, z = state
    return y.sin() - b * x, z.sin() - b * y, x.sin() - b * z


@_system(
    parameter="current",
    sweep=(1.0, 1.33, 1.66, 2.0, 2.33, 2.66, 3.0, 3.33, 3.66, 4.0),
    speed=(32.0, 32.0),
    noise_divisor=5.0,
    t_end=40.0,
    channel_names=("potential", "recovery", "adaptation"),
)
def hindmarsh_rose(state: Any, current: Any) -> tuple[Any, ...]:
    """Bursting neuron under an external current (Hindmarsh and Rose, 1984)."""
    x, y, z = state
    return (
        y - x**3 + 3 * x**2 - z + current,
        1 - 5 * x**2 - y,
        0.005 * (4 * (x + 1.6) - z),
    )


@_system(
    parameter="current",
    sweep=(0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3),
    speed=(32.0, 32.0),
    noise_divisor=5.0,
    t_end=40.0,
    channel_names=("potential", "recovery"),
)
def fitzhugh_nagumo(state: Any, current: Any) -> tuple[Any, ...]:
    """Spiking neuron of two variables (FitzHugh, 1961); not in the paper."""
    v, w = state
    return v - v**3 / 3 - w + current, 0.08 * (v + 0.7 - 0.8 * w)
