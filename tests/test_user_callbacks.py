"""Callbacks that people use, where they use them: in a fit, a clone, a search, two processes."""

import abc
import functools
import json
import os
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from skorch.callbacks import (
    BatchScoring,
    Callback,
    Checkpoint,
    EarlyStopping,
    EpochScoring,
    Freezer,
    LRScheduler,
    MlflowLogger,
    PrintLog,
    TensorBoard,
)
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau, StepLR

from sklearn_pulse import PulseTransformer
from sklearn_pulse.baselines import LFADSTransformer, SimCLRTransformer, SupervisedClassifier
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, callback_of, callbacks_of, make_windows
from tests.kills import killed

X, y = make_windows(12)
TINY = SMALL_PULSE | {"max_epochs": 3, "batch_size": 4, "validation_fraction": 0.25}


def pulse(*callbacks, **params):
    return PulseTransformer(**TINY | {"callbacks": list(callbacks)} | params)


# --- five callbacks in four places ---


class Writer:
    """What TensorBoard's writer is to a callback: it holds a lock and appends to a file."""

    def __init__(self, folder):
        self.lock = threading.Lock()
        self.path = Path(folder) / f"events.{os.getpid()}.{id(self)}"

    def add_scalar(self, tag, scalar_value, global_step):
        with self.lock, self.path.open("a") as log:
            log.write(json.dumps([tag, scalar_value, global_step]) + "\n")

    def close(self):
        pass


class Run:
    class info:  # as in MLflow
        run_id = "run"


class Client:
    """What MLflow's client is to a callback."""

    def __init__(self, folder):
        self.folder = folder

    def log_metric(self, run_id, key, value, step=None):
        with (Path(self.folder) / f"metrics.{os.getpid()}").open("a") as log:
            log.write(json.dumps([key, value, step]) + "\n")

    def set_terminated(self, run_id, status=None):
        pass


class Diary(Callback):
    """Write down the learning rate of each epoch, or None, in a line per fit.

    It comes first: at the end of training `Checkpoint` loads the history of the best epoch.
    """

    def __init__(self, folder):
        self.folder = folder

    def on_train_end(self, net, **kwargs):
        rates = [epoch.get("event_lr") for epoch in net.history]
        with (Path(self.folder) / f"diary.{os.getpid()}").open("a") as log:
            log.write(json.dumps(rates) + "\n")


def make_board(folder):
    return TensorBoard(Writer(folder))


def five(folder):
    return {
        "EarlyStopping": EarlyStopping(patience=1, threshold=1e9, threshold_mode="abs"),
        "TensorBoard": ("board", functools.partial(make_board, str(folder))),
        "MlflowLogger": MlflowLogger(run=Run(), client=Client(folder), create_artifact=False),
        "Checkpoint": Checkpoint(dirname=str(folder), load_best=True),
        "LRScheduler": LRScheduler(StepLR, step_size=1, gamma=0.1),
    }


def assert_acted(name, folder, n_fits):
    """Look for the files of a callback, and for what it did to the epochs of each fit."""
    logs = {"TensorBoard": "events*", "MlflowLogger": "metrics*", "Checkpoint": "params*"}
    assert name not in logs or any(folder.glob(logs[name]))
    rates = {"EarlyStopping": [None] * 2, "LRScheduler": pytest.approx([1e-3, 1e-4, 1e-5])}
    lines = [line for path in folder.glob("diary*") for line in path.read_text().splitlines()]
    assert len(lines) == n_fits
    for line in lines:
        assert json.loads(line) == rates.get(name, [None] * 3)


@pytest.mark.parametrize("name", five("."))
def test_in_a_fit_in_a_clone_and_in_another_process(name, tmp_path):
    def make():
        return pulse(Diary(tmp_path), five(tmp_path)[name], validation_every=1)

    sent = pickle.loads(pickle.dumps(make()))
    fitted = make().fit(X)
    for path in tmp_path.iterdir():
        path.unlink()
    for estimator in (make(), clone(make()), clone(fitted), sent):
        estimator.fit(X)
        assert_acted(name, tmp_path, n_fits=1)
        for path in tmp_path.iterdir():
            path.unlink()


