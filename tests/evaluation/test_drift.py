"""Distances of embeddings, and scores outside the range of a reference."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_pulse import CrossPredictionTransformer, PulseTransformer
from sklearn_pulse.evaluation import drift_scores, embedding_drift, score_drift
from sklearn_pulse.preprocessing import WindowScaler
from tests.finetune.tuning import array_api
from tests.helpers import SMALL_PULSE, make_windows

X, _ = make_windows(48)
LOUD = X[32:] * np.float32([1.0, 8.0])
RNG = np.random.default_rng(0)
NEAR, FAR = RNG.normal(size=(30, 5)), RNG.normal(loc=2.0, size=(20, 5))


@pytest.fixture(scope="module")
def pulse():
    return PulseTransformer(**SMALL_PULSE).fit(X[:16])


def test_literally():
    both = np.concatenate([NEAR, FAR])
    both = (both - both.mean(0)) / both.std(0)
    first, second = both[:30], both[30:]
    between = cdist(first, second).mean()
    within = sum(
        np.mean([np.linalg.norm(a - b) for a, b in itertools.combinations(part, 2)])
        for part in (first, second)
    )
    got = embedding_drift(NEAR, FAR, n_permutations=9, random_state=0)
    assert got.distance == pytest.approx(1 - within / (2 * between))
    assert got.p_value == 0.1 and got.null_distances.shape == (9,)


def test_groups_are_divided_whole():
    """The null of three and two recordings is made of all ten divisions of the five."""
    points = np.random.default_rng(1).normal(size=(20, 3))
    group = np.repeat(list("abcde"), 4)
    got = embedding_drift(
        points[:12],
        points[12:],
        groups_reference=group[:12],
        groups_new=group[12:],
        n_permutations=200,
        random_state=0,
    )
    expected = []
    for new in itertools.combinations("abcde", 2):
        is_new = np.isin(group, new)
        one = embedding_drift(points[~is_new], points[is_new], n_permutations=1, random_state=0)
        expected.append(one.distance)
    *others, actual = np.round(expected, 9)
    np.testing.assert_allclose(np.sort(got.null_distances), np.sort(others), atol=1e-8)
    assert got.distance == pytest.approx(actual, abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_a_division_and_its_complement_are_alike(seed):
    """Of six recordings, three are new: one division in ten has the largest distance."""
    points = np.random.default_rng(seed).normal(size=(180, 32))
    points[90:] += 2
    old, new = np.repeat(list("abcdef"), 30).reshape(2, 90)
    got = embedding_drift(
        points[:90], points[90:], groups_reference=old, groups_new=new, n_permutations=999
    )
    assert len(got.null_distances) == 19 and got.p_value == 0.1


def test_the_divisions_of_few_recordings_need_no_seed():
    points, group = np.random.default_rng(0).normal(size=(155, 8)), np.repeat(np.arange(31), 5)
    old = group < 30
    for seed in range(5):
        got = embedding_drift(
            points[old],
            points[~old] + 50,
            groups_reference=group[old],
            groups_new=group[~old],
            random_state=seed,
        )
        assert got.p_value == 1 / 31


def test_recordings_of_a_single_window_hide_no_drift():
    """They leave no distance within a set, if they alone take the place of the new recording."""
    sizes = [1] * 15 + [10] * 15
    group = np.repeat(np.arange(30), sizes)
    rng = np.random.default_rng(0)
    reference, new = rng.normal(size=(len(group), 8)), 1 + rng.normal(size=(10, 8))
    got = embedding_drift(reference, new, groups_reference=group, groups_new=np.full(10, 99))
    assert len(got.null_distances) == 15
    assert got.p_value == 1 / 16


def test_recordings_of_any_length_count_alike():
    points = np.random.default_rng(0).normal(size=(40, 3))
    group = np.repeat(np.arange(6), [1, 2, 17, 4, 15, 1])
    old = group < 4
    got = embedding_drift(
        points[old], points[~old], groups_reference=group[old], groups_new=group[~old]
    )
    scaled = (points - points.mean(0)) / points.std(0)
    weight = 1 / np.bincount(group)[group]
    pairs = np.outer(weight, weight) * (1 - np.eye(40))
    distances = cdist(scaled, scaled)

    def mean(first, second):
        part = np.ix_(first, second)
        return np.average(distances[part], weights=pairs[part])

    within = mean(old, old) + mean(~old, ~old)
    assert got.distance == pytest.approx(1 - within / (2 * mean(old, ~old)))


def test_a_long_new_recording_does_not_hide_its_drift():
    """Beside short recordings, any set that holds it would have small distances within."""
    p_values = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(11), [20] * 10 + [400])
        points = rng.normal(size=(11, 4))[group] + rng.normal(size=(600, 4))
        old = group < 10
        groups = {"groups_reference": group[old], "groups_new": group[~old]}
        p_values.append(embedding_drift(points[old], points[~old] + 2, **groups).p_value)
    assert np.mean(np.array(p_values) == 1 / 11) >= 0.6


def test_recordings_that_differ_are_drift_only_without_groups():
    by_group, alone = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(8), 6)
        points = rng.normal(size=(8, 4))[group] + 0.3 * rng.normal(size=(48, 4))
        old = group < 5
        groups = {"groups_reference": group[old], "groups_new": group[~old]}
        settings = {"n_permutations": 39, "random_state": 0}
        by_group.append(embedding_drift(points[old], points[~old], **groups, **settings).p_value)
        alone.append(embedding_drift(points[old], points[~old], **settings).p_value)
    assert np.mean(np.array(by_group) <= 0.1) <= 0.3
    assert np.mean(np.array(alone) <= 0.1) >= 0.9


def test_windows_are_drawn_from_all_groups_alike():
    """Windows of a recording are alike, so a distance tells how many were drawn of each."""
    points, group = RNG.normal(size=(3, 5)), np.arange(3)

    def distance(counts, **params):
        return embedding_drift(
            np.repeat(points, counts, axis=0),
            FAR[:2],
            groups_reference=np.repeat(group, counts),
            groups_new=[3, 4],
            n_permutations=1,
            random_state=0,
            **params,
        ).distance

    few_of_many = distance([100, 3, 10], max_windows=12)
    assert few_of_many in [pytest.approx(distance(n)) for n in ([5, 3, 4], [4, 3, 5])]
    fewer_than_groups = distance([100, 3, 10], max_windows=2)
    assert fewer_than_groups in [
        pytest.approx(distance(n)) for n in ([1, 1, 0], [1, 0, 1], [0, 1, 1])
    ]


def test_few_windows_are_drawn_by_the_seed():
    few = embedding_drift(NEAR, FAR, max_windows=10, n_permutations=19, random_state=0)
    assert few.p_value == 0.05
    again = embedding_drift(NEAR, FAR, max_windows=10, n_permutations=19, random_state=0)
    np.testing.assert_array_equal(few.null_distances, again.null_distances)


def test_identical_windows_are_no_drift():
    same = np.ones((4, 3))
    assert embedding_drift(same, same, n_permutations=3, random_state=0).distance == 0.0


def test_shares_literally():
    reference, new = RNG.normal(size=(200, 3)), RNG.normal(loc=[0, 0, 9], size=(50, 3))
    got = score_drift(reference, new, coverage=0.9)
    for c in range(3):
        low, high = np.quantile(reference[:, c], [0.05, 0.95])
        assert got.share_outside[c] == np.mean((new[:, c] < low) | (new[:, c] > high))
        np.testing.assert_allclose((got.low[c], got.high[c]), (low, high))
    assert got.expected == pytest.approx((199 * 0.1 + 2) / 201) and got.share_outside[2] == 1.0
    one = score_drift(reference[:, 2], new[:, 2], coverage=0.9)
    assert one.share_outside.tolist() == got.share_outside[2:].tolist()


@pytest.mark.parametrize("n_reference", [2, 5, 20, 100, 2000])
def test_the_expected_share_is_that_of_windows_like_the_reference(n_reference):
    """Of few scores the range is narrower than that of the scores to come."""
    rng = np.random.default_rng(0)
    reference, new = rng.uniform(size=(n_reference, 2000)), rng.uniform(size=(100, 2000))
    got = score_drift(reference, new)
    error = got.share_outside.std() / np.sqrt(2000)
    assert got.expected == pytest.approx(got.share_outside.mean(), abs=4 * error)


@pytest.mark.parametrize("coverage", [np.float16(0.9), Fraction(9, 10)])
def test_the_type_of_the_coverage_does_not_matter(coverage):
    scores = np.linspace(0.0, 1.0, 70_000)  # more than float16 counts to
    got, expected = (
        score_drift(scores, scores, coverage),
        score_drift(scores, scores, float(coverage)),
    )
    assert got.share_outside == expected.share_outside > 0.09
    assert got.expected == expected.expected


def test_the_type_of_the_number_of_divisions_does_not_matter():
    assert embedding_drift(NEAR, FAR, n_permutations=np.uint8(255)).p_value == 1 / 256


def test_an_estimator_that_reconstructs(pulse):
    same = drift_scores(pulse, X[16:32], X[32:], random_state=0)
    loud = drift_scores(pulse, X[16:32], LOUD, random_state=0)
    assert loud.embedding.p_value == 0.005 < same.embedding.p_value
    assert loud.scores.share_outside[1] > 0.8 > same.scores.share_outside.max()
    expected = embedding_drift(pulse.transform(X[16:32]), pulse.transform(LOUD), random_state=0)
    assert loud.embedding.distance == expected.distance


def test_options_reach_the_distances_and_the_scores(pulse):
    old, new = X[16:32], X[32:]
    options = {
        "groups_reference": np.arange(16) // 4,
        "groups_new": 4 + np.arange(16) // 4,
        "n_permutations": 19,
        "max_windows": 10,
        "random_state": 0,
    }
    got = drift_scores(pulse, old, new, coverage=0.8, **options)
    expected = embedding_drift(pulse.transform(old), pulse.transform(new), **options)
    assert got.embedding.p_value == expected.p_value
    np.testing.assert_array_equal(got.embedding.null_distances, expected.null_distances)
    scores = [pulse.score_samples(part, per_channel=True) for part in (old, new)]
    shares = score_drift(*scores, coverage=0.8)
    np.testing.assert_array_equal(got.scores.share_outside, shares.share_outside)
    assert got.scores.expected == shares.expected


def test_a_pipeline_and_an_estimator_without_a_decoder(pulse):
    pipe = make_pipeline(WindowScaler(), PulseTransformer(**SMALL_PULSE)).fit(X[:16])
    assert drift_scores(pipe, X[16:32], LOUD, random_state=0).scores.share_outside.shape == (2,)
    cross = CrossPredictionTransformer(num_kernels=84, random_state=0).fit(X[:16])
    for estimator in (cross, make_pipeline(pulse, PCA(2).fit(pulse.transform(X)))):
        drift = drift_scores(estimator, X[16:32], LOUD, random_state=0)
        assert drift.scores is None and drift.embedding.p_value == 0.005


def test_bad_input(pulse):
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        drift_scores(pulse, X[:1], X)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        drift_scores(pulse, X, X[:1])
    with pytest.raises(ValueError, match="expecting 2 channels"):
        drift_scores(pulse, X, X[..., :1])
    probe = make_pipeline(pulse, LogisticRegression().fit(pulse.transform(X), np.arange(48) % 2))
    with pytest.raises(TypeError, match=r"LogisticRegression embeds nothing.*pipeline\[:-1\]"):
        drift_scores(probe, X, X)
    for settings in ({"coverage": 1.0}, {"n_permutations": 0}, {"max_windows": 1}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            drift_scores(pulse, X, X, **settings)
    with pytest.raises(ValueError, match=r"new must give one row of numbers .* shape \(5,\)"):
        embedding_drift(np.eye(5), np.arange(5.0))
    with pytest.raises(ValueError, match=r"reference must give one row .* shape \(2, 3, 4\)"):
        score_drift(np.ones((2, 3, 4)), np.ones(5))
    for compare in (score_drift, embedding_drift):
        with pytest.raises(TypeError, match="reference is a Pipeline: .*drift_scores takes"):
            compare(make_pipeline(pulse), X)
    with pytest.raises(ValueError, match="reference has 5 dimensions and new has 4"):
        embedding_drift(NEAR, FAR[:, :4])
    with pytest.raises(ValueError, match="NaN"):
        embedding_drift(NEAR, np.where(FAR > 2, np.nan, FAR))
    with config_context(assume_finite=True), pytest.raises(ValueError, match="NaN"):
        score_drift(NEAR, np.where(FAR > 2, np.nan, FAR))
    with pytest.raises(ValueError, match="scores of 2 channels and new of 1"):
        score_drift(NEAR[:, :2], FAR[:, 0])


def test_an_estimator_that_is_not_fitted_is_named():
    X = make_windows(12)
    estimator = PulseTransformer(**SMALL_PULSE)
    for unfitted in (estimator, make_pipeline(WindowScaler(), estimator)):
        with pytest.raises(NotFittedError, match="^(This .*|Pipeline) is not fitted"):
            drift_scores(unfitted, X[:6], X[6:])


def test_wrong_arguments_are_refused_before_windows_are_embedded(pulse, monkeypatch):
    monkeypatch.setattr(PulseTransformer, "transform", lambda *args: pytest.fail("embedded"))
    probe = make_pipeline(pulse, LogisticRegression())
    with pytest.raises(TypeError, match="LogisticRegression embeds nothing"):
        drift_scores(probe, X, X)
    for settings, message in (
        ({"coverage": 1.0}, "coverage"),
        ({"n_permutations": 0}, "n_permutations"),
        ({"max_windows": 1}, "max_windows"),
        ({"random_state": -1}, "random_state"),
        ({"groups_reference": np.arange(48)}, "groups_new is None"),
        ({"groups_reference": np.arange(4), "groups_new": np.arange(48)}, "there are 48 windows"),
    ):
        with pytest.raises(ValueError, match=message):
            drift_scores(pulse, X, X, **settings)


def test_bad_groups():
    old, new = np.arange(30) // 10, 10 + np.arange(20) // 10
    with pytest.raises(ValueError, match="groups_new is None: pass the recordings of both"):
        embedding_drift(NEAR, FAR, groups_reference=old)
    with pytest.raises(ValueError, match="groups_reference holds one recording only"):
        embedding_drift(NEAR, FAR, groups_reference=old * 0, groups_new=new)
    with pytest.raises(ValueError, match="share '2': give the"):
        embedding_drift(NEAR, FAR, groups_reference=old, groups_new=new - 8)
    with pytest.raises(ValueError, match=r"groups_new has shape \(3,\), but there are 20 windows"):
        embedding_drift(NEAR, FAR, groups_reference=old, groups_new=[7, 8, 9])


def test_steps_that_do_nothing_and_frozen_pipelines(pulse):
    new = X[24:] * np.float32([1.0, 5.0])
    plain = drift_scores(pulse, X[12:24], new, random_state=0)
    pipelines = [
        make_pipeline(pulse, "passthrough", None),
        FrozenEstimator(make_pipeline("passthrough", pulse)),
        make_pipeline("passthrough", FrozenEstimator(make_pipeline(pulse, None))),
    ]
    for pipeline in pipelines:
        drift = drift_scores(pipeline, X[12:24], new, random_state=0)
        assert drift.embedding.distance == plain.embedding.distance
        np.testing.assert_array_equal(drift.scores.share_outside, plain.scores.share_outside)


@pytest.mark.parametrize("unit", [2.0**-600, 2.0**600])
def test_the_unit_of_embeddings_does_not_matter(unit):
    points = np.random.default_rng(0).normal(size=(40, 3))
    points[20:] += 1
    plain, scaled = (
        embedding_drift(Z[:20], Z[20:], random_state=0) for Z in (points, points * unit)
    )
    assert (scaled.distance, scaled.p_value) == (plain.distance, plain.p_value)


def energy_distance(first, second):
    scale = np.concatenate([first, second]).std(0)
    first, second = (part / np.where(scale == 0, 1, scale) for part in (first, second))
    within = sum(
        np.mean([np.linalg.norm(a - b) for a, b in itertools.combinations(part, 2)])
        for part in (first, second)
    )
    between = cdist(first, second).mean()
    return 1 - within / (2 * between) if between else 0.0


def test_equal_distances_count_for_the_p_value():
    """Values of few levels make many divisions alike, at the distance 0 too."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        (n, m), dim = rng.integers(2, 9, size=2), rng.integers(1, 4)
        points = rng.integers(2, size=(n + m, dim)).astype(float)
        got = embedding_drift(points[:n], points[n:], n_permutations=40, random_state=0)
        distance = energy_distance(points[:n], points[n:])
        assert got.distance == pytest.approx(distance, abs=1e-7)
        shares = [
            energy_distance(points[~new], points[new]) for new in divisions(n, m, n_permutations=40)
        ]
        at_least = np.array(shares) > distance - 1e-6
        assert got.p_value == pytest.approx((1 + at_least.sum()) / (1 + len(shares)))


