from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline

from sklearn_pulse import PulseOracleTransformer, PulseTransformer
from sklearn_pulse.plotting import EmbeddingDisplay, ReconstructionDisplay
from tests.helpers import SMALL_PULSE, make_windows, small

matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
X, y = make_windows()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def fitted():
    return PulseTransformer(**SMALL_PULSE).fit(X)


def legend(ax):
    drawn = ax.get_legend() or ax.figure.legends[0]
    return [text.get_text() for text in drawn.get_texts()]


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_embedding(fitted, method):
    display = EmbeddingDisplay.from_estimator(
        fitted, X, y, method=method, target_names=["slow", "fast"], random_state=0
    )
    assert display.coordinates.shape == (20, 2)
    assert legend(display.ax_) == ["slow", "fast"]
    drawn = np.concatenate([points.get_offsets() for points in display.ax_.collections])
    np.testing.assert_allclose(np.sort(drawn, 0), np.sort(display.coordinates, 0))


def test_embedding_with_unlabelled_rows_and_without_labels(fitted):
    partly = np.where(np.arange(20) < 5, -1, y)
    display = EmbeddingDisplay.from_embedding(fitted.transform(X), partly)
    assert legend(display.ax_) == ["unlabelled", "0", "1"]
    assert len(display.ax_.collections[0].get_offsets()) == 5
    _, ax = plt.subplots()
    display = EmbeddingDisplay.from_embedding(fitted.transform(X), ax=ax, alpha=0.1)
    assert display.ax_ is ax
    assert ax.get_legend() is None
    assert ax.collections[0].get_alpha() == 0.1


def test_bad_embedding():
    with pytest.raises(ValueError, match="method must be one of 'pca', 'tsne'"):
        EmbeddingDisplay.from_embedding(np.zeros((4, 3)), method="umap")
    with pytest.raises(ValueError, match="y has 3 labels for 4 embeddings"):
        EmbeddingDisplay.from_embedding(np.zeros((4, 3)), [0, 1, 2])


def test_estimators_that_cannot_be_drawn(fitted):
    with pytest.raises(
        TypeError, match=r"Pipeline has no reconstruct: .* of a pipeline, this step"
    ):
        ReconstructionDisplay.from_estimator(make_pipeline(fitted), X)
    classifier = make_pipeline(fitted, DummyClassifier()).fit(X, y)
    with pytest.raises(TypeError, match=r"Pipeline has no transform: .* such as pipeline\[:-1\]"):
        EmbeddingDisplay.from_estimator(classifier, X)


def test_reconstruction(fitted):
    display = ReconstructionDisplay.from_estimator(
        fitted, X, sample=3, starts=(4, 9), channel_names=["a", "b"]
    )
    np.testing.assert_array_equal(display.signal, X[3])
    assert sorted(display.predictions) == [0, 4, 9]
    for start, prediction in display.predictions.items():
        assert np.isnan(prediction[: start + 1]).all()
        assert np.isfinite(prediction[start + 1 :]).all()
    assert [ax.get_ylabel() for ax in display.axes_] == ["a", "b"]
    assert legend(display.axes_[0]) == [
        "signal",
        "full window",
        "crop from step 4",
        "crop from step 9",
    ]
    np.testing.assert_array_equal(display.axes_[1].lines[0].get_ydata(), X[3, :, 1])


@pytest.mark.parametrize(
    "lengths",
    [{"crop_length": 5}, {"crop_length": 5.5 / X.shape[1]}, {"min_crop_length": 5}],
    ids=["steps", "share", "smallest"],
)
def test_reconstruction_ends_where_a_fixed_crop_does(lengths):
    fixed = PulseTransformer(**SMALL_PULSE | {"crop": "fixed", "max_epochs": 1} | lengths).fit(X)
    display = ReconstructionDisplay.from_estimator(fixed, X, starts=(4,))
    assert np.flatnonzero(np.isfinite(display.predictions[4][:, 0])).tolist() == [5, 6, 7, 8, 9]


def test_a_fixed_crop_is_a_share_of_the_observed_steps():
    padded = X.copy()
    padded[:, 10:] = np.nan
    fixed = PulseTransformer(**SMALL_PULSE | {"crop": "fixed", "max_epochs": 1}, crop_length=0.5)
    display = ReconstructionDisplay.from_estimator(fixed.fit(padded), padded, starts=(3,))
    assert np.flatnonzero(np.isfinite(display.predictions[3][:, 0])).tolist() == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("kind", ["positive", "negative"])
def test_the_reconstruction_of_an_oracle_is_its_own(kind):
    oracle = small(PulseOracleTransformer, kind=kind, max_epochs=1).fit(X, y)
    display = ReconstructionDisplay.from_estimator(oracle, X, sample=2, starts=(4,))
    for start, prediction in display.predictions.items():
        np.testing.assert_array_equal(prediction, oracle.reconstruct(X[2:3], start=start)[0])


