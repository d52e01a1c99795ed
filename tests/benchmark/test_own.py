"""Windows of the user: arrays, folders and files, through the function and through the command."""

import dataclasses
import os
import re
import shutil
import sys
from pathlib import Path

import joblib
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import StratifiedGroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_pulse import PulseTransformer
from sklearn_pulse.benchmark import BUDGETS, Execution, Results, add_files, compare, plan, run
from sklearn_pulse.benchmark.__main__ import main
from sklearn_pulse.benchmark._compare import announce
from sklearn_pulse.benchmark._comparison import MEASURES
from sklearn_pulse.benchmark._estimate import estimate
from sklearn_pulse.benchmark._execution import Condition
from sklearn_pulse.benchmark._methods import all_methods
from sklearn_pulse.benchmark._own import add_arrays, own_task
from sklearn_pulse.benchmark._trial import Trial
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.plotting import LabelEfficiencyDisplay
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import sliding_windows

from .toy import load_toy

QUICK = ("statistics", "majority")
HALVES = (slice(0, 50), slice(50, None))
PANEL = pd.DataFrame(np.zeros((100, 3)), pd.MultiIndex.from_product([range(20), range(5)]))


@pytest.fixture(scope="module")
def own():
    """Windows, text labels, people and starts: ten people, ten windows each."""
    task = load_toy()
    start = np.tile(np.arange(10) * 20, 10)
    labels = np.array(["slow", "fast"])[task.y]
    return {"X": task.X, "y": labels, "groups": task.groups, "start": start}


def quick(own, **changes):
    settings = {"methods": QUICK, "budget": "smoke", "verbose": False}
    return compare(**(own | settings | changes))


def test_scores_are_those_of_a_probe_on_whole_people(own, tmp_path):
    frame, display = quick(own, protocols=["linear-probe"], n_seeds=2, out=tmp_path)
    assert display is None
    assert set(frame["protocol"]) == {"linear-probe"}
    ours = frame.query("method == 'channel statistics' and metric == 'accuracy'").iloc[0]
    expected, validated = [], []
    dataset = next((tmp_path / "data").iterdir()).name
    for fold in range(2):
        task = own_task(dataset, fold, Execution(tmp_path))
        parts = [task.rows(part) for part in ("train", "val", "test")]
        people = [set(task.groups[rows]) for rows in parts]
        assert [len(of_part) for of_part in people] == [6, 2, 2]
        assert not (people[0] & people[1] or people[0] & people[2] or people[1] & people[2])
        validated.append(people[1])
        Z = StatisticsTransformer().fit_transform(task.X)
        expected += cross_val_score(make_linear_probe(), Z, task.y, cv=[tuple(parts[:2])]).tolist()
    assert not validated[0] & validated[1]  # another run, other people
    assert ours["n_seeds"] == 2
    assert ours["mean"] == pytest.approx(np.mean(expected))
    assert ours["spread"] == pytest.approx(np.std(expected))
    assert Results(tmp_path).looks() == []  # the test people stay unseen


def test_labelled_people_and_their_curve(own):
    frame, display = quick(own, protocols=["labelled-people"])
    assert isinstance(display, LabelEfficiencyDisplay)
    # Six people train, and each shows both classes.
    np.testing.assert_array_equal(display.n_groups, [1, 2, 4])
    assert list(display.scores) == ["channel statistics"]
    shown = frame[frame["method"] == "channel statistics"].set_index("metric")["mean"]
    of_amount = [shown[f"accuracy {n}"] for n in ("1 person", "2 people", "4 people")]
    np.testing.assert_allclose(display.scores["channel statistics"].mean(1), of_amount)
    assert shown["accuracy all people"] == 1.0
    assert "accuracy 8 people" not in shown


def test_an_amount_that_some_runs_lack_is_left_out_of_the_curve_alone(own):
    """Three people show one of two classes, so that four of each are all people of three runs."""
    y = (own["groups"] >= 7).astype(int)
    frame, display = quick(own, y=y, protocols=["labelled-people"], n_seeds=5)
    shown = frame[frame["method"] == "channel statistics"].set_index("metric")["n_seeds"]
    assert (shown["accuracy 2 people"], shown["accuracy 4 people"]) == (5, 2)
    np.testing.assert_array_equal(display.n_groups, [1, 2])
    assert display.scores["channel statistics"].shape == (2, 5)


def test_a_scored_part_of_one_class_has_no_auroc_and_no_warning(own):
    y = (own["groups"] >= 7).astype(int)  # warnings are errors in the tests
    frame, _ = quick(own, y=y, methods=["majority"], protocols=["linear-probe"], n_seeds=5)
    n_seeds = frame.set_index("metric")["n_seeds"]
    assert n_seeds["auroc"] < n_seeds["accuracy"] == 5


def test_a_training_part_of_one_class_is_named_before_the_training(own, monkeypatch):
    monkeypatch.setattr(PulseTransformer, "fit", lambda *args, **kwargs: pytest.fail("trained"))
    few = {name: values[:30] for name, values in own.items()} | {"y": own["groups"][:30]}
    message = r"No run succeeded.*run 0 holds the class \d alone: pass windows of more groups"
    with pytest.raises(RuntimeError, match=message):
        quick(few, methods=["pulse", "majority"], protocols=["linear-probe"])


def test_names_that_are_given_twice_are_run_once(own, tmp_path, capsys):
    folder_of_arrays(own, tmp_path)
    twice = ["--dataset", str(tmp_path), str(tmp_path), "--method", "majority", "majority"]
    assert main(["linear-probe", *twice, "--seeds", "1", "--out", str(tmp_path / "out")]) == 0
    assert "1 finished, 0 there" in capsys.readouterr().err
    cells = plan(["synthetic", "synthetic"], methods=["majority"], n_seeds=1)
    assert len(cells) == len({*cells})


def test_windows_of_one_step_are_scored_without_a_reconstruction(own):
    """The first step is given to the decoder, so that there is nothing to reconstruct."""
    steps = own | {"X": own["X"][:, :1, :1]}
    with pytest.warns(UserWarning, match="windows of one time step"):
        frame, _ = quick(steps, methods=["pulse"], protocols=["linear-probe"])
    assert {"accuracy"} <= {*frame["metric"]} and "mse" not in {*frame["metric"]}


