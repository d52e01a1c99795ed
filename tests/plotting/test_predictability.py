import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.plotting import PredictabilityDisplay
from tests.helpers import make_windows


@pytest.fixture(scope="module")
def cross():
    X, _ = make_windows(40, 32)
    params = {"num_kernels": 84, "n_components": 8, "embedding_dim": 16, "random_state": 0}
    return CrossPredictionTransformer(**params).fit(X, groups=np.arange(40) // 10)


def test_bars_are_the_attribute(cross, headless):
    figure, ax = headless.subplots()
    display = PredictabilityDisplay.from_estimator(cross, name="sines", ax=ax, alpha=0.5)
    assert display.ax_ is ax and display.figure_ is figure
    heights = [[bar.get_height() for bar in bars] for bars in display.bars_]
    assert heights[0] == list(cross.predictability_["blocks"].values())
    assert heights[1] == cross.predictability_["directions"].tolist()
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == [*cross.blocks_, "direction 1", "direction 16"]
    assert ax.get_title() == "sines"
    lowest, highest = ax.get_ylim()
    assert highest == 1 and all(lowest <= height for height in heights[1])
    assert {bar.get_alpha() for bars in display.bars_ for bar in bars} == {0.5}


def test_bars_below_zero_are_in_the_picture(headless):
    display = PredictabilityDisplay({"noise": -0.4}, [0.1]).plot()
    assert display.ax_.get_ylim()[0] <= -0.4
    PredictabilityDisplay({"sines": 0.4}, [0.1]).plot(display.ax_, width=0.4)
    assert display.ax_.get_ylim()[0] <= -0.4


def test_a_single_direction_is_named_once():
    display = PredictabilityDisplay({"noise": 0.1}, [0.2]).plot()
    names = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert names == ["noise", "direction 1"]


def test_where_nothing_is_held_out_directions_have_no_height():
    X, _ = make_windows(3, 16)
    cross = CrossPredictionTransformer(num_kernels=84, random_state=0).fit(X, groups=[0, 0, 1])
    display = PredictabilityDisplay.from_estimator(cross)
    assert np.isnan([bar.get_height() for bar in display.bars_[1]]).all()
    display.figure_.canvas.draw()


def test_not_fitted():
    with pytest.raises(NotFittedError):
        PredictabilityDisplay.from_estimator(CrossPredictionTransformer())


def test_a_pipeline_has_no_bars_itself(cross, headless):
    with pytest.raises(TypeError, match=r"Pipeline has no predictability_: .* pipeline\[-1\]"):
        PredictabilityDisplay.from_estimator(make_pipeline(cross))
    assert headless.get_fignums() == []


def test_keywords_that_bars_lack_leave_no_empty_figure(headless):
    with pytest.raises(AttributeError, match="bogus"):
        PredictabilityDisplay({"noise": 0.1}, [0.2]).plot(bogus=1)
    assert headless.get_fignums() == []


def test_without_directions_the_blocks_are_drawn():
    display = PredictabilityDisplay({"noise": 0.1}, []).plot()
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["noise"]
