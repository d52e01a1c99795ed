"""People who have several recordings: what is constant in a person is removed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import Memory
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse._closed_form._pieces import with_neighbours
from sklearn_pulse._closed_form._recording_moments import (
    fold_of_pairs,
    paired_windows,
    recording_moments,
    recording_sums,
)
from sklearn_pulse._data._windows import Block
from sklearn_pulse.corpus import fit_dataset
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import RecordingWindows

from .literal import SMALL


def literal_constant(f, recording, person):
    """Mean product of windows of two recordings of a person, each window as one of n.

    Each person counts as often as he has windows. Of a person with one recording, the other windows
    of it are taken.
    """
    n, r = f.shape
    total, counted = np.zeros((r, r)), 0
    for who in np.unique(person):
        own = [i for i in range(n) if person[i] == who]
        pairs = [(i, j) for i in own for j in own if recording[i] != recording[j]]
        if not pairs:
            pairs = [(i, j) for i in own for j in own if i != j]
        if pairs:
            mean = sum(np.outer(f[i], f[j]) for i, j in pairs) / len(pairs)
            total += len(own) * mean
            counted += len(own)
    return total / max(counted, 1)


SIZES = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), min_size=1, max_size=5)


@given(SIZES, st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_the_constant_part_of_people_literally(sizes, piece, chunk, seed):
    """Whatever pieces and chunks the windows are summed in."""
    of_recording = [size for own in sizes for size in own]
    recording = np.repeat(np.arange(len(of_recording)), of_recording)
    person = np.repeat(np.arange(len(sizes)), [sum(own) for own in sizes])
    gap = np.where(np.diff(recording, prepend=-1) > 0, np.inf, 1.0)
    f = np.random.default_rng(seed).normal(size=(len(recording), 3))
    windows = paired_windows(recording, gap, person=person)
    sums = []
    for first in range(0, len(f), piece):
        own = slice(first, min(first + piece, len(f)))
        rows = f[with_neighbours(own, windows)]
        n_before = len(rows) - (own.stop - own.start)
        chunks = [rows[i : i + chunk] for i in range(n_before, len(rows), chunk)]
        sums.append(
            recording_sums(chunks, windows.part(own), rows[:n_before] if n_before else None)
        )
    moments = recording_moments(sums, windows)
    expected = literal_constant(f, recording, person)
    np.testing.assert_allclose(moments.constant, expected, rtol=1e-10, atol=1e-12)
    apart = paired_windows(recording, gap)
    without = recording_moments([recording_sums([f], apart)], apart)
    np.testing.assert_allclose(moments.adjacent, without.adjacent, rtol=1e-10, atol=1e-12)


def test_folds_share_no_person():
    recording, person = np.repeat(np.arange(6), 2), np.repeat([0, 1, 2], 4)
    ends = np.tile([False, True], 6)
    np.testing.assert_array_equal(fold_of_pairs(recording, ends, person), np.repeat([0, 1, 0], 4))
    gap = np.where(ends, 1.0, np.inf)
    paired = paired_windows(recording, gap, person=person)
    np.testing.assert_array_equal(paired.fold, np.repeat([0, 1, 0], 4))
    of_one = fold_of_pairs(recording, ends, np.zeros(12, dtype=int))
    np.testing.assert_array_equal(of_one, np.repeat([0, 1, 0, 1, 0, 1], 2))


N_PEOPLE, N_WINDOWS = 6, 12  # of a recording


def days(seed=0):
    """Recordings of people, each of one of two activities, and of a level of each person."""
    rng = np.random.default_rng(seed)
    X, y, person, recording = [], [], [], []
    for number in range(2 * N_PEOPLE):
        who, activity = divmod(number, 2)
        level = np.random.default_rng(who + 100).normal(size=2) * 3
        wave = np.sin((0.3 + 0.2 * activity) * np.arange(N_WINDOWS * 32) + rng.uniform(0, 6))
        signal = level + wave[:, None] + rng.normal(scale=0.5, size=(len(wave), 2))
        X.append(signal.reshape(N_WINDOWS, 32, 2))
        y += [activity] * N_WINDOWS
        person += [f"p{who}"] * N_WINDOWS
        recording += [number] * N_WINDOWS
    start = np.tile(np.arange(N_WINDOWS), 2 * N_PEOPLE)
    return np.concatenate(X), np.array(y), np.array(person), np.array(recording), start


X, Y, PERSON, RECORDING, START = days()


def fitted(**known):
    return CrossPredictionTransformer(**SMALL).fit(X, start=START, **known)


def test_what_recordings_of_a_person_share_is_removed():
    """Of the recordings alone, the activity looks constant."""
    alone, of_people = fitted(groups=RECORDING), fitted(groups=PERSON, recording=RECORDING)
    assert (alone.n_pairs_, of_people.n_pairs_) == (132, 132)
    assert of_people.kappa_ > alone.kappa_ + 0.1

    def accuracy(cross):
        labelled = np.isin(PERSON, ["p0", "p1"])
        Z = clone(cross).set_params(alpha=1.0).fit_transform(X, start=START, **cross.known)
        return make_linear_probe().fit(Z[labelled], Y[labelled]).score(Z[~labelled], Y[~labelled])

    alone.known = {"groups": RECORDING}
    of_people.known = {"groups": PERSON, "recording": RECORDING}
    assert accuracy(of_people) > accuracy(alone) + 0.1


def test_kappa_is_of_the_constant_part_of_people():
    cross = CrossPredictionTransformer(
        n_components=200, num_kernels=84, embedding_dim=16, random_state=0, channels="recorded"
    ).fit(X, groups=PERSON, recording=RECORDING, start=START)
    f = cross._stack.projection()(Block(X.astype(np.float32), None)).astype(float)
    person = np.unique(PERSON, return_inverse=True)[1]
    constant = literal_constant(f, RECORDING, person)
    pairs = [(i - 1, i) for i in range(1, len(f)) if RECORDING[i] == RECORDING[i - 1]]
    common = np.mean([f[i] @ f[j] for i, j in pairs])
    np.testing.assert_allclose(cross.kappa_, 1 - np.trace(constant) / common, rtol=1e-4)


@pytest.mark.parametrize("views", ["adjacent", "halves"])
def test_the_order_of_the_rows_says_nothing(views):
    cross = CrossPredictionTransformer(views=views, **SMALL)
    expected = clone(cross).fit(X, groups=PERSON, recording=RECORDING, start=START)
    order = np.random.default_rng(0).permutation(len(X))
    known = {"groups": PERSON[order], "recording": RECORDING[order], "start": START[order]}
    found = clone(cross).fit(X[order], **known)
    # The biases of the kernels come from other windows.
    assert found.kappa_ == pytest.approx(expected.kappa_, abs=0.01)
    assert expected.kappa_ > clone(cross).fit(X, groups=RECORDING, start=START).kappa_ + 0.05


def test_lazy_windows_and_bags_know_their_recordings():
    expected = fitted(groups=PERSON, recording=RECORDING)
    signals = X.reshape(2 * N_PEOPLE, -1, 2)
    lazy = RecordingWindows(list(signals), RECORDING, 32 * START, length=32)
    for given_as, people in ((lazy, PERSON), (signals.reshape(-1, N_WINDOWS, 32, 2), None)):
        people = PERSON[::N_WINDOWS] if people is None else people
        found = CrossPredictionTransformer(**SMALL).fit(given_as, groups=people)
        np.testing.assert_array_equal(found.transform(X), expected.transform(X))
    misled = CrossPredictionTransformer(**SMALL).fit(lazy, groups=PERSON, recording=START)
    np.testing.assert_array_equal(misled.transform(X), expected.transform(X))


def test_a_person_with_one_recording_is_a_recording():
    expected = fitted(groups=RECORDING)
    names = np.array([f"name {99 - number}" for number in RECORDING])  # in another order
    for known in (
        {"groups": names, "recording": RECORDING},
        {"recording": RECORDING},
    ):
        found = fitted(**known)
        np.testing.assert_array_equal(found.transform(X), expected.transform(X))
        assert found.kappa_ == expected.kappa_


def test_recordings_that_people_share_by_number_stay_apart():
    expected = fitted(groups=PERSON, recording=RECORDING)
    found = fitted(groups=PERSON, recording=RECORDING % 2)
    np.testing.assert_array_equal(found.transform(X), expected.transform(X))
    lazy = RecordingWindows(list(X.reshape(12, -1, 2)), RECORDING, 32 * START, length=32)
    cross = CrossPredictionTransformer(**SMALL)
    divided = clone(cross).fit(lazy, groups=START < 6)  # parts of recordings, and no people
    np.testing.assert_array_equal(divided.transform(X), clone(cross).fit(lazy).transform(X))


def test_starts_that_repeat_ask_for_the_recordings():
    with pytest.warns(UserWarning, match="pass the recording of each window as recording, and"):
        fitted(groups=PERSON)


def test_a_single_person_has_several_recordings():
    of_one = fitted(groups=np.zeros(len(X)), recording=RECORDING)
    assert of_one.n_pairs_ == 132 and np.isfinite(of_one.kappa_)
    assert np.isfinite(of_one.transform(X)).all()


def test_a_corpus_has_the_bits_of_a_fit(tmp_path):
    cross = CrossPredictionTransformer(num_threads=1, **SMALL)
    known = {"groups": PERSON, "recording": RECORDING, "start": START}
    expected = clone(cross).fit(X, **known)
    found = fit_dataset(clone(cross), X, n_jobs=2, **known)
    np.testing.assert_array_equal(found.transform(X), expected.transform(X))


def test_a_memory_tells_people_apart(tmp_path):
    cross = CrossPredictionTransformer(memory=Memory(tmp_path, verbose=0), **SMALL)
    kappas = [
        clone(cross).fit(X, groups=groups, recording=RECORDING, start=START).kappa_
        for groups in (RECORDING, PERSON, PERSON)
    ]
    assert kappas[0] != kappas[1] == kappas[2]


def test_the_nearest_windows_are_of_other_people():
    """Each window has a copy in the other recording of its person, which is of no other one."""
    one = np.random.default_rng(0).normal(size=(3, 8, 32, 2)) * np.arange(1, 4)[:, None, None, None]
    windows = np.stack([one, one], axis=1).reshape(-1, 32, 2)
    person, recording = np.repeat(np.arange(3), 16), np.repeat(np.arange(6), 8)
    # The constant part hardly counts then, nor do small directions.
    settings = {"nearest": 1.0, "alpha": 0.0, "whitening": 0.5, "views": "adjacent"}
    cross = CrossPredictionTransformer(**settings, **SMALL)
    of_copies = clone(cross).fit_transform(windows, groups=recording)
    of_others = clone(cross).fit_transform(windows, groups=person, recording=recording)
    similar, others = (Z.astype(float) @ Z.T.astype(float) for Z in (of_copies, of_others))
    assert np.linalg.norm(others - similar) > 0.5 * np.linalg.norm(similar)


@pytest.mark.parametrize("views", ["adjacent", "halves"])
def test_predictability_is_of_people_who_are_held_out(views):
    """Noise, of which each person has a copy in another recording, predicts nothing of others."""
    one = np.random.default_rng(0).normal(size=(4, 8, 32, 2))
    windows = np.stack([one, one], axis=1).reshape(-1, 32, 2)
    person, recording = np.repeat(np.arange(4), 16), np.repeat(np.arange(8), 8)
    cross = CrossPredictionTransformer(views=views, **SMALL)
    leaked = clone(cross).fit(windows, groups=recording).predictability_["blocks"]
    honest = clone(cross).fit(windows, groups=person, recording=recording).predictability_["blocks"]
    assert max(honest.values()) < 0 < min(leaked.values())


def test_a_pipeline_routes_recordings():
    with config_context(enable_metadata_routing=True):
        cross = CrossPredictionTransformer(**SMALL).set_fit_request(
            groups=True, start=True, recording=True
        )
        pipeline = make_pipeline(WindowScaler(), cross)
        pipeline.fit(X, groups=PERSON, recording=RECORDING, start=START)
    assert pipeline[-1].kappa_ > 0.5


@pytest.mark.parametrize(
    ("recording", "message"),
    [
        (RECORDING[:-1], r"recording has shape \(143,\), but there are 144 samples"),
        ([None] * 144, "recording is missing for 144 sample"),
        ([*RECORDING[:-1], "a"], "recording mixes text with numbers"),
    ],
)
def test_recordings_that_do_not_fit(recording, message):
    with pytest.raises(ValueError, match=message):
        fitted(groups=PERSON, recording=recording)
