"""What a display holds is checked before anything is drawn, and no figure stays after an error."""

import numpy as np
import pytest
from sklearn.utils import Bunch

from sklearn_pulse.evaluation import embedding_drift, score_drift
from sklearn_pulse.plotting import (
    DriftDisplay,
    EmbeddingDisplay,
    LabelEfficiencyDisplay,
    PredictabilityDisplay,
    ReconstructionDisplay,
    TrainingCurveDisplay,
)

Z = np.random.default_rng(0).normal(size=(6, 2))
AMOUNTS = np.array([0.1, 1.0])
SCORES = np.array([[0.5, 0.6], [0.7, 0.8]])
NO_VALIDATION = {"valid_epochs": [], "valid_loss": []}


def efficiency(scores=SCORES, fractions=AMOUNTS, **held):
    return LabelEfficiencyDisplay({"a": scores}, fractions, **held)


def curve(epochs=(1, 2), train_loss=(1.0, 0.5), **held):
    return TrainingCurveDisplay(epochs, train_loss, **NO_VALIDATION | held)


@pytest.mark.parametrize(
    ("display", "error", "message"),
    [
        (LabelEfficiencyDisplay({}, AMOUNTS), ValueError, "scores must be a dictionary"),
        (efficiency(np.ones((3, 3))), ValueError, r"scores\['a'\] has shape \(3, 3\)"),
        (efficiency(["low", "high"]), ValueError, r"scores\['a'\] does not hold rows of numbers"),
        (efficiency(SCORES + 1j), ValueError, r"scores\['a'\] does not hold .*complex128"),
        (efficiency(n_groups=[1, 2]), ValueError, "pass one of them"),
        (efficiency(fractions=None), ValueError, "pass one of them"),
        (efficiency(majority_score="0.5"), TypeError, "majority_score must be a number or None"),
        (curve((1, 2, 3)), ValueError, "epochs has 3 epochs and train_loss has 2 losses"),
        (curve(valid_epochs=[2]), ValueError, "valid_epochs has 1 epochs and valid_loss has 0"),
        (curve(valid_epochs=None), TypeError, r"valid_epochs must be an array of .*got None"),
        (curve(train_loss=["low", "high"]), ValueError, "train_loss does not hold numbers"),
        (curve(train_loss=np.ones((2, 2))), ValueError, r"train_loss has shape \(2, 2\)"),
        (curve((), ()), ValueError, "epochs holds no epoch"),
        (curve(selected_epoch="last"), TypeError, "selected_epoch must be an integer"),
        (curve(fit_starts=["second"]), TypeError, "each of fit_starts must be an integer"),
        (EmbeddingDisplay(Z, y=np.arange(2)), ValueError, "y has 2 labels for 6 embeddings"),
        (EmbeddingDisplay(Z + 1j), ValueError, "coordinates does not hold numbers .*complex128"),
        (EmbeddingDisplay(Z.astype(str)), ValueError, "coordinates does not hold numbers"),
        (curve(np.array([1, 2], "M8[s]")), ValueError, "epochs does not hold numbers .*datetime64"),
        (EmbeddingDisplay(Z[0]), ValueError, r"coordinates has shape \(2,\)"),
        (EmbeddingDisplay(np.ones((6, 3))), ValueError, "coordinates has 3 columns: .*projects"),
        (EmbeddingDisplay(Z, axis_names="xy"), TypeError, "axis_names must be a list of names"),
        (EmbeddingDisplay(Z, axis_names=["x"]), ValueError, "axis_names holds 1 names"),
        (DriftDisplay(score_drift(Z, Z)), TypeError, "embedding must be .*embedding_drift, got"),
        (DriftDisplay(scores=embedding_drift(Z, Z, random_state=0)), TypeError, "without share_"),
        (DriftDisplay(scores=0.5), TypeError, "scores must be .*score_drift, got float"),
        (
            DriftDisplay(Bunch(embedding=None, scores=score_drift(Z, Z))),
            TypeError,
            "of the result of drift_scores, pass its embedding and its scores",
        ),
        (PredictabilityDisplay([0.5], [0.1]), TypeError, "blocks must be a dictionary"),
        (PredictabilityDisplay({"a": "high"}, [0.1]), ValueError, "blocks does not hold numbers"),
        (PredictabilityDisplay({"a": 0.5}, 0.1), TypeError, "directions must be an array"),
        (PredictabilityDisplay({"a": 0.5}, Z), ValueError, r"directions has shape \(6, 2\)"),
        (ReconstructionDisplay(Z[0], {}), ValueError, r"signal has shape \(2,\)"),
        (ReconstructionDisplay(Z[:, :0], {}), ValueError, r"signal has shape \(6, 0\)"),
        (ReconstructionDisplay(Z, [Z]), TypeError, "predictions must be a dictionary of arrays"),
        (ReconstructionDisplay(Z, {"all": Z}), TypeError, "each key of predictions must be an"),
        (ReconstructionDisplay(Z, {0: Z[:, :1]}), ValueError, r"has shape \(6, 1\), but signal"),
        (ReconstructionDisplay(Z, {0: Z[:5]}), ValueError, r"has shape \(5, 2\), but signal"),
    ],
)
def test_nothing_is_drawn_of_what_does_not_fit(headless, display, error, message):
    _, ax = headless.subplots()
    before = headless.get_fignums()
    for given in (None, ax):
        with pytest.raises(error, match=message):
            display.plot(given)
    assert headless.get_fignums() == before
    assert not ax.has_data()


def test_lists_and_numbers_of_one_repeat_are_drawn(legend):
    """Constructors are public, and take what the methods beside them take."""
    display = LabelEfficiencyDisplay({"a": [0.5, 0.7]}, [0.1, 1.0]).plot()
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [0.5, 0.7])
    display = EmbeddingDisplay(Z.tolist(), y=["rest", None, "walk"] * 2).plot()
    assert legend(display.ax_) == ["unlabelled", "rest", "walk"]
    display = ReconstructionDisplay(Z.tolist(), {0: Z.tolist()}).plot()
    np.testing.assert_array_equal(display.axes_[1].lines[1].get_ydata(), Z[:, 1])


@pytest.mark.parametrize("display", [efficiency(), curve(), DriftDisplay(scores=score_drift(Z, Z))])
def test_no_figure_stays_where_drawing_fails(headless, display, monkeypatch):
    """As matplotlib fails for some keywords only while it draws."""

    def fail(*args, **kwargs):
        raise RuntimeError("while drawing")

    monkeypatch.setattr("matplotlib.axes.Axes.legend", fail)
    with pytest.raises(RuntimeError, match="while drawing"):
        display.plot()
    assert headless.get_fignums() == []