@pytest.mark.usefixtures("few_penalties", "no_pictures")
@pytest.mark.parametrize("protocol", ["linear-probe", "comparison"])
def test_the_frame_has_the_notes_of_the_report(own, tmp_path, protocol, capsys):
    y = np.where(own["groups"] == own["groups"][0], "rare", own["y"])  # one part alone holds it
    frame, _ = quick(own | {"y": y}, protocols=[protocol], n_seeds=1, out=tmp_path)
    assert main(["report", "--out", str(tmp_path)]) == 0
    shown = re.findall(r"^- Note: (.*)\.$", capsys.readouterr().out, re.MULTILINE)
    notes = frame.attrs["notes"][protocol]
    assert list(frame.attrs["notes"]) == [protocol] and set(notes) == set(shown)
    assert any("lacks" in note for note in notes)
    assert frame.loc[frame["n_seeds"] == 1, "spread"].isna().all()  # one score has none
    assert frame.query("metric == metric").attrs == frame.attrs


def test_shares_of_the_labels_are_the_default(own):
    frame, display = quick(own)
    np.testing.assert_array_equal(display.fractions, [0.01, 0.05, 1.0])
    assert not frame["metric"].str.contains("published").any()
    assert display.majority_score == 0.5


@pytest.mark.usefixtures("five_draws", "few_penalties")
def test_a_comparison_has_every_amount_of_labels_and_both_probes(own, tmp_path):
    frame, display = quick(own, protocols=["comparison"], n_seeds=2, out=tmp_path)
    assert display is None
    assert set(frame["metric"]) == set(MEASURES)
    shown = frame[frame["method"] == "channel statistics"].set_index("metric")
    assert shown.loc["accuracy 100 %", "n_seeds"] == 2  # folds
    assert shown.loc["accuracy 1 person", "n_seeds"] == 10  # folds and draws
    probed, _ = quick(own, protocols=["linear-probe"], n_seeds=2)
    expected = probed.query("method == 'channel statistics' and metric == 'accuracy'")
    assert shown.loc["accuracy 100 %", "mean"] == pytest.approx(expected["mean"].item(), abs=0.02)
    dataset = next((tmp_path / "data").iterdir()).name
    assert len(plan(["comparison"], datasets=[dataset], methods=["majority"])) == 5  # all folds


@pytest.mark.usefixtures("no_pictures")
def test_own_data_sets_are_columns_of_a_comparison(own, tmp_path, capsys):
    for name in ("a", "b"):  # two data sets of one title, and a third
        (tmp_path / name).mkdir()
        shift = {"X": own["X"] + (name == "b")}
        np.savez(tmp_path / name / "mine.npz", **(own | shift))
    np.savez(tmp_path / "other.npz", **own)
    files = [str(tmp_path / file) for file in ("a/mine.npz", "b/mine.npz", "other.npz")]
    arguments = ["--method", "majority", "--budget", "smoke", "--seeds", "1"]
    out = ["--out", str(tmp_path / "out")]
    assert main(["comparison", "--dataset", *files, *arguments, *out]) == 0
    assert main(["report", *out]) == 0
    text = capsys.readouterr().out
    header = next(line for line in text.splitlines() if line.startswith("| % | mine"))
    digests = re.findall(r"mine \((\w+)\)", header)
    assert len(set(digests)) == 2
    assert "| other |" in header
    assert text.count("| other, all labels |") == 2  # one for each probe
    assert "cross-prediction wins" not in text  # it was not run


def test_a_network_is_trained_on_the_windows(own, tmp_path):
    y = (own["y"] == "fast").astype(int)
    frame, _ = quick(own | {"y": y}, methods=["pulse"], protocols=["linear-probe"], out=tmp_path)
    assert frame.query("metric == 'accuracy'")["mean"].between(0, 1).all()
    (record,) = Results(tmp_path)
    assert record["training"]["n_pretraining_windows"] == 60
    assert record["training"]["n_epochs"] == 1


def test_four_people_have_a_checkpoint_folder_for_each_training(own, tmp_path, monkeypatch):
    """The name of such windows ends in .4, which is no suffix of a file."""
    kept = own["groups"] < np.unique(own["groups"])[4]
    y = (own["y"] == "fast").astype(int)
    some = {name: np.asarray(values)[kept] for name, values in (own | {"y": y}).items()}
    removed, remove = [], shutil.rmtree

    def spy(folder, *args, **options):
        removed.append(Path(folder))
        remove(folder, *args, **options)

    monkeypatch.setattr("sklearn_pulse.benchmark._trial.shutil.rmtree", spy)
    quick(some, methods=["pulse", "simmtm"], protocols=["linear-probe"], out=tmp_path)
    names = [folder.name for folder in removed if folder.name.endswith(".checkpoints")]
    assert [name.split("-")[-3] for name in sorted(names)] == ["pulse", "simmtm"]


def test_an_encoder_is_that_of_its_windows(own, tmp_path):
    dataset = add_arrays(tmp_path, "data", own["X"], own["y"], own["groups"], None, None)
    task = own_task(dataset, 0, Execution(tmp_path))

    def name(method, **changes):
        changed = dataclasses.replace(task, **changes)
        asked = all_methods()[method], dataset, 0, "val", BUDGETS["smoke"], Execution(tmp_path)
        return Trial(Condition(*asked), changed, "").name

    other = task.X.copy()
    other[0, 0, 0] += 1
    assert name("pulse", X=other) != name("pulse") == name("pulse", y=task.y[::-1])
    assert name("oracle-positive", y=task.y[::-1]) != name("oracle-positive")