def divisions(n, m, n_permutations):
    """All other divisions, or those of a seed 0, whose first four draws choose windows."""
    if math.comb(n + m, m) <= n_permutations + 1:
        every = itertools.combinations(range(n + m), m)
        yield from (np.isin(np.arange(n + m), new) for new in every if new[0] < n)
        return
    rng = np.random.RandomState(0)
    for size in (n, n, m, m):
        rng.permutation(size)
    for _ in range(n_permutations):
        yield rng.permutation(np.arange(n + m) >= n)


def test_recordings_that_are_copies_are_no_drift():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n_old, n_new, length = rng.integers(2, 6, size=3)
        points = np.tile(rng.integers(3, size=(length, 3)) * 0.7 - 0.3, (n_old + n_new, 1))
        group = np.repeat(np.arange(n_old + n_new), length)
        old = group < n_old
        groups = {"groups_reference": group[old], "groups_new": group[~old]}
        assert embedding_drift(points[old], points[~old], **groups).p_value == 1.0


def test_messages_name_the_parameter(pulse):
    gap = X.copy()
    gap[4] = np.nan
    with pytest.raises(ValueError, match="X_new: Input X has no finite time step in sample 4"):
        drift_scores(pulse, X, gap)
    with pytest.raises(ValueError, match=r"X_new holds 1 window\(s\), while a minimum of 2"):
        drift_scores(pulse, X, X[:1])
    with pytest.raises(TypeError, match="estimator is the class PulseTransformer: pass a fitted"):
        drift_scores(PulseTransformer, X, X)


