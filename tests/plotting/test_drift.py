import math
from itertools import pairwise

import numpy as np
import pytest

from sklearn_pulse import PulseTransformer
from sklearn_pulse.baselines import RandomEncoderTransformer
from sklearn_pulse.evaluation import drift_scores, embedding_drift, score_drift
from sklearn_pulse.plotting import DriftDisplay
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, make_windows

X, _ = make_windows(36)


@pytest.fixture(scope="module")
def pulse():
    return PulseTransformer(**SMALL_PULSE).fit(X[:12])


def test_panels_show_the_numbers(pulse, legend):
    display = DriftDisplay.from_estimator(
        pulse, X[12:24], X[24:], name="wrist", channel_names=["x", "y"], random_state=0
    )
    drift = drift_scores(pulse, X[12:24], X[24:], random_state=0)
    left, right = display.axes_
    assert left.lines[0].get_xdata()[0] == drift.embedding.distance
    assert sum(bar.get_height() for bar in left.patches) == 199
    assert legend(left) == [
        "199 other divisions",
        f"new windows (p = {display.embedding.p_value:.2g})",
    ]
    assert [bar.get_height() for bar in right.patches] == drift.scores.share_outside.tolist()
    assert [text.get_text() for text in right.get_xticklabels()] == ["x", "y"]
    assert right.lines[0].get_ydata()[0] == drift.scores.expected
    assert left.get_title() == "wrist" and display.figure_ is left.figure


def test_options_reach_the_numbers(pulse):
    options = {
        "groups_reference": np.arange(12) // 3,
        "groups_new": 4 + np.arange(12) // 3,
        "coverage": 0.8,
        "n_permutations": 19,
        "max_windows": 10,
        "random_state": 0,
    }
    display = DriftDisplay.from_estimator(pulse, X[12:24], X[24:], **options)
    drift = drift_scores(pulse, X[12:24], X[24:], **options)
    assert display.embedding.p_value == drift.embedding.p_value
    np.testing.assert_array_equal(display.embedding.null_distances, drift.embedding.null_distances)
    assert display.scores.expected == drift.scores.expected


def test_channel_names_of_the_estimator(pulse, monkeypatch):
    monkeypatch.setattr(pulse, "channel_names_in_", np.array(["red", "green"]), raising=False)
    display = DriftDisplay.from_estimator(pulse, X[12:24], X[24:], random_state=0)
    assert [text.get_text() for text in display.axes_[1].get_xticklabels()] == ["red", "green"]


def test_an_estimator_without_a_decoder_has_one_panel(headless):
    _, ax = headless.subplots()
    encoder = RandomEncoderTransformer(**SMALL_ENCODER, random_state=0).fit(X)
    display = DriftDisplay.from_estimator(encoder, X[:12], X[12:], random_state=0, ax=ax)
    assert display.axes_.tolist() == [ax] and display.scores is None


def test_embeddings_and_scores(headless):
    points = np.random.default_rng(0).normal(size=(20, 3))
    first = DriftDisplay.from_embeddings(points[:10], points[10:], random_state=0)
    second = DriftDisplay.from_scores(points[:10], points[10:], coverage=0.8)
    assert len(first.axes_) == len(second.axes_) == 1
    names = [text.get_text() for text in second.axes_[0].get_xticklabels()]
    assert names == ["channel 0", "channel 1", "channel 2"]
    _, axes = headless.subplots(1, 2)
    both = DriftDisplay(first.embedding, second.scores).plot(ax=axes, name="both")
    assert both.axes_.tolist() == axes.tolist() and axes[0].get_title() == "both"


