"""The splitter that thins the labelled rows of training parts."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    BaseCrossValidator,
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline

from sklearn_pulse import PulseTransformer
from sklearn_pulse.evaluation import PROBE_SCORERS, make_linear_probe
from sklearn_pulse.model_selection import (
    GroupHoldout,
    LabeledTestSplit,
    LabelFractionSplit,
    mask_labels,
)
from tests.helpers import SMALL_PULSE, make_windows

partly_labelled = hnp.arrays(np.int64, st.integers(1, 60), elements=st.integers(-1, 4)).filter(
    lambda y: not {*y.tolist()} <= {-1, 1}  # -1 beside 1 alone is refused, as a class
)
fractions = st.floats(0, 1)
SMOOTHING = ("per_class", "published", "none")


def whole(y):
    """Return one split whose training and test part are everything."""
    return [(np.arange(len(y)), np.arange(len(y)))]


def trains(y, *args, **params):
    splitter = LabelFractionSplit(*args, **{"cv": whole(y), **params})
    return [train for train, _ in splitter.split(np.zeros((len(y), 1)), y)]


@pytest.mark.parametrize("fraction", [np.float32(0.29), np.float16(0.1), Fraction(29, 100)])
@pytest.mark.parametrize("n_rows", [100, 70_000])  # float16 holds no number of 70,000
def test_the_type_of_the_fraction_does_not_matter(fraction, n_rows):
    y = np.arange(n_rows) % 2
    (train,) = trains(y, fraction, n_draws=1)
    assert sorted(train.tolist()) == np.flatnonzero(mask_labels(y, fraction, 0) != -1).tolist()


@given(partly_labelled, fractions, st.integers(0, 20))
@settings(max_examples=30, deadline=None)
def test_per_class_keeps_what_mask_labels_keeps(y, fraction, seed):
    for j, train in enumerate(trains(y, fraction, n_draws=3, random_state=seed)):
        kept = np.flatnonzero(mask_labels(y, fraction, seed + j) != -1)
        assert sorted(train.tolist()) == kept.tolist()
        n_drawn = int(fraction * (y != -1).sum())
        assert sorted(y[train[n_drawn:]].tolist()) == sorted(set(y[train[n_drawn:]].tolist()))


def published_rows(labels, fraction, seed):
    """Do literally what the released code does: the place of a label is taken for its row."""
    rng = np.random.RandomState(seed)
    order = rng.permutation(len(labels)).tolist()
    rows = order[: int(fraction * len(labels))]
    for label in sorted(set(labels.tolist())):
        places = [place for place in range(len(order)) if labels[order[place]] == label]
        rows.append(rng.permutation(places)[0])
    return set(rows)


@given(
    hnp.arrays(np.int64, st.integers(1, 60), elements=st.integers(0, 4)),
    fractions,
    st.integers(0, 20),
)
@settings(max_examples=30, deadline=None)
def test_published_literally(y, fraction, seed):
    splits = trains(y, fraction, smoothing="published", n_draws=3, random_state=seed)
    for j, train in enumerate(splits):
        assert len(train) == len(set(train.tolist()))
        assert set(train.tolist()) == published_rows(y, fraction, seed + j)


def test_published_draw_of_numpys_global_generator():
    """With the seed as it is, numpy's global generator would draw the same rows."""
    y = np.arange(500) % 5
    state = np.random.get_state()
    for j, train in enumerate(trains(y, 0.05, smoothing="published", random_state=3)):
        np.random.seed(3 + j)
        np.testing.assert_array_equal(train[:25], np.random.permutation(500)[:25])
    np.random.set_state(state)


def test_published_smoothing_misses_the_class_it_means():
    """Hit rate 1/K, so classes are missing; the others' smoothing has every class."""
    y = np.repeat([0, 1, 2, 3], [700, 100, 100, 100])
    published = trains(y, 0.01, smoothing="published", n_draws=100)
    missing = np.mean([len(set(y[train])) < 4 for train in published])
    assert 0.3 < missing < 1
    assert all(len(set(y[train])) == 4 for train in trains(y, 0.01, n_draws=100))


