"""Vector fields, compared with their equations written out number by number."""

from __future__ import annotations

from dataclasses import replace
from math import sin, sqrt

import numpy as np
import pytest
import torch

from sklearn_pulse.datasets import _systems, make_system_classification
from sklearn_pulse.datasets._simulate import drift_of
from sklearn_pulse.datasets._systems import SYSTEMS

LITERAL = {
    "lorenz": lambda y, p: [
        10 * (y[1] - y[0]),
        y[0] * (p - y[2]) - y[1],
        y[0] * y[1] - 8 / 3 * y[2],
    ],
    "thomas": lambda y, p: [
        sin(y[1]) - p * y[0],
        sin(y[2]) - p * y[1],
        sin(y[0]) - p * y[2],
    ],
    "hindmarsh_rose": lambda y, p: [
        y[1] - y[0] * y[0] * y[0] + 3 * y[0] * y[0] - y[2] + p,
        1 - 5 * y[0] * y[0] - y[1],
        0.005 * (4 * (y[0] - -1.6) - y[2]),
    ],
    "fitzhugh_nagumo": lambda y, p: [
        y[0] - y[0] * y[0] * y[0] / 3 - y[1] + p,
        0.08 * (y[0] + 0.7 - 0.8 * y[1]),
    ],
}

# The published table: sweep, speed, noise divisor, end of the interval.
FACTS = {
    "lorenz": ([28, 41, 55, 69, 83, 96, 110, 124, 138, 152], (16, 8), 1, 12),
    "thomas": ([0.025 * k for k in range(1, 11)], (128, 128), 8, 20),
    "hindmarsh_rose": ([1, 1.33, 1.66, 2, 2.33, 2.66, 3, 3.33, 3.66, 4], (32, 32), 5, 40),
}


def field(name, state, parameter):
    """Return the vector field at one state."""
    state = torch.tensor(state, dtype=torch.float64)
    return [float(component) for component in SYSTEMS[name].field(state, parameter)]


def test_every_system_has_its_literal_field():
    assert set(LITERAL) == set(SYSTEMS)


@pytest.mark.parametrize("name", LITERAL)
def test_field_is_the_equation(name):
    rng = np.random.default_rng(0)
    system = SYSTEMS[name]
    for value in (*system.sweep, 0.0, -1.5):
        state = rng.normal(scale=3, size=len(system.channel_names)).tolist()
        np.testing.assert_allclose(field(name, state, value), LITERAL[name](state, value), 1e-12)


@pytest.mark.parametrize("name", LITERAL)
def test_field_of_columns_is_the_field_of_each(name):
    system = SYSTEMS[name]
    rng = np.random.default_rng(1)
    states = rng.normal(size=(len(system.channel_names), 10))
    fields = torch.stack(system.field(torch.tensor(states), torch.tensor(system.sweep))).numpy()
    for k, value in enumerate(system.sweep):
        np.testing.assert_allclose(
            fields[:, k], LITERAL[name](states[:, k].tolist(), np.float32(value)), 1e-6, 1e-6
        )


@pytest.mark.parametrize("rho", [2.0, 28.0, 152.0])
def test_lorenz_rests_at_the_centres_of_its_wings(rho):
    x = sqrt(8 / 3 * (rho - 1))
    for state in ([x, x, rho - 1], [-x, -x, rho - 1], [0.0, 0.0, 0.0]):
        np.testing.assert_allclose(field("lorenz", state, rho), 0, atol=1e-9)


def test_thomas_is_the_same_after_a_cyclic_shift():
    state = [0.3, -1.2, 2.5]
    shifted = field("thomas", state[1:] + state[:1], 0.1)
    f = field("thomas", state, 0.1)
    assert shifted == f[1:] + f[:1]


@pytest.mark.parametrize("name", FACTS)
def test_published_facts(name):
    sweep, speed, divisor, t_end = FACTS[name]
    system = SYSTEMS[name]
    np.testing.assert_allclose(system.sweep, sweep, 1e-12)
    assert (system.speed, system.noise_divisor, system.t_end) == (speed, divisor, t_end)
    np.testing.assert_allclose(system.speeds(system.sweep), np.linspace(*speed, 10), 1e-15)


def test_lorenz_speed_between_and_beyond_the_sweep():
    speeds = SYSTEMS["lorenz"].speeds([10.0, 28.0, 34.5, 152.0, 200.0])
    middle = 16 - 8 / 18
    np.testing.assert_allclose(speeds, [16.0, 16.0, middle, 8.0, 8.0])


def test_one_function_is_all_a_new_system_takes(monkeypatch):
    monkeypatch.setattr(_systems, "SYSTEMS", SYSTEMS)
    monkeypatch.setitem(SYSTEMS, "roessler", None)

    @_systems._system(
        parameter="c",
        sweep=(2.0, 3.0, 4.0, 5.7),
        speed=(60.0, 60.0),
        noise_divisor=1.0,
        t_end=2.0,
        channel_names=("x", "y", "z"),
    )
    def roessler(state, c):
        """One folded band."""
        x, y, z = state
        return -y - z, x + 0.2 * y, 0.2 + z * (x - c)

    data = make_system_classification("roessler", n_classes=3, random_state=0)
    assert data.X.shape == (6000, 100, 3)
    assert len(data.target_names) == 3 and all(name[:2] == "c=" for name in data.target_names)
    assert "Roessler" in data.DESCR and "One folded band." in data.DESCR


def test_a_field_has_a_derivative_for_each_channel():
    """Else it would be broadcast."""
    system = replace(SYSTEMS["lorenz"], field=lambda state, parameter: (state[0],))
    with pytest.raises(ValueError, match="lorenz has 1 components for 3 channel names: return"):
        drift_of(system, [28.0], n_trials=2)(torch.zeros(3, 2))
