"""Directions that hardly vary, each alone, and are many."""

import numpy as np
import pytest

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.features import StatisticsTransformer

from .literal import SMALL, literal_share_missed, scaled_features

ALL = SMALL | {"n_components": 200, "views": "adjacent"}
GROUPS = np.arange(120) // 12
NEGATIVE = 14  # seed of noise whose small directions are, by chance, opposed in adjacent windows


def recordings(lasts, seed=0):
    """Windows of noise of ten recordings, each of one amplitude; `lasts` adds a shape of each."""
    rng = np.random.default_rng(seed)
    amplitude = rng.uniform(0.5, 2, size=(10, 1, 1))[GROUPS]
    shape = rng.normal(size=(10, 64, 2))[GROUPS]
    return (amplitude * rng.normal(size=(120, 64, 2)) + lasts * shape).astype(np.float32)


def test_they_count_as_far_as_they_last():
    weights = [
        CrossPredictionTransformer(**ALL).fit(recordings(lasts), groups=GROUPS).small_directions_
        for lasts in (0.0, 0.3, 3.0)
    ]
    assert weights[0] < 0.02 and weights[0] < weights[1] < 0.045
    assert weights[2] == 0.9 * 0.05


@pytest.mark.parametrize(("lasts", "seed"), [(0.3, 0), (1.0, 0), (0.0, NEGATIVE)])
def test_the_share_literally(lasts, seed):
    X = recordings(lasts, seed)
    phi = scaled_features(StatisticsTransformer(), X)
    follows = np.append(False, np.diff(GROUPS) == 0)
    expected = literal_share_missed(phi - phi.mean(0), GROUPS, follows, 1e-3)
    cross = CrossPredictionTransformer(
        **ALL | {"block_weights": (1, 0, 0, 0)}, rho=1e-3, unpredicted=0.0
    )
    found = cross.fit(X, groups=GROUPS).small_directions_
    assert found == pytest.approx(expected, rel=1e-3) and found < 0.05
    assert (found == 0) == (seed == NEGATIVE)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"unpredicted": 0.0}, 0.05),
        ({"unpredicted": 0.5}, 0.025),
        ({"unpredicted": 1.0}, 0.0),
        ({"whitening": 0.1}, 0.0),
        ({"views": "halves"}, 0.0),
        ({"block_weights": (0, 0, 0, 0, 0, 0, 0, 1)}, 0.0),  # has a map of its own
    ],
)
def test_a_twentieth_of_what_predicts_is_the_most_and_some_maps_have_none(params, expected):
    cross = CrossPredictionTransformer(**ALL | params).fit(recordings(3.0), groups=GROUPS)
    assert cross.small_directions_ == expected


def test_a_single_pair_has_none():
    """Nothing is held out."""
    cross = CrossPredictionTransformer(**ALL)
    assert cross.fit(recordings(3.0)[:2], groups=[0, 0]).small_directions_ == 0.0


def test_files_hold_their_weight(tmp_path):
    X = recordings(0.3)
    cross = CrossPredictionTransformer(**ALL).fit(X, groups=GROUPS)
    cross.save_pretrained(tmp_path / "model")
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    assert loaded.small_directions_ == cross.small_directions_ > 0
    np.testing.assert_array_equal(loaded.transform(X), cross.transform(X))