@pytest.mark.parametrize(
    "names",
    [["Accelerometer magnitude (g)", "EEG Fpz-Cz (left frontal)"], [f"EEG {i}" for i in range(26)]],
    ids=["long", "many"],
)
@pytest.mark.parametrize("panels", [1, 2])
def test_names_of_channels_do_not_overlap(names, panels):
    scores = score_drift(np.zeros((2, len(names))), np.ones((1, len(names))), coverage=0.975)
    embedding = embedding_drift(np.eye(4), np.eye(4)) if panels == 2 else None
    display = DriftDisplay(embedding, scores, channel_names=names).plot()
    display.figure_.canvas.draw()
    labels = display.axes_[-1].get_xticklabels()
    boxes = [label.get_window_extent() for label in labels]
    turn = np.deg2rad(labels[0].get_rotation())
    if turn:  # the names are parallel, one below the other
        ticks = display.axes_[-1].transData.transform([(0, 0), (1, 0)])[:, 0]
        height = labels[0].get_fontsize() * display.figure_.dpi / 72
        assert np.diff(ticks) * np.sin(turn) > height
    else:
        assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))
    assert boxes[0].x0 >= 0 and boxes[-1].x1 <= display.figure_.bbox.x1


def test_the_expected_share_is_not_rounded(legend):
    display = DriftDisplay.from_scores(np.arange(399.0), np.arange(40.0), coverage=0.975)
    assert "expected (2.99 %)" in legend(display.axes_[0])


def test_bad_input(pulse, headless):
    with pytest.raises(ValueError, match="embedding and scores are None"):
        DriftDisplay().plot()
    _, ax = headless.subplots()
    with pytest.raises(ValueError, match="1 axes for 2 panels"):
        DriftDisplay.from_estimator(pulse, X[:12], X[12:], random_state=0, ax=ax)
    n_figures = len(headless.get_fignums())
    for names, kind in ((["x"], ValueError), ("xy", TypeError)):
        with pytest.raises(kind, match="channel_names"):
            DriftDisplay.from_scores(X[:4, 0], X[4:, 0], channel_names=names)
    assert len(headless.get_fignums()) == n_figures

    _, axes = headless.subplots(1, 2)
    with pytest.raises(ValueError, match="2 axes for 1 panels"):
        DriftDisplay.from_embeddings(X[:18, :, 0], X[18:, :, 0], random_state=0, ax=axes)


def test_names_of_channels_may_come_from_a_generator():
    names = (name for name in "xy")
    display = DriftDisplay.from_scores(X[:4, 0], X[4:, 0], channel_names=names)
    assert [text.get_text() for text in display.axes_[0].get_xticklabels()] == ["x", "y"]


def test_bars_drawn_over_others_are_not_cut_off():
    points = np.random.default_rng(0).normal(size=(20, 3))
    few, many = ({"n_permutations": n, "random_state": 0} for n in (9, 999))
    first = DriftDisplay.from_embeddings(points[:10], points[10:], **few)
    (ax,) = DriftDisplay.from_embeddings(points[:10], points[10:], ax=first.axes_, **many).axes_
    assert ax.get_ylim()[1] > max(bar.get_height() for bar in ax.patches)


def test_the_legend_shows_the_colour_of_the_bars():
    points = np.random.default_rng(0).normal(size=(20, 3))
    display = DriftDisplay.from_embeddings(points[:10], points[10:], random_state=0)
    (ax,) = display.axes_
    patch, _ = ax.get_legend().legend_handles
    assert patch.get_facecolor() == ax.patches[0].get_facecolor()


@pytest.mark.parametrize("n_recordings", [5, 6, 7])
@pytest.mark.parametrize("shift", [0.0, 0.1, 1 / 3])
def test_divisions_of_equal_distance(n_recordings, shift):
    """Recordings that are all as far apart differ by rounding only, which no bin can show."""
    group = np.repeat(np.arange(n_recordings), 3)
    points = np.eye(n_recordings)[group] + shift
    old = group < n_recordings - 2
    groups = {"groups_reference": group[old], "groups_new": group[~old]}
    display = DriftDisplay.from_embeddings(points[old], points[~old], random_state=0, **groups)
    assert display.embedding.p_value == 1.0
    n_others = math.comb(n_recordings, 2) - 1
    assert sum(bar.get_height() for bar in display.axes_[0].patches) == n_others