# Fits side by side must not share a folder: skorch's Checkpoint may read what another one writes.
@pytest.mark.parametrize(
    ("n_jobs", "n_fits"), [(None, 2), pytest.param(2, 1, marks=pytest.mark.slow)]
)
def test_each_acts_in_a_search(tmp_path, n_jobs, n_fits):
    folders = [tmp_path / name for name in five(tmp_path)]
    for folder in folders:
        folder.mkdir()
    callbacks = [[Diary(folder), five(folder)[folder.name]] for folder in folders]
    search = GridSearchCV(
        make_pipeline(pulse(validation_every=1), LogisticRegression()),
        {"pulsetransformer__callbacks": callbacks},
        cv=list(KFold(2).split(X))[:n_fits],
        n_jobs=n_jobs,
        refit=False,
        error_score="raise",
    )
    search.fit(X, y)
    for folder in folders:
        assert_acted(folder.name, folder, n_fits=n_fits)


# --- what is measured ---


@pytest.mark.parametrize(
    "stopper", [EarlyStopping(patience=2), functools.partial(EarlyStopping, patience=2)]
)
def test_early_stopping_counts_what_was_measured(stopper):
    """A loss that every validation lowers never stops; a repeated one is no validation."""
    falling = pulse(stopper, validation_every=3, max_epochs=7, lr=1e-2).fit(X, X_val=X)
    losses = falling.net_.history[:, "valid_loss"]
    assert losses[0] == losses[1] == losses[2] > losses[3] > losses[6]
    assert falling.n_iter_ == 7
    still = pulse(stopper, validation_every=3, max_epochs=12, lr=1e-12).fit(X)
    assert still.n_iter_ == 7  # one that improves on nothing, and two more
    assert [i for i, epoch in enumerate(still.history_) if "valid_batch_count" in epoch] == [
        0,
        3,
        6,
    ]


def test_patience_counts_validations():
    small = {**SMALL_ENCODER, "num_threads": 1, "random_state": 0, "max_epochs": 12}
    classifier = SupervisedClassifier(**small, lr=1e-12, patience=1, validation_every=4)
    assert classifier.set_params(validation_fraction=0.5).fit(X, y).n_iter_ == 5


def test_a_plateau_is_one_of_validations(capsys):
    plateau = {"monitor": "valid_loss", "patience": 0, "factor": 0.5, "eps": 0.0}
    schedule = LRScheduler(ReduceLROnPlateau, **plateau)
    fitted = pulse(schedule, validation_every=3, max_epochs=7, lr=1e-12, verbose=1).fit(X)
    rates = np.array(fitted.net_.history[:, "event_lr"]) / 1e-12
    np.testing.assert_allclose(rates, [1, 1, 1, 1, 0.5, 0.5, 0.5])
    lines = capsys.readouterr().out.splitlines()
    assert len({len(line.split()) for line in lines if line.strip()[0].isdigit()}) == 1


def test_a_kill_changes_nothing(tmp_path):
    callbacks = [EarlyStopping(patience=2), functools.partial(make_board, str(tmp_path))]
    settings = {"validation_every": 2, "max_epochs": 6, "lr": 1e-12}
    whole = pulse(*callbacks, **settings).fit(X)
    with killed(4, 2):
        pulse(*callbacks, **settings, checkpoint_dir=tmp_path / "runs").fit(X)
    resumed = pulse(*callbacks, **settings, checkpoint_dir=tmp_path / "runs").fit(X)
    assert resumed.n_iter_ == whole.n_iter_ == 5
    np.testing.assert_array_equal(resumed.transform(X), whole.transform(X))
    assert len(list((tmp_path / "runs").iterdir())) == 1


# --- what cannot be followed, cloned or made ---


class Follows(Callback):
    def __init__(self, monitor="f1"):
        self.monitor = monitor

    def on_epoch_end(self, net, **kwargs):
        self.last_ = net.history[-1, self.monitor]


@pytest.mark.parametrize(
    ("callbacks", "params", "message"),
    [
        (
            [EarlyStopping],
            {"validation_fraction": 0},
            "'EarlyStopping', which follows 'valid_loss'",
        ),
        ([EarlyStopping], {"validation_every": 9, "max_epochs": 1}, None),
        (
            [lambda: LRScheduler(ReduceLROnPlateau, monitor="valid_loss")],
            {"validation_fraction": 0},
            "'LRScheduler', which follows 'valid_loss'.*pass X_val",
        ),
        (
            [EarlyStopping("valid_accuracy")],
            {},
            r"EarlyStopping with monitor='valid_accuracy'.*one of \['train_loss', 'valid_loss'\]",
        ),
        (
            [Checkpoint("accuracy_best")],
            {},
            r"Checkpoint with monitor='accuracy_best'.*of \['train_loss_best', 'valid_loss_best'\]",
        ),
        (
            [LRScheduler("OneCycleLR", max_lr=0.1)],
            {},
            r"callbacks\[0\] is an LRScheduler with policy='OneCycleLR'.*Pass the class",
        ),
        ([Follows()], {}, "a Follows with monitor='f1'"),
        ([Freezer("*")], {}, "every weight .* is frozen in epoch 1.*skorch's Freezer, leave some"),
        ([lambda: 3], {}, r"callbacks\[0\] is a function that must return a skorch callback.*3"),
        ([("a", lambda: BatchScoring("f1"))], {}, r"callbacks\[0\] is a BatchScoring"),
        ([("epoch_timer", PrintLog)], {}, "names two callbacks 'epoch_timer'"),
        ([("log", PrintLog), ("log", PrintLog)], {}, "names two callbacks 'log'"),
    ],
)
def test_what_cannot_act_is_named(callbacks, params, message):
    estimator = pulse(*callbacks, **params)
    if message is None:
        estimator.fit(X)
        return
    with pytest.raises((TypeError, ValueError), match=message):
        estimator.fit(X)