def test_equal_scores_lie_inside():
    assert score_drift(np.ones(10), np.ones(5)).share_outside == 0


def test_as_many_permutations_as_divisions_are_all_divisions():
    reference, new = np.random.default_rng(0).normal(size=(2, 20, 3))
    groups = np.arange(20) // 10  # two recordings each: 5 other divisions of four
    found = [
        embedding_drift(
            reference,
            new,
            groups_reference=groups,
            groups_new=2 + groups,
            n_permutations=5,
            random_state=seed,
        ).null_distances
        for seed in (0, 1)
    ]
    assert len(found[0]) == 5
    np.testing.assert_allclose(*(np.sort(distances) for distances in found))


@pytest.mark.parametrize("dispatch", [False, pytest.param(True, marks=array_api)])
def test_embeddings_and_scores_may_be_tensors(monkeypatch, dispatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    rng = np.random.default_rng(0)
    sets = rng.normal(size=(12, 3)), rng.normal(size=(9, 3))
    reference, new = (torch.tensor(part, requires_grad=True) for part in sets)
    with config_context(array_api_dispatch=dispatch):
        found = embedding_drift(reference, new, random_state=0)
        shares = score_drift(reference.detach(), new.detach())
    assert found.distance == embedding_drift(*sets, random_state=0).distance
    np.testing.assert_array_equal(shares.share_outside, score_drift(*sets).share_outside)
