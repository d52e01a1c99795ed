"""Callbacks that users pass: what they learn is resumed, what they are tells runs apart."""

import collections
import copy
import pickle
import random
import shutil
import threading
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from joblib.externals.loky.backend import reduction
from sklearn.linear_model import LinearRegression, SGDClassifier
from skorch import callbacks as standard
from skorch.callbacks import Callback
from torch.optim.lr_scheduler import StepLR

from sklearn_pulse import PulseTransformer
from sklearn_pulse._training._callback_state import callbacks_fingerprint
from sklearn_pulse._training._checkpoint import Checkpoint
from tests.helpers import SMALL_PULSE, callback_of, make_windows, weights_of
from tests.kills import killed

X = make_windows(8, n_timesteps=8)[0]
BRIEF = {"encoder_depth": 1, "gru_num_layers": 1, "max_epochs": 4, "batch_size": 4}


def pulse(*callbacks, **params):
    settings = SMALL_PULSE | BRIEF | {"validation_fraction": 0.25}
    return PulseTransformer(**settings | {"callbacks": list(callbacks)} | params)


@cache
def plain(**params):
    """Return a fit without callbacks, made once in a process. Nobody may change it."""
    return pulse(**params).fit(X)


def folders(path):
    return len(list(path.iterdir()))


# --- what they learn ---


class Learns(Callback):
    """Learns values of every kind that a file can hold exactly, with and without an underscore."""

    def __init__(self):
        self.listed = []
        self.generator = np.random.default_rng(0)
        self.python = random.Random(0)

    def on_train_begin(self, net, **kwargs):
        self.average_ = torch.optim.swa_utils.AveragedModel(net.module_)

    def on_epoch_begin(self, net, **kwargs):
        self.begun = getattr(self, "begun", 0) + 1

    def on_batch_end(self, net, training, loss, **kwargs):
        self.average_.update_parameters(net.module_)
        self.listed.append((training, loss.item()))
        self.shared = {"listed": self.listed}
        self.tensor = torch.cat([getattr(self, "tensor", torch.zeros(0)), loss.reshape(1)])
        self.array_ = np.asfortranarray(self.tensor.numpy().reshape(1, -1) * np.ones((2, 1)))
        self.rest = (np.float64(0.5), b"\0", 1j, {1, 2}, Path("here"), collections.deque([1], 3))
        self.drawn = self.generator.random() + self.python.random()
        net.history.record_batch("drawn", self.drawn)


AFTER_AN_EPOCH = pytest.param((3, 1), marks=pytest.mark.slow)  # as with an interval of a minute


@pytest.mark.parametrize("interval", [0.0, 60.0])
@pytest.mark.parametrize("at", [(2, 2), AFTER_AN_EPOCH])
def test_what_a_callback_learns_is_resumed_exactly(tmp_path, monkeypatch, at, interval):
    monkeypatch.setattr(Checkpoint, "interval", interval)
    whole = callback_of(pulse(Learns()).fit(X), Learns)
    with killed(*at):
        pulse(Learns(), checkpoint_dir=tmp_path).fit(X)
    resumed = callback_of(pulse(Learns(), checkpoint_dir=tmp_path).fit(X), Learns)
    assert resumed.listed == whole.listed
    assert resumed.shared["listed"] is resumed.listed
    assert (resumed.begun, resumed.drawn, resumed.rest) == (whole.begun, whole.drawn, whole.rest)
    assert list(map(type, resumed.rest)) == list(map(type, whole.rest))
    assert resumed.generator.random() == whole.generator.random()
    assert torch.equal(resumed.tensor, whole.tensor)
    np.testing.assert_array_equal(resumed.array_, whole.array_)
    assert resumed.array_.flags.f_contiguous
    for mine, theirs in zip(
        resumed.average_.parameters(), whole.average_.parameters(), strict=True
    ):
        assert torch.equal(mine, theirs)


class LearnsInPlace(Callback):
    """Changes what it holds at the start of an epoch."""

    def __init__(self):
        self.listed, self.tensor, self.array = [], torch.zeros(2), np.zeros(2)
        self.view = self.tensor[1:]
        self.generator = np.random.default_rng(0)

    def on_epoch_begin(self, net, **kwargs):
        self.listed.append(self.generator.random())
        self.tensor += 1
        self.array += 1


