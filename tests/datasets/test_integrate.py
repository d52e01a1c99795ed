"""The integrator, compared with a literal loop, with exact solutions and with torchsde."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_pulse.datasets._integrate import (
    BrownianIncrements,
    integrate_midpoint,
    integrate_torchsde,
    step_times,
)
from sklearn_pulse.datasets._simulate import (
    BURN_IN,
    diffusion_scale,
    drift_of,
    initial_states,
    n_steps,
    output_times,
    simulate,
)
from sklearn_pulse.datasets._systems import SYSTEMS

PAPER = ["lorenz", "thomas", "hindmarsh_rose"]


# Steps


@pytest.mark.parametrize(
    ("name", "count"), [("lorenz", 11_999), ("thomas", 20_000), ("hindmarsh_rose", 40_011)]
)
def test_number_of_steps_is_the_published_one(name, count):
    times = step_times(SYSTEMS[name].t_end)
    assert len(times) - 1 == count == n_steps(SYSTEMS[name])
    assert times.dtype == np.float32 and times[0] == 0 and times[-1] == SYSTEMS[name].t_end
    assert np.all(np.diff(times) > 0)


def test_late_steps_are_as_short_as_early_ones():
    """Above 512, float32 accumulates steps that are 2.3 % short."""
    assert np.diff(step_times(1500.0)).max() < 1.1e-3
    with pytest.raises(ValueError, match="float32 cannot tell steps of 0.001 apart"):
        step_times(20_000.0)


@given(t_end=st.floats(0.01, 50), dt=st.floats(1e-3, 1.0))
@settings(deadline=None, max_examples=50)
def test_steps_are_the_accumulated_ones(t_end, dt):
    t_end, dt = np.float32(t_end), np.float32(dt)
    expected = [np.float32(0)]
    while expected[-1] < t_end:
        expected.append(min(expected[-1] + dt, t_end))
    np.testing.assert_array_equal(step_times(t_end, dt), expected)


# The rule, literally


def literal_midpoint(drift, diffusion, y0, t_out, dt, path):
    """Integrate one trajectory of one component, one step and one output at a time."""
    outputs = [y0]
    t = t_before = 0.0
    y = y_before = y0
    step = 0
    for wanted in t_out[1:]:
        while t < wanted:
            t_next = min(t + dt, t_out[-1])
            h, dW = t_next - t, path[step]
            middle = y + h / 2 * drift(y) + diffusion(y) / 2 * dW
            t_before, y_before = t, y
            t, y = t_next, y + h * drift(middle) + diffusion(middle) * dW
            step += 1
        share = (wanted - t_before) / (t - t_before)
        outputs.append(y_before + share * (y - y_before))
    return outputs


@given(
    dt=st.floats(0.02, 0.5),
    t_end=st.floats(0.3, 3.0),
    n_out=st.integers(2, 40),
    n_discard=st.integers(0, 3),
    seed=st.integers(0, 100),
)
@settings(deadline=None, max_examples=25)
def test_midpoint_is_the_literal_rule(dt, t_end, n_out, n_discard, seed):
    rng = np.random.default_rng(seed)
    y0, t_out = rng.normal(size=(2, 3)), np.linspace(0, t_end, n_out)
    path = rng.normal(scale=0.3, size=(len(step_times(t_out[-1], dt, float)) - 1, 2, 3))
    drawn = []

    def increments(times):
        start = len(drawn)
        drawn.extend(times[1:])
        return torch.tensor(path[start : start + len(times) - 1])

    y = integrate_midpoint(
        lambda y: 1 - y**3 / (1 + y**2),
        torch.tensor(y0),
        torch.tensor(t_out),
        diffusion=lambda y: 0.1 + 0.2 * y,
        increments=increments,
        dt=dt,
        n_discard=min(n_discard, n_out - 1),
    )
    assert y.shape == (n_out - min(n_discard, n_out - 1), 2, 3)
    for i in range(2):
        for j in range(3):
            expected = literal_midpoint(
                lambda y: 1 - y**3 / (1 + y**2),
                lambda y: 0.1 + 0.2 * y,
                y0[i, j],
                t_out,
                dt,
                path[:, i, j],
            )
            np.testing.assert_allclose(y[:, i, j], expected[-len(y) :], 1e-9, 1e-9)


def test_constant_diffusion_is_a_constant_function():
    y0, t_out = torch.ones(3, 4), torch.linspace(0, 0.7, 50)
    scale = torch.tensor([0.1, 0.0, 2.0, 0.5])
    runs = [
        integrate_midpoint(
            torch.cos,
            y0,
            t_out,
            diffusion=diffusion,
            increments=BrownianIncrements([5], 3, 4),
        )
        for diffusion in (scale, lambda y: scale * torch.ones_like(y))
    ]
    assert torch.equal(*runs)
    clean = integrate_midpoint(torch.cos, y0, t_out)
    assert torch.equal(runs[0][..., 1], clean[..., 1])
    assert not torch.equal(runs[0][..., 0], clean[..., 0])


def test_noise_without_increments_is_refused():
    y0, t_out = torch.zeros(1, 1), torch.linspace(0.0, 1.0, 3)
    with pytest.raises(ValueError, match="increments is None"):
        integrate_midpoint(torch.cos, y0, t_out, diffusion=torch.tensor(1.0))


def test_progress_counts_every_step():
    counted = []
    integrate_midpoint(
        torch.neg, torch.ones(1, 1), torch.linspace(0, 0.7, 5), progress=counted.append
    )
    assert sum(counted) == len(step_times(0.7)) - 1 and len(counted) > 1


# Convergence


def end_errors(drift, diffusion, exact, dts, n_paths=400, t_end=1.0):
    """Mean absolute error at the end, for each step length, all driven by the same paths."""
    finest = min(dts)
    n = round(t_end / finest)
    dW = np.random.default_rng(0).normal(scale=np.sqrt(finest), size=(n, 1, n_paths))
    errors = []
    for dt in dts:
        coarse = dW.reshape(-1, round(dt / finest), 1, n_paths).sum(axis=1)
        steps = iter(coarse)
        y = integrate_midpoint(
            drift,
            torch.ones(1, n_paths, dtype=torch.float64),
            torch.tensor([0.0, t_end], dtype=torch.float64),
            diffusion=diffusion,
            increments=lambda times, s=steps: torch.tensor(np.stack([next(s) for _ in times[1:]])),
            dt=dt,
        )
        errors.append(np.abs(y[-1].numpy() - exact(dW)).mean())
    return errors


def order(dts, errors):
    return np.polyfit(np.log(dts), np.log(errors), 1)[0]


DTS = [2.0**-k for k in range(4, 10)]


def test_multiplicative_noise_converges_with_strong_order_one():
    """Geometric Brownian motion: dy = a y dt + b y o dB has y = exp(a t + b B)."""
    a, b = -0.5, 0.8
    errors = end_errors(
        lambda y: a * y, lambda y: b * y, lambda dW: np.exp(a + b * dW.sum(axis=0)), DTS
    )
    assert order(DTS, errors) == pytest.approx(1.0, abs=0.1)
    assert errors[-1] < 2e-3


def test_additive_noise_converges_with_strong_order_one():
    """Ornstein-Uhlenbeck: the exact solution of the finest path is a sum over its increments."""
    a, b, finest = -2.0, 1.0, 2.0**-13

    def exact(dW):
        ends = np.arange(1, len(dW) + 1) / len(dW)
        return np.exp(a) + b * np.tensordot(np.exp(a * (1 - ends + finest / 2)), dW, 1)

    dts = [*DTS, finest]
    errors = end_errors(lambda y: a * y, torch.tensor(b).double(), exact, dts)[:-1]
    assert order(DTS, errors) == pytest.approx(1.0, abs=0.1)


def test_without_noise_it_converges_with_order_two():
    errors = end_errors(lambda y: -(y**2), None, lambda dW: 0.5, DTS)
    assert order(DTS, errors) == pytest.approx(2.0, abs=0.1)


# Brownian motion


def test_increments_have_the_variance_of_their_steps():
    times = np.cumsum(np.tile(np.float32([0.001, 0.004]), 5000), dtype=np.float32)
    dW = BrownianIncrements([3, 4], 3, 2)(times).numpy()
    assert dW.shape == (9999, 3, 4) and dW.dtype == np.float32
    np.testing.assert_allclose(dW[0::2].var(axis=0), 0.004, rtol=0.08)
    np.testing.assert_allclose(dW[1::2].var(axis=0), 0.001, rtol=0.08)
    paths = np.corrcoef(dW.reshape(9999, 12).T)
    assert np.abs(paths - np.eye(12)).max() < 0.05


def test_increments_continue_their_paths():
    times = step_times(0.1)
    whole = BrownianIncrements([0, 7], 3, 5)(times)
    path = BrownianIncrements([0, 7], 3, 5)
    pieces = [path(times[:31]), path(times[30:41]), path(times[40:])]
    assert torch.equal(whole, torch.cat(pieces))
    assert torch.equal(whole[..., 5:], BrownianIncrements([7], 3, 5)(times))
    assert not torch.equal(whole[..., 5:], whole[..., :5])


@pytest.mark.parametrize("name", PAPER)
def test_a_set_does_not_depend_on_its_company(name):
    system = SYSTEMS[name]
    values, seeds, scales = [system.sweep[k] for k in (0, 4, 9)], [0, 4, 9], [0.1, 0.2, 0.3]
    size = {"n_trials": 7, "n_timesteps": 100}
    together = simulate(system, values, seeds, scales, **size)
    for k in range(3):
        alone = simulate(system, values[k : k + 1], seeds[k : k + 1], scales[k : k + 1], **size)
        np.testing.assert_array_equal(together[k], alone[0])


# Against torchsde


@pytest.mark.parametrize(
    ("name", "n_timesteps"),
    [(name, 50) for name in PAPER]
    + [pytest.param(name, 10_000, marks=pytest.mark.slow) for name in PAPER],
)
def test_noise_free_trajectories_are_those_of_torchsde(name, n_timesteps):
    """The bits must be equal, since a difference of one bit grows into another trajectory."""
    pytest.importorskip("torchsde")
    system = SYSTEMS[name]
    drift, y0 = drift_of(system, [system.sweep[7]], 20), initial_states(7, 20, 3)
    t_out = output_times(system, n_timesteps)
    theirs = integrate_torchsde(drift, y0, t_out, diffusion=0.0, seed=7)
    np.testing.assert_array_equal(theirs, integrate_midpoint(drift, y0, t_out))


@pytest.mark.parametrize("name", PAPER)
def test_the_same_path_gives_the_trajectories_of_torchsde(name):
    torchsde = pytest.importorskip("torchsde")
    system = SYSTEMS[name]
    drift, y0 = drift_of(system, [system.sweep[3]], 20), initial_states(3, 20, 3)
    t_out = output_times(system, 20)
    theirs = integrate_torchsde(drift, y0, t_out, diffusion=1.5, seed=3)
    path = torchsde.BrownianInterval(0.0, float(t_out[-1]), size=(20, 3), entropy=3)

    def increments(times):
        pairs = zip(times[:-1].tolist(), times[1:].tolist(), strict=True)
        return torch.stack([path(begin, end).T for begin, end in pairs])

    own = integrate_midpoint(drift, y0, t_out, diffusion=torch.tensor(1.5), increments=increments)
    np.testing.assert_array_equal(own, theirs)


def compare_statistics(name, index, level, n_timesteps, rtol):
    """Increments and spread of the two backends, whose Brownian motions differ."""
    pytest.importorskip("torchsde")
    system = SYSTEMS[name]
    size = {"n_timesteps": n_timesteps}
    clean = simulate(system, [system.sweep[index]], [index], [0.0], **size)[0]
    scale = diffusion_scale(system, clean, level)
    sets = [
        simulate(system, [system.sweep[index]], [index], [scale], backend=backend, **size)[0]
        for backend in ("midpoint", "torchsde")
    ]
    assert sets[0].shape == sets[1].shape == (20, n_timesteps, 3)
    assert not np.array_equal(*sets)
    increments = [np.diff(y, axis=1).std(axis=(0, 1)) for y in sets]
    spread = [y.std(axis=(0, 1)) for y in sets]
    print(f"{name} level {level}: increments {increments}, spread {spread}")
    np.testing.assert_allclose(*increments, rtol=rtol)
    np.testing.assert_allclose(*spread, rtol=rtol)
    return increments


def test_noisy_statistics_are_those_of_torchsde():
    compare_statistics("lorenz", 0, 5.0, 1000, rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "index", "level", "rtol"),
    [
        ("lorenz", 0, 1.0, 0.03),
        ("lorenz", 0, 5.0, 0.03),
        ("thomas", 7, 3.0, 0.03),
        # Few bursts are independent; two seeds of one backend differ by as much.
        ("hindmarsh_rose", 6, 5.0, 0.15),
    ],
)
def test_noisy_statistics_are_those_of_torchsde_at_full_length(name, index, level, rtol):
    increments = compare_statistics(name, index, level, 10_000, rtol)
    if (name, level) == ("lorenz", 5.0):
        np.testing.assert_allclose(increments[1], [2.00, 2.48, 2.56], atol=0.03)


def test_recursion_limit_is_restored():
    pytest.importorskip("torchsde")
    before = sys.getrecursionlimit()
    t_out = torch.linspace(0, 0.01, 3)
    sys.setrecursionlimit(3000)
    try:
        integrate_torchsde(torch.neg, torch.ones(1, 2), t_out, diffusion=1.0, seed=0)
        assert sys.getrecursionlimit() == 3000
    finally:
        sys.setrecursionlimit(before)


def test_burn_in_is_left_out():
    system = SYSTEMS["lorenz"]
    whole = integrate_midpoint(
        drift_of(system, [28.0], 4), initial_states(0, 4, 3), output_times(system, 30)
    )
    kept = simulate(system, [28.0], [0], [0.0], n_trials=4, n_timesteps=30)[0]
    np.testing.assert_array_equal(kept, whole[BURN_IN:].permute(2, 0, 1))