@given(partly_labelled, fractions, fractions, st.sampled_from(SMOOTHING), st.integers(0, 20))
@settings(max_examples=30, deadline=None)
def test_a_smaller_fraction_is_a_subset(y, fraction, other, smoothing, seed):
    few, many = sorted([fraction, other])
    n_labeled = int((y != -1).sum())
    if smoothing == "none" and int(few * n_labeled) == 0:
        return
    draws = [trains(y, p, smoothing=smoothing, random_state=seed) for p in (few, many)]
    for small, large in zip(*draws, strict=True):
        assert set(small.tolist()) <= set(large.tolist())
        n_drawn = int(few * n_labeled)
        np.testing.assert_array_equal(small[:n_drawn], large[:n_drawn])
        assert (y[large] != -1).all()


def test_none_is_the_fraction_alone():
    y = np.arange(230) % 3
    for none, smoothed in zip(trains(y, 0.05, smoothing="none"), trains(y, 0.05), strict=True):
        assert len(none) == 11
        np.testing.assert_array_equal(smoothed[:11], none)
        assert sorted(y[smoothed[11:]]) == [0, 1, 2]


def test_draws_within_the_splits_of_the_wrapped_splitter():
    y = np.arange(60) % 3
    X = np.zeros((60, 1))
    cv = KFold(3, shuffle=True, random_state=0)
    splitter = LabelFractionSplit(0.2, n_draws=4, cv=cv, random_state=7)
    splits = list(splitter.split(X, y))
    assert len(splits) == splitter.get_n_splits(X, y) == 12
    for k, (train, test) in enumerate(cv.split(X)):
        for j in range(4):
            part, scored = splits[4 * k + j]
            np.testing.assert_array_equal(scored, test)
            kept = train[mask_labels(y[train], 0.2, 7 + j) != -1]
            assert sorted(part) == kept.tolist()
            assert len(part) == 8 + 3


def test_draws_differ_and_repeat():
    y = np.arange(200) % 2
    first, again = trains(y, 0.1), trains(y, 0.1)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len({tuple(train) for train in first}) == 5
    np.testing.assert_array_equal(trains(y, 0.1, random_state=1)[0], first[1])
    state = np.random.RandomState(0)
    splitter = LabelFractionSplit(0.1, cv=whole(y), random_state=state)
    one, two = (next(splitter.split(y, y))[0] for _ in range(2))
    assert set(one) != set(two)
    assert set(trains(y, 0.1, random_state=None)[0]) != set(trains(y, 0.1, random_state=None)[0])


def test_groups_stay_apart():
    rng = np.random.default_rng(0)
    y, groups = rng.integers(-1, 3, 120), rng.integers(0, 12, 120)
    X = np.zeros((120, 1))
    for cv in (GroupKFold(3), GroupHoldout(), LabeledTestSplit(GroupKFold(3))):
        splitter = LabelFractionSplit(0.1, n_draws=2, cv=cv)
        splits = list(splitter.split(X, y, groups))
        assert len(splits) == splitter.get_n_splits(X, y, groups)
        for train, test in splits:
            assert not set(groups[train]) & set(groups[test])
            assert (y[train] != -1).all()
            if isinstance(cv, LabeledTestSplit):
                assert (y[test] != -1).all()


def test_number_of_splits():
    y, X = np.arange(30) % 2, np.zeros((30, 1))
    groups = np.repeat(np.arange(6), 5)
    assert LabelFractionSplit(0.5).get_n_splits() == 25
    assert LabelFractionSplit(0.5, n_draws=np.int8(100)).get_n_splits() == 500
    assert LabelFractionSplit(0.5, cv=None, n_draws=1).get_n_splits(X, y) == 5
    assert LabelFractionSplit(0.5, cv=LeaveOneGroupOut()).get_n_splits(X, y, groups) == 30
    once = LabelFractionSplit(0.5, cv=(part for part in whole(y)))
    for _ in range(2):
        assert len(list(once.split(X, y))) == once.get_n_splits(X, y) == 5
    with pytest.raises(ValueError, match="n_draws must be an integer of at least 1"):
        LabelFractionSplit(0.5, n_draws=0).get_n_splits(X, y)