@pytest.mark.parametrize("at", [(2, 2), AFTER_AN_EPOCH])
def test_what_is_changed_in_place_is_resumed_in_the_middle_of_an_epoch(tmp_path, monkeypatch, at):
    monkeypatch.setattr(Checkpoint, "interval", 0.0)

    def callbacks():
        # Its load_state_dict takes what it reads out of the state.
        cycle = {"base_lr": 1e-4, "max_lr": 1e-3, "step_size_up": 2, "step_every": "batch"}
        schedule = standard.LRScheduler("CyclicLR", cycle_momentum=False, **cycle)
        return LearnsInPlace(), schedule

    whole = pulse(*callbacks()).fit(X)
    with killed(*at):
        pulse(*callbacks(), checkpoint_dir=tmp_path).fit(X)
    resumed = pulse(*callbacks(), checkpoint_dir=tmp_path).fit(X)
    mine, theirs = (callback_of(fitted, LearnsInPlace) for fitted in (resumed, whole))
    assert mine.listed == theirs.listed
    assert mine.tensor.tolist() == mine.array.tolist() == [4.0, 4.0]
    assert mine.view.tolist() == [4.0]
    np.testing.assert_array_equal(resumed.transform(X), whole.transform(X))


class Trained(standard.Callback):
    """Notes which weights are trained in the last epoch."""

    def on_train_end(self, net, **kwargs):
        self.at_end_ = [weight.requires_grad for weight in net.module_.parameters()]


@pytest.mark.parametrize(
    ("at", "interval"),
    [
        ((2, 2), 0.0),
        ((4, 1), 60.0),
        *(pytest.param(*cell, marks=pytest.mark.slow) for cell in [((2, 2), 60.0), ((4, 1), 0.0)]),
    ],
)
def test_frozen_weights_are_resumed(tmp_path, monkeypatch, at, interval):
    monkeypatch.setattr(Checkpoint, "interval", interval)

    def freezing():
        return [
            standard.Freezer("encoder.*", at=1),
            standard.Unfreezer("encoder.*bias", at=3),
            standard.ParamMapper("decoder.*bias", fn=torch.nn.init.zeros_, at=2),
            ("trained", Trained()),
        ]

    whole = pulse(*freezing()).fit(X)
    with killed(*at):
        pulse(*freezing(), checkpoint_dir=tmp_path).fit(X)
    resumed = pulse(*freezing(), checkpoint_dir=tmp_path).fit(X)
    flags = [dict(fit.net_.callbacks_)["trained"].at_end_ for fit in (resumed, whole)]
    assert flags[0] == flags[1]
    assert 0 < sum(flags[0]) < len(flags[0])
    assert all(weight.requires_grad for weight in resumed.net_.module_.parameters())  # afterwards
    for mine, theirs in zip(
        resumed.net_.module_.parameters(), whole.net_.module_.parameters(), strict=True
    ):
        assert torch.equal(mine, theirs)
    assert resumed.n_iter_ == 4


class Counts(standard.PrintLog):
    n = 0

    def on_epoch_end(self, net, **kwargs):
        self.n += 1


def test_a_subclass_of_what_learns_nothing_may_learn(tmp_path):
    with killed(3):
        pulse(Counts(), checkpoint_dir=tmp_path).fit(X)
    count = callback_of(pulse(Counts(), checkpoint_dir=tmp_path).fit(X), Counts)
    assert count.n == 4


class Records(Callback):
    def on_epoch_end(self, net, **kwargs):
        self.last = np.float32(0.25)
        net.history.record("score", np.float64(0.5))
        net.history.record("where", Path("here"))
        net.history.record("note", np.array(["", "rests"])[0])
        net.history.record("curve", np.arange(3.0))
        net.optimizer_.param_groups[0]["note"] = np.float64(1.0)


