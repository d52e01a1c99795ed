"""Estimators of the user in the comparison: a row like any other, found again if it is the same."""

import importlib
import pickle
import re
import sys
import tempfile
import threading
import uuid
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.parallel import Parallel
from skorch.callbacks import Callback

from sklearn_pulse import CrossPredictionTransformer, PulseOracleTransformer
from sklearn_pulse.baselines import RandomEncoderTransformer
from sklearn_pulse.benchmark import Execution, Results, compare
from sklearn_pulse.benchmark.__main__ import main
from sklearn_pulse.benchmark._methods import StatisticsControl
from sklearn_pulse.benchmark._own import own_task
from sklearn_pulse.benchmark._tasks import load_once
from sklearn_pulse.features import StatisticsTransformer

from ..toy_method import DenoisedMeanTransformer
from .toy import load_toy

EVERY = ["linear-probe", "label-efficiency", "labelled-people", "comparison"]


@pytest.fixture(scope="module")
def own():
    """Windows, labels, people and starts: ten people, ten windows each."""
    task = load_toy()
    start = np.tile(np.arange(10) * 20, 10)
    return {"X": task.X, "y": task.y, "groups": task.groups, "start": start}


def quick(own, *methods, **changes):
    settings = {"protocols": ["linear-probe"], "budget": "smoke", "verbose": False}
    return compare(**(own | {"methods": methods} | settings | changes))


def flat(X):
    """Return windows as rows of a table."""
    return X.reshape(len(X), -1)


class Means(TransformerMixin, BaseEstimator):
    """Means of channels, which notes what it is given."""

    fits = []  # arguments of all fits in this process
    seen = []  # what was transformed

    def __init__(self, scale=1.0, random_state=None):
        self.scale = scale
        self.random_state = random_state

    def fit(self, X, y=None, groups=None, start=None):
        self.fits.append((X, y, groups, start, self.random_state))
        self.n_features_in_ = X.shape[-1]
        return self

    def transform(self, X):
        self.seen.append(X)
        return self.scale * X.mean(axis=1)


@pytest.fixture(autouse=True)
def _nothing_noted():
    Means.fits.clear()
    Means.seen.clear()


def scores(frame, title):
    """Return mean and spread of each metric of a row of the tables."""
    of_title = frame[frame["method"] == title].set_index(["protocol", "metric"])
    return of_title[["n_seeds", "mean", "spread"]]


@pytest.mark.usefixtures("few_penalties")
@pytest.mark.parametrize(
    ("known", "title", "estimator", "protocols"),
    [
        ("statistics", "channel statistics", StatisticsControl(), EVERY),
        (
            "untrained",
            "untrained encoder",
            make_pipeline(RandomEncoderTransformer(random_state=7)),
            ["label-efficiency"],
        ),
        (
            "cross-prediction",
            "cross-prediction",
            CrossPredictionTransformer(),
            ["label-efficiency"],
        ),
    ],
    ids=["statistics", "seeded inside", "with recordings"],
)
def test_a_control_in_other_clothes_has_the_scores_of_the_control(
    own, known, title, estimator, protocols
):
    frame, display = quick(own, known, ("mine", estimator), protocols=protocols, n_seeds=1)
    ours, theirs = scores(frame, "mine"), scores(frame, title)
    assert len(ours) > 20 if protocols is EVERY else len(ours)
    pd.testing.assert_frame_equal(ours, theirs)
    assert not frame.loc[frame["method"] == "mine", "control"].any()
    np.testing.assert_array_equal(display.scores["mine"], display.scores[title])


def test_it_sees_the_training_windows_and_their_recordings_but_no_label(own, tmp_path):
    quick(own, ("mine", Means(random_state=5)), n_seeds=2, out=tmp_path)
    dataset = next((tmp_path / "data").iterdir()).name
    assert len(Means.fits) == 2
    for seed, (X, y, groups, start, random_state) in enumerate(Means.fits):
        task = own_task(dataset, seed, Execution(tmp_path))
        rows = task.rows("train")
        np.testing.assert_array_equal(X, task.X[rows])
        assert y is None
        np.testing.assert_array_equal(groups, task.groups[rows])
        np.testing.assert_array_equal(start, task.start[rows])
        assert random_state == seed
        assert len(Means.seen[seed]) == len(rows) + len(task.rows("val"))


