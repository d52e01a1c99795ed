"""What the timing suite counts, writes and refuses."""

import importlib
import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from perf import (
    baselines,
    corpus,
    costs,
    cross_prediction,
    growth,
    hidden_dynamics,
    patchtst,
    processes,
    products,
    report,
    scaler,
    shapes,
    stream_memory,
)
from perf import test_overhead as overhead
from perf.flops import counted, encoder_flops, engine_training, literal_training
from perf.methods import NAMES, MethodSize
from perf.sizes import Size
from perf.step import make_step
from perf.test_changes import CHANGES
from sklearn_pulse import _products, presets
from sklearn_pulse._products import Linear
from sklearn_pulse.baselines import PatchTSTTransformer
from sklearn_pulse.benchmark._methods import all_methods
from sklearn_pulse.objectives import CrossReconstruction


def batch(size, n_windows=16):
    """Windows whose starts have the mean of all that may be drawn."""
    n_starts = size.n_timesteps - size.params["min_crop_length"]
    starts = torch.linspace(0, n_starts - 1, n_windows).round().long()
    x = torch.randn(n_windows, size.n_timesteps, size.n_channels)
    return x, starts.expand(size.params["n_crops"], -1)


@pytest.fixture
def by_products(monkeypatch):
    """Convolve by products on every processor: they leave the padding out."""
    monkeypatch.setattr("sklearn_pulse._products._IS_FASTER", False)


@pytest.mark.usefixtures("by_products")
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


def test_the_gru_of_torch_has_as_many_threads_as_ours():
    size, threads = Size("har"), []
    x, starts = batch(size, n_windows=2)
    objective = size.objective()
    CHANGES["our GRU on packed crops"](objective)
    objective.decoder.gru.register_forward_pre_hook(
        lambda *_: threads.append(torch.get_num_threads())
    )
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        make_step(objective, x, starts)()
    finally:
        torch.set_num_threads(before)
    assert threads == [2]


def test_fit_and_the_bare_loop_share_the_threads_in_one_way(monkeypatch):
    """Else operations wait for busy processors in the loop alone, which made `fit` look fast."""
    sides, threads = [], []

    def note(*args, **kwargs):
        threads.append(torch.get_num_threads())
        return forward(*args, **kwargs)

    forward = CrossReconstruction.forward
    monkeypatch.setattr(CrossReconstruction, "forward", note)
    monkeypatch.setattr(Size, "batch_size", 4)
    monkeypatch.setattr(overhead, "N_BATCHES", 1)
    monkeypatch.setattr(overhead, "duel", lambda benchmark, *calls, **labels: sides.extend(calls))
    overhead.test_overhead(None, "cpu")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for side in sides:
            side()
    finally:
        torch.set_num_threads(before)
    assert threads == [1, 1]


@pytest.mark.usefixtures("by_products")
@pytest.mark.parametrize(("dataset", "ratio"), [("har", 2.0), ("ecg", 1.8), ("eeg", 1.7)])
def test_operations_of_the_encoder(dataset, ratio):
    size = Size(dataset)
    x, _ = batch(size, n_windows=2)
    encoder = size.objective().encoder
    total = counted(lambda: encoder(x))
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


def test_libraries_take_turns(monkeypatch):
    """Ours by oneDNN, ours by torch's choice, the literal step; two turns are not counted."""
    turns = []

    def note():
        turns.append(_products._IS_FASTER)

    monkeypatch.setattr(_products, "_IS_FASTER", None)
    monkeypatch.setattr(baselines, "seconds", lambda call: [call(), 0.01 * len(turns)][1])
    row = products.measure("PULSE", 10, note, lambda: turns.append("literal"), 1)
    assert turns == [True, False, "literal"] * 3
    assert (
        row
        == "| PULSE | 10 | 7.0 | 8.0 | 9.0 | **1.14** (1.14 to 1.14) | **1.29** (1.29 to 1.29) |"
    )


