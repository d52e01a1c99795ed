"""What the timing suite counts and writes."""

import json

import numpy as np
import pytest
import torch

from perf import baselines, costs, growth, patchtst, report, scaler
from perf.flops import counted, encoder_flops, engine_training, literal_training
from perf.methods import NAMES, MethodSize
from perf.sizes import Size
from perf.test_changes import CHANGES
from sklearn_pulse import presets
from sklearn_pulse.baselines import PatchTSTTransformer
from sklearn_pulse.benchmark._methods import all_methods


def batch(size, n_windows=16):
    """Windows whose starts have the mean of all that may be drawn."""
    n_starts = size.n_timesteps - size.params["min_crop_length"]
    starts = torch.linspace(0, n_starts - 1, n_windows).round().long()
    x = torch.randn(n_windows, size.n_timesteps, size.n_channels)
    return x, starts.expand(size.params["n_crops"], -1)


@pytest.mark.parametrize("theta_dropout", ["step", "sequence"])
def test_operations_of_our_step(theta_dropout):
    size = Size("har")
    x, starts = batch(size)
    objective = size.objective(theta_dropout=theta_dropout)
    total = counted(lambda: objective(x=x, starts=starts).backward())
    # Beside them: the initial condition, the time-varying part; not: the gradient of the windows.
    assert total / len(x) == pytest.approx(engine_training(size, theta_dropout), rel=0.04)


def test_operations_of_the_literal_step():
    size = Size("har")
    x, starts = batch(size, n_windows=4)
    literal = size.literal()
    total = counted(lambda: literal(x, starts).backward())
    assert total / len(x) == pytest.approx(literal_training(size), rel=0.04)


@pytest.mark.parametrize("change", CHANGES)
def test_a_step_without_a_change_has_the_same_loss(change, monkeypatch):
    size = Size("har")
    x, starts = batch(size, n_windows=4)
    ours, without = size.objective().eval(), size.objective().eval()
    for target, name, value in CHANGES[change](without):
        monkeypatch.setattr(target, name, value)
    losses = [module.eval()(x=x, starts=starts) for module in (ours, without)]
    torch.testing.assert_close(*losses)
    losses[1].backward()  # and it trains


