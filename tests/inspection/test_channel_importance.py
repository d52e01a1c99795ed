"""How much the score of a model falls when a channel is exchanged between windows."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from skorch.callbacks import Callback

from sklearn_pulse import FineTuneClassifier, PulseTransformer, RandomEncoderTransformer
from sklearn_pulse.evaluation import RECONSTRUCTION_SCORERS, LabeledSubsetClassifier, probe_scores
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.inspection import channel_importance
from sklearn_pulse.inspection._channel_importance import _donors
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import LazyWindows, RecordingWindows, SlidingWindows
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, make_windows

RNG = np.random.default_rng(0)
y = np.arange(60) % 2
X = RNG.normal(size=(60, 16, 3)).astype(np.float32)
X[:, :, 1] += 3 * y[:, None]  # only the second channel tells the classes apart


def model(per="channel", **params):
    probe = LogisticRegression(max_iter=1000)
    scaler = WindowScaler(per=per, **params)
    return make_pipeline(scaler, StatisticsTransformer(**params), probe)


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, y)


def test_the_channel_that_matters(fitted):
    got = channel_importance(fitted, X, y, n_repeats=4, random_state=0)
    assert got.importances.shape == (3, 4)
    np.testing.assert_allclose(got.importances_mean, got.importances.mean(1))
    np.testing.assert_allclose(got.importances_std, got.importances.std(1))
    assert got.importances_mean[1] > 0.3 > 0.1 > abs(got.importances_mean[[0, 2]]).max()


def numbered(n):
    """Windows of three channels that hold nothing but their own number."""
    return np.broadcast_to(np.arange(n, dtype=np.float32)[:, None, None], (n, 4, 3)).copy()


def lenders(windows, layout="ntc", **params):
    """Return, for each channel, the number of the sample that each sample got it from."""
    seen = []

    def keep(estimator, X, y):
        seen.append(np.array(X))
        return 0.0

    encoder = StatisticsTransformer(input_layout=layout).fit(windows)
    channel_importance(encoder, windows, None, scoring=keep, n_repeats=1, random_state=0, **params)
    np.testing.assert_array_equal(seen[0], windows)
    axis, lent = {"ntc": -1, "nct": -2}[layout], []
    for channel, exchanged in enumerate(seen[1:]):
        others = np.delete(exchanged, channel, axis)
        np.testing.assert_array_equal(others, np.delete(windows, channel, axis))
        before, after = (np.take(x, channel, axis) for x in (windows, exchanged))
        first, lent_first = (x.reshape(len(x), -1)[:, 0] for x in (before, after))
        lent.append(np.searchsorted(first, lent_first))  # the first values are in order
        np.testing.assert_array_equal(after, before[lent[-1]])
    lent = np.array(lent)
    assert lent.shape == (windows.shape[axis], len(windows))
    assert (lent != np.arange(len(windows))).all()
    return lent


def test_every_window_lends_its_channel_to_one_other():
    lent = lenders(numbered(60))
    assert (np.sort(lent) == np.arange(60)).all()
    assert (lent == lent[0]).all()  # all channels are exchanged alike


@pytest.mark.parametrize(("layout", "shape"), [("ntc", (9, 2, 4, 3)), ("nct", (9, 2, 3, 4))])
def test_every_bag_lends_the_channel_of_all_its_windows(layout, shape):
    bags = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)  # no value comes twice
    lent = lenders(bags, layout)
    assert (np.sort(lent) == np.arange(9)).all()
    assert (lent == lent[0]).all()


def test_literally(fitted):
    got = channel_importance(fitted, X, y, n_repeats=1, random_state=0)
    donors = lenders(numbered(60))[0]
    for channel in range(3):
        exchanged = X.copy()
        exchanged[:, :, channel] = X[donors, :, channel]
        fall = accuracy_score(y, fitted.predict(X)) - accuracy_score(y, fitted.predict(exchanged))
        assert got.importances[channel, 0] == pytest.approx(fall)


class Kept(LazyWindows):
    """Lazy windows of a user, who gives what is kept instead of a copy."""

    def __init__(self, values):
        self.values, self.shape = values, values.shape

    def take(self, indices):
        in_order = np.array_equal(indices, np.arange(len(self)))
        return self.values if in_order else list(self.values[indices])


def test_every_form_of_input_gives_the_same(fitted, tmp_path):
    before = X.copy()
    expected = channel_importance(fitted, X, y, random_state=0).importances
    stored = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, X.shape)
    stored[:] = X
    objects = np.empty(60, dtype=object)
    for i, x in enumerate(X):
        objects[i] = x
    lazy = RecordingWindows(X, recording=np.arange(60), start=np.zeros(60, int), length=16)
    own = Kept(X.copy())
    for form in (stored, objects, list(X), lazy, own):
        got = channel_importance(fitted, form, y, random_state=0).importances
        np.testing.assert_array_equal(got, expected)
    first = model(input_layout="nct").fit(X.swapaxes(1, 2), y)
    got = channel_importance(first, X.swapaxes(1, 2), y, random_state=0).importances
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(stored, before)
    np.testing.assert_array_equal(own.values, before)


@pytest.mark.parametrize("as_objects", [False, True])
def test_frames_with_channels_in_another_order_are_refused(as_objects):
    frames = [pd.DataFrame(x, columns=["a", "b", "c"]) for x in X]
    swapped = np.empty(60, dtype=object)
    swapped[:] = [frame[["b", "a", "c"]] for frame in frames]
    fitted = model().fit(frames, y)
    with pytest.raises(ValueError, match=r"X has the channels \['b', 'a', 'c'\]"):
        channel_importance(fitted, swapped if as_objects else list(swapped), y)


def test_lazy_windows_keep_their_recordings():
    long = X.reshape(6, 160, 3)
    lazy = RecordingWindows(long, np.arange(60) // 10, 16 * (np.arange(60) % 10), length=16)
    fitted = model(per="recording").fit(lazy, y)
    got = channel_importance(fitted, lazy, y, n_repeats=1, random_state=0)
    assert got.importances_mean.argmax() == 1


def test_layouts_of_frozen_and_fine_tuned_models(tmp_path):
    windows, labels = X[:12].swapaxes(1, 2), y[:12]
    frozen = FrozenEstimator(model(input_layout="nct")[:-1].fit(windows))
    probe = make_pipeline(frozen, LogisticRegression(max_iter=1000)).fit(windows, labels)
    RandomEncoderTransformer(**SMALL_ENCODER, input_layout="nct").fit(windows).save_pretrained(
        tmp_path / "encoder"
    )
    tuned = FineTuneClassifier(str(tmp_path / "encoder"), max_epochs=1, random_state=0)
    models = [
        probe,
        tuned,
        LabeledSubsetClassifier(clone(tuned)),
        GridSearchCV(clone(tuned), {"max_epochs": [1]}, cv=2),
        VotingClassifier([("tuned", clone(tuned))]),
        CalibratedClassifierCV(clone(tuned), cv=2),
    ]
    for fitted in models:
        fitted.fit(windows, labels)
        got = channel_importance(fitted, windows, labels, n_repeats=1, random_state=0)
        exchanged = windows.copy()
        donors = lenders(numbered(12))[0]
        for channel, importance in enumerate(got.importances[:, 0]):
            exchanged[:] = windows
            exchanged[:, channel] = windows[donors, channel]
            fall = fitted.score(windows, labels) - fitted.score(exchanged, labels)
            assert importance == pytest.approx(fall)


def test_a_layout_that_was_set_after_fit():
    tuned = FineTuneClassifier(**SMALL_ENCODER, max_epochs=1, random_state=0).fit(X[:12], y[:12])
    expected = channel_importance(tuned, X[:12], y[:12], n_repeats=1, random_state=0)
    tuned.set_params(input_layout="nct")
    got = channel_importance(tuned, X[:12].swapaxes(1, 2), y[:12], n_repeats=1, random_state=0)
    np.testing.assert_array_equal(got.importances, expected.importances)


def test_a_layout_that_nothing_tells_is_an_error(tmp_path):
    RandomEncoderTransformer(**SMALL_ENCODER, input_layout="nct").fit(
        X[:12].swapaxes(1, 2)
    ).save_pretrained(tmp_path / "encoder")

    class Hiding(BaseEstimator, ClassifierMixin):
        """A meta-estimator that keeps the fitted model where nobody looks for it."""

        def __init__(self, model):
            self.model = model

        def fit(self, X, y):
            self._fitted = clone(self.model).fit(X, y)
            return self

        def predict(self, X):
            return self._fitted.predict(X)

    hiding = Hiding(FineTuneClassifier(str(tmp_path / "encoder"), max_epochs=1, random_state=0))
    hiding.fit(X[:12].swapaxes(1, 2), y[:12])
    with pytest.raises(ValueError, match="set its input_layout"):
        channel_importance(hiding, X[:12].swapaxes(1, 2), y[:12])


class Counting(RecordingWindows):
    """Lazy windows that know the largest number of windows read at a time."""

    largest = 0

    def take(self, indices):
        Counting.largest = max(Counting.largest, len(indices))
        return super().take(indices)


def test_lazy_windows_are_never_read_whole():
    long = RNG.normal(size=(40, 16, 2)).astype(np.float32)
    lazy = Counting(long, recording=np.arange(40), start=np.zeros(40, int), length=16)
    pulse = PulseTransformer(**SMALL_PULSE).fit(long)
    probe = LogisticRegression().fit(pulse.transform(long), np.arange(40) % 2)
    Counting.largest = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sklearn_pulse.base._encoder._MAX_BLOCK", {"cpu": 8})
        channel_importance(make_pipeline(pulse, probe), lazy, np.arange(40) % 2, n_repeats=1)
    assert Counting.largest == 8


def test_recordings_exchange_channels_in_order_of_time():
    codes = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    donors = lenders(numbered(9), groups=codes)[0]
    for own in range(3):
        lent = donors[codes == own]
        (other,) = set(codes[lent])
        assert other != own
        members = np.flatnonzero(codes == other)
        first = np.flatnonzero(members == lent[0])[0]
        np.testing.assert_array_equal(lent, np.resize(np.roll(members, -first), len(lent)))


def test_recordings_of_one_protocol_do_not_lend_like_for_like():
    label = np.tile(np.repeat([0, 1], 10), 6)  # everybody rests, then walks
    windows = RNG.normal(size=(120, 16, 2)).astype(np.float32)
    windows[:, :, 1] *= 1 + 2 * label[:, None]
    probe = make_pipeline(StatisticsTransformer(), LogisticRegression(max_iter=1000))
    probe.fit(windows, label)
    person = np.repeat(np.arange(6), 20)
    got = channel_importance(probe, windows, label, groups=person, n_repeats=8, random_state=0)
    assert got.importances_mean[1] > 0.3 > abs(got.importances_mean[0])


def test_a_channel_that_marks_recordings_matters_only_between_recordings():
    group = np.repeat(np.arange(6), 10)
    label = group % 2
    windows = RNG.normal(size=(60, 16, 2)).astype(np.float32)
    windows[:, :, 0] += 3 * label[:, None]
    probe = model().fit(windows, label)
    between = channel_importance(probe, windows, label, groups=group, n_repeats=8, random_state=0)
    # Six recordings in a circle: half of the lenders, on average, have the other label.
    assert between.importances_mean[0] > 0.3 > abs(between.importances_mean[1])
    assert set(np.unique(between.importances[0].round(1))) <= {0.0, 0.2, 0.3, 0.5, 0.7, 0.8, 1.0}


def test_bags_tables_and_other_models():
    bags = X.reshape(30, 2, 16, 3)
    recordings = bags.reshape(30, 32, 3)
    pipe = make_pipeline(SlidingWindows(16), model().fit(X, y)).fit(recordings, y[:30])
    assert channel_importance(pipe, recordings, y[:30], random_state=0).importances.shape == (3, 5)
    for_bags = model().fit(bags, y[:30])
    assert channel_importance(for_bags, bags, y[:30], random_state=0).importances.shape == (3, 5)
    table = pd.DataFrame(X[:, :, 1]).add_prefix("step")
    got = channel_importance(
        LogisticRegression().fit(table, y), table, y, scoring="roc_auc", random_state=0
    )
    assert got.importances.shape == (1, 5) and got.importances_mean[0] > 0.3
    means = make_pipeline(FunctionTransformer(lambda X: X.mean(1)), LogisticRegression())
    assert channel_importance(means.fit(X, y), X, y, random_state=0).importances_mean.argmax() == 1


def test_a_scorer_without_labels_is_literal_too():
    windows = make_windows(24)[0]
    pulse = PulseTransformer(**SMALL_PULSE).fit(windows)
    r2 = RECONSTRUCTION_SCORERS["r2"]
    got = channel_importance(pulse, windows, None, scoring=r2, n_repeats=1, random_state=0)
    donors = lenders(numbered(24))[0]
    for channel in range(2):
        exchanged = windows.copy()
        exchanged[:, :, channel] = windows[donors, :, channel]
        fall = r2(pulse, windows) - r2(pulse, exchanged)
        assert got.importances[channel, 0] == pytest.approx(fall)


@pytest.mark.parametrize("kind", [np.array, lambda score: np.array([score]), torch.tensor])
def test_a_score_may_be_an_array_of_one_number(fitted, kind):
    def scoring(*args):
        return kind(fitted.score(*args[1:]))

    got = channel_importance(fitted, X, y, scoring=scoring, n_repeats=1, random_state=0)
    expected = channel_importance(fitted, X, y, n_repeats=1, random_state=0)
    np.testing.assert_allclose(got.importances, expected.importances, atol=1e-6)


def test_repeats_by_seed(fitted):
    first, again, other = (
        channel_importance(fitted, X, y, random_state=seed).importances for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_missing_steps(fitted):
    masked = np.ma.masked_array(X.copy(), np.zeros(X.shape, dtype=bool))
    masked[:, 12:] = 1e4
    masked[:, 12:] = np.ma.masked
    got = channel_importance(fitted, masked, y, random_state=0)
    expected = channel_importance(fitted, masked.filled(np.nan), y, random_state=0)
    np.testing.assert_array_equal(got.importances, expected.importances)
    gaps = X[:4].copy()
    gaps[:2, :8], gaps[2:, 8:] = np.nan, np.nan
    with pytest.raises(ValueError, match=r"(?s)channel 0 of other.*if the lent channel lacks it"):
        channel_importance(fitted, gaps, y[:4], random_state=0)


def test_missing_values_of_a_channel_go_with_it():
    windows = numbered(2)
    windows[0, 1, 0], windows[1, 2, 1] = np.nan, np.nan
    seen = []

    def keep(estimator, X, y):
        seen.append(np.isnan(X).any(2))
        return 0.0

    encoder = StatisticsTransformer().fit(windows)
    channel_importance(encoder, windows, None, scoring=keep, n_repeats=1, random_state=0)
    steps = [[set(np.flatnonzero(own).tolist()) for own in missing] for missing in seen]
    # As they are; channel 0 exchanged; channel 1 exchanged; channel 2, which lacks nothing.
    assert steps == [[{1}, {2}], [set(), {1, 2}], [{1, 2}, set()], [{1}, {2}]]


def test_bad_input(fitted):
    for params, kind, text in [
        ({"n_repeats": 0}, ValueError, "n_repeats"),
        ({"random_state": "now"}, (TypeError, ValueError), "random_state"),
        ({"scoring": ["accuracy"]}, TypeError, "scoring must give one score"),
        ({"scoring": probe_scores}, TypeError, "scoring must give one score"),
        ({"scoring": lambda *_: [0.5, 0.6]}, TypeError, "scoring must give a number"),
        ({"scoring": lambda *_: np.ones(2)}, TypeError, "scoring must give a number"),
        ({"scoring": lambda *_: "high"}, TypeError, "scoring must give a number"),
        ({"scoring": "loudness"}, ValueError, "loudness|scoring"),
        ({"groups": y[:5]}, ValueError, "groups has shape"),
        ({"groups": y * 0}, ValueError, "groups holds one recording"),
    ]:
        with pytest.raises(kind, match=text):
            channel_importance(fitted, X, y, **params)
    with pytest.raises(ValueError, match="n_samples=1 leaves no other"):
        channel_importance(fitted, X[:1], y[:1])
    with pytest.raises(ValueError, match="X holds no window: pass at least two"):
        channel_importance(fitted, X[:0], y[:0])
    with pytest.raises(ValueError, match="y has 59 labels for 60 windows"):
        channel_importance(fitted, X, y[1:])
    with pytest.raises(ValueError, match=r"(?s)X is ragged.*sliding_windows"):
        channel_importance(fitted, [X[0], X[1, :5]], y[:2])
    with pytest.raises(ValueError, match="X has 1 axes"):
        channel_importance(fitted, np.ones(60), y)
    with pytest.raises(NotFittedError):
        channel_importance(model(), X, y)


class Keeping(Callback):
    """A callback that keeps the network that it is a part of."""

    def on_train_begin(self, net, **kwargs):
        self.net_ = net


def test_a_part_may_refer_to_the_whole():
    pulse = PulseTransformer(**SMALL_PULSE, callbacks=[Keeping()])
    fitted = make_pipeline(pulse, LogisticRegression()).fit(X[:12], y[:12])
    assert channel_importance(fitted, X[:12], y[:12], n_repeats=1).importances.shape == (3, 1)


def test_donors_are_those_of_a_loop_over_groups():
    codes = np.random.default_rng(0).integers(0, 9, 50)
    codes[:9] = np.arange(9)
    rng = np.random.RandomState(5)
    circle = rng.permutation(9)
    lender = dict(zip(circle, np.roll(circle, -1), strict=True))
    expected = np.empty_like(codes)
    for group in range(9):
        own, other = (np.flatnonzero(codes == g) for g in (group, lender[group]))
        first = rng.randint(len(other))
        expected[own] = [other[(first + i) % len(other)] for i in range(len(own))]
    np.testing.assert_array_equal(_donors(codes, np.random.RandomState(5)), expected)


@pytest.mark.parametrize("kind", ["memory map", "list", "frames"])
def test_variation_that_float32_loses_is_exchanged(kind, tmp_path):
    far = X.astype(np.float64) + [0.0, 0.0, 1e9]
    fitted = model().fit(far[:40], y[:40])
    settings = {"scoring": "neg_log_loss", "random_state": 0}
    expected = channel_importance(fitted, far[40:], y[40:], **settings)
    path = tmp_path / "far.npy"
    np.save(path, far[40:])
    given = {
        "memory map": lambda: np.load(path, mmap_mode="r"),
        "list": lambda: list(far[40:]),
        "frames": lambda: [pd.DataFrame(x) for x in far[40:]],
    }[kind]()
    found = channel_importance(fitted, given, y[40:], **settings)
    np.testing.assert_allclose(found.importances, expected.importances, rtol=1e-6, atol=1e-9)