def test_numpy_in_the_history_is_resumed(tmp_path):
    with killed(3):
        pulse(Records(), checkpoint_dir=tmp_path).fit(X)
    resumed = pulse(Records(), checkpoint_dir=tmp_path).fit(X)
    assert resumed.n_iter_ == 4
    for epoch in resumed.history_:
        assert (epoch["score"], epoch["where"], epoch["note"]) == (0.5, Path("here"), "")
        assert (type(epoch["score"]), type(epoch["note"])) == (np.float64, np.str_)
        np.testing.assert_array_equal(epoch["curve"], np.arange(3.0))


class Meter:
    total = 0


class Holds(Callback):
    def __init__(self, value=None):
        self.value = value


class HoldsLater(Callback):
    def on_epoch_end(self, net, **kwargs):
        self.later_ = Meter()


class Unpredictable(Callback):
    """Its attributes stand in no code of it, or in slots."""

    __slots__ = ("slotted",)

    def on_epoch_end(self, net, **kwargs):
        for name in ("made_" + "up", "slot" + "ted"):
            setattr(self, name, [*getattr(self, name, []), len(net.history)])


def test_attributes_are_found_however_they_are_set(tmp_path):
    with killed(3):
        pulse(Unpredictable(), checkpoint_dir=tmp_path).fit(X)
    resumed = callback_of(pulse(Unpredictable(), checkpoint_dir=tmp_path).fit(X), Unpredictable)
    assert resumed.made_up == resumed.slotted == [1, 2, 3, 4]


class Sees(Callback):
    def on_train_begin(self, net, **kwargs):
        self.seen_ = [net.module_.encoder.input.weight.data]


class Recording(Callback):
    def on_epoch_end(self, net, **kwargs):
        net.history.record("meter", Meter())


def trained(monkeypatch):
    """Count the batches that are trained on."""
    from sklearn_pulse._training._net import SSLNet

    steps, train_step = [], SSLNet.train_step
    monkeypatch.setattr(SSLNet, "train_step", lambda *a: (steps.append(1), train_step(*a))[1])
    return steps


def test_what_cannot_be_told_is_named_before_training(tmp_path, monkeypatch):
    steps = trained(monkeypatch)
    message = r"callbacks holds 'spy' \(a Holds\).*attribute 'value'.*checkpoint_dir=None"
    for value in (threading.Lock(), (i for i in [1])):
        with pytest.raises(TypeError, match=message):
            pulse(("spy", Holds(value)), checkpoint_dir=tmp_path).fit(X)
        assert not steps


@pytest.mark.parametrize("value", [Meter(), [Meter()], [].append, iter([1]), SGDClassifier()])
def test_what_no_file_holds_may_stay_as_it_is(tmp_path, value):
    callbacks = [("spy", Holds(value))]
    with killed(2):
        pulse(*callbacks, max_epochs=3, checkpoint_dir=tmp_path).fit(X)
    resumed = pulse(*callbacks, max_epochs=3, checkpoint_dir=tmp_path).fit(X)
    np.testing.assert_array_equal(resumed.transform(X), plain(max_epochs=3).transform(X))


class Changes(Holds):
    def on_epoch_end(self, net, **kwargs):
        if isinstance(self.value, Meter):
            self.value.total += 1
        elif isinstance(self.value, SGDClassifier):
            self.value.partial_fit([[0.0], [1.0]], [0, 1], classes=[0, 1])
        elif callable(self.value):
            self.value(1)
        else:
            next(self.value)


class Deletes(Holds):
    def on_epoch_end(self, net, **kwargs):
        if hasattr(self, "value"):
            del self.value


@pytest.mark.parametrize(
    "callback",
    [
        *map(Changes, [Meter(), [].append, iter([1, 2]), SGDClassifier()]),
        Deletes(len),
    ],
)
def test_what_no_file_holds_may_not_change(tmp_path, callback):
    kind = type(callback.value).__name__
    holder = rf"'spy' \(a {type(callback).__name__}\)"
    message = rf"{holder}.*'value': training has changed it, and an object of class {kind} cannot"
    with pytest.raises(TypeError, match=message):
        pulse(("spy", callback), checkpoint_dir=tmp_path).fit(X)
    assert not list(tmp_path.rglob("checkpoint*"))