def test_labels_of_every_kind():
    y = np.arange(60) % 3
    expected = trains(y, 0.1)
    text = np.array(["a", "b", "c"])[y]
    mixed = [-1, *text.tolist(), -1]
    shifted = [train + 1 for train in expected]
    for labels, rows in [
        (y.tolist(), expected),
        (y[:, None], expected),
        (pd.Series(y, index=np.arange(60)[::-1]), expected),
        (text, expected),
        (text.astype(object), expected),
        (mixed, shifted),
    ]:
        for got, train in zip(trains(labels, 0.1), rows, strict=True):
            np.testing.assert_array_equal(got, train)
    marked = np.append(text, "?")
    for got, train in zip(trains(marked, 0.1, unlabeled_label="?"), expected, strict=True):
        np.testing.assert_array_equal(got, train)
    everything = trains(np.array([-1, 1] * 20), 1.0, unlabeled_label=None)
    assert all(len(train) == 40 for train in everything)


def test_folds_may_be_masks_or_lists():
    y, first = np.arange(40) % 2, np.arange(40) < 30
    ((train, _),) = LabelFractionSplit(
        0.2, n_draws=1, cv=[(np.arange(30), np.arange(30, 40))]
    ).split(y, y)
    for fold in [(first, ~first), (list(range(30)), range(30, 40))]:
        ((got, got_test),) = LabelFractionSplit(0.2, n_draws=1, cv=[fold]).split(y, y)
        np.testing.assert_array_equal(got, train)
        np.testing.assert_array_equal(got_test, np.arange(30, 40))


def test_prints_and_copies():
    splitter = LabelFractionSplit(0.05, cv=GroupKFold(3), smoothing="none")
    text = repr(splitter)
    assert text.startswith("LabelFractionSplit(") and "fraction=0.05" in text
    assert repr(clone(splitter, safe=False)) == text


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"fraction": 5}, ValueError, r"fraction must be a number in \[0, 1\]"),
        ({"smoothing": "laplace"}, ValueError, "smoothing must be one of 'per_class', 'publ"),
        ({"n_draws": 0}, ValueError, "n_draws must be an integer of at least 1"),
        ({"smoothing": "none"}, ValueError, "fraction=0.01 of the 40 labelled rows in the train"),
        ({"unlabeled_label": np.nan}, TypeError, "unlabeled_label must be an integer, text or"),
        ({"random_state": "a"}, TypeError, "random_state must be an integer"),
    ],
)
def test_bad_parameters(params, error, message):
    with pytest.raises(error, match=message):
        trains(np.arange(40) % 2, **params)


def test_labels_of_another_shape_or_none_at_all_are_refused():
    with pytest.raises(ValueError, match="LabelFractionSplit requires y"):
        next(LabelFractionSplit().split(np.zeros(4)))
    with pytest.raises(ValueError, match="one label per row"):
        trains(np.zeros((4, 2)))
    nothing = {"y": np.full(10, -1), "groups": np.arange(10)}
    halves = [(np.arange(5), np.arange(5, 10))]
    for few in ({"fraction": 0.5}, {"fraction": None, "n_groups": 1}):
        with pytest.raises(ValueError, match="training part of split 0 holds no labelled row"):
            next(LabelFractionSplit(**few, cv=halves).split(np.zeros(10), **nothing))


@pytest.mark.parametrize("few", [{"fraction": 0.5}, {"fraction": None, "n_groups": 1}])
def test_text_beside_numbers_is_refused(few):
    y = ["walk", 0, -1, "sit"] * 10  # 0 marks unlabelled rows, but is not named as the marker
    with pytest.raises(TypeError, match="y mixes text with other labels.* set unlabeled_label=0 "):
        next(LabelFractionSplit(**few, cv=2).split(np.zeros(40), y, groups=np.arange(40)))


