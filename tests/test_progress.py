"""scikit-learn's callbacks see every epoch, alone and inside a pipeline and a search."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from sklearn_pulse import FineTuneClassifier, PulseTransformer
from sklearn_pulse.baselines import (
    PatchTSTTransformer,
    RandomEncoderTransformer,
    SimCLRTransformer,
    TS2VecTransformer,
)
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, FitLog, make_windows, small
from tests.kills import killed

sklearn_callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")
X, y = make_windows(n_timesteps=8)
BRIEF = SMALL_PULSE | {"encoder_depth": 1, "gru_num_layers": 1}


def test_every_epoch_is_a_task():
    shapes = []
    log = FitLog(look=lambda fitted, X, y: shapes.append(fitted.transform(X).shape))
    PulseTransformer(**BRIEF | {"max_epochs": 3}).set_callbacks(log).fit(X)
    assert log.events[0] == "setup"
    assert log.events[-1] == "teardown"
    begun, ended = (log.tasks("PulseTransformer", kind) for kind in ("begin", "end"))
    assert begun[0][0] == ended[-1][0] == "fit"
    assert begun[1:] == ended[:-1] == [("epoch", 0), ("epoch", 1), ("epoch", 2)]
    assert shapes == [(len(X), 8)] * 3


def test_epochs_are_as_many_as_the_updates_fill():
    """20 windows in batches of 8 are 3 updates an epoch, whatever `max_epochs` says."""
    log = FitLog()
    small(TS2VecTransformer, max_updates=7, max_epochs=1).set_callbacks(log).fit(X)
    assert log.epochs("TS2VecTransformer") == [0, 1, 2]


def test_scores_of_an_epoch_have_the_scale_of_its_own_fit():
    scores = []
    log = FitLog(look=lambda fitted, X, y: scores.append(fitted.score_samples(X)))
    pulse = PulseTransformer(**BRIEF).set_callbacks(log)
    for data in (X, 3 * X):
        np.testing.assert_array_equal(pulse.fit(data).score_samples(data), scores[-1])


@pytest.mark.parametrize(
    ("method", "select"),
    [
        (PatchTSTTransformer, "min_val"),
        (SimCLRTransformer, "average_min_val"),
        pytest.param(SimCLRTransformer, "average", marks=pytest.mark.slow),
        pytest.param(SimCLRTransformer, "last", marks=pytest.mark.slow),
    ],
)
def test_an_epoch_is_seen_as_a_fit_that_ended_there(method, select):
    seen = []
    log = FitLog(look=lambda fitted, X, y: seen.append((fitted.transform(X), fitted)))
    params = {"encoder_depth": 1, "batch_size": 17, "schedule": "constant", "lr": 0.1}
    params |= {"select": select, "validation_fraction": 0.3, "random_state": 0}
    small(method).set_params(**params, max_epochs=4).set_callbacks(log).fit(X)
    for number, (embedding, fitted) in enumerate(seen, start=1):
        alone = small(method).set_params(**params, max_epochs=number).fit(X)
        np.testing.assert_array_equal(embedding, alone.transform(X))
        assert fitted.selected_epoch_ == alone.selected_epoch_
        assert len(fitted.history_) == number
    if select == "min_val":
        assert {fitted.selected_epoch_ for _, fitted in seen} != {1, 2, 3, 4}


def test_an_epoch_of_a_later_fit_has_the_history_of_the_earlier_ones():
    seen = []
    pulse = PulseTransformer(**BRIEF | {"max_epochs": 2}, warm_start=True).fit(X)
    pulse.set_callbacks(FitLog(look=lambda fitted, X, y: seen.append(fitted.history_)))
    numbers = [(epoch["epoch"], epoch["fit"]) for epoch in pulse.fit(X).history_]
    assert numbers == [(1, 1), (2, 1), (3, 2), (4, 2)]
    for history, length in zip(seen, (3, 4), strict=True):
        assert [(epoch["epoch"], epoch["fit"]) for epoch in history] == numbers[:length]


def test_what_runs_no_epochs_takes_no_callbacks():
    assert not hasattr(RandomEncoderTransformer(), "set_callbacks")


def test_callbacks_score_with_the_weights_of_the_fit():
    weight = np.where(y == y[0], 9.0, 1.0)
    monitor = sklearn_callback.ScoringMonitor(scoring="accuracy")
    model = FineTuneClassifier(**SMALL_ENCODER, max_epochs=1, random_state=0)
    model.set_callbacks(monitor).fit(X, y, sample_weight=weight)
    logged = [row["accuracy"] for row in monitor.get_logs().data if row["task_name"] == "fit"]
    assert logged == [model.score(X, y, weight)] != [model.score(X, y)]


def test_a_callback_may_stop_training():
    pulse = PulseTransformer(**BRIEF | {"max_epochs": 9})
    assert pulse.set_callbacks(FitLog(stop_after=2)).fit(X).n_iter_ == 2


def test_a_stopped_run_is_another_run(tmp_path):
    """Than one that no callback stops; and killed, it stops where it would have stopped."""
    params = SMALL_PULSE | {"max_epochs": 4, "checkpoint_dir": tmp_path}
    with killed(2):
        PulseTransformer(**params).set_callbacks(FitLog(stop_after=3)).fit(X)
    log = FitLog(stop_after=3)
    assert PulseTransformer(**params).set_callbacks(log).fit(X).n_iter_ == 3
    assert log.epochs("PulseTransformer") == [1, 2]
    assert PulseTransformer(**params).fit(X).n_iter_ == 4


class FailsAtTheEnd(FitLog):
    """A callback that raises when a whole fit has ended."""

    def on_fit_task_end(self, estimator, context, **kwargs):
        if context.task_name == "fit":
            raise KeyboardInterrupt


@pytest.mark.parametrize("is_fitted", [False, True])
def test_an_error_at_the_end_of_a_fit_leaves_the_estimator_as_it_was(is_fitted):
    pulse = PulseTransformer(**BRIEF)
    if is_fitted:
        pulse.fit(X)
    pulse.set_callbacks(FailsAtTheEnd())
    before = dict(vars(pulse))
    with pytest.raises(KeyboardInterrupt):
        pulse.fit(2 * X)
    assert vars(pulse) == before


def test_teardown_follows_an_error():
    log = FitLog()
    with pytest.raises(ValueError, match="max_epochs"):
        PulseTransformer(max_epochs=0).set_callbacks(log).fit(X)
    assert log.events[-1] == "teardown"


# The processes of joblib live on for the other tests of the group.
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.xdist_group("workers"))])
def test_a_search_propagates_to_every_fit(n_jobs):
    pipe = Pipeline([("pulse", PulseTransformer(**BRIEF)), ("probe", LogisticRegression())])
    search = GridSearchCV(pipe, {"pulse__n_crops": [1, 2]}, cv=2, n_jobs=n_jobs)
    log = FitLog()
    search.set_callbacks(log).fit(X, y)
    n_fits = 2 * 2 + 1 if n_jobs == 1 else 1  # workers have their own copy of the log
    assert log.epochs("PulseTransformer") == [0, 1] * n_fits


def test_progress_bar_of_sklearn(capsys):
    pytest.importorskip("rich")
    bar = sklearn_callback.ProgressBar(max_propagation_depth=None)
    pipe = Pipeline([("pulse", PulseTransformer(**BRIEF)), ("probe", LogisticRegression())])
    pipe.set_callbacks(bar).fit(X, y)
    assert "PulseTransformer" in capsys.readouterr().out