@pytest.mark.parametrize(
    ("callback", "message"),
    [
        (
            HoldsLater(),
            "callbacks holds 'HoldsLater'.*attribute 'later_': an object of class Meter cannot be",
        ),
        (Sees(), "callbacks holds 'Sees'.*attribute 'seen_': training has changed it.*clone it"),
        (
            Recording(),
            "callbacks recorded 'meter' in the history.*an object of class Meter cannot be stored",
        ),
    ],
)
def test_what_cannot_be_kept_later_is_named_when_it_is_there(tmp_path, callback, message):
    with pytest.raises(TypeError, match=message):
        pulse(callback, checkpoint_dir=tmp_path).fit(X)
    assert not list(tmp_path.rglob("checkpoint*"))


def test_a_file_sets_nothing_that_a_class_defines(tmp_path):
    """Not even with a right checksum."""
    from sklearn_pulse._training._state_file import read_state, store_state

    def spoilt(name, value):
        state = read_state(path)
        state["callbacks"]["Learns"][name] = value
        store_state(path.parent, state, None, rotate=False)

    with killed(2):
        pulse(Learns(), checkpoint_dir=tmp_path).fit(X)
    (path,) = tmp_path.rglob("checkpoint.pt")
    before = path.read_bytes()
    for name in ("on_epoch_end", "__class__", "initialize"):
        path.write_bytes(before)
        spoilt(name, ["value", 1])
        with pytest.raises(OSError, match=f"checkpoint.pt is no checkpoint.*{name}.*delete"):
            pulse(Learns(), checkpoint_dir=tmp_path).fit(X)
    path.write_bytes(before)
    spoilt("listed", ["state_dict", ["dict", []]])
    with pytest.raises(OSError, match="takes no state"):
        pulse(Learns(), checkpoint_dir=tmp_path).fit(X)


def test_a_setting_of_skorch_is_no_state(tmp_path):
    from sklearn_pulse._training._state_file import read_state, store_state

    callbacks = [standard.Checkpoint(dirname=str(tmp_path / "own"), monitor=None)]
    with killed(2):
        pulse(*callbacks, checkpoint_dir=tmp_path / "runs").fit(X)
    (path,) = (tmp_path / "runs").rglob("checkpoint.pt")
    state = read_state(path)
    state["callbacks"]["Checkpoint"]["dirname"] = ["value", str(tmp_path / "elsewhere")]
    store_state(path.parent, state, None, rotate=False)
    with pytest.raises(OSError, match="no attribute 'dirname' to be set"):
        pulse(*callbacks, checkpoint_dir=tmp_path / "runs").fit(X)


# --- what they are ---


class Scales(Callback):
    """Scale the gradient by what a function says."""

    def __init__(self, factor):
        self.factor = factor

    def on_grad_computed(self, net, named_parameters, **kwargs):
        for _, parameter in named_parameters:
            parameter.grad *= self.factor if isinstance(self.factor, float) else self.factor(net)


class Halves(Scales):
    def __init__(self):
        super().__init__(0.5)


class ScalesBySlot(Scales):
    """Scales whose factor is not in its dictionary."""

    __slots__ = ("factor",)


def predicted(regressor, net):
    return float(regressor.predict([[1.0]])[0])


def stops_on(argument):
    """A class whose callbacks stop if skorch passes more than four windows under this name."""
    namespace = {"Callback": Callback, "__name__": __name__}
    source = f"""class Stops(Callback):
        def on_epoch_end(self, net, {argument}, **kwargs):
            net.stop_training_ |= len({argument}) > 4
    """
    exec(source, namespace)
    return namespace["Stops"]


def test_the_name_of_an_argument_tells_runs_apart(tmp_path):
    n_epochs = {
        name: pulse(stops_on(name)(), checkpoint_dir=tmp_path).fit(X).n_iter_
        for name in ("dataset_train", "dataset_valid")  # of six windows and of two
    }
    assert n_epochs == {"dataset_train": 1, "dataset_valid": 4}