def test_a_key_error_of_a_callback_stays_one():
    class Breaks(Callback):
        monitor = "train_loss"

        def on_epoch_end(self, net, **kwargs):
            raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        pulse(Breaks()).fit(X)


def test_what_cannot_be_cloned_is_named(tmp_path):
    estimator = pulse(EarlyStopping(), ("board", TensorBoard(Writer(tmp_path))))
    message = r"callbacks\[1\] is a TensorBoard that cannot be cloned.*Pass a function that makes"
    with pytest.raises(TypeError, match=message):
        clone(estimator)
    with pytest.raises(TypeError, match=message):
        GridSearchCV(make_pipeline(estimator, LogisticRegression()), {}, cv=2).fit(X, y)
    assert estimator.fit(X).n_iter_ == 3  # a fit shares the writer


def test_a_function_makes_a_callback_for_each_fit():
    made = []

    def make():
        made.append(Follows("train_loss"))
        return made[-1]

    estimator = pulse(make, ("named", make))
    first, second = estimator.fit(X), clone(estimator).fit(X)
    assert [*callbacks_of(first, Follows), *callbacks_of(second, Follows)] == made
    assert {"Follows", "named"} <= dict(first.net_.callbacks_).keys()
    assert estimator.callbacks[0] is make


def test_a_function_is_known_by_its_code_and_what_it_encloses(tmp_path):
    def maker(patience):
        return lambda: EarlyStopping(patience=patience)

    for patience in (1, 2, 2):
        pulse(maker(patience), max_epochs=1, checkpoint_dir=tmp_path).fit(X)
    assert len(list(tmp_path.iterdir())) == 2
    lock = threading.Lock()
    with pytest.raises(TypeError, match="callbacks holds the function '<lambda>'.*checkpoint_dir"):
        pulse(lambda: lock and Callback(), checkpoint_dir=tmp_path).fit(X)


class Shrinks(Callback):
    """The factor by which it shrinks the weights is an attribute of the class."""

    factor = 0.9

    def on_epoch_end(self, net, **kwargs):
        with torch.no_grad():
            for weight in net.module_.parameters():
                weight.mul_(self.factor)


def shrinking(factor):
    """A class that encloses the factor."""

    class Encloses(Callback):
        def on_epoch_end(self, net, **kwargs):
            with torch.no_grad():
                for weight in net.module_.parameters():
                    weight.mul_(factor)

    return Encloses


def decaying(factor):
    def decay(epoch):
        return decay.factor**epoch

    decay.factor = factor  # an attribute of the function
    return LRScheduler(LambdaLR, lr_lambda=decay)


@pytest.mark.parametrize(
    "make",
    [lambda factor: shrinking(factor)(), shrinking, decaying, lambda factor: Shrinks()],
    ids=["closure", "class", "function", "class attribute"],
)
def test_callbacks_of_other_code_make_another_run(make, tmp_path, monkeypatch):
    found = []
    for factor in (0.9, 0.5, 0.9):
        monkeypatch.setattr(Shrinks, "factor", factor)
        fitted = pulse(make(factor), max_epochs=2, checkpoint_dir=tmp_path).fit(X)
        alone = pulse(make(factor), max_epochs=2).fit(X)
        found.append(fitted.transform(X))
        np.testing.assert_array_equal(found[-1], alone.transform(X))
    assert len(list(tmp_path.iterdir())) == 2
    np.testing.assert_array_equal(found[0], found[2])


def test_a_function_that_counts_in_an_attribute_is_refused(tmp_path):
    def tally():
        tally.calls += 1

    tally.calls = 0

    class Counts(Callback):
        def __init__(self):
            self.function = tally

        def on_epoch_end(self, net, **kwargs):
            self.function()

    with pytest.raises(TypeError, match="attribute '.*(function|__init__)': training has changed"):
        pulse(Counts(), checkpoint_dir=tmp_path).fit(X)


