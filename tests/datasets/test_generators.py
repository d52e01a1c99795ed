"""The public generators, the cache and the command."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold

from sklearn_pulse.datasets import (
    __main__,
    _simulate,
    _synthetic_cache,
    _system_classification,
    make_fitzhugh_nagumo,
    make_hindmarsh_rose,
    make_lorenz,
    make_system_classification,
    make_thomas,
)
from sklearn_pulse.datasets._integrate import integrate_midpoint
from sklearn_pulse.datasets._simulate import (
    amplitude,
    diffusion_scale,
    initial_states,
    simulate,
    standardize_trials,
)
from sklearn_pulse.datasets._synthetic_cache import TrialStore, fill
from sklearn_pulse.datasets._systems import SYSTEMS

MAKERS = {
    "lorenz": make_lorenz,
    "thomas": make_thomas,
    "hindmarsh_rose": make_hindmarsh_rose,
    "fitzhugh_nagumo": make_fitzhugh_nagumo,
}
SHORT = {"n_trials": 4, "n_timesteps": 60, "random_state": 0}

# For each index in the sweep: amplitude s, noise scale at level 1, standard deviation of all
# values.
REFERENCE = {
    ("lorenz", 0): (12.167, 12.167, 14.097),
    ("lorenz", 9): (41.234, 41.234, 72.953),
    ("thomas", 0): (8.7480, 1.0935, 5.7920),
    ("thomas", 7): (3.0996, 0.38745, 2.1843),
    ("hindmarsh_rose", 0): (1.41731, 0.28346, 4.19344),
    ("hindmarsh_rose", 6): (2.62507, 0.52501, 3.27945),
}


# The published sets are simulated once.
simulated = pytest.mark.xdist_group("published sets")


@pytest.fixture(scope="module")
def clean():
    """Simulate noise-free sets at full length, all sets of a system in one run."""
    sets = {}
    for name in ("lorenz", "thomas", "hindmarsh_rose"):
        indices = [k for system, k in REFERENCE if system == name]
        store = {}
        fill(store, SYSTEMS[name], indices, [0.0])
        sets |= {(name, k): store[k, 0.0] for k in indices}
    return sets


@pytest.fixture(scope="module")
def digits():
    """Return a relative tolerance: the printed digits if this machine rounds as the reference did.

    On another machine, another last bit of a sine or of an initial state leads to other
    trajectories on the same attractor.
    """
    bits = (
        initial_states(0, 20, 3).numpy().tobytes()
        + torch.linspace(-5, 5, 999).sin().numpy().tobytes()
    )
    return 6e-5 if zlib.crc32(bits) == 0xEA4C8D73 else 0.03


@pytest.fixture
def short(monkeypatch):
    """Shorten sets to 300 time steps, so that tests can make many of them."""
    for module in (_system_classification, _synthetic_cache):
        monkeypatch.setattr(module, "N_TIMESTEPS", 300)
    monkeypatch.setitem(_synthetic_cache.fill.__kwdefaults__, "n_timesteps", 300)


# The published data sets


@simulated
@pytest.mark.parametrize(("name", "index"), REFERENCE)
def test_published_scales(clean, digits, name, index):
    s, unit_noise, std = REFERENCE[name, index]
    trials = clean[name, index]
    system = SYSTEMS[name]
    assert trials.shape == (20, 10_000, 3) and trials.dtype == np.float32
    assert amplitude(trials) == pytest.approx(s, rel=digits)
    assert diffusion_scale(system, trials, 1.0) == pytest.approx(unit_noise, rel=digits)
    assert diffusion_scale(system, trials, 5.0) == pytest.approx(5 * unit_noise, rel=digits)
    assert trials.std(ddof=1, dtype=float) == pytest.approx(std, rel=digits)


@simulated
def test_amplitude_is_the_literal_formula(clean):
    trials = clean["hindmarsh_rose", 6][:3, ::100].astype(float)
    mean = trials.reshape(-1, 3).sum(axis=0) / 300
    norms = [
        np.sqrt(sum((v - m) ** 4 for v, m in zip(y, mean, strict=True)))
        for y in trials.reshape(-1, 3)
    ]
    assert amplitude(trials) == pytest.approx(np.sqrt(sum(norms) / 300))


@simulated
def test_public_function_gives_the_published_set(clean):
    np.testing.assert_array_equal(make_lorenz(152.0, random_state=9), clean["lorenz", 9])


@pytest.mark.slow
def test_noisy_increments_at_the_published_length():
    X = make_lorenz(28.0, noise=5.0, random_state=0)
    steps = np.diff(X, axis=1).std(axis=(0, 1))
    np.testing.assert_allclose(steps, [2.00, 2.48, 2.56], rtol=0.02)


@pytest.mark.slow
def test_noisy_hindmarsh_rose_at_the_published_length():
    steps = np.diff(make_hindmarsh_rose(3.0, noise=5.0, random_state=6), axis=1).std(axis=(0, 1))
    assert 0.20 < steps[0] < 0.26


def test_initial_states_are_those_torch_draws_after_its_seed():
    with torch.random.fork_rng():
        for seed in (0, 9, 123_456):
            torch.manual_seed(seed)
            assert torch.equal(initial_states(seed, 20, 3).T, torch.randn(20, 3))


# The functions that simulate one system


@pytest.mark.parametrize("name", MAKERS)
def test_shape_type_and_seed(name):
    make = MAKERS[name]
    X = make(**SHORT, noise=2.0)
    n_dims = len(SYSTEMS[name].channel_names)
    assert X.shape == (4, 60, n_dims) and X.dtype == np.float32 and X.flags.c_contiguous
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(X, make(**SHORT, noise=2.0))
    assert not np.array_equal(X, make(**SHORT | {"random_state": 1}, noise=2.0))
    assert not np.array_equal(X, make(**SHORT, noise=1.0))
    value = SYSTEMS[name].sweep[-1]
    assert not np.array_equal(X, make(value, **SHORT, noise=2.0))
    assert make(n_timesteps=1, n_trials=1).shape == (1, 1, n_dims)


@pytest.mark.parametrize("name", MAKERS)
def test_noise_has_the_scale_of_the_clean_trials(name):
    system = SYSTEMS[name]
    value = system.sweep[3]
    clean = MAKERS[name](value, **SHORT)
    diffusion = 2.5 * amplitude(clean) / system.noise_divisor
    expected = simulate(system, [value], [0], [diffusion], n_trials=4, n_timesteps=60)[0]
    np.testing.assert_array_equal(MAKERS[name](value, 2.5, **SHORT), expected)


def test_random_state_of_every_kind():
    size = {"n_trials": 2, "n_timesteps": 5}
    runs = [make_lorenz(random_state=np.random.RandomState(3), **size) for _ in range(2)]
    np.testing.assert_array_equal(*runs)
    rng = np.random.RandomState(3)
    first, second = (make_lorenz(random_state=rng, **size) for _ in range(2))
    np.testing.assert_array_equal(first, runs[0])
    assert not np.array_equal(first, second)
    assert not np.array_equal(*(make_lorenz(**size) for _ in range(2)))


def test_global_generators_are_left_alone():
    np.random.seed(0)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()
    make_lorenz(noise=1.0, n_trials=2, n_timesteps=5, random_state=0)
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])
    assert torch.equal(torch.get_rng_state(), before[1])


def test_standardized_trials_have_the_mean_and_deviation_of_the_rule():
    X, raw = (make_lorenz(**SHORT, noise=1.0, standardize=flag) for flag in (True, False))
    values = raw.astype(float).ravel().tolist()
    mean = sum(values) / len(values)
    std = np.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
    for d in range(3):
        expected = (raw[..., d] - raw[..., d].astype(float).mean()) / std
        np.testing.assert_allclose(X[..., d], expected, rtol=1e-5, atol=1e-6)
    assert X.dtype == np.float32
    with pytest.raises(ValueError, match="cannot be standardized"):
        standardize_trials(np.ones((2, 5, 3), dtype=np.float32))


def test_a_system_at_rest_is_not_standardized():
    """Its values differ by rounding alone."""
    size = {"n_trials": 1, "n_timesteps": 50, "random_state": 0}
    assert 0 < np.ptp(make_thomas(b=0.5, **size)) < 1e-5
    with pytest.raises(ValueError, match="cannot be standardized; .* or standardize=False"):
        make_thomas(b=0.5, standardize=True, **size)


@given(
    n_trials=st.integers(1, 25), n_timesteps=st.integers(1, 40), noise=st.sampled_from([0.0, 0.5])
)
@settings(deadline=None, max_examples=15)
def test_trials_of_any_size_are_finite(n_trials, n_timesteps, noise):
    X = make_lorenz(
        noise=noise, n_trials=n_trials, n_timesteps=n_timesteps, random_state=1, standardize=True
    )
    assert X.shape == (n_trials, n_timesteps, 3) and np.isfinite(X).all()


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"rho": "28"}, TypeError, "rho must be a finite number"),
        ({"rho": np.nan}, ValueError, "rho must be a finite number"),
        ({"noise": -1.0}, ValueError, r"noise must be a number in \[0, inf\)"),
        ({"n_trials": 0}, ValueError, "n_trials must be an integer of at least 1"),
        ({"n_timesteps": 0}, ValueError, "n_timesteps must be an integer of at least 1"),
        ({"random_state": "zero"}, TypeError, "random_state must be an integer from 0"),
        ({"backend": "euler"}, ValueError, "backend must be one of 'midpoint', 'torchsde'"),
        ({"standardize": "no"}, TypeError, "standardize must be True or False"),
    ],
)
def test_bad_parameters_of_a_generator(bad, error, message):
    with pytest.raises(error, match=message):
        make_lorenz(**{"n_trials": 1, "n_timesteps": 1} | bad)


def test_noise_that_blows_up():
    with pytest.raises(ValueError, match="left the range of float32; choose a smaller noise"):
        make_hindmarsh_rose(noise=1e4, n_trials=2, n_timesteps=500, random_state=0)


def test_parameter_beyond_float32():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="left the range of float32"):
            make_lorenz(rho=1e300, n_trials=1, n_timesteps=5, random_state=0)


@pytest.mark.parametrize("backend", ["midpoint", "torchsde"])
@pytest.mark.parametrize("default", ["dtype", "device"])
def test_defaults_of_torch_do_not_matter(default, backend):
    """A notebook may have set them; the trajectories, and the files of the cache, are the same."""
    if backend == "torchsde":
        pytest.importorskip("torchsde")
    size = {"noise": 1.0, "n_trials": 3, "n_timesteps": 20, "random_state": 0, "backend": backend}
    expected = make_thomas(**size)
    try:
        if default == "dtype":
            torch.set_default_dtype(torch.float64)
        else:
            torch.set_default_device("meta")
        X = make_thomas(**size)
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, expected)


def test_torchsde_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchsde", None)
    for make in (make_lorenz, make_system_classification):
        with pytest.raises(ImportError, match=r"pip install 'sklearn-pulse\[sde\]'"):
            make(noise=1.0, backend="torchsde")


def test_torchsde_backend():
    pytest.importorskip("torchsde")
    size = {"noise": 1.0, "n_trials": 3, "n_timesteps": 20, "random_state": 0}
    X = make_thomas(backend="torchsde", **size)
    np.testing.assert_array_equal(X, make_thomas(backend="torchsde", **size))
    assert X.shape == (3, 20, 3) and not np.array_equal(X, make_thomas(**size))


# The task


@pytest.fixture(scope="module")
def task():
    return make_system_classification("lorenz", noise=1.0, random_state=3)


def test_task_is_the_published_one(task):
    values = np.random.RandomState(3).permutation(SYSTEMS["lorenz"].sweep)[:5]
    np.testing.assert_array_equal(task.parameter_values, values)
    assert task.parameter_name == "rho"
    assert task.target_names == [f"rho={v:g}" for v in values]
    assert task.channel_names == ["x", "y", "z"]
    assert task.X.shape == (10_000, 100, 3) and task.X.dtype == np.float32
    parts = ("train", "val", "test")
    assert [int((task.split == part).sum()) for part in parts] == [7000, 1500, 1500]
    assert [int((task.recording_split == part).sum()) for part in parts] == [70, 15, 15]
    for part, count in zip(parts, (1400, 300, 300), strict=True):
        assert np.bincount(task.y[task.split == part]).tolist() == [count] * 5
    assert task.sampling_rate == pytest.approx(1 / 0.0011766, rel=1e-4)


def test_windows_of_the_task(task):
    assert len(task.recordings) == 100
    assert {x.shape for x in task.recordings} == {(10_000, 3)}
    for k in (0, 99, 100, 4321, 9999):
        x = task.recordings[k // 100][(k % 100) * 100 :][:100]
        np.testing.assert_array_equal(task.X[k], x)
        trial = k // 100 % 20
        part = "train" if trial < 14 else "val" if trial < 17 else "test"
        row = [task[key][k] for key in ("y", "groups", "recording", "start", "split")]
        assert row == [k // 2000, k // 100, k // 100, k % 100 * 100, part]
    assert task.recording_trial.tolist() == list(range(20)) * 5
    assert task.recording_target.tolist() == [k // 20 for k in range(100)]
    assert task.segments.tolist() == [[k, 0, 10_000, k // 20] for k in range(100)]


def test_no_trial_is_on_both_sides(task):
    for part in ("val", "test"):
        of_part = set(task.groups[task.split == part].tolist())
        assert not of_part & set(task.groups[task.split == "train"].tolist())
    train, test = next(GroupKFold(5).split(task.X, task.y, task.groups))
    assert not set(task.recording[train]) & set(task.recording[test])


def test_each_class_is_its_standardized_set(short):
    task = make_system_classification("lorenz", noise=1.0, random_state=3)
    for label, value in enumerate(task.parameter_values):
        seed = SYSTEMS["lorenz"].sweep.index(value)
        expected = make_lorenz(
            value, noise=1.0, random_state=seed, n_timesteps=300, standardize=True
        )
        np.testing.assert_array_equal(task.recordings[20 * label : 20 * label + 20], expected)


def test_description_of_the_task(task):
    for text in ("Lorenz system", "noise level 1", "10,000 of 100", *task.target_names):
        assert text in task.DESCR
    assert "include the validation and test trials" in task.DESCR
    assert not re.search(r"[{}]", task.DESCR)


def test_random_state_draws_the_classes_only(short):
    tasks = [
        make_system_classification(n_classes=3, random_state=r)
        for r in (0, np.random.RandomState(0))
    ]
    np.testing.assert_array_equal(*(t.X for t in tasks))
    other = make_system_classification(n_classes=10, random_state=1)
    assert sorted(other.parameter_values) == list(SYSTEMS["lorenz"].sweep)
    label = other.parameter_values.tolist().index(tasks[0].parameter_values[0])
    np.testing.assert_array_equal(other.recordings[20 * label], tasks[0].recordings[0])


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"system": "rossler"}, ValueError, "system must be .*'lorenz'"),
        ({"noise": -1}, ValueError, "noise must be"),
        ({"n_classes": 1}, ValueError, "n_classes must be an integer from 2 to 10"),
        ({"n_classes": 11}, ValueError, "n_classes must be an integer from 2 to 10"),
        ({"random_state": "a"}, TypeError, "random_state must be"),
        ({"backend": "euler"}, ValueError, "backend must be"),
        ({"cache": True, "data_home": 3}, TypeError, "data_home must be a path"),
        ({"n_classes": 2, "data_home": 3}, TypeError, "data_home must be a path"),
        ({"cache": "no"}, TypeError, "cache must be True or False"),
        ({"return_X_y": 1}, TypeError, "return_X_y must be True or False"),
    ],
)
def test_bad_parameters_of_the_task(bad, error, message):
    with pytest.raises(error, match=message):
        make_system_classification(**bad)


# The cache


def no_simulation(*args, **kwargs):
    raise AssertionError("the sets are there")


def test_cache_is_written_and_read(tmp_path, short, monkeypatch):
    options = {"n_classes": 2, "random_state": 0, "noise": 1.0}
    X, y = make_system_classification(**options, return_X_y=True)
    written = make_system_classification(**options, cache=True, data_home=tmp_path)
    files = sorted(p.name for p in tmp_path.rglob("*") if p.is_file())
    assert len(files) == 4 and files[0] == "rho=138_noise=0.0.npy"
    monkeypatch.setattr(_synthetic_cache, "simulate", no_simulation)
    read = make_system_classification(**options, cache=True, data_home=tmp_path)
    for data in (written, read):
        np.testing.assert_array_equal(data.X, X)
        np.testing.assert_array_equal(data.y, y)


def test_minus_zero_is_no_noise(tmp_path, short):
    options = {"n_classes": 2, "random_state": 0, "cache": True, "data_home": tmp_path}
    X, _ = make_system_classification(noise=-0.0, return_X_y=True, **options)
    assert len(list(tmp_path.rglob("*_noise=0.0.npy"))) == len(list(tmp_path.rglob("*.npy"))) == 2
    np.testing.assert_array_equal(X, make_system_classification(noise=0.0, **options).X)


def test_nothing_is_written_unless_asked(tmp_path, short, monkeypatch):
    monkeypatch.setenv("SKLEARN_PULSE_DATA", str(tmp_path / "home"))
    make_system_classification(n_classes=2, random_state=0, data_home=tmp_path)
    assert not list(tmp_path.iterdir())


def test_fill_simulates_only_missing_sets(tmp_path, short, monkeypatch):
    system = SYSTEMS["lorenz"]
    made = []

    def counted(system, values, seeds, diffusions, **options):
        made.extend(zip(values, seeds, [d > 0 for d in diffusions], strict=True))
        return simulate(system, values, seeds, diffusions, **options)

    monkeypatch.setattr(_synthetic_cache, "simulate", counted)
    store = TrialStore(tmp_path, system, "midpoint")
    fill(store, system, [0, 3], [1.0])
    # The scale of the noise comes from the noise-free sets, which are kept as well.
    assert made == [(28, 0, False), (69, 3, False), (28, 0, True), (69, 3, True)]
    first = store[3, 1.0]
    store.path((3, 1.0)).unlink()
    made.clear()
    fill(store, system, [0, 3], [0.0, 1.0])
    assert made == [(69, 3, True)]
    np.testing.assert_array_equal(store[3, 1.0], first)
    in_memory = {}
    fill(in_memory, system, [3], [1.0])
    np.testing.assert_array_equal(in_memory[3, 1.0], first)


def test_interrupted_writing_leaves_nothing(tmp_path, short, monkeypatch):
    def full_disk(file, trials):
        file.write(b"part")
        raise OSError("no space left")

    system = SYSTEMS["lorenz"]
    store = TrialStore(tmp_path, system, "midpoint")
    with monkeypatch.context() as patch:
        patch.setattr(np, "save", full_disk)
        with pytest.raises(OSError, match="no space"):
            fill(store, system, [0], [0.0])
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]
    fill(store, system, [0], [0.0])
    assert (0, 0.0) in store


@pytest.mark.parametrize("content", ["cut", "text", "empty", "shape", "dtype"])
def test_damaged_file_is_named(tmp_path, short, content):
    system = SYSTEMS["lorenz"]
    store = TrialStore(tmp_path, system, "midpoint")
    fill(store, system, [0], [0.0])
    path = store.path((0, 0.0))
    if content in ("shape", "dtype"):
        trials = np.load(path)
        np.save(path, trials[:3] if content == "shape" else trials.astype(float))
    else:
        path.write_bytes({"cut": path.read_bytes()[:-9], "text": b"hello", "empty": b""}[content])
    with pytest.raises(ValueError, match=r"rho=28_noise=0\.0\.npy .*delete it"):
        fill(store, system, [0], [1.0])


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("position", [128, 40_003, -33, -1])  # of the numbers, of the digest
def test_a_flipped_bit_is_noticed(tmp_path, short, noise, position):
    options = {"n_classes": 2, "random_state": 0, "cache": True, "data_home": tmp_path}
    make_system_classification(noise=noise, **options)
    path = next(tmp_path.rglob(f"*_noise={noise}.npy"))
    flip(path, position)
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))} is damaged.*; delete it, and"):
        make_system_classification(noise=noise, **options)
    path.unlink()
    X = make_system_classification(noise=noise, **options).X
    expected = make_system_classification(noise=noise, n_classes=2, random_state=0).X
    np.testing.assert_array_equal(X, expected)


def test_noise_is_not_scaled_by_a_damaged_set(tmp_path, short):
    store = TrialStore(tmp_path, SYSTEMS["lorenz"], "midpoint")
    fill(store, SYSTEMS["lorenz"], [0], [0.0])
    flip(store.path((0, 0.0)), 128)
    with pytest.raises(ValueError, match="is damaged"):
        fill(store, SYSTEMS["lorenz"], [0], [1.0])
    assert (0, 1.0) not in store


def test_a_file_of_an_earlier_version_is_read_as_before(tmp_path, short, monkeypatch):
    """It has no digest. Such a version, which reads by numpy, reads the files of this one."""
    store = TrialStore(tmp_path, SYSTEMS["lorenz"], "midpoint")
    fill(store, SYSTEMS["lorenz"], [0], [1.0])
    path = store.path((0, 1.0))
    trials = store[0, 1.0]
    np.testing.assert_array_equal(np.load(path), trials)
    np.testing.assert_array_equal(np.load(path, mmap_mode="r"), trials)
    sealed = path.stat().st_size
    np.save(path, trials)
    assert path.stat().st_size == sealed - 38
    np.testing.assert_array_equal(store[0, 1.0], trials)
    flip(path, 128)
    assert not np.array_equal(store[0, 1.0], trials)


def test_backends_do_not_share_files(tmp_path):
    folders = {TrialStore(tmp_path, SYSTEMS["lorenz"], b).folder for b in ("midpoint", "torchsde")}
    assert len(folders) == 2


# The command


def test_command_makes_all_sets_and_resumes(tmp_path, short, capsys):
    arguments = ["--data-home", str(tmp_path)]
    assert __main__.main(["--systems", "lorenz", "--levels", "0", "3", *arguments]) == 0
    assert "lorenz: 20 sets made, 0 were there" in capsys.readouterr().out
    __main__.main(arguments)
    out = capsys.readouterr().out
    assert "lorenz: 20 sets made, 20 were there" in out
    assert "thomas: 40 sets made, 0 were there" in out
    files = list(tmp_path.rglob("*.npy"))
    assert len(files) == 3 * 10 * 4
    before = {path: path.stat().st_mtime_ns for path in files}
    __main__.main(arguments)
    assert "hindmarsh_rose: 0 sets made, 40 were there" in capsys.readouterr().out
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npy")}


def test_command_adds_up_an_option_that_is_given_twice(tmp_path, short, capsys):
    systems = ["--systems", "lorenz", "--systems", "thomas", "thomas"]
    levels = ["--levels", "1", "--levels", "3"]  # and the sets without noise, which scale it
    assert __main__.main([*systems, *levels, "--data-home", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.count("lorenz: 30 sets made") == out.count("thomas: 30 sets made") == 1
    assert len(list(tmp_path.rglob("*.npy"))) == 2 * 10 * 3


def test_command_that_is_stopped_keeps_the_slow_sets(tmp_path, short, capsys, monkeypatch):
    """torchsde simulates noisy sets one by one, for an hour; those that are complete are stored."""
    seeds = []

    def stopped(drift, y0, t_out, *, diffusion, seed, n_discard):
        seeds.append(seed)
        if len(seeds) == 4:
            raise KeyboardInterrupt
        return integrate_midpoint(drift, y0, t_out, n_discard=n_discard)

    monkeypatch.setattr(_simulate, "integrate_torchsde", stopped)
    monkeypatch.setattr(_simulate, "import_torchsde", lambda: None)
    arguments = ["--systems", "lorenz", "--levels", "3", "--backend", "torchsde"]
    arguments += ["--data-home", str(tmp_path)]
    assert __main__.main(arguments) == 130
    assert "interrupted: the same command goes on" in capsys.readouterr().err
    assert len(list(tmp_path.rglob("*_noise=3.0.npy"))) == 3
    __main__.main(arguments)
    assert seeds == [0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9]
    assert "lorenz: 7 sets made, 3 were there" in capsys.readouterr().out


def test_command_without_tqdm_prints_lines(tmp_path, short, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    __main__.main(["--systems", "lorenz", "--levels", "0", "--data-home", str(tmp_path)])
    out = capsys.readouterr().out
    shares = [int(share) for share in re.findall(r"lorenz: (\d+) %", out)]
    assert shares == sorted(set(shares)) and shares[-1] == 100 and len(shares) > 1


def test_command_ends_quietly_where_nobody_reads_on(tmp_path, short):
    arguments = ["--systems", "lorenz", "--levels", "0", "--data-home", str(tmp_path)]
    __main__.main(arguments)  # so that no bar is shown below
    command = [sys.executable, "-m", "sklearn_pulse.datasets", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # as head does
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_command_measures(capsys):
    pytest.importorskip("torchsde")
    __main__.main(["--measure", "--sample", "0.02", "--systems", "lorenz", "--levels", "0", "5"])
    out = capsys.readouterr().out
    own, run = map(float, re.search(r"lorenz +20 +([\d.]+) +([\d.]+)", out).groups())
    total = float(re.search(r"torchsde (\d+) s", out)[1])
    # For each of the ten values: the clean set, and the noisy set with its clean run.
    assert total == pytest.approx(30 * run, abs=2.5)
    assert own < total


@pytest.mark.parametrize(
    "arguments",
    [["--systems", "rossler"], ["--levels", "-1"], ["--levels", "x"], ["--sample", "0"]],
)
def test_command_refuses(arguments, capsys):
    with pytest.raises(SystemExit):
        __main__.main(arguments)
    assert "error: argument" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("home", "message"),
    [
        ("", "data_home must be a path"),
        ("file", "is a file: name the folder"),
        ("bad", "delete it"),
    ],
)
def test_command_says_what_is_wrong(tmp_path, short, capsys, home, message):
    (tmp_path / "file").touch()
    path = TrialStore(tmp_path / "bad", SYSTEMS["lorenz"], "midpoint").path((0, 0.0))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"hello")
    arguments = ["--systems", "lorenz", "--levels", "1"]
    assert __main__.main([*arguments, "--data-home", home and str(tmp_path / home)]) == 2
    err = capsys.readouterr().err
    assert "error: " in err and message in err


def test_command_runs_as_a_module(monkeypatch, capsys):
    """Run the module as ``python -m`` does, in this process."""
    monkeypatch.setattr(sys, "argv", ["datasets", "--help"])
    code = compile(Path(__main__.__file__).read_text(encoding="utf-8"), "__main__.py", "exec")
    with pytest.raises(SystemExit) as stop:
        exec(code, {"__name__": "__main__", "__package__": "sklearn_pulse.datasets"})
    assert stop.value.code == 0 and "--measure" in capsys.readouterr().out