# In cross-validation and searches.


def test_probe_on_a_frozen_encoder():
    """One call gives what a loop over fitted probes gives, and the encoder is not trained."""
    X, y = make_windows(80)
    pulse = PulseTransformer(**SMALL_PULSE).fit(X[:50])
    pipeline = Pipeline([("pulse", FrozenEstimator(pulse)), ("probe", make_linear_probe())])
    cv = LabelFractionSplit(0.2, n_draws=3, cv=[(np.arange(50), np.arange(50, 80))])
    scores = cross_validate(pipeline, X, y, cv=cv, scoring=PROBE_SCORERS, return_estimator=True)
    embedding = pulse.transform(X)
    for (train, test), fitted, score in zip(
        cv.split(X, y), scores["estimator"], scores["test_accuracy"], strict=True
    ):
        assert fitted["pulse"].estimator is pulse
        probe = make_linear_probe().fit(embedding[train], y[train])
        assert len(train) == 10 + 2
        assert score == probe.score(embedding[test], y[test])
    on_embeddings = cross_validate(make_linear_probe(), embedding, y, cv=cv)
    np.testing.assert_allclose(on_embeddings["test_score"], scores["test_accuracy"])


def test_more_labels_score_better():
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 3
    X = rng.normal(size=(1500, 30)) + 0.6 * np.eye(30)[y]
    means = [
        cross_val_score(make_linear_probe(), X, y, cv=LabelFractionSplit(fraction, cv=3)).mean()
        for fraction in (0.01, 0.05, 0.5)
    ]
    assert means == sorted(means)


def test_search_routes_groups_to_the_wrapped_splitter():
    rng = np.random.default_rng(0)
    y, groups = np.arange(120) % 2, np.repeat(np.arange(12), 10)
    X = rng.normal(size=(120, 2)) + y[:, None]
    grid = {"C": [0.1, 1.0]}

    def search(cv):
        cv = LabelFractionSplit(0.3, n_draws=2, cv=cv)
        return GridSearchCV(LogisticRegression(), grid, cv=cv)

    plain = search(GroupKFold(4)).fit(X, y, groups=groups)
    assert plain.n_splits_ == 8
    with sklearn.config_context(enable_metadata_routing=True):
        routed = search(GroupKFold(4)).fit(X, y, groups=groups)
        renamed = GroupKFold(4).set_split_request(groups="subject")
        aliased = search(renamed).fit(X, y, subject=groups)
        with pytest.raises(TypeError, match="groups"):
            search(4).fit(X, y, groups=groups)
    for other in (routed, aliased):
        np.testing.assert_array_equal(
            other.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
        )


def test_real_recordings_keep_their_class_counts(data_home):
    """HAR, 1 %: the training part of the published division holds 31 + 6 rows of 3,178."""
    from sklearn_pulse.datasets import fetch_har

    har = fetch_har(data_home, download_if_missing=False)
    X = np.zeros((len(har.y), 1))
    parts = [np.flatnonzero(har.split == part) for part in ("train", "val")]
    assert len(parts[0]) == 3178
    cv = LabelFractionSplit(0.01, cv=[parts])
    for train, _ in cv.split(X, har.y):
        assert len(train) == 31 + 6
        assert set(har.y[train]) == set(har.y)
    assert cross_val_score(DummyClassifier(), X, har.y, cv=cv).shape == (5,)


def test_whole_groups_are_those_of_mask_labels():
    rng = np.random.default_rng(0)
    y, people = rng.integers(0, 3, 120), np.repeat(np.arange(12), 10)
    holdout = [(np.arange(100), np.arange(100, 120))]
    split = LabelFractionSplit(None, n_groups=1, cv=holdout, n_draws=4, random_state=5)
    drawn = list(split.split(y, y, people))
    assert len(drawn) == split.get_n_splits() == 4
    for draw, (train, test) in enumerate(drawn):
        masked = mask_labels(y[:100], n_groups=1, groups=people[:100], random_state=5 + draw)
        np.testing.assert_array_equal(train, np.flatnonzero(masked != -1))
        np.testing.assert_array_equal(test, holdout[0][1])
    assert len({tuple(train) for train, _ in drawn}) > 1


