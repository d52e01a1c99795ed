import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer
from sklearn_pulse.plotting import TrainingCurveDisplay
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, make_windows

X, y = make_windows()
HISTORY = [
    {"train_loss": 3.0, "valid_loss": 2.5},
    {"train_loss": 1.0, "valid_loss": 0.5},
    {"train_loss": 0.5, "valid_loss": 0.75},
]
from_history = TrainingCurveDisplay.from_history


@pytest.fixture(scope="module")
def fitted():
    settings = SMALL_PULSE | {
        "max_epochs": 7,
        "lr": 0.02,
        "validation_every": 2,
        "select": "min_val",
    }
    return PulseTransformer(**settings).fit(X)


def test_what_is_drawn_is_the_history(fitted, legend):
    display = TrainingCurveDisplay.from_estimator(fitted)
    training, validation = display.lines_
    np.testing.assert_array_equal(training.get_xdata(), np.arange(1, 8))
    losses = [epoch["train_loss"] for epoch in fitted.history_]
    np.testing.assert_array_equal(training.get_ydata(), losses)
    # Epochs 2, 4 and 6 had no validation: their values are those of the epoch before.
    np.testing.assert_array_equal(validation.get_xdata(), [1, 3, 5, 7])
    losses = [epoch["valid_loss"] for epoch in fitted.history_]
    np.testing.assert_array_equal(validation.get_ydata(), losses[::2])
    best = int(np.argmin(losses)) + 1
    assert list(display.selected_line_.get_xdata()) == [best, best]
    assert legend(display.ax_) == [
        "PulseTransformer, training",
        "PulseTransformer, validation",
        f"PulseTransformer, selected epoch {best}",
    ]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("epoch", "loss")
    assert all(tick == int(tick) for tick in display.ax_.get_xticks())


def test_selection_by_the_trailing_mean():
    pulse = PulseTransformer(**SMALL_PULSE | {"max_epochs": 9}).fit(X)
    assert pulse.selected_epoch_ is not None
    display = TrainingCurveDisplay.from_estimator(pulse)
    assert display.selected_epoch == pulse.selected_epoch_


@pytest.mark.parametrize("settings", [{"select": "last"}, {"max_epochs": 2}])
def test_the_last_epoch_is_not_marked(settings, legend):
    display = TrainingCurveDisplay.from_estimator(PulseTransformer(**SMALL_PULSE | settings).fit(X))
    assert display.selected_line_ is None
    assert display.selected_epoch is None
    assert len(legend(display.ax_)) == len(display.lines_) == 2


def test_without_validation_there_is_one_line(legend):
    pulse = PulseTransformer(**SMALL_PULSE, validation_fraction=0).fit(X)
    display = TrainingCurveDisplay.from_estimator(pulse, name="PULSE")
    assert legend(display.ax_) == ["PULSE, training"]
    np.testing.assert_array_equal(
        display.lines_[0].get_ydata(), [epoch["train_loss"] for epoch in pulse.history_]
    )


def test_several_on_the_same_axes(fitted, headless, legend):
    first = TrainingCurveDisplay.from_estimator(fitted, name="A")
    second = from_history(HISTORY, name="B", selected_epoch=2, ax=first.ax_)
    assert second.ax_ is first.ax_
    assert headless.get_fignums() == [first.figure_.number]
    colors = [{line.get_color() for line in display.lines_} for display in (first, second)]
    assert all(len(each) == 1 for each in colors)  # of one estimator
    assert not colors[0] & colors[1]
    assert [text[:2] for text in legend(first.ax_)] == ["A,", "A,", "A,", "B,", "B,", "B,"]


def test_axes_are_used_as_given(headless):
    figure, axes = headless.subplots(1, 2)
    headless.sca(axes[1])
    display = from_history(HISTORY, ax=axes[0], lw=3)
    assert display.figure_ is figure
    assert display.lines_[0].get_lw() == 3
    assert headless.gca() is axes[1]
    assert not axes[1].has_data()
    assert headless.get_fignums() == [figure.number]


def test_logarithmic_losses(headless):
    display = from_history(HISTORY, log_scale=True)
    assert display.ax_.get_yscale() == "log"
    assert from_history(HISTORY).ax_.get_yscale() == "linear"
    display.plot(name="again")
    assert display.lines_[0].get_label() == "again, training"
    figures = headless.get_fignums()
    with pytest.raises(ValueError, match="log_scale=True needs positive losses"):
        from_history([{"train_loss": -1.0}], log_scale=True)
    with pytest.raises(TypeError, match="log_scale must be True or False"):
        from_history(HISTORY, log_scale="yes")
    assert headless.get_fignums() == figures