class Spawns(Callback):
    """Draws from generators that its generator spawns, and from one that shares its bits."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.twin = np.random.Generator(self.rng.bit_generator)
        self.seen = []

    def on_epoch_end(self, net, **kwargs):
        self.seen.append((self.rng.spawn(1)[0].random(), self.twin.random(), self.rng.random()))


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="copies spawn otherwise in this numpy"
)
def test_generators_that_spawn_go_on_after_a_kill(tmp_path):
    with killed(2):
        pulse(Spawns(), checkpoint_dir=tmp_path).fit(X)
    resumed = pulse(Spawns(), checkpoint_dir=tmp_path).fit(X)
    whole = pulse(Spawns()).fit(X)
    assert callback_of(resumed, Spawns).seen == callback_of(whole, Spawns).seen


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.eye(3).to_sparse(), "attribute 'value': .*cannot be told from others"),
        (np.random.RandomState(np.random.PCG64(0)), "'value': .*RandomState cannot be stored"),
    ],
)
def test_values_that_no_file_holds_are_named(value, message, tmp_path):
    class Holds(Callback):
        def __init__(self):
            self.value = value

        def on_epoch_end(self, net, **kwargs):
            self.value.normal()

    with pytest.raises(TypeError, match=message):
        pulse(Holds(), checkpoint_dir=tmp_path, max_epochs=1).fit(X)


def test_a_conjugate_tensor_is_stored(tmp_path):
    class Holds(Callback):
        def on_train_begin(self, net, **kwargs):
            self.value = torch.fft.fft(torch.arange(4.0)).conj()

    expected = torch.fft.fft(torch.arange(4.0)).conj()
    with killed(2):
        pulse(Holds(), checkpoint_dir=tmp_path).fit(X)
    resumed = pulse(Holds(), checkpoint_dir=tmp_path).fit(X)
    assert torch.equal(callback_of(resumed, Holds).value, expected)


def test_weights_of_the_best_epoch_stay_those_of_a_validation():
    stop = EarlyStopping(patience=9, load_best=True)
    loaded = pulse(stop, validation_every=2, max_epochs=5, lr=1e-2, select="last").fit(X)
    lowest = pulse(validation_every=2, max_epochs=5, lr=1e-2, select="min_val").fit(X)
    for mine, theirs in zip(
        loaded.net_.module_.parameters(), lowest.net_.module_.parameters(), strict=True
    ):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("select", ["last", "min_val", "trailing_mean"])
def test_the_best_epoch_is_kept_if_it_is_the_last(select):
    def rises(net, X=None, y=None):
        return len(net.history)

    score = EpochScoring(rises, name="score", lower_is_better=False)
    stop = EarlyStopping("score", patience=9, lower_is_better=False, load_best=True)
    settings = {"validation_every": 1, "max_epochs": 8, "lr": 1e-2}
    loaded = pulse(score, stop, select=select, **settings).fit(X)
    last = pulse(select="last", **settings).fit(X)
    assert loaded.selected_epoch_ == 8
    np.testing.assert_array_equal(loaded.transform(X), last.transform(X))


@pytest.mark.parametrize("every", [1, 2])
def test_a_schedule_of_the_users_own_replaces_that_which_would_be_refused(every):
    def own():
        return [LRScheduler("ExponentialLR", gamma=0.9)]

    tiny = {"max_epochs": 2, "batch_size": 8, "random_state": 0, "validation_every": every}
    lfads = LFADSTransformer(
        schedule="validation_plateau", validation_fraction=0, callbacks=own(), **tiny
    )
    for method in (lfads, SimCLRTransformer(betas=(0.9, 0.99), callbacks=own(), **tiny)):
        assert len(method.fit(X).history_) == 2
        with pytest.raises(ValueError, match="schedule"):
            clone(method).set_params(callbacks=None).fit(X)


def test_a_model_with_a_schedule_of_the_users_own_is_saved(tmp_path):
    own = [LRScheduler("ExponentialLR", gamma=0.9)]
    tiny = {"max_epochs": 2, "batch_size": 8, "random_state": 0, "betas": (0.9, 0.99)}
    fitted = SimCLRTransformer(callbacks=own, **tiny).fit(X)
    with pytest.warns(UserWarning, match="cannot hold callbacks"):
        fitted.save_pretrained(tmp_path / "model")
    loaded = SimCLRTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    with pytest.raises(ValueError, match="betas=.* goes with schedule='constant' only"):
        loaded.fit(X)


# --- state that no callback has for itself, which no checkpoint holds ---


class Tallies(Callback):
    seen = []

    def on_epoch_end(self, net, **kwargs):
        self.seen.append(1)


class Replaces(Callback):
    n = 0

    def on_epoch_end(self, net, **kwargs):
        type(self).n += 1


def encloses(seen):
    class Encloses(Callback):
        def on_epoch_end(self, net, **kwargs):
            super().on_epoch_end(net, **kwargs)
            seen.append(1)

    return Encloses()


def counts():
    n = 0

    class Rebinds(Callback):
        def on_epoch_end(self, net, **kwargs):
            nonlocal n
            n += 1

    return Rebinds()


class Meter:
    total = 0


class HasMeter(Callback):
    meter = Meter()

    def on_epoch_end(self, net, **kwargs):
        self.meter.total += 1


class Defaults(Callback):
    def on_epoch_end(self, net, seen=[], **kwargs):  # noqa: B006  # what is tested
        seen.append(1)


def learns(meter):
    """The state is enclosed by a property, by a wrapper and by a function of the class."""

    class Encloses(Callback):
        @property
        def meter(self):
            return meter

        @staticmethod
        def fit():
            meter.total += 1

        def on_epoch_end(self, net, **kwargs):
            self.fit()

    return Encloses()


def fits(probe):
    class Probes(Callback):
        def on_epoch_end(self, net, **kwargs):
            probe.fit(X[:, 0], y)

    return Probes()


@pytest.mark.parametrize(
    ("callback", "where"),
    [
        (HasMeter(), "HasMeter.meter"),
        (Defaults(), "Defaults.on_epoch_end"),
        (learns(Meter()), "Encloses.(meter|fit)"),
        (fits(LogisticRegression()), "Probes.on_epoch_end"),
        (Tallies(), "Tallies.seen"),
        (Replaces(), "Replaces.n"),
        (encloses([]), "Encloses.on_epoch_end"),
        (counts(), "Rebinds.on_epoch_end"),
    ],
)
def test_shared_state_that_changes_is_refused(callback, where, tmp_path):
    kind = type(callback).__name__
    message = rf"callbacks holds '{kind}'.*attribute '{where}': training has changed it.*stored"
    with pytest.raises(TypeError, match=message):
        pulse(callback, checkpoint_dir=tmp_path).fit(X)
    assert not list(tmp_path.rglob("checkpoint*"))
    assert pulse(callback).fit(X).n_iter_ == 3


def test_shared_state_that_cannot_be_told_is_refused(tmp_path):
    numbers = (i for i in range(9))

    class Draws(Callback):
        def on_epoch_end(self, net, **kwargs):
            next(numbers)

    with pytest.raises(TypeError, match=r"attribute 'Draws.on_epoch_end': a generator cannot be"):
        pulse(Draws(), checkpoint_dir=tmp_path).fit(X)


def test_shared_values_that_stay_are_no_state(tmp_path):
    factor, lock, meter = {"of": np.ones(3)}, threading.Lock(), Meter()

    class Reads(Callback, abc.ABC):
        names = ["train_loss"]
        where = Path("here")
        probe = LogisticRegression()

        @functools.cached_property
        def one(self):
            return 1 + meter.total

        def on_epoch_end(self, net, **kwargs):
            with lock:
                self.last_ = net.history[-1, self.names[0]] * factor["of"][0] * self.one

    with killed(2):
        pulse(Reads(), checkpoint_dir=tmp_path).fit(X)
    resumed = pulse(Reads(), checkpoint_dir=tmp_path).fit(X)
    assert callback_of(resumed, Reads).last_ == resumed.history_[-1]["train_loss"]


def test_a_file_sets_no_property_and_no_method(tmp_path):
    from sklearn_pulse._training._state_file import read_state, store_state

    class Learns(Callback):
        def on_epoch_end(self, net, **kwargs):
            self.n = self.next_number

        @property
        def next_number(self):
            return 1

    with killed(2):
        pulse(Learns(), checkpoint_dir=tmp_path).fit(X)
    (path,) = tmp_path.rglob("checkpoint.pt")
    before = path.read_bytes()
    for name in ("next_number", "on_epoch_end", "__dict__"):
        path.write_bytes(before)
        state = read_state(path)
        state["callbacks"]["Learns"][name] = ["value", 1]
        store_state(path.parent, state, None, rotate=False)
        with pytest.raises(OSError, match=f"no attribute '{name}' to be set"):
            pulse(Learns(), checkpoint_dir=tmp_path).fit(X)