@pytest.mark.parametrize("make", [products.pulse_steps, products.method_steps])
def test_the_published_step_leaves_products_to_torch(make, monkeypatch):
    """Whatever library ours takes, which are the steps that a row compares."""
    monkeypatch.setattr(_products, "_IS_FASTER", True)
    monkeypatch.setattr(Size, "batch_size", 2)
    monkeypatch.setattr(MethodSize, "_preset_batch_size", lambda size: 2)
    _, n_windows, ours, literal = make("har" if make is products.pulse_steps else "TimeMAE")
    assert n_windows == 2
    called = []
    pointwise = torch.ops.mkldnn._linear_pointwise
    monkeypatch.setattr(
        torch.ops.mkldnn, "_linear_pointwise", lambda *args: [called.append(1), pointwise(*args)][1]
    )
    literal()
    assert not called
    ours()
    assert called


def test_a_product_of_either_library_is_counted(monkeypatch):
    layer, x = Linear(3, 5), torch.randn(7, 3, requires_grad=True)
    counts = []
    for by_onednn in (True, False):
        monkeypatch.setattr(_products, "_IS_FASTER", by_onednn)
        counts.append(counted(lambda: layer(x).sum().backward()))
    assert counts == [3 * 2 * 7 * 3 * 5] * 2


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


def command(monkeypatch, module, *arguments):
    """The program of the timings, with the arguments of its command."""
    monkeypatch.setattr("sys.argv", [module, *map(str, arguments)])
    return importlib.import_module(f"perf.{module}").main


@pytest.mark.parametrize("module", ["lazy_memory", "processes", "scaler"])
def test_help_measures_nothing(module, monkeypatch, capsys):
    """These programs have no options, and run for minutes."""
    main = command(monkeypatch, module, "--help")
    for target in ("perf.scaler.fetch_har", "subprocess.run", "numpy.save"):
        monkeypatch.setattr(target, lambda *args, **kwargs: pytest.fail("something was begun"))
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert f"usage: {module}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("baselines --rounds 0", "argument --rounds: must be at least 1, got 0"),
        ("baselines --batch two", "argument --batch: must be a whole number, got 'two'"),
        ("baselines --page nowhere.md", "argument --page: nowhere.md is no file: name a copy of"),
        ("closed_form_threads --rounds 0", "argument --rounds: must be at least 1"),
        ("compiled --rounds 0", "argument --rounds: must be at least 1"),
        ("contention --rounds 0", "argument --rounds: must be at least 1"),
        ("costs --rounds 0", "argument --rounds: must be at least 1"),
        ("costs --windows -1", "argument --windows: must be at least 1"),
        ("costs --threads 0", "argument --threads: must be at least 1"),
        ("costs --output .", "argument --output: . is a folder: name a file"),
        ("costs --output setup.cfg/costs.md", "there can be no folder setup.cfg"),
        ("cross_prediction --windows 19", "argument --windows: must be at least 20, got 19"),
        ("growth --page nowhere.md", "argument --page: nowhere.md is no file"),
        ("growth --figure .", "argument --figure: . is a folder: name a file"),
        ("hidden_dynamics --seeds 0", "argument --seeds: must be at least 1"),
        ("products --rounds 0", "argument --rounds: must be at least 1, got 0"),
        ("products --size mars", "argument --size: invalid choice: 'mars'"),
        ("report nowhere.json", "there is no nowhere.json: make bench writes output/benchmarks"),
        ("shapes --epochs 2", "argument --epochs: must be at least 3, got 2"),
        ("stream_memory --windows 0", "argument --windows: must be at least 1"),
    ],
)
def test_arguments_are_checked_before_anything_is_timed(
    arguments, message, monkeypatch, capsys, request
):
    monkeypatch.chdir(request.config.rootpath)
    with pytest.raises(SystemExit) as end:
        command(monkeypatch, *arguments.split())()
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_an_option_that_is_given_twice_adds_up(monkeypatch, capsys):
    """The last one alone would count by argparse's default, and the others be dropped silently."""
    monkeypatch.setattr(patchtst, "row", lambda name, *args: (0.0, []))
    rows = ("--row", "nothing else", "--row", "a patch at every step", "nothing else")
    command(monkeypatch, "patchtst", *rows)()
    shown = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines()]
    assert shown == ["nothing else", "a patch at every step"]

    monkeypatch.setattr(products, "measure", lambda name, *args: name)
    monkeypatch.setattr(products, "pulse_steps", lambda name: (name, 1, None, None))
    monkeypatch.setattr(products, "method_steps", lambda name: (name, 1, None, None))
    monkeypatch.setattr(products, "embeddings", list)
    command(monkeypatch, "products", "--size", "har", "--size", "ecg", "--method")()
    assert capsys.readouterr().out.splitlines()[2:4] == ["har", "ecg"]

    methods = ("--method", "ts2vec", "--method", "simclr")
    monkeypatch.setattr("sys.argv", ["costs", *methods])
    assert costs.make_parser().parse_args().method == ["ts2vec", "simclr"]

    monkeypatch.setattr(hidden_dynamics, "CONTROLS", {})
    monkeypatch.setattr(hidden_dynamics, "accuracy", lambda name, seed: 0.5)
    command(monkeypatch, "hidden_dynamics", "--method", "pulse", "--method", "simclr")()
    shown = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines()]
    assert shown[2:] == ["pulse", "simclr"]