def test_a_probe_of_a_window_of_each_class_and_person(own):
    """As many windows are scored as there are classes, so that clusters have no spread."""
    X = np.random.default_rng(0).normal(size=(30, 16, 2))
    small = {"X": X, "y": np.tile(np.arange(6), 5), "groups": np.repeat(np.arange(5), 6)}
    frame, _ = quick(small, protocols=["linear-probe"])
    of_features = frame[frame["method"] == "channel statistics"]
    assert "accuracy" in set(of_features["metric"])
    assert "silhouette" not in set(of_features["metric"])


def test_nothing_was_published_for_own_windows(own, tmp_path):
    dataset = add_arrays(tmp_path, "data", own["X"], own["y"], own["groups"], None, None)
    message = r"published=True \(--published\), but nothing was published for 'data'"
    with pytest.raises(ValueError, match=message):
        plan(["linear-probe"], datasets=[dataset], published=True)


@pytest.mark.parametrize("name", ["protocols", "datasets", "methods"])
def test_names_are_listed(name):
    with pytest.raises(TypeError, match=rf"{name} must be a list of names, got 'har': pass"):
        plan(**({"protocols": ["linear-probe"]} | {name: "har"}))
    listed = {"datasets": ["har"], "methods": ["majority", "statistics"]}
    cells = plan(["linear-probe"], **listed, n_seeds=1)
    assert len(plan(["linear-probe"], **{k: iter(v) for k, v in listed.items()}, n_seeds=1)) == 2
    assert len(cells) == 2


def folder_of_arrays(own, path):
    for name, values in own.items():
        np.save(path / f"{name}.npy", values)


def folder_of_archives(own, path):
    for number, rows in enumerate(np.split(np.arange(100), 4)):
        part = {name: values[rows] for name, values in own.items()}
        np.savez(path / f"{number}.npz", **part)


def test_further_runs_repeat_the_folds_and_a_note_says_so(own):
    settings = {"methods": ["majority"], "protocols": ["linear-probe"]}
    notes = [quick(own, n_seeds=n, **settings)[0].attrs["notes"]["linear-probe"] for n in (5, 6)]
    said = ["further runs repeat the 5 folds" in "; ".join(of_table) for of_table in notes]
    assert said == [False, True]


@pytest.mark.parametrize("n_people", [3, 5, 7])
def test_no_fold_is_run_twice(own, tmp_path, n_people):
    kept = own["groups"] < np.unique(own["groups"])[n_people]
    some = {name: np.asarray(values)[kept] for name, values in own.items()}
    frame, _ = quick(some, methods=["majority"], protocols=["cross-validation"], out=tmp_path)
    assert set(frame["n_seeds"]) == {min(n_people, 5)}
    dataset = next((tmp_path / "data").iterdir()).name
    folds = [own_task(dataset, fold, Execution(tmp_path)) for fold in range(min(n_people, 5))]
    validated = [person for task in folds for person in np.unique(task.groups[task.rows("val")])]
    assert sorted(validated) == list(range(n_people))


def folder_of_tables(own, path):
    columns = own | {"X": [window.tolist() for window in own["X"]]}
    pd.DataFrame(columns).to_parquet(path / "windows.parquet")


@pytest.mark.parametrize("store", [folder_of_arrays, folder_of_archives, folder_of_tables])
def test_files_are_the_arrays(own, tmp_path, store):
    if store is folder_of_tables:
        pytest.importorskip("pyarrow")
    source, out = tmp_path / "my data", tmp_path / "out"
    source.mkdir()
    store(own, source)
    for path in list(source.iterdir()):  # a Mac adds such a file beside each
        path.with_name(f"._{path.name}").write_bytes(b"\0\5\x16\7")
    name = add_files(source, out)
    assert name.startswith("own-my-data-")
    assert add_files(source, out) == name
    task = own_task(name, 0, Execution(out))
    np.testing.assert_array_equal(task.X, own["X"])
    for ours, theirs in ((task.y, "y"), (task.groups, "groups"), (task.start, "start")):
        np.testing.assert_array_equal(ours, own[theirs])
    np.testing.assert_array_equal(task.recording, own["groups"])


def test_misspelt_files_are_named(own, tmp_path):
    folder_of_arrays(own, tmp_path)
    (tmp_path / "groups.npy").rename(tmp_path / "group.npy")
    with (
        pytest.warns(UserWarning, match=r"group\.npy, which are not read.*X\.npy, y\.npy, groups"),
        pytest.warns(UserWarning, match="Without groups"),
    ):
        add_files(tmp_path, tmp_path / "out")


@pytest.mark.parametrize("store", [folder_of_arrays, folder_of_archives])
def test_a_folder_with_the_ending_of_a_file_is_named(own, tmp_path, store):
    store(own, tmp_path)
    name = "start.npy" if store is folder_of_arrays else "old.npz"
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match=f"{name} is a folder: rename it without the ending"):
        add_files(tmp_path, tmp_path / "out")


def test_arrays_of_other_names_are_named(own, tmp_path):
    np.savez(tmp_path / "mine.npz", **own | {"subjects": own["groups"]})
    with pytest.warns(UserWarning, match="files hold subjects, which are not read"):
        add_files(tmp_path, tmp_path / "out")


def test_variation_that_float32_loses_reaches_the_methods(own, tmp_path):
    far = own | {"X": own["X"].astype(np.float64) + 1e9}
    method = make_pipeline(WindowScaler(), StatisticsTransformer())
    settings = {"methods": [("scaled", method)], "budget": "smoke", "verbose": False}
    expected, found = (
        compare(**windows, **settings)[0]["mean"].to_numpy() for windows in (own, far)
    )
    np.testing.assert_allclose(found, expected, atol=0.02)
    with pytest.warns(UserWarning, match="float32 does not hold the variation of X"):
        compare(**far, **settings | {"methods": ["statistics"]})


@pytest.mark.parametrize("dtype", ["i8", ">f8"])
def test_variation_that_float32_loses_is_kept_of_every_type(own, dtype):
    """Files of windows hold floats in the order of bytes of the processor."""
    counts = np.round(1000 * own["X"].astype(np.float64))
    method = make_pipeline(WindowScaler(), StatisticsTransformer())
    settings = {"methods": [("scaled", method)], "protocols": ["linear-probe"]}
    expected, found = (
        quick(own | {"X": X}, **settings)[0]["mean"].to_numpy()
        for X in (counts, (counts + 2.0**40).astype(dtype))
    )
    np.testing.assert_allclose(found, expected, atol=0.02)