def test_other_callbacks_are_another_run(tmp_path):
    half, third = 0.5, 1 / 3
    small, large = (LinearRegression().fit([[0.0], [1.0]], [0.0, value]) for value in (0.1, 0.9))
    different = [
        [],
        [Scales(0.5)],
        [Scales(0.25)],
        [Scales(lambda net: half)],
        [Scales(lambda net: third)],
        [Scales(lambda net: half + third)],
        [Halves()],
        [Halves(), Scales(0.5)],
        [ScalesBySlot(0.5)],
        [ScalesBySlot(0.25)],
        [Scales(partial(predicted, small))],
        [Scales(partial(predicted, large))],
        [Scales(lambda net: predicted(small, net))],
        [Scales(lambda net: predicted(large, net))],
    ]
    brief = {"max_epochs": 1, "batch_size": 8}  # one update
    for callbacks in different:
        stored = pulse(*callbacks, **brief, checkpoint_dir=tmp_path).fit(X)
        alone = pulse(*callbacks, **brief).fit(X)
        np.testing.assert_array_equal(stored.transform(X), alone.transform(X))
    assert folders(tmp_path) == len(different)
    for callbacks in (None, (), [Scales(np.float64(0.5))], [standard.ProgressBar()]):
        pulse(**brief, checkpoint_dir=tmp_path).set_params(callbacks=callbacks).fit(X)
    assert folders(tmp_path) == len(different)


def test_copies_of_a_fitted_network_are_one_run(tmp_path):
    """What a net holds beside its weights does not count."""
    fitted, other = (pulse(random_state=seed, max_epochs=1).fit(X) for seed in (0, 1))
    fitted.save_pretrained(tmp_path / "model")
    loaded = [PulseTransformer.from_pretrained(tmp_path / "model") for _ in range(2)]

    def known(model):
        return callbacks_fingerprint([("holds", Holds(model))])

    assert (
        known(fitted) == known(copy.deepcopy(fitted)) == known(pickle.loads(pickle.dumps(fitted)))
    )
    assert known(loaded[0]) == known(loaded[1])
    assert known(fitted) != known(other)


def fingerprint_of_many():
    """Return what another process compares with its own, in test_distributed.py."""
    values = [
        {"a", "b", "c"},
        {"x": np.arange(3), "y": torch.ones(2), "z": Meter()},
        np.random.RandomState(0),
        lambda net: {"a", "b"} | {len(net.history)},
        [].append,
        standard.EarlyStopping(),
        StepLR,
        torch.device("cpu"),
        Path("here"),
        collections.Counter("aab"),
        LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]),
    ]
    return callbacks_fingerprint([(str(i), Holds(v)) for i, v in enumerate(values)]).hex()


# --- which ones ---


class Writer:
    """A writer of logs that cannot be copied."""

    def __init__(self):
        self.lock = threading.Lock()
        self.scalars = []

    def add_scalar(self, tag, scalar_value, global_step):
        self.scalars.append((tag, scalar_value, global_step))

    def close(self):
        pass


def encoder_norm(net, X, y):
    assert len(X) == 2  # windows to validate on
    assert y is None
    return float(net.module_.encoder.input.weight.detach().norm())


WORK = {
    "EpochScoring": lambda path: [standard.EpochScoring(encoder_norm, lower_is_better=False)],
    "Checkpoint": lambda path: [standard.Checkpoint(dirname=str(path), load_best=True)],
    "TrainEndCheckpoint": lambda path: [standard.TrainEndCheckpoint(dirname=str(path))],
    "EarlyStopping": lambda path: [standard.EarlyStopping(patience=2, load_best=True)],
    "LRScheduler": lambda path: [standard.LRScheduler(StepLR, step_size=1, gamma=0.5)],
    "ProgressBar": lambda path: [standard.ProgressBar()],
    "PrintLog": lambda path: [standard.PrintLog(sink=print)],
    "Freezer": lambda path: [standard.Freezer("encoder.*")],
    "Unfreezer": lambda path: [standard.Freezer("*.bias"), standard.Unfreezer("*.bias", at=2)],
    "Initializer": lambda path: [standard.Initializer("*.bias", fn=torch.nn.init.zeros_)],
    "ParamMapper": lambda path: [standard.ParamMapper("*.bias", fn=torch.nn.init.zeros_)],
    "GradientNormClipping": lambda path: [standard.GradientNormClipping(0.1)],
    "TensorBoard": lambda path: [standard.TensorBoard(Writer())],
    "EpochTimer": lambda path: [("timer", standard.EpochTimer())],
    "PassthroughScoring": lambda path: [RecordsBatches(), standard.PassthroughScoring("noted")],
}