def test_one_channel_is_an_axis_too(own):
    quick(own | {"X": own["X"][..., 0].astype(float)}, ("mine", Means()), n_seeds=1)
    ((X, *_),) = Means.fits
    assert X.shape == (60, 20, 1) and X.dtype == np.float32


def test_a_pipeline_of_tables_begins_with_a_flat_step(own):
    pipeline = make_pipeline(FunctionTransformer(flat), PCA(4))
    frame, _ = quick(own, ("principal components", pipeline), n_seeds=1)
    assert frame["method"].unique().tolist() == ["principal components"]
    with pytest.raises(RuntimeError, match=r"The first error: table: ValueError: .*dim 3"):
        quick(own, ("table", PCA(4)), n_seeds=1)


def test_a_training_of_its_own_has_no_budget(own):
    mine = DenoisedMeanTransformer(
        embedding_dim=8, encoder_hidden_dim=8, encoder_depth=2, max_epochs=3, num_threads=1
    )
    Noted.epochs.clear()
    quick(own, ("mine", mine.set_params(callbacks=[Noted()])), n_seeds=1)
    assert len(Noted.epochs) == 3  # the budget has one


class Noted(Callback):
    """Callback that notes each epoch in this process."""

    epochs = []

    def on_epoch_end(self, net, **kwargs):
        self.epochs.append(net.history[-1, "epoch"])