class Notes(StatisticsTransformer):
    """Notes whether metadata routing is on, which decides whether `fit` gets groups."""

    seen = []

    def fit(self, X, y=None):
        self.seen.append(sklearn.get_config()["enable_metadata_routing"])
        return super().fit(X, y)


def test_a_run_with_metadata_routing_is_another_run(own, tmp_path):
    Notes.seen.clear()
    settings = {"methods": [("notes", Notes())], "budget": "smoke", "verbose": False}
    for routing in (False, False, True, True):
        with sklearn.config_context(enable_metadata_routing=routing):
            compare(**own, **settings, out=tmp_path)
    assert Notes.seen == [False, True]


def of_each_person():
    """Two recordings of each of four people, as `sliding_windows` cuts and numbers them."""
    for person in range(4):
        recordings = list(np.random.default_rng(person).normal(size=(2, 320, 1)))
        cut = sliding_windows(recordings, 32, y=[0, 1], groups=[f"person {person}"] * 2)
        yield {name: getattr(cut, name) for name in ("X", "y", "groups", "recording", "start")}


def stored_recordings(dataset, out):
    return np.load(out / "data" / dataset / "recording.npy")


@pytest.mark.parametrize("left_out", [(), ("start",), ("groups",), ("groups", "start")])
@pytest.mark.filterwarnings("ignore:Without groups:UserWarning")
def test_recordings_that_are_numbered_in_each_file_stay_apart(tmp_path, left_out):
    for number, part in enumerate(of_each_person()):
        kept = {name: values for name, values in part.items() if name not in left_out}
        np.savez(tmp_path / f"{number}.npz", **kept)
    found = stored_recordings(add_files(tmp_path, tmp_path / "out"), tmp_path / "out")
    pairs = {*zip(found.tolist(), np.repeat(np.arange(8), 10).tolist(), strict=True)}
    assert len(np.unique(found)) == len(pairs) == 8


def test_two_nights_of_a_person_stay_apart(own, tmp_path):
    """Both files hold the same starts of the recordings, so that none goes on in the other."""
    for night in range(2):
        np.savez(tmp_path / f"{night}.npz", **own)
    found = stored_recordings(add_files(tmp_path, tmp_path / "out"), tmp_path / "out")
    assert len(np.unique(found)) == 20
    assert not set(found[:100]) & set(found[100:])


def test_recordings_that_people_share_by_number_stay_apart(own, tmp_path):
    parts = [*of_each_person()]
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    quick(whole, protocols=["linear-probe"], out=tmp_path)
    found = stored_recordings(next((tmp_path / "data").iterdir()).name, tmp_path)
    pairs = {*zip(found.tolist(), np.repeat(np.arange(8), 10).tolist(), strict=True)}
    assert len(np.unique(found)) == len(pairs) == 8