class RecordsBatches(Callback):
    def on_batch_end(self, net, training, loss, **kwargs):
        if not training:
            net.history.record_batch("noted", float(loss))


CHANGE_WEIGHTS = (
    "Freezer Unfreezer Initializer ParamMapper LRScheduler GradientNormClipping".split()
)


# skorch's Unfreezer is a ParamMapper too; a ProgressBar has no state either.
LIKE_ANOTHER = ("Freezer", "Initializer", "ParamMapper", "PrintLog")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in LIKE_ANOTHER else name for name in WORK],
)
def test_a_standard_callback_works_and_is_resumed(name, tmp_path):
    brief = {"max_epochs": 3}
    whole = pulse(*WORK[name](tmp_path / "a"), **brief).fit(X)
    if name in CHANGE_WEIGHTS:
        assert not np.array_equal(whole.transform(X), plain(**brief).transform(X))
    brief["checkpoint_dir"] = tmp_path / "runs"
    with killed(2, 2):
        pulse(*WORK[name](tmp_path / "b"), **brief).fit(X)
    resumed = pulse(*WORK[name](tmp_path / "b"), **brief).fit(X)
    np.testing.assert_array_equal(resumed.transform(X), whole.transform(X))
    times = {"dur"}
    for mine, theirs in zip(resumed.history_, whole.history_, strict=True):
        assert {k: v for k, v in mine.items() if k not in times} == {
            k: v for k, v in theirs.items() if k not in times
        }


def test_a_score_of_every_epoch():
    score = standard.EpochScoring(encoder_norm, lower_is_better=False, name="norm")
    fitted = pulse(score).fit(X)
    assert fitted.history_[-1]["norm"] == encoder_norm(fitted.net_, X[:2], None)
    assert {"norm_best"} < fitted.history_[0].keys()


@pytest.mark.parametrize("every", [1, 2])
def test_skorchs_checkpoint_loads_the_best_weights(tmp_path, every):
    """Those of an epoch that was validated: an epoch that repeats the lowest loss is no better."""
    best = standard.Checkpoint(dirname=str(tmp_path), load_best=True)
    fitted = pulse(best, select="last", validation_every=every).fit(X)
    expected = plain(select="min_val", validation_every=every)
    np.testing.assert_array_equal(fitted.transform(X), expected.transform(X))
    assert "valid_loss_best" not in expected.history_[0]


def test_skorchs_checkpoint_may_follow_the_training_loss(tmp_path):
    best = standard.Checkpoint("train_loss_best", dirname=str(tmp_path), load_best=True)
    fitted = pulse(best, select="last").fit(X)
    losses = [epoch["train_loss"] for epoch in fitted.history_]
    assert fitted.selected_epoch_ == 1 + np.argmin(losses)


@pytest.mark.parametrize("more", [{}, {"event_name": None}])
def test_the_best_weights_are_those_of_the_own_run(tmp_path, more):
    """Also where another fit has written to the files of skorch's callback since."""
    files = tmp_path / "skorch"

    def fitted(data, folder, **params):
        best = standard.Checkpoint(dirname=str(files), load_best=True, **more)
        params |= {"select": "last", "validation_every": 1, "max_epochs": 3}
        result = pulse(lambda: best, checkpoint_dir=folder, **params).fit(data)
        assert best.load_best  # it stays as the user has made it
        return result

    expected = fitted(X, None)
    fitted(X, tmp_path / "runs")
    for other in ({}, {"embedding_dim": 3}, None):  # another run, of other sizes, and no files
        if other is None:
            shutil.rmtree(files)
        else:
            fitted(X[::-1] * 2, tmp_path / "runs", **other)
        again = fitted(X, tmp_path / "runs")
        np.testing.assert_array_equal(again.transform(X), expected.transform(X))
        assert again.selected_epoch_ == expected.selected_epoch_