def test_costs_of_no_round_replace_no_page(tmp_path, monkeypatch):
    page = tmp_path / "costs.md"
    page.write_text("measured before")
    with pytest.raises(SystemExit):
        command(monkeypatch, "costs", "--windows", 32, "--rounds", 0, "--output", page)()
    assert page.read_text() == "measured before"


def test_memory_of_a_short_fit_is_reported(monkeypatch, capsys):
    """A fit of less than ten seconds has fewer readings than tenths."""
    watch = stream_memory.Watch()
    watch.done.set()
    watch.run()
    assert len(watch.samples) == 1
    before = cross_prediction.anonymous_memory()
    monkeypatch.setattr(cross_prediction, "anonymous_memory", lambda: before)
    seconds_and_memory = 1.0, [before, before + 3 * stream_memory.MIB]
    monkeypatch.setattr(cross_prediction, "fit", lambda X, n_kernels: seconds_and_memory)
    command(monkeypatch, "cross_prediction", "--windows", 20)()
    assert capsys.readouterr().out.count("of the time, in MiB: 0 3\n") == 2


def test_a_corpus_that_finds_no_space_leaves_no_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(corpus, "run", lambda *args: pytest.fail("recordings are written"))
    with pytest.raises(SystemExit):
        command(monkeypatch, "corpus", "--gigabytes", 1e9, "--folder", tmp_path)()
    assert f"argument --gigabytes: {tmp_path} has less space" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_nothing_embeds_on_after_an_interrupt(tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    started, start = [], subprocess.Popen

    def sleeper(*args, **kwargs):
        started.append(start([sys.executable, "-c", "import time; time.sleep(600)"]))
        return started[0]

    def interrupted(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", sleeper)
    monkeypatch.setattr(corpus, "write_recordings", lambda *args: None)
    monkeypatch.setattr(corpus, "share_done", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            command(monkeypatch, "corpus", "--gigabytes", 0, "--folder", tmp_path)()
        assert started[0].poll() is not None
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", [processes, shapes])
def test_what_fails_in_a_process_is_shown(module, tmp_path, monkeypatch, capfd):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho the reason >&2\nexit 1\n")
    python.chmod(0o755)
    main = command(monkeypatch, module.__name__.removeprefix("perf."))
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(subprocess.CalledProcessError):
        main()
    assert "the reason" in capfd.readouterr().err