@pytest.mark.parametrize(("dataset", "ratio"), [("har", 2.0), ("ecg", 1.8), ("eeg", 1.7)])
def test_operations_of_the_encoder(dataset, ratio):
    size = Size(dataset)
    x, _ = batch(size, n_windows=2)
    encoder = size.objective().encoder
    total = counted(lambda: encoder(x))  # by products; those of padding are not computed
    pruned = encoder_flops(size, dead_taps=False)
    assert total / len(x) == pytest.approx(pruned, rel=1e-6)
    assert encoder_flops(size, dead_taps=True) / pruned == pytest.approx(ratio, abs=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_published_steps_have_our_loss(name):
    size = MethodSize(name, batch_size=3)
    losses = baselines.both_losses(size, size.batch())
    torch.testing.assert_close(*losses, rtol=1e-4, atol=1e-6)
    assert all(loss.requires_grad for loss in losses)


def test_steps_of_the_baselines_are_counted():
    """REBAR needs fewer operations than its published form, and TimeMAE as many."""
    counts = {}
    for name in ("REBAR, first stage", "TimeMAE"):
        size = MethodSize(name, batch_size=2)
        ours, batch = size.objective().train(), size.batch()
        steps = (baselines.make_step(loss, batch) for loss in (size.literal(ours).train(), ours))
        counts[name] = [counted(step) for step in steps]
    published, own = counts["REBAR, first stage"]
    assert own < 0.65 * published
    published, own = counts["TimeMAE"]
    assert own == pytest.approx(published, rel=0.05)


def test_a_method_of_two_stages_has_two_rows_of_costs():
    methods = [all_methods()[name] for name in ("rebar", "cross-prediction")]
    found = costs.measure(methods, 32, 1, {"num_threads": 1, "device": "cpu"})
    assert list(found) == ["REBAR", "REBAR, first stage", "cross-prediction"]
    assert found["REBAR, first stage"].training and not found["REBAR, first stage"].embedding
    assert found["cross-prediction"].embedding and not found["cross-prediction"].training


def test_slopes_are_exponents():
    assert growth.slope([1, 2, 4, 8], [9.0, 4.0, 16.0, 64.0]) == pytest.approx(2.0)
    points = {
        (method, axis): [(0.1 * size, 50.0) for size in growth.SIZES[axis]]
        for method in growth.METHODS
        for axis in growth.axes_of(method)
    }
    lines = growth.slopes(points).splitlines()
    assert lines[2] == "| PULSE | 1.0, 0.0 | 1.0, 0.0 | 1.0, 0.0 | 1.0, 0.0 |"
    assert lines[3].endswith("| 1.0, 0.0 |  |")  # the closed form has no batches


def row(task, **values):
    """A row as the timing suite keeps it."""
    return {
        "task": task,
        "size": "HAR",
        "device": "cpu",
        "machine": "two cores",
        "precision": "float32",
        "theta_dropout": "step",
        "windows_per_second": 200.0,
        "literal_windows_per_second": 50.0,
        "ratio": 4.0,
        "ratio_range": [3.5, 4.5],
        "flop_ratio": 5.0,
        "mflop": 400.0,
        "peak_gflops": 160.0,
    } | values


def test_the_page_is_filled_and_nothing_else_changes():
    text = "before\n" + "\n".join(f"<!-- {n} -->old<!-- /{n} -->" for n in report.SECTIONS)
    page = report.fill(text, [row("training"), row("change", size="a thing"), row("search")])
    assert page.startswith("before\n")
    assert page.count(">old<") == 1  # of the GPU, which was not measured
    assert "two cores. Matrix products reached 160 GFLOP/s on cpu in float32." in page
    assert "| 200 | 50.0 | **4.00** (3.50 to 4.50) | 80% | 400 | 50% |" in page
    assert "| a thing | **4.00** (3.50 to 4.50) |" in page
    assert report.fill(page, [row("training")]) == report.fill(text, [row("training")])


def test_timings_of_a_gpu_leave_those_of_the_cpu(tmp_path, monkeypatch):
    rows = [row(task, device="cuda", machine="a GPU") for task in ("training", "search")]
    for name, kept in zip("ab", rows, strict=True):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps({"benchmarks": [{"extra_info": kept}]}))
    (tmp_path / "stopped.json").touch()
    page = tmp_path / "page.md"
    monkeypatch.setattr("sys.argv", ["report", str(tmp_path), "--page", str(page)])
    report.main()
    before, filled = report.PAGE.read_text(encoding="utf-8"), page.read_text(encoding="utf-8")
    assert "a GPU. Matrix products reached 160 GFLOP/s on cuda in float32." in filled
    assert "| 12 settings x 3 folds in HAR against one process, cuda |" in filled
    assert report.replace_section(filled, "gpu", "") == report.replace_section(before, "gpu", "")


def test_each_machine_has_its_own_speed():
    """Stages of one folder may have run on different GPUs."""
    text = report.machine([row("training"), row("search", machine="a GPU", peak_gflops=900.0)])
    assert text.splitlines() == [
        "two cores. Matrix products reached 160 GFLOP/s on cpu in float32.",
        "a GPU. Matrix products reached 900 GFLOP/s on cpu in float32.",
    ]


def test_a_report_of_no_timings_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["report", str(tmp_path)])
    with pytest.raises(SystemExit):
        report.main()
    assert "holds no timings" in capsys.readouterr().err


def test_a_page_without_the_sections_is_refused():
    with pytest.raises(ValueError, match="no section between <!-- steps -->"):
        report.fill("nothing", [row("training")])


def test_the_page_has_the_sections():
    page = report.PAGE.read_text(encoding="utf-8")
    report.fill(page, [row("training"), row("training", device="cuda")])
    for name in ("baselines", "growth"):
        assert "|---|" in report.replace_section(page, name, "|---|")


def test_the_rows_of_patchtst_are_the_settings_of_the_released_code():
    ours, released = (
        presets.get("patchtst", "har", published=published) for published in (False, True)
    )
    _, *rows = patchtst.ROWS.values()
    settings = {name: value for row in rows[:4] for name, value in row.items()}
    assert ours | settings == released
    assert all(row.keys() <= PatchTSTTransformer().get_params().keys() for row in rows)


def test_a_scaler_of_two_windows_makes_most_of_what_hardly_differs():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    Z = np.column_stack([4 * y + rng.normal(size=60), rng.normal(size=60)])
    Z[1, 1] = Z[0, 1] + 0.01
    few, all_windows = scaler.accuracies(Z, y, np.arange(2), np.arange(60), np.arange(2, 60))
    assert few < 0.6 < 0.9 < all_windows