class Snapshots(Callback):
    """Keep the weights of every epoch, in one row."""

    def on_train_begin(self, net, **kwargs):
        self.weights_ = []

    def on_epoch_end(self, net, **kwargs):
        self.weights_.append(weights_of(SimpleNamespace(net_=net)))


def best_in_epoch_two(net, X, y):
    return 0.0 if len(net.history) == 2 else 1.0


@pytest.mark.parametrize(
    ("kind", "more", "select"),
    [
        ("Checkpoint", {}, "last"),
        ("Checkpoint", {"event_name": None}, "trailing_mean"),
        ("EarlyStopping", {}, "trailing_mean"),
        pytest.param("Checkpoint", {}, "trailing_mean", marks=pytest.mark.slow),
        pytest.param("Checkpoint", {"event_name": None}, "last", marks=pytest.mark.slow),
        pytest.param("EarlyStopping", {}, "last", marks=pytest.mark.slow),
    ],
)
def test_the_epoch_whose_weights_skorch_loads_is_the_selected_one(kind, more, select, tmp_path):
    arguments = {
        "Checkpoint": {"monitor": "score_best", "dirname": str(tmp_path / "skorch")},
        "EarlyStopping": {"monitor": "score", "patience": 6},
    }
    score = standard.EpochScoring(best_in_epoch_two, name="score")
    loads = getattr(standard, kind)(load_best=True, **arguments[kind], **more)
    fitted = pulse(score, loads, Snapshots(), select=select, max_epochs=4, warm_start=True).fit(X)
    torch.testing.assert_close(
        weights_of(fitted), callback_of(fitted, Snapshots).weights_[1], rtol=0, atol=0
    )
    assert fitted.n_iter_ == len(fitted.history_) == 4
    assert fitted.selected_epoch_ == 2
    with pytest.warns(UserWarning, match="A file cannot hold callbacks"):
        fitted.save_pretrained(tmp_path / "model")
    assert PulseTransformer.from_pretrained(tmp_path / "model").selected_epoch_ == 2
    assert pickle.loads(pickle.dumps(fitted)).selected_epoch_ == 2
    again = fitted.fit(X)  # goes on, and counts on
    assert (again.selected_epoch_, len(again.history_), again.n_iter_) == (6, 8, 4)


class LocksBySlot(Callback):
    __slots__ = ("lock",)

    def __init__(self, lock):
        self.lock = lock


def test_what_cannot_be_copied_is_shared():
    writer = Writer()
    pulse(standard.TensorBoard(writer, close_after_train=False), max_epochs=2).fit(X)
    assert {tag for tag, _, _ in writer.scalars} >= {"Loss/train_loss", "Loss/valid_loss"}
    locks = LocksBySlot(threading.Lock())
    fitted = pulse(locks, max_epochs=1).fit(X)
    assert callback_of(fitted, LocksBySlot).lock is locks.lock


def accuracy(net, X, y):
    raise AssertionError("not called")


@pytest.mark.parametrize(
    ("callback", "error", "message"),
    [
        (1, TypeError, r"callbacks\[1\] must be a skorch callback or a pair.*got 1"),
        ("print", TypeError, r"callbacks\[1\] must be a skorch callback.*got 'print'"),
        (("a", 1), TypeError, r"callbacks\[1\] must be a skorch callback.*got \('a', 1\)"),
        ((1, Callback()), TypeError, r"callbacks\[1\] must be a skorch callback"),
        (Meter, TypeError, r"callbacks\[1\] must be a skorch callback"),
        (standard.BatchScoring(accuracy), ValueError, r"callbacks\[1\] is a BatchScoring"),
        (("in", standard.InputShapeSetter()), ValueError, r"callbacks\[1\] is a InputShapeSetter"),
        (standard.InputShapeSetter, ValueError, r"callbacks\[1\] is a InputShapeSetter"),
        (
            standard.LoadInitState(standard.Checkpoint()),
            ValueError,
            r"callbacks\[1\] is a LoadInitState.*checkpoint_dir",
        ),
        (standard.EpochScoring("accuracy"), ValueError, r"callbacks\[1\] is an EpochScoring"),
        (standard.EpochScoring(None), ValueError, "scoring=None.*a function of"),
        (("checkpoint", Callback()), ValueError, "names two callbacks 'checkpoint'"),
        (("lr_scheduler", Callback()), ValueError, "names two callbacks 'lr_scheduler'"),
        (("first", Callback()), ValueError, "names two callbacks 'first'"),
    ],
)
def test_a_callback_that_cannot_act_is_named(callback, error, message, monkeypatch):
    steps = trained(monkeypatch)
    with pytest.raises(error, match=message):
        pulse(("first", Callback()), callback).fit(X)
    assert not steps