def test_reconstruction_in_every_layout(fitted):
    swapped = clone(fitted).set_params(input_layout="nct").fit(X.swapaxes(1, 2))
    display = ReconstructionDisplay.from_estimator(swapped, X.swapaxes(1, 2), starts=(4,))
    expected = ReconstructionDisplay.from_estimator(fitted, X, starts=(4,))
    np.testing.assert_array_equal(display.signal, expected.signal)
    np.testing.assert_array_equal(display.predictions[4], expected.predictions[4])
    table = clone(fitted).fit(X[:, :, 0])
    display = ReconstructionDisplay.from_estimator(table, X[:, :, 0], starts=(4,))
    assert display.predictions[4].shape == (X.shape[1], 1)


def test_reconstruction_of_a_window_with_missing_steps(fitted):
    holes = X[:1].copy()
    holes[0, 10:] = np.nan
    display = ReconstructionDisplay.from_estimator(fitted, holes)
    assert np.isnan(display.signal[10:]).all()
    assert np.isfinite(display.signal[:10]).all()
    late = X[:1].copy()
    late[0, :4] = np.nan
    display = ReconstructionDisplay.from_estimator(fitted, late, starts=(8,))
    labels = [line.get_label() for line in display.axes_[0].get_lines()]
    assert [label for label in labels if label[0] != "_"] == [
        "signal",
        "full window",
        "crop from step 8",
    ]


@pytest.mark.parametrize("starts", [(-1,), (3, 15)])
def test_starts_outside_the_window(fitted, starts):
    with pytest.raises(ValueError, match="each of starts must be an integer from 0 to 14"):
        ReconstructionDisplay.from_estimator(fitted, X, starts=starts)


@pytest.mark.parametrize("starts", [[3], range(3, 4), np.array([3])])
def test_starts_are_any_sequence(fitted, starts):
    display = ReconstructionDisplay.from_estimator(fitted, X, starts=starts)
    assert sorted(display.predictions) == [0, 3]


@pytest.mark.parametrize("starts", [5, "35", {3}, (2.5,), ("a",)])
def test_starts_are_integers(fitted, starts):
    with pytest.raises(TypeError, match="starts must be .*; pass for example"):
        ReconstructionDisplay.from_estimator(fitted, X, starts=starts)


@pytest.mark.parametrize("sample, kind", [(20, ValueError), (-1, ValueError), ("a", TypeError)])
def test_the_sample_is_a_position_in_the_windows(fitted, sample, kind):
    with pytest.raises(kind, match="sample must be an integer from 0 to 19.*pass for .* sample=0"):
        ReconstructionDisplay.from_estimator(fitted, X, sample=sample)


def test_no_window_is_no_sample(fitted):
    with pytest.raises(ValueError, match="X holds no window"):
        ReconstructionDisplay.from_estimator(fitted, X[:0])


def test_no_crop_starts_behind_the_observed_steps(fitted):
    brief = X[:2].copy()
    brief[:, 3:] = np.nan
    brief[0, 15] = X[0, 15]  # the last step, which has no later one
    for sample in (0, 1):
        display = ReconstructionDisplay.from_estimator(fitted, brief, sample=sample)
        assert legend(display.axes_[0]) == ["signal", "full window"]
        assert sorted(display.predictions) == [0]
        with pytest.raises(ValueError, match=r"starts holds 3, .* pass starts of at most 2\."):
            ReconstructionDisplay.from_estimator(fitted, brief, sample=sample, starts=(2, 3))
    last = np.where(np.arange(16)[:, None] < 15, np.nan, X[:5])
    with pytest.raises(ValueError, match="window 4 of X only the last .* pass another sample"):
        ReconstructionDisplay.from_estimator(fitted, last, sample=4)


def test_no_reconstruction_of_bags_or_single_steps(fitted):
    message = "X must hold single windows of at least two time steps"
    bags = np.stack([X, X])
    with pytest.raises(ValueError, match=message + r", not bags: pass .* of one bag, X\[1\]\."):
        ReconstructionDisplay.from_estimator(fitted, bags, sample=1)
    with pytest.raises(ValueError, match=message + ": the first step .* Pass longer windows"):
        ReconstructionDisplay.from_estimator(fitted, X[:, :1])


def test_long_names_of_channels_do_not_overlap():
    names = ["Accelerometer magnitude (g)", "EEG Fpz-Cz (left frontal)", "ECG"]
    display = ReconstructionDisplay(X[0][:, [0, 1, 0]], {}, channel_names=names).plot()
    display.figure_.canvas.draw()
    boxes = [ax.yaxis.label.get_window_extent() for ax in display.axes_]
    assert all(above.y0 >= below.y1 for above, below in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0


def test_long_names_of_channels_leave_room_for_the_legend(fitted):
    named = clone(fitted).set_params(channel_names=["a name of a channel that is long", "b"])
    display = ReconstructionDisplay.from_estimator(named.fit(X), X, starts=(0, 3, 7))
    display.figure_.draw_without_rendering()
    box = display.figure_.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= display.figure_.bbox.x1


def test_axes_for_every_channel(fitted):
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match="1 axes for 2 channels"):
        ReconstructionDisplay.from_estimator(fitted, X, axes=[ax])