@pytest.mark.parametrize("last", [0.93, 0.5, 0.35, 0.1, 0.01])
def test_a_logarithmic_axis_has_numbers(last):
    losses = np.linspace(1.0, last, 40)
    display = from_history([{"train_loss": loss} for loss in losses], log_scale=True)
    display.figure_.canvas.draw()
    low, high = display.ax_.get_ylim()
    labels = zip(display.ax_.get_yticks(), display.ax_.get_yticklabels(), strict=True)
    assert len([tick for tick, label in labels if low <= tick <= high and label.get_text()]) > 2


def test_a_history_as_skorch_keeps_it(fitted):
    display = from_history(fitted.net_.history)
    np.testing.assert_array_equal(display.lines_[1].get_xdata(), [1, 3, 5, 7])
    display = from_history(HISTORY)  # without a count of validation batches
    np.testing.assert_array_equal(display.lines_[1].get_ydata(), [2.5, 0.5, 0.75])
    assert display.lines_[0].get_label() == "training"


def test_a_further_fit_is_marked(legend):
    pulse = PulseTransformer(**SMALL_PULSE | {"max_epochs": 3, "warm_start": True}).fit(X)
    assert TrainingCurveDisplay.from_estimator(pulse).fit_lines_ == []
    display = TrainingCurveDisplay.from_estimator(pulse.set_params(max_epochs=2).fit(X))
    assert display.fit_starts == [4]
    assert [list(line.get_xdata()) for line in display.fit_lines_] == [[3.5, 3.5]]
    assert legend(display.ax_)[-1] == "PulseTransformer, further fit"


def test_one_epoch_is_visible():
    display = from_history(HISTORY[:1])
    assert display.lines_[0].get_marker() == "o"
    display.figure_.canvas.draw()


def test_a_frozen_estimator_shows_what_is_inside(fitted):
    display = TrainingCurveDisplay.from_estimator(FrozenEstimator(fitted))
    assert display.name == "PulseTransformer"
    assert display.selected_epoch is not None


def test_estimators_without_a_history(headless, fitted):
    from_estimator = TrainingCurveDisplay.from_estimator
    with pytest.raises(NotFittedError, match="not fitted"):
        from_estimator(PulseTransformer())
    untrained = RandomEncoderTransformer(**SMALL_ENCODER).fit(X)
    with pytest.raises(TypeError, match="RandomEncoderTransformer keeps no history_"):
        from_estimator(untrained)
    with pytest.raises(TypeError, match=r"pass its trained step, such as pipeline\['pulse'\]"):
        from_estimator(make_pipeline(fitted))
    assert headless.get_fignums() == []


@pytest.mark.parametrize(
    ("history", "selected", "message"),
    [
        ([], None, "history holds no epoch"),
        ([{"valid_loss": 1.0}], None, "a number 'train_loss'"),
        ([{"train_loss": "low"}], None, "a number 'train_loss'"),
        ([{"train_loss": True}], None, "a number 'train_loss'"),
        ([{"train_loss": 1.0, "valid_loss": "low"}], None, "a 'valid_loss' that is no number"),
        ([*HISTORY, {"train_loss": 1.0, "fit": "2"}], None, "a 'fit' that is no number"),
        (HISTORY, 4, "selected_epoch=4 lies behind the 3 epochs"),
        (HISTORY, 0, "selected_epoch must be an integer of at least 1"),
    ],
)
def test_bad_histories(headless, history, selected, message):
    with pytest.raises(ValueError, match=message):
        from_history(history, selected_epoch=selected)
    assert headless.get_fignums() == []


def test_a_history_is_made_of_dictionaries():
    with pytest.raises(TypeError, match="a dictionary for every epoch"):
        from_history([1.0, 0.5])
    with pytest.raises(TypeError, match="history must be a list of dictionaries, got None"):
        from_history(None)


def test_an_epoch_may_lack_its_validation_loss():
    history = [
        {"train_loss": 1.0, "valid_batch_count": 1},
        {"train_loss": 0.5, "valid_batch_count": 1, "valid_loss": 0.6},
        {"train_loss": 0.4, "valid_batch_count": 1, "valid_loss": None},
    ]
    display = from_history(history)
    assert (display.valid_epochs.tolist(), display.valid_loss.tolist()) == ([2], [0.6])


def test_a_missing_loss_hides_no_negative_one(headless):
    with pytest.raises(ValueError, match="log_scale=True needs positive losses"):
        from_history([{"train_loss": np.nan}, {"train_loss": -1.0}], log_scale=True)
    assert headless.get_fignums() == []


def test_the_remedy_for_a_panel_transformer(headless):
    panel = pytest.importorskip("sklearn_pulse.panel")
    fitted = panel.PanelTransformer(PulseTransformer(**SMALL_PULSE)).fit(X.swapaxes(1, 2))
    with pytest.raises(TypeError, match="PanelTransformer keeps no history_ .* its estimator_"):
        TrainingCurveDisplay.from_estimator(fitted)
    assert TrainingCurveDisplay.from_estimator(fitted.estimator_).train_loss.size