@pytest.mark.parametrize("kind", [standard.EarlyStopping, standard.Checkpoint])
def test_a_callback_that_follows_a_loss_that_is_not_there(kind):
    with pytest.raises(ValueError, match=f"callbacks holds '{kind.__name__}'.*'valid_loss.*X_val"):
        pulse(kind(), validation_fraction=0).fit(X)
    with pytest.raises(ValueError, match="scoring=.*predictions"):
        from sklearn.metrics import accuracy_score, make_scorer

        pulse(standard.EpochScoring(make_scorer(accuracy_score))).fit(X)


def test_a_score_of_windows_to_validate_on_needs_them():
    def score(net, X, y):
        return float(len(X))

    def make_score():
        return standard.EpochScoring(score)

    message = "'{}', an EpochScoring of the windows to validate on, .*X_val.*on_train=True"
    for callback, name in [(make_score(), "EpochScoring"), (("mine", make_score), "mine")]:
        with pytest.raises(ValueError, match=message.format(name)):
            pulse(callback, validation_fraction=0, max_epochs=1).fit(X)
        assert pulse(callback, max_epochs=1).fit(X).history_[-1]["score"] == 2
    given = pulse(make_score(), validation_fraction=0, max_epochs=1).fit(X, X_val=X[:3])
    assert given.history_[-1]["score"] == 3
    on_train = standard.EpochScoring(score, on_train=True)
    given = pulse(on_train, validation_fraction=0, max_epochs=1).fit(X)
    assert given.history_[-1]["score"] == len(X)


def test_weights_that_were_kept_in_training_are_pickled_once():
    last, selected = (pickle.dumps(plain(select=rule)) for rule in ("last", "min_val"))
    assert len(selected) < 1.05 * len(last)


def test_a_fit_with_callbacks_is_pickled(tmp_path):
    fitted = pulse(Records(), checkpoint_dir=tmp_path, max_epochs=1).fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))


def test_a_fit_with_the_classes_of_a_notebook_is_sent_and_copied():
    class Watches(standard.Callback):
        """A class that plain pickle cannot find, with a function without a name and the net."""

        def on_train_begin(self, net, **kwargs):
            self.net, self.optimizer, self.look = net, net.optimizer_, lambda: None

    fitted = pulse(Watches(), max_epochs=1).fit(X)
    # By the second, joblib's processes hand it back.
    for again in (copy.deepcopy(fitted), pickle.loads(reduction.dumps(fitted))):
        np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
        (watcher,) = [c for name, c in again.net_.callbacks_ if name == "Watches"]
        assert watcher.net is again.net_ is not fitted.net_
        assert watcher.optimizer is again.net_.optimizer_
        schedule = dict(again.net_.callbacks_)["lr_scheduler"].lr_scheduler_
        assert schedule.optimizer is again.net_.optimizer_ is not fitted.net_.optimizer_
    assert dict(fitted.net_.callbacks_)["Watches"].optimizer is fitted.net_.optimizer_


@pytest.mark.parametrize("value", [1e300, 1e-300, 4e38])
def test_a_clip_that_float32_cannot_hold(value):
    with pytest.raises(ValueError, match="gradient_clip_value must be a number in.*float32"):
        pulse(gradient_clip_value=value).fit(X)
