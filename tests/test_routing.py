"""Metadata routing: what reaches which step of a pipeline, without a request set by hand."""

import numpy as np
import pytest
import sklearn
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_pulse import CrossPredictionTransformer, FineTuneClassifier, PulseTransformer
from sklearn_pulse.baselines import SimCLRTransformer
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import BandpassFilter, Resampler, WindowScaler
from tests.helpers import SMALL_PULSE, BatchSpy, callback_of, make_windows

X, y = make_windows(12)
PEOPLE = np.arange(12) // 2


@pytest.fixture(autouse=True)
def _routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def seen(monkeypatch):
    """Return the groups that each fit of PULSE was given."""
    given, fit = [], PulseTransformer.fit

    def noting(self, X, y=None, *, groups=None, X_val=None):
        given.append(groups)
        return fit(self, X, y, groups=groups, X_val=X_val)

    monkeypatch.setattr(PulseTransformer, "fit", noting)
    return given


def test_one_call_serves_the_splitter_and_every_step(seen):
    pipeline = make_pipeline(
        BandpassFilter(None, 20, sampling_rate=64),
        Resampler(64, 32),
        WindowScaler(),
        PulseTransformer(**SMALL_PULSE | {"max_epochs": 1}),
        LogisticRegression(),
    )
    grid = {"pulsetransformer__n_crops": [1]}
    search = GridSearchCV(pipeline, grid, cv=GroupKFold(2), error_score="raise")
    search.fit(X, y, groups=PEOPLE)
    first, second, whole = seen
    assert {*first} | {*second} == {*whole} == {*PEOPLE}
    assert not {*first} & {*second}


def test_a_request_of_the_user_goes_first(seen):
    scaler = WindowScaler(per="recording").set_transform_request(groups="recording")
    pulse = PulseTransformer(**SMALL_PULSE | {"max_epochs": 1})
    make_pipeline(scaler, pulse).fit(X, y, recording=np.arange(12), groups=PEOPLE)
    np.testing.assert_array_equal(seen[0], PEOPLE)
    asked = pulse.set_fit_request(groups=False).get_metadata_routing().fit.requests
    assert asked == {"groups": False, "X_val": None}


class WithoutGroups(PulseTransformer):
    """A method of a user, whose `fit` takes no groups."""

    def fit(self, X, y=None):
        return super().fit(X, y)


def test_a_method_may_take_no_groups():
    method = WithoutGroups(**SMALL_PULSE | {"max_epochs": 1})
    assert method.get_metadata_routing().fit.requests == {}
    make_pipeline(method, LogisticRegression()).fit(X, y)


def test_a_scaler_of_recordings_takes_groups_in_fit_and_in_predict():
    pipeline = make_pipeline(
        WindowScaler(per="recording"), StatisticsTransformer(), LogisticRegression()
    )
    predicted = pipeline.fit(X, y, groups=PEOPLE).predict(X, groups=PEOPLE)
    alone = WindowScaler(per="recording").fit_transform(X, groups=PEOPLE)
    np.testing.assert_array_equal(pipeline[1:].predict(alone), predicted)
    with pytest.raises(ValueError, match=r"needs the recording of each window.*predict\(X, groups"):
        pipeline.predict(X)


def test_a_classifier_validates_on_other_people_than_it_trains_on():
    small = {"embedding_dim": 4, "encoder_hidden_dim": 4, "encoder_depth": 1, "max_epochs": 1}
    tuned = FineTuneClassifier(
        **small, validation_fraction=0.3, random_state=0, callbacks=[BatchSpy()]
    )
    pipeline = make_pipeline(WindowScaler(), tuned).fit(X, y, groups=PEOPLE)
    windows = callback_of(pipeline[-1], BatchSpy).windows
    trained = np.array([window.tobytes() in windows for window in pipeline[0].transform(X)])
    assert set(PEOPLE[trained]) | set(PEOPLE[~trained]) == {*PEOPLE}
    assert not set(PEOPLE[trained]) & set(PEOPLE[~trained])
    assert 0 < (~trained).sum() < len(X) / 2


@pytest.mark.parametrize("cls", [CrossPredictionTransformer, SimCLRTransformer])
def test_who_learns_from_recordings_asks_for_them(cls):
    """The groups of a splitter are often people, who have several recordings."""
    pipeline = make_pipeline(WindowScaler(), cls())
    with pytest.raises(UnsetMetadataPassedError, match=rf"{cls.__name__}.set_fit_request"):
        pipeline.fit(X, y, groups=PEOPLE)


@pytest.mark.parametrize("per", ["recording", "channel"])
def test_a_scaler_takes_groups(per):
    given = []

    class Noting(WindowScaler):
        def transform(self, X, *, groups=None):
            given.append(groups is not None)
            return super().transform(X, groups=groups)

    pipeline = make_pipeline(Noting(per=per), PulseTransformer(**SMALL_PULSE | {"max_epochs": 1}))
    pipeline.fit(X, groups=PEOPLE)
    assert given == [True]


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8),
    reason="the default scorer of a search routes nothing to transform",
)
@pytest.mark.parametrize("base", ["recording", "channel", "window"])
def test_a_search_over_what_is_scaled_scores_every_candidate(base):
    """A search routes by the scaler that it is given, and fits others."""
    pipeline = make_pipeline(WindowScaler(per=base), StatisticsTransformer(), LogisticRegression())
    search = GridSearchCV(
        pipeline, {"windowscaler__per": ["recording", "channel", "window"]}, cv=GroupKFold(3)
    )
    search.fit(X, y, groups=PEOPLE)
    for per, score in zip(
        ("recording", "channel", "window"), search.cv_results_["mean_test_score"], strict=True
    ):
        alone = clone(pipeline).set_params(windowscaler=WindowScaler(per=per))
        scores = cross_val_score(alone, X, y, cv=GroupKFold(3), params={"groups": PEOPLE})
        assert score == scores.mean()