def test_starts_that_repeat_within_people_need_recordings(own):
    start = np.tile(np.arange(5) * 20, 20)
    with pytest.raises(ValueError, match=r"start repeats .*0 and 5\).* pass the recording of each"):
        quick(own, start=start)
    settings = {"protocols": ["linear-probe"], "methods": ["majority"]}
    assert len(quick(own, start=start, recording=np.arange(100) // 5, **settings)[0])
    copied = {name: np.concatenate([values, values[:3]]) for name, values in own.items()}
    copied["X"] = copied["X"].copy()
    copied["X"][:, 0] = np.nan  # which differs from itself
    assert len(quick(copied, **settings)[0])


def test_numbers_that_nobody_shares_keep_the_name_of_the_data_set(own, tmp_path):
    arrays = {"X": own["X"], "y": own["y"], "groups": own["groups"]}
    alone = add_arrays(tmp_path, "data", **arrays, recording=np.arange(100) // 5)
    stored = stored_recordings(alone, tmp_path)
    np.testing.assert_array_equal(stored, np.arange(100) // 5)
    assert add_arrays(tmp_path, "data", **arrays, recording=stored) == alone


def test_the_command_takes_a_folder(own, tmp_path, capsys):
    source, out = tmp_path / "mine", tmp_path / "out"
    source.mkdir()
    folder_of_archives(own, source)
    arguments = ["--dataset", str(source), "--method", *QUICK, "--budget", "smoke"]
    assert main(["labelled-people", *arguments, "--out", str(out)]) == 0
    told = capsys.readouterr().err
    assert "2 run(s); measuring how long they take" in told
    assert re.search(r"about \d+ (s|min) in one process", told)
    assert "2 finished" in told
    assert main(["report", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "### Few labelled people, mine, validation part" in text
    assert "| channel statistics (control) | 1 |" in text
    assert "paper" not in text
    assert "missing" not in text
    assert (out / "tables").is_dir()


@pytest.mark.parametrize("protocol", ["labelled-people", "linear-probe"])
def test_a_title_that_no_font_has(own, tmp_path, capsys, protocol):
    """Matplotlib's own fonts have no Chinese; its warnings are errors in the tests."""
    source, out = tmp_path / "心电图", tmp_path / "out"
    source.mkdir()
    folder_of_arrays(own, source)
    arguments = ["--dataset", str(source), "--method", *QUICK, "--budget", "smoke"]
    assert main([protocol, *arguments, "--out", str(out)]) == 0
    with mpl.rc_context({"font.family": "DejaVu Sans"}):
        assert main(["report", "--out", str(out)]) == 0
    assert ", 心电图, validation part" in capsys.readouterr().out
    assert len(list((out / "tables").glob("*心电图*.png"))) == 1


@pytest.mark.usefixtures("no_pictures")
def test_two_folders_of_one_name_have_headings_of_their_own(own, tmp_path, capsys):
    y = own["y"]
    for home, labels in (("here", y), ("there", y[::-1]), ("alone", y)):
        source = tmp_path / home / ("other" if home == "alone" else "HAR")
        source.mkdir(parents=True)
        folder_of_arrays(own | {"y": labels}, source)
        arguments = ["--dataset", str(source), "--method", "majority", "--budget", "smoke"]
        assert main(["linear-probe", *arguments, "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert main(["report", "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    digests = [folder.name[-12:] for folder in (tmp_path / "out" / "data").glob("own-HAR-*")]
    headings = [line for line in text.splitlines() if line.startswith("###")]
    assert sorted(headings) == sorted(
        f"### Linear probe, {title}, validation part"
        for title in ("other", *(f"HAR ({digest})" for digest in digests))
    )
    assert "paper" not in text  # which has a data set of this name


def test_an_estimate_is_of_what_is_left(own, tmp_path, capsys, monkeypatch):
    source = tmp_path / "mine"
    source.mkdir()
    folder_of_arrays(own, source)
    execution = Execution(tmp_path / "out")
    name = add_files(source, execution.folder)
    cells = plan(["linear-probe"], datasets=[name], methods=QUICK, budget="smoke", n_seeds=4)
    assert len(cells) == 8
    assert estimate(cells, execution) > 0
    with monkeypatch.context() as broken:
        broken.setattr(Trial, "embedding", property(lambda trial: 1 / 0))
        announce(cells, execution, n_jobs=1)
    assert capsys.readouterr().err.endswith("none can be measured: the runs say why\n")
    run(cells, execution)
    assert estimate(cells, execution) is None
    announce(cells, execution, n_jobs=1)
    assert capsys.readouterr().err.endswith("all are finished\n")
    assert len(list(Results(execution.folder))) == 8  # small runs leave nothing


def test_the_time_of_a_training_is_estimated(own, tmp_path):
    few = {name: values[::5] for name, values in own.items()}
    folder_of_arrays(few, tmp_path)
    name = add_files(tmp_path, tmp_path / "out")
    cells = plan(["linear-probe"], datasets=[name], methods=["pulse"], budget="smoke")
    assert estimate(cells, Execution(tmp_path / "out")) > 0


def test_processes_do_not_shorten_a_training(own, tmp_path, monkeypatch):
    name = add_arrays(tmp_path, "mine", **own)
    protocols = ["linear-probe", "label-efficiency"]  # which share what is trained
    cells = plan(protocols, datasets=[name], methods=QUICK, budget="smoke", n_seeds=4)
    monkeypatch.setattr("sklearn_pulse.benchmark._estimate._measure", lambda *args: (30.0, 10.0))
    found = [estimate(cells, Execution(tmp_path), n_processes) for n_processes in (1, 2, 8, 100)]
    assert found == [8 * 50, 4 * 50, 50, 50]


def test_the_processes_are_counted(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sklearn_pulse.benchmark._compare.estimate", lambda *args: 60.0)
    announce([], Execution(tmp_path), n_jobs=-1)
    assert re.search(r"in ([2-9]\d* processes|one process)", capsys.readouterr().err)


def test_nothing_is_kept_without_a_folder(own, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quick(own, methods=["majority"], protocols=["linear-probe"])
    assert list(tmp_path.iterdir()) == []


def test_missing_values_and_one_channel(own):
    X = own["X"][..., 0].astype(float)
    X[::7, 3] = np.nan
    frame, _ = quick(own | {"X": X}, protocols=["linear-probe"])
    assert frame["mean"].notna().all()


def test_without_groups_the_user_is_warned_and_the_notes_say_so(own):
    settings = {"methods": ["majority"], "protocols": ["linear-probe"], "n_seeds": 1}
    with pytest.warns(UserWarning, match="Without groups"):
        frame, _ = quick(own | {"groups": None}, **settings)
    notes = frame.attrs["notes"]["linear-probe"]
    assert "folds hold whole windows, each a group of its own" in notes
    of_one = "folds hold whole groups, each of which counts as one recording"
    recording = np.arange(len(own["y"])) // 2
    for arrays, note in (
        (own, of_one),
        (own | {"recording": recording}, "folds hold whole groups"),
    ):
        assert note in quick(arrays, **settings)[0].attrs["notes"]["linear-probe"]


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="needs NumPy 2")
def test_text_of_numpys_string_type(own):
    settings = {"methods": QUICK, "protocols": ["linear-probe"], "n_seeds": 1}
    text = {"y": own["y"], "groups": own["groups"].astype(str)}
    modern = {name: values.astype(np.dtypes.StringDType()) for name, values in text.items()}
    cut = sliding_windows(list(own["X"]), 20, **modern)
    assert cut.y.tolist() == own["y"].tolist()
    frames = [quick(own | given, **settings)[0] for given in (text, modern)]
    pd.testing.assert_frame_equal(*frames)


def test_a_method_that_fails_is_named(own, monkeypatch):
    def fail(self, X, y=None):
        raise RuntimeError("no luck")

    monkeypatch.setattr(StatisticsTransformer, "fit", fail)
    for verbose in (False, True):  # the estimate fails first
        with pytest.warns(UserWarning, match=r"1 of 2 runs failed.*statistics: .*no luck"):
            frame, _ = quick(own, protocols=["linear-probe"], verbose=verbose)
        assert set(frame["method"]) == {"majority class"}
    with pytest.raises(RuntimeError, match=r"No run succeeded.*no luck"):
        quick(own, methods=["statistics"], protocols=["linear-probe"])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"X": np.zeros(100)}, ValueError, r"X has shape \(100,\).*n_timesteps, n_channels"),
        ({"X": np.full((100, 5, 1), "a")}, TypeError, "X has dtype <U1: convert it"),
        ({"X": np.full((100, 5, 1), True)}, ValueError, "pass real numbers"),
        ({"X": [np.zeros((5 + i % 2, 1)) for i in range(100)]}, ValueError, "X is ragged"),
        ({"X": PANEL}, TypeError, "X is a frame with a MultiIndex"),
        ({"y": np.zeros(99, int)}, ValueError, r"y has shape \(99,\) for 100 windows"),
        ({"y": np.zeros(100)}, ValueError, "only classification is compared: pass classes"),
        ({"y": np.zeros(100, int)}, ValueError, "at least 2 classes"),
        ({"y": np.arange(100) % 2 - 1}, ValueError, "marks unlabelled windows by -1"),
        ({"y": ["-1", "1"] * 50}, ValueError, "by -1.*or give the class another name"),
        ({"groups": np.zeros(99)}, ValueError, "groups"),
        ({"groups": np.arange(100) % 2}, ValueError, "2 groups are too few"),
        ({"y": [*"ab" * 49, "a", np.nan]}, ValueError, r"lacks the label of 1 windows.*window 99"),
        ({"y": [*"ab" * 49, "a", -1]}, ValueError, "marks unlabelled windows by -1"),
        ({"recording": np.zeros(3)}, ValueError, r"recording has shape \(3,\)"),
        ({"recording": [None, *"a" * 99]}, ValueError, r"recording is missing for 1 window"),
        ({"start": np.zeros(100)}, ValueError, "start has shape .* and type float64"),
        ({"start": np.ma.masked_equal(np.arange(100), 3)}, ValueError, "masked for 1 w.*window 3"),
        ({"methods": ["best"]}, ValueError, "each of methods must be one of"),
        ({"methods": "pulse"}, TypeError, "methods must be a list of names"),
        ({"methods": []}, TypeError, "methods must be a list of names"),
        ({"methods": ["oracle-positive"]}, ValueError, "oracle-positive are in none of"),
        ({"protocols": ["synthetic"]}, ValueError, "each of protocols must be one of"),
        ({"budget": "huge"}, ValueError, "budget must be one of"),
        ({"split": "train"}, ValueError, "split must be one of"),
        ({"n_seeds": 0}, ValueError, "n_seeds must be an integer of at least 1"),
        ({"n_seeds": 1.5}, TypeError, "n_seeds must be an integer of at least 1"),
        ({"n_jobs": 0, "verbose": True}, ValueError, "n_jobs must be None"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be None"),
        ({"verbose": 2}, TypeError, "verbose must be True or False"),
    ],
)
def test_bad_input_is_named(own, changes, error, message):
    with pytest.raises(error, match=message):
        quick(own, **changes)


def test_values_beyond_float32_are_named(own):
    with pytest.warns(UserWarning, match=r"statistics: .*too large for float32") as caught:
        frame, _ = quick(own, X=own["X"].astype(float) * 1e300, protocols=["linear-probe"])
    assert set(frame["method"]) == {"majority class"}
    assert len(caught) == 1


def test_every_fold_holds_windows_where_classes_are_those_of_people(own):
    """Scikit-learn's stratified folds of these groups leave one of five empty."""
    people = np.array([*[0, 1, 2] * 20, 3, 4, 5])
    y = np.where(people == 5, 0, people)
    X = np.random.default_rng(0).normal(size=(len(y), 20, 1)) + y[:, None, None]
    frame, _ = quick({"X": X, "y": y, "groups": people}, protocols=["linear-probe"], n_seeds=5)
    whole = frame.query("metric == 'accuracy'")
    assert whole["n_seeds"].tolist() == [5, 5]


def test_a_class_of_few_people_is_divided_at_once(own, monkeypatch):
    """No shuffle puts the windows of two people into more than two folds."""
    shuffles = []

    class Counted(StratifiedGroupKFold):
        def split(self, X, y=None, groups=None):
            shuffles.append(self.random_state)
            return super().split(X, y, groups)

    monkeypatch.setattr("sklearn_pulse.benchmark._task.StratifiedGroupKFold", Counted)
    people = own["groups"]
    y = np.where(np.isin(people, [3, 7]), 2, np.arange(100) % 2)
    frame, _ = quick(own, y=y, methods=["majority"], protocols=["linear-probe"], n_seeds=1)
    assert len(frame)
    assert len(shuffles) < 10


def test_fewer_windows_of_each_class_than_folds(own):
    frame, _ = quick(own, y=np.arange(100) % 50, protocols=["linear-probe"], n_seeds=5)
    assert set(frame.query("metric == 'accuracy'")["n_seeds"]) == {5}


def test_a_score_with_other_settings_is_not_that_of_a_run_that_failed(own, tmp_path, monkeypatch):
    settings = {"protocols": ["linear-probe"], "out": tmp_path}
    quick(own, **settings)
    monkeypatch.setattr("sklearn_pulse.benchmark._trial.__version__", "another")

    def fail(*args, **kwargs):
        raise ValueError("no luck")

    monkeypatch.setattr(StatisticsTransformer, "fit", fail)
    with pytest.warns(UserWarning, match="1 of 2 runs failed and are left out"):
        frame, _ = quick(own, **settings)
    assert set(frame["method"]) == {"majority class"}


@pytest.mark.parametrize("package", ["pandas", "matplotlib"])
def test_what_the_result_needs_is_missed_before_the_runs(own, tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"needs pandas and matplotlib.*\[benchmark\]"):
        quick(own, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_pictures")
def test_a_tilde_is_the_home_of_the_user(own, tmp_path, monkeypatch):
    """A shell leaves that of ``--out=~/results`` as it is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my windows").mkdir()
    folder_of_arrays(own, tmp_path / "my windows")
    quick(own, protocols=["linear-probe"], out="~/compared")
    assert len(list(Results("~/compared"))) == 2
    assert add_files("~/my windows", "~/added").startswith("own-my-windows-")
    command = "linear-probe --method statistics --budget smoke --out=~/run --dataset".split()
    assert main([*command, "~/my windows"]) == 0
    assert main(["report", "--out=~/run"]) == 0
    assert not (tmp_path / "~").exists()


def test_a_folder_has_its_whole_name(own, tmp_path, monkeypatch):
    folder = tmp_path / "run-1.5"
    folder.mkdir()
    folder_of_arrays(own, folder)
    assert add_files(folder, tmp_path / "out").startswith("own-run-1-5-")
    monkeypatch.chdir(folder)
    assert add_files(".", tmp_path / "out") == add_files(folder, tmp_path / "out")


@pytest.mark.usefixtures("few_penalties")
def test_a_long_name_is_cut(own, tmp_path):
    """Names of locks and of embeddings hold that of the data set, and have at most 255 bytes."""
    folder = tmp_path / ("\N{LATIN SMALL LETTER E WITH ACUTE}" * 120)
    folder.mkdir()
    folder_of_arrays(own, folder)
    command = "comparison --method statistics --budget smoke --seeds 1 --dataset".split()
    assert main([*command, str(folder), "--out", str(tmp_path / "out")]) == 0


def test_masked_steps_are_missing(own):
    masked = np.ma.masked_array(own["X"].copy(), np.zeros(own["X"].shape, dtype=bool))
    masked[:, -4:] = 1e4
    masked[:, -4:] = np.ma.masked
    settings = {"methods": ["statistics"], "protocols": ["linear-probe"], "n_seeds": 1}
    frames = [quick(own, X=X, **settings)[0] for X in (masked, masked.filled(np.nan))]
    assert frames[0]["mean"].tolist() == frames[1]["mean"].tolist()


def test_bad_files_are_named(own, tmp_path, capsys):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match=r"empty: it holds no windows: pass a folder of X.npy"):
        add_files(empty, tmp_path / "out")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        add_files(tmp_path / "nowhere", tmp_path / "out")
    np.save(empty / "X.npy", own["X"])
    with pytest.raises(ValueError, match="y is missing"):
        add_files(empty, tmp_path / "out")
    np.savez(empty / "more.npz", X=own["X"])
    with pytest.raises(ValueError, match=r"it holds \.npy and \.npz"):
        add_files(empty, tmp_path / "out")
    (empty / "X.npy").unlink()
    np.savez(empty / "other.npz", X=own["X"], y=own["y"])
    with pytest.raises(ValueError, match=r"more\.npz lacks y, which other files hold"):
        add_files(empty, tmp_path / "out")
    np.savez(empty / "more.npz", X=np.array([{}]), y=own["y"])
    with pytest.raises(ValueError, match="pickle"):
        add_files(empty, tmp_path / "out")
    np.savez(empty / "more.npz", X=own["X"], y=own["y"].astype(object))
    with pytest.raises(ValueError, match=r"more\.npz is no complete.*pickle.*astype\(str"):
        add_files(empty, tmp_path / "out")
    (empty / "other.npz").unlink()
    for content in (b"", b"PK no archive", b"\x93NUMPY\x01\x00"):
        (empty / "more.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"more\.npz is no complete file of numpy\.savez"):
            add_files(empty, tmp_path / "out")
    (empty / "more.npz").unlink()
    np.savez(empty / "more.npz", X=own["X"], y=own["y"])
    content = (empty / "more.npz").read_bytes()
    place = content.rindex(b"PK\5\6") + 12  # size and place of the directory, four bytes each
    content = content[:place] + b"\xff\xff\xff\x7f" + content[place + 4 :]
    (empty / "more.npz").write_bytes(content)  # once an invalid argument
    with pytest.raises(ValueError, match=r"more\.npz is no complete file of numpy\.savez"):
        add_files(empty, tmp_path / "out")
    (empty / "more.npz").unlink()
    (empty / "X.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"X\.npy is no complete file of numpy\.save:"):
        add_files(empty, tmp_path / "out")
    (empty / "X.npy").write_bytes(b"PAR1")
    with pytest.raises(
        ValueError, match=r"X\.npy is no complete.* numpy\.save: it begins otherwise"
    ):
        add_files(empty, tmp_path / "out")
    np.save(empty / "X.npy", own["X"])
    (empty / "X.npy").write_bytes((empty / "X.npy").read_bytes()[:500])
    with pytest.raises(ValueError, match=r"X\.npy is no complete file.* file size\. Save text"):
        add_files(empty, tmp_path / "out")
    np.save(empty / "X.npy", own["X"])
    np.save(empty / "y.npy", own["y"].astype(object))
    with pytest.raises(ValueError, match=r"y\.npy is no complete.*Python objects.*astype\(str"):
        add_files(empty, tmp_path / "out")
    assert main(["linear-probe", "--dataset", "nowhere", "--out", str(tmp_path)]) == 2
    assert "'nowhere' is neither one of har" in capsys.readouterr().err
    assert main(["synthetic", "--dataset", str(empty), "--out", str(tmp_path)]) == 2
    assert "error" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["end", "page"])
def test_a_damaged_parquet_file_is_named(own, tmp_path, damage):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"X": [list(x[:, 0]) for x in own["X"]], "y": own["y"]})
    frame.to_parquet(tmp_path / "steps.parquet")
    content = (tmp_path / "steps.parquet").read_bytes()
    content = content[:-9] if damage == "end" else content[:4] + b"\xff" * 40 + content[44:]
    (tmp_path / "steps.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"steps\.parquet is no complete Parquet file"):
        add_files(tmp_path, tmp_path / "out")


def test_files_of_several_kinds_or_lengths_are_named(own, tmp_path):
    """Where one file lacks a label and another has one too many, all later labels are shifted."""
    folder = tmp_path / "mine"
    folder.mkdir()
    first, last = ({name: values[s] for name, values in own.items()} for s in HALVES)
    shifted = {"y": own["y"][:49]}, {"y": own["y"][49:]}
    short = {}, {"X": last["X"][:, :-1]}
    mixed = {"y": np.arange(50) % 2}, {}
    for (changed, too), message in (
        (shifted, r"0\.npz: y has shape \(49,\), but X has shape \(50, .*one entry per window"),
        (short, r"1\.npz: X has shape .* in the first file: cut all windows to one length"),
        (mixed, r"1\.npz: y is text in some files, and numbers in others"),
    ):
        np.savez(folder / "0.npz", **(first | changed))
        np.savez(folder / "1.npz", **(last | too))
        with pytest.raises(ValueError, match=message):
            add_files(folder, tmp_path / "out")


@pytest.mark.parametrize("index", [["groups"], ["groups", "start"], ["y"]])
def test_the_index_of_a_table_is_read_by_its_names(own, tmp_path, index):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(own | {"X": [window.tolist() for window in own["X"]]})
    frame.to_parquet(tmp_path / "steps.parquet")
    plain = add_files(tmp_path / "steps.parquet", tmp_path / "out")
    frame.set_index(index).to_parquet(tmp_path / "steps.parquet")
    assert add_files(tmp_path / "steps.parquet", tmp_path / "out") == plain


def test_windows_of_several_lengths_in_a_table_are_named(own, tmp_path):
    pytest.importorskip("pyarrow")
    windows = [window[: 20 - i % 2].tolist() for i, window in enumerate(own["X"])]
    pd.DataFrame(own | {"X": windows}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet: X is ragged .*cut all windows to one"):
        add_files(tmp_path / "a.parquet", tmp_path / "out")
    for null in (None, [None, *windows[0][1:]]):
        whole = [null, *(window.tolist() for window in own["X"][1:])]
        pd.DataFrame(own | {"X": whole}).to_parquet(tmp_path / "a.parquet")
        with pytest.raises(ValueError, match=r"a\.parquet: X .*step is null.*NaN in every chan"):
            add_files(tmp_path / "a.parquet", tmp_path / "out")


def test_a_table_without_windows_is_named(own, tmp_path):
    """As of a person whose windows were all left out."""
    pytest.importorskip("pyarrow")
    folder_of_tables(own, tmp_path)
    columns = {name: values[:0] for name, values in own.items()} | {"X": []}
    pd.DataFrame(columns).to_parquet(tmp_path / "ben.parquet")
    with pytest.raises(ValueError, match=r"ben\.parquet holds no window: remove it"):
        add_files(tmp_path, tmp_path / "out")


@pytest.mark.parametrize("kind", [">i4", ">U4"])
def test_labels_of_every_byte_order(own, kind):
    y = own["y"] if kind == ">U4" else np.unique(own["y"], return_inverse=True)[1]
    settings = {"protocols": ["linear-probe"], "n_seeds": 1}
    frames = [quick(own, y=labels, **settings)[0] for labels in (y, y.astype(kind))]
    pd.testing.assert_frame_equal(*frames)


def test_windows_in_a_results_folder_are_for_whom_the_folder_is(own, tmp_path):
    dataset = add_arrays(tmp_path, "mine", **own)
    (tmp_path / "new").mkdir()
    assert (tmp_path / "data" / dataset).stat().st_mode == (tmp_path / "new").stat().st_mode


def test_windows_that_do_not_fit_the_disk_leave_no_file(own, tmp_path, monkeypatch):
    def full(path, array):
        raise OSError("no space left")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match="no space left"):
        quick(own, out=tmp_path)
    assert list((tmp_path / "data").iterdir()) == []


def test_a_damaged_array_that_was_deleted_is_written_again(own, tmp_path):
    """As the error about the damaged file asks for."""
    dataset = add_arrays(tmp_path, "mine", **own)
    (tmp_path / "data" / dataset / "X.npy").unlink()
    assert add_arrays(tmp_path, "mine", **own) == dataset
    np.testing.assert_array_equal(np.load(tmp_path / "data" / dataset / "X.npy"), own["X"])
    assert [path.name for path in (tmp_path / "data").iterdir()] == [dataset]


@pytest.mark.parametrize("part", ["X", "y"])
def test_windows_that_were_changed_in_the_results_folder_are_refused(own, tmp_path, part):
    """Their scores would stand beside those of the windows that were stored."""
    dataset = add_arrays(tmp_path, "mine", **own)
    file = tmp_path / "data" / dataset / f"{part}.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1  # as a failing disk does
    file.write_bytes(content)
    cells = plan(["linear-probe"], datasets=[dataset], methods=["majority"], n_seeds=1)
    (outcome,) = run(cells, Execution(tmp_path))
    assert outcome.state == "failed"
    assert f"{dataset} does not hold the windows that were stored in it" in outcome.message
    shutil.rmtree(file.parent)
    assert add_arrays(tmp_path, "mine", **own) == dataset
    (outcome,) = run(cells, Execution(tmp_path))
    assert outcome.state == "finished"


def test_an_empty_data_folder_is_no_path():
    with pytest.raises(ValueError, match="data_home must be a path"):
        Execution(Path("out"), data_home="")


@pytest.mark.xdist_group("workers")
def test_processes_of_another_working_folder_find_the_results(own, tmp_path, monkeypatch):
    """joblib's processes live on, in the folder where this process was when they were started."""
    joblib.Parallel(2)(joblib.delayed(os.getpid)() for _ in range(4))
    monkeypatch.chdir(tmp_path)
    frame, _ = quick(own, protocols=["linear-probe"], out="out", n_jobs=2)
    assert set(frame["method"]) == {"channel statistics", "majority class"}
    execution = Execution(Path("out"), data_home="recordings")
    assert execution.data_home == str(tmp_path / "recordings")
    monkeypatch.setenv("SKLEARN_PULSE_DATA", "corpora")  # later than they were started, too
    assert Execution(Path("out")).data_home == str(tmp_path / "corpora")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux")
def test_no_file_of_the_windows_stays_open(own):
    before = mapped_windows()
    quick(own, protocols=["linear-probe"])
    assert mapped_windows() <= before


def mapped_windows():
    """Return the files X.npy that this process holds open."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.split(maxsplit=5)[5] for line in lines if "X.npy" in line}  # deleted ones too


def test_a_folder_that_is_called_like_a_public_data_set_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "har").mkdir()
    arguments = ["linear-probe", "--dataset", "har", "--method", "majority", "--budget", "smoke"]
    assert main([*arguments, "--out", "out", "--data-home", "nothing"]) == 1
    assert "har is the public data set; for your folder of this name write ./har" in (
        capsys.readouterr().err
    )


def test_a_full_disk_is_told(own, tmp_path, monkeypatch):
    monkeypatch.setattr(np, "save", lambda *args: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(OSError, match=f"cannot be stored in {tmp_path}.*No space.*make room there"):
        add_arrays(tmp_path, "mine", **own)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