def test_finished_runs_are_reused_if_the_estimator_is_the_same(own, tmp_path, capsys):
    frames = [quick(own, ("mine", Means(2.0)), n_seeds=2, out=tmp_path)[0] for _ in range(2)]
    assert len(Means.fits) == 2
    pd.testing.assert_frame_equal(*frames)
    quick(own, ("mine", Means(2.0, random_state=1)), n_seeds=3, out=tmp_path)
    assert len(Means.fits) == 3  # the seed is set, and a third run is new
    other, _ = quick(own, ("mine", Means(1e-9)), n_seeds=1, out=tmp_path)
    assert len(Means.fits) == 4
    assert set(other["n_seeds"]) == {1}  # no run of the other parameters
    assert main(["report", "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    lines = re.findall(r"^\| mine \((\w{12})\) \| (\d) \|", text, re.MULTILINE)
    assert sorted(n_seeds for _, n_seeds in lines) == ["1", "3"]
    assert len({digest for digest, _ in lines}) == 2


def test_the_progress_line_has_the_name_that_the_user_gave(own, capsys):
    quick(own, ("mine", Means()), n_seeds=1, verbose=True)
    shown = capsys.readouterr().err
    assert "linear-probe data mine seed 0" in shown
    assert "outside-" not in shown and "own-" not in shown


def test_the_report_and_its_picture_show_it(own, tmp_path, capsys, monkeypatch):
    _, display = quick(
        own, "majority", ("mine", Means()), protocols=["label-efficiency"], n_seeds=1, out=tmp_path
    )
    assert [*display.scores] == ["mine"]
    drawn = []
    monkeypatch.setattr(
        "sklearn_pulse.benchmark._report.draw", lambda table, path: drawn.append(table)
    )
    assert main(["report", "--out", str(tmp_path)]) == 0
    assert re.search(r"^\| mine \| 1 \| .*\d", capsys.readouterr().out, re.MULTILINE)
    assert [method.title for method in drawn[0].methods] == ["majority class", "mine"]


def write_module(folder, name, text):
    """Write a module of the user's, and load it anew."""
    (folder / f"{name.replace('.', '/')}.py").write_text(text)
    importlib.invalidate_caches()
    sys.modules.pop(name, None)
    return importlib.import_module(name)


MODULE = """
from tests.benchmark.test_outside import Means
from {helper} import factor

class Mine(Means):
    def transform(self, X):
        return factor() * super().transform(X)
"""


@pytest.mark.parametrize("helper", ["their_helper", "their_folder.helper", "wave"])
def test_finished_runs_of_changed_code_are_not_reused(own, tmp_path, monkeypatch, helper):
    """Also where a module of the user has the name of one of Python's."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, helper, None)  # so that it is forgotten afterwards
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two versions within a second
    (tmp_path / "their_folder").mkdir()  # without an __init__.py
    n_fits = []
    for factor in (1, 1, 2):
        write_module(tmp_path, helper, f"def factor():\n    return {factor}\n")
        mine = write_module(tmp_path, "their_method", MODULE.format(helper=helper)).Mine()
        quick(own, ("mine", mine), n_seeds=1, out=tmp_path / "out")
        n_fits.append(len(Means.fits))
    assert n_fits == [1, 1, 2]


def test_processes_are_started_anew_for_code_of_the_user(own, monkeypatch):
    """They would keep its modules as they were first loaded."""
    ended = []
    executor = SimpleNamespace(shutdown=lambda: ended.append(1))
    for name, value in (
        ("get_reusable_executor", lambda: executor),
        ("Parallel", lambda n_jobs, **settings: Parallel(1, **settings)),  # none is started here
    ):
        monkeypatch.setattr(f"sklearn_pulse.benchmark._run.{name}", value)
    for methods, n_jobs in ((["majority"], 2), ([("mine", Means())], 1)):
        quick(own, *methods, n_seeds=1, n_jobs=n_jobs)
        assert not ended
    quick(own, ("mine", Means()), n_seeds=1, n_jobs=2)
    assert ended == [1]


@pytest.mark.slow  # the test above and that of another working folder, in test_own, are quick
@pytest.mark.xdist_group("workers")
def test_processes_run_the_changed_code_and_their_number_changes_nothing(
    own, tmp_path, monkeypatch
):
    """In one test, since the processes are started anew by each comparison."""
    monkeypatch.syspath_prepend(tmp_path)
    means = []
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(RoutedGroups().set_fit_request(groups=True))
        for factor in ("0", "1.0"):  # of different lengths: two versions within a second
            write_module(tmp_path, "their_helper", f"def factor():\n    return {factor}\n")
            module = write_module(tmp_path, "their_method", MODULE.format(helper="their_helper"))
            methods = [("mine", module.Mine())]
            if factor != "0":
                methods += [("routed", routed), ("other", RandomEncoderTransformer())]
            frame, _ = quick(own, *methods, n_seeds=2, n_jobs=2, out=tmp_path / "out")
            means.append(frame.set_index(["method", "metric"])["mean"]["mine", "auroc"])
        here, _ = quick(own, *methods, n_seeds=2)
    pd.testing.assert_frame_equal(frame, here)
    assert set(frame["method"]) == {"mine", "routed", "other"}
    assert means[0] == 0.5 != means[1]


def test_code_that_is_imported_later_counts_too(own, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    late = MODULE.replace("from {helper} import factor\n", "").replace(
        "        return factor()", "        from their_late import factor\n        return factor()"
    )
    n_fits = []
    for factor in (1, 1, 2):
        mine = write_module(tmp_path, "their_method", late).Mine()
        (tmp_path / "their_late.py").write_text(f"def factor():\n    return {factor}\n")
        sys.modules.pop("their_late", None)  # as in another process
        quick(own, ("mine", mine), n_seeds=1, out=tmp_path / "out")
        n_fits.append(len(Means.fits))
    assert n_fits == [1, 1, 2]


def test_an_import_that_cannot_be_found_is_no_error(own, tmp_path, monkeypatch):
    """A module may be a part of a larger package, or stand alone."""
    monkeypatch.syspath_prepend(tmp_path)
    guarded = """
try:
    from ..utils import factor
except ImportError:
    def factor():
        return 1
"""
    text = MODULE.replace("from {helper} import factor\n", guarded)
    mine = write_module(tmp_path, "their_alone", text).Mine()
    frame, _ = quick(own, ("mine", mine), n_seeds=1)
    assert frame["mean"].notna().all()


def test_no_window_is_mapped_when_the_folder_goes(own, monkeypatch):
    """A file that is mapped cannot be deleted everywhere."""
    held = []

    class Folder(tempfile.TemporaryDirectory):
        def cleanup(self):
            held.append(load_once.cache_info().currsize)
            super().cleanup()

        def __exit__(self, *error):
            self.cleanup()

    monkeypatch.setattr("sklearn_pulse.benchmark._compare.tempfile.TemporaryDirectory", Folder)
    quick(own, ("mine", Means()), n_seeds=1)
    assert held == [0]


def test_without_a_digest_nothing_is_reused(own, tmp_path):
    class Local(Means):
        pass

    for _ in range(2):
        with pytest.warns(UserWarning, match="runs of 'mine' are not reused.*cannot be pickled"):
            quick(own, ("mine", Local()), n_seeds=1, out=tmp_path)
    assert len(Means.fits) == 2
    quick(own, ("mine", Local()), n_seeds=1)  # nothing is kept, and nothing said


def test_code_of_a_script_has_no_digest(own, tmp_path, monkeypatch):
    monkeypatch.setattr(Means, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Means", Means, raising=False)
    with pytest.warns(UserWarning, match="code of it is in __main__"):
        quick(own, ("mine", Means()), n_seeds=1, out=tmp_path)


def test_frozen_weights_are_told_apart(own, tmp_path):
    for windows in (own["X"], own["X"], own["X"][:50]):
        step = FrozenEstimator(PCA(4).fit(flat(windows)))
        kept = make_pipeline(FunctionTransformer(flat), step)
        quick(own, ("kept", kept), n_seeds=1, out=tmp_path)
    assert len(list(Results(tmp_path))) == 2


def test_a_frozen_network_is_known_by_its_weights(own, tmp_path, recwarn):
    network = RandomEncoderTransformer(random_state=0)
    expected, _ = quick(own, ("mine", network), n_seeds=1)
    network.fit(own["X"])
    for one in (network, pickle.loads(pickle.dumps(network))):
        frame, _ = quick(own, ("mine", FrozenEstimator(one)), n_seeds=1, out=tmp_path)
        pd.testing.assert_frame_equal(frame, expected)
        assert len(list(Results(tmp_path))) == 1
    other = FrozenEstimator(RandomEncoderTransformer(random_state=1).fit(own["X"]))
    quick(own, ("mine", other), n_seeds=1, out=tmp_path)
    assert len(list(Results(tmp_path))) == 2
    assert not [warning for warning in recwarn if "not reused" in str(warning.message)]


class Draws(StatisticsTransformer):
    """Statistics of which each copy has a number of its own."""

    def __setstate__(self, state):
        super().__setstate__(state)
        self.number_ = uuid.uuid4().hex


def test_an_estimator_whose_copies_differ_is_not_reused(own, tmp_path):
    with pytest.warns(UserWarning, match="'mine' are not reused.*as if each copy drew a number"):
        frozen = FrozenEstimator(Draws().fit(own["X"]))
        quick(own, ("mine", frozen), n_seeds=1, out=tmp_path)


class RoutedGroups(StatisticsTransformer):
    """Statistics that are nothing unless groups come through the pipeline."""

    def fit(self, X, y=None, groups=None):
        if groups is None:
            raise ValueError("no groups")
        return super().fit(X)


class OfPeople(StatisticsTransformer):
    """Statistics that note what `fit` is told of the windows."""

    told: ClassVar[list] = []

    def fit(self, X, y=None, groups=None, recording=None, start=None):
        self.told.append((groups, recording, start))
        return super().fit(X)


def test_a_method_is_told_people_and_their_recordings(own, tmp_path):
    OfPeople.told.clear()
    recording = np.arange(100) // 5
    known = own | {"recording": recording, "start": np.arange(100) % 5}
    quick(known, ("mine", OfPeople()), n_seeds=1, out=tmp_path)
    groups, recordings, start = OfPeople.told[0]
    of_each = {(g, r) for g, r in zip(groups, recordings, strict=True)}
    assert len(np.unique(recordings)) == len(of_each) == 2 * len(np.unique(groups))
    assert set(start) == {*range(5)}


class Wrong(TransformerMixin, BaseEstimator):
    """Transformer whose output is wrong in a given way."""

    def __init__(self, change):
        self.change = change

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return self.change(X.mean(axis=1))


def with_nan(Z):
    Z[3:5, 0] = np.nan
    return Z


def without_a_row(Z):
    return Z[1:]


def of_one_axis(Z):
    return Z[:, 0]


def as_text(Z):
    return Z.astype(str)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_nan, r"gives NaN or infinity for 2 of 80 windows \(first window 3\)"),
        (without_a_row, r"gives shape \(79, 6\) and type float32 for 80 windows"),
        (of_one_axis, r"gives shape \(80,\).*with a row of features per window"),
        (as_text, "type <U.*array of real numbers"),
        (csr_array, "return a dense array"),
    ],
)
def test_a_wrong_output_is_named(own, change, message):
    with pytest.raises(RuntimeError, match=rf"No run succeeded.*mine: ValueError: .*{message}"):
        quick(own, ("mine", Wrong(change)), n_seeds=1)


@pytest.mark.usefixtures("few_penalties")
def test_frames_and_counts_are_arrays_of_numbers(own):
    settings = {"protocols": ["comparison"], "n_seeds": 1}  # it stores embeddings
    expected, _ = quick(own, ("mine", Wrong(np.rint)), **settings)
    for change in (pd.DataFrame, as_counts):
        change = FunctionTransformer(change)
        frame, _ = quick(own, ("mine", make_pipeline(Wrong(np.rint), change)), **settings)
        pd.testing.assert_series_equal(frame["mean"], expected["mean"])


def as_counts(Z):
    return Z.astype(int)


class Uncopied(Means):
    """Estimator whose constructor changes a parameter."""

    def __init__(self, scale=1.0, random_state=None):
        super().__init__(scale + 1.0, random_state)


class Unsent(Means):
    """Estimator that cannot go to another process."""

    def __reduce_ex__(self, protocol):
        raise TypeError("stays here")


@pytest.mark.parametrize(
    ("method", "error", "message"),
    [
        (Means(), TypeError, r"a name, or a pair of a name and an estimator.*got Means\(\)"),
        (("mine",), TypeError, r"a name, or a pair.*got \('mine',\)"),
        (("mine", Means(), 3), TypeError, r"a name, or a pair"),
        ((3, Means()), TypeError, "the first part of each pair must be the name of its row, got 3"),
        (("", Means()), ValueError, "'' names files too: take 1 to 60 letters"),
        (("a/b", Means()), ValueError, "'a/b' names files too"),
        (("x" * 61, Means()), ValueError, "names files too"),
        (("pulse", Means()), ValueError, "'pulse' is the name of another method.*take a new"),
        (("minirocket", Means()), ValueError, "'minirocket' is the name of another method"),
        (("Channel Statistics", Means()), ValueError, "is the name of another method"),
        (("mine", Means), TypeError, r"'mine' is .*a class: pass an estimator, such as Means\(\)"),
        (("mine", "statistics"), TypeError, "'mine' is 'statistics', which has no method fit"),
        (("mine", LogisticRegression()), TypeError, "no method transform: pass a transformer"),
        (
            ("mine", make_pipeline(Means(), LogisticRegression())),
            TypeError,
            r"no method transform.*pass pipeline\[:-1\]",
        ),
        (("mine", PulseOracleTransformer()), ValueError, "which needs labels to fit"),
        (("mine", Uncopied()), TypeError, "scikit-learn's clone cannot copy.*only stores"),
        (("mine", Means(threading.Lock())), TypeError, "clone cannot copy"),
        (
            ("mine", Means().fit(np.zeros((2, 3, 1)))),
            ValueError,
            r"fitted.*pass clone\(estimator\)",
        ),
        (
            ("mine", make_pipeline(Means().fit(np.zeros((2, 3, 1))), FunctionTransformer(flat))),
            ValueError,
            "which is fitted",
        ),
    ],
)
def test_a_bad_method_is_named(own, method, error, message):
    with pytest.raises(error, match=message):
        quick(own, method)


def test_names_do_not_repeat(own):
    with pytest.raises(ValueError, match="'Mine' is the name of another method"):
        quick(own, ("mine", Means()), ("Mine", Means(2.0)))


@pytest.mark.xdist_group("workers")
def test_what_cannot_be_sent_to_a_process_is_named(own):
    quick(own, ("mine", Unsent()), n_seeds=1)
    with pytest.raises(TypeError, match="methods: an estimator cannot be sent.*n_jobs=1"):
        quick(own, ("mine", Unsent()), n_seeds=2, n_jobs=2)