@pytest.mark.parametrize("cv", [GroupKFold(3), KFold(3), None])
@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_splitters_that_use_them(cv, routing):
    y, people = np.arange(60) % 2, np.repeat(np.arange(6), 10)
    X = np.random.default_rng(0).normal(size=(60, 2))
    split = LabelFractionSplit(None, n_groups=1, cv=cv, n_draws=2)
    passed = {"params": {"groups": people}} if routing else {"groups": people}
    with sklearn.config_context(enable_metadata_routing=routing):
        scores = cross_val_score(LogisticRegression(), X, y, cv=split, **passed)
    assert len(scores) == split.get_n_splits(X, y, people)
    for train, test in split.split(X, y, people):
        assert len(np.unique(people[train])) == 1
        if isinstance(cv, GroupKFold):
            assert not set(people[train]) & set(people[test])


class PlainSplitter:
    """A splitter without scikit-learn's requests for metadata, which uses groups."""

    def split(self, X, y=None, groups=None):
        return GroupKFold(3).split(X, y, groups)

    def get_n_splits(self, X=None, y=None, groups=None):
        return 3


def test_groups_reach_a_splitter_without_requests():
    y, people = np.arange(60) % 2, np.repeat(np.arange(6), 10)
    for train, test in LabelFractionSplit(None, n_groups=1, cv=PlainSplitter()).split(y, y, people):
        assert not set(people[train]) & set(people[test])


def test_the_largest_seed():
    y = np.arange(40) % 2
    split = LabelFractionSplit(0.2, cv=2, n_draws=3, random_state=2**32 - 1)
    assert len(list(split.split(y, y))) == 6


def test_whole_groups_need_groups():
    y = np.arange(20) % 2
    with pytest.raises(ValueError, match="pass the group of each row as groups"):
        next(LabelFractionSplit(None, n_groups=1).split(y, y))
    with pytest.raises(ValueError, match=r"fraction=0\.01 and n_groups=1: set one of them"):
        next(LabelFractionSplit(n_groups=1).split(y, y, y))


class OwnSplitter(BaseCrossValidator):
    """A splitter of a user, which uses groups and makes no request for them."""

    def split(self, X, y=None, groups=None):
        return GroupKFold(3).split(X, y, groups)

    def get_n_splits(self, X=None, y=None, groups=None):
        return 3


class OwnKFold(KFold):
    """A splitter of a user that takes its way to split, without groups, from scikit-learn."""


@pytest.mark.parametrize(
    "cv",
    [
        OwnSplitter(),
        LabeledTestSplit(OwnSplitter()),
        LabeledTestSplit(KFold(3)),
        OwnKFold(3),
    ],
)
def test_groups_reach_splitters_that_may_use_them_and_no_others(cv):
    y, people = np.arange(60) % 2, np.repeat(np.arange(6), 10)
    # An unused group would make scikit-learn warn, which is an error here.
    splits = list(LabelFractionSplit(None, n_groups=1, cv=cv, n_draws=1).split(y, y, people))
    assert len(splits) == 3
    for train, test in splits:
        assert not set(people[train]) & set(people[test])


def test_groups_reach_a_splitter_that_asks_for_them_by_another_name():
    y, people = np.arange(60) % 2, np.repeat(np.arange(6), 10)
    with sklearn.config_context(enable_metadata_routing=True):
        cv = GroupKFold(3).set_split_request(groups="subject")
        for wrapped in (cv, LabeledTestSplit(cv)):
            split = LabelFractionSplit(None, n_groups=1, cv=wrapped, n_draws=1)
            for train, test in split.split(y, y, people):
                assert not set(people[train]) & set(people[test])
            X, routed = np.eye(60), {"subject": people}
            probe = LogisticRegression()
            assert len(cross_val_score(probe, X, y, cv=split, params=routed)) == 3
