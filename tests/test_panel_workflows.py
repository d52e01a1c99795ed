"""Where sktime users work: pipelines, evaluate, grid search, saving; and where they come from."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as make_sklearn_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer
from sklearn_pulse.datasets import fetch_gesture, fetch_har
from sklearn_pulse.evaluation import make_linear_probe, probe_scores
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.inspection import channel_importance
from sklearn_pulse.windows import sliding_windows
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, FitLog, make_windows

pytest.importorskip("sktime")

import sktime.base
from sktime.classification.model_evaluation import evaluate
from sktime.classification.model_selection import TSCGridSearchCV
from sktime.datasets import load_basic_motions, load_japanese_vowels
from sktime.datatypes import convert_to
from sktime.pipeline import make_pipeline
from sktime.transformations.compose import FitInTransform
from sktime.transformations.detrend import Detrender
from sktime.transformations.difference import Differencer
from sktime.transformations.savitzky_golay import SavitzkyGolayTransformer
from sktime.transformations.summarize import SummaryTransformer

from sklearn_pulse.panel import PulsePanelTransformer, as_panel_transformer

MTYPES = ["numpy3D", "pd-multiindex", "df-list", "nested_univ"]
BRIEF = SMALL_PULSE | {"max_epochs": 1}  # another epoch would only cost time
PULSE = PulsePanelTransformer(**BRIEF)
FOLDS = KFold(2, shuffle=True, random_state=0)


def make_panel(n=20, n_timesteps=16):
    X, y = make_windows(n, n_timesteps)
    return np.ascontiguousarray(X.swapaxes(1, 2)), y


def plain_pipeline(**params):
    """What a scikit-learn user writes for the same."""
    pulse = PulseTransformer(**BRIEF | params, input_layout="nct")
    return Pipeline([("pulse", pulse), ("probe", LogisticRegression())])


@functools.cache
def expected_pipeline():
    """Return that pipeline fitted on the panel, once in a process. Nobody may change it."""
    return plain_pipeline().fit(*make_panel())


@functools.cache
def expected_scores():
    """Return its scores on the folds."""
    X, y = make_panel()
    return [
        plain_pipeline().fit(X[train], y[train]).score(X[test], y[test])
        for train, test in FOLDS.split(X)
    ]


# sktime's pipelines


# Others ask the same: test_panel.py compares every mtype with the plain route.
SLOW = {"df-list", "pd-multiindex"}


@pytest.mark.parametrize(
    "mtype", [pytest.param(m, marks=pytest.mark.slow if m in SLOW else ()) for m in MTYPES]
)
def test_times(mtype):
    X, y = make_panel()
    panel = convert_to(X, mtype)
    classifier = (PULSE * LogisticRegression()).fit(panel, y)
    expected = expected_pipeline()
    embedding = classifier.transformers_.transform(panel)
    np.testing.assert_array_equal(embedding.to_numpy(), expected[:-1].transform(X))
    np.testing.assert_array_equal(classifier.predict(panel), expected.predict(X))
    # the same embeddings, whose order in memory the probe's last bit depends on
    np.testing.assert_allclose(
        classifier.predict_proba(panel), expected.predict_proba(X), rtol=1e-5
    )


def test_make_pipeline():
    X, y = make_panel()
    ours = make_pipeline(PULSE, StandardScaler(), LogisticRegression()).fit(X, y)
    theirs = Pipeline(
        [
            ("pulse", PulseTransformer(**BRIEF, input_layout="nct")),
            ("scale", StandardScaler()),
            ("probe", LogisticRegression()),
        ]
    ).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-5)
    assert ours.score(X, y) == theirs.score(X, y)


@pytest.mark.parametrize(
    "mtype",
    [
        pytest.param("numpy3D", marks=pytest.mark.slow),
        "pd-multiindex",
        pytest.param("nested_univ", marks=pytest.mark.slow),
    ],
)
def test_evaluate(mtype):
    X, y = make_panel()
    scores = evaluate(PULSE * LogisticRegression(), FOLDS, convert_to(X, mtype), y)
    assert scores.filter(like="accuracy").iloc[:, 0].tolist() == expected_scores()


def test_grid_search():
    X, y = make_panel()
    grid = {"n_crops": [1, 3], "gru_num_layers": [2]}
    classifier = PULSE * LogisticRegression()
    named = {f"PulsePanelTransformer__{name}": values for name, values in grid.items()}
    assert set(named) <= set(classifier.get_params())
    ours = TSCGridSearchCV(classifier, named, cv=KFold(2)).fit(convert_to(X, "pd-multiindex"), y)
    named = {f"pulse__{name}": values for name, values in grid.items()}
    theirs = GridSearchCV(plain_pipeline(), named, cv=KFold(2)).fit(X, y)
    results = ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(*map(np.sort, results))
    assert ours.best_score_ == theirs.best_score_
    fitted = ours.best_estimator_.transformers_.steps_[0][1].estimator_
    best = {name.split("__")[1]: value for name, value in ours.best_params_.items()}
    assert best.items() <= fitted.get_params().items()


def test_nested_parameters_of_a_wrapped_transformer():
    wrapped = as_panel_transformer(PulseTransformer(**BRIEF))
    wrapped.set_params(estimator__n_crops=3)
    assert wrapped.clone().get_params()["estimator__n_crops"] == 3
    X, _ = make_panel()
    expected = PULSE.clone().set_params(n_crops=3).fit_transform(X)
    pd.testing.assert_frame_equal(wrapped.fit_transform(X), expected)


def test_config_survives_cloning_and_fitting():
    X, _ = make_panel()
    transformer = PULSE.clone().set_config(warnings="off", print_changed_only=False)
    for other in (transformer.clone(), transformer.clone().fit(X)):
        assert other.get_config()["warnings"] == "off"
        assert not other.get_config()["print_changed_only"]
    expected = PULSE.fit_transform(X)
    for config in ({"output_conversion": "off"}, {"input_conversion": "numpy3D"}):
        plain = PULSE.clone().set_config(**config).fit_transform(X)
        pd.testing.assert_frame_equal(plain, expected)


@pytest.mark.parametrize("parameters", PulsePanelTransformer.get_test_params())
def test_test_parameters_train(parameters):
    X, _ = make_panel(8)
    transformer = PulsePanelTransformer(**parameters).fit(X)
    assert len(transformer.estimator_.history_) == 1
    assert transformer.get_fitted_params()["channel_names_in"] is None


@pytest.mark.parametrize("whole", [True, False])
def test_save_and_load(tmp_path, whole):
    X, y = make_panel()
    fitted = (PULSE * LogisticRegression()).fit(X, y) if whole else PULSE.clone().fit(X)
    use = "predict_proba" if whole else "transform"
    expected = np.asarray(getattr(fitted, use)(X))
    fitted.save(tmp_path / "saved")
    for loaded in (sktime.base.load(tmp_path / "saved.zip"), sktime.base.load(fitted.save())):
        np.testing.assert_array_equal(np.asarray(getattr(loaded, use)(X)), expected)


# scikit-learn's pipelines and searches


def sklearn_pipeline():
    return Pipeline(
        [("pulse", PULSE), ("scale", StandardScaler()), ("probe", LogisticRegression())]
    )


@functools.cache
def plain_search(names, values):
    """Return the search of a scikit-learn user over the panel, once in a process."""
    plain = sklearn_pipeline()
    plain.set_params(pulse=PulseTransformer(**BRIEF, input_layout="nct"))
    return GridSearchCV(plain, dict(zip(names, values, strict=True)), cv=FOLDS).fit(*make_panel())


@pytest.mark.parametrize(
    ("mtype", "n_jobs"),
    [
        pytest.param("numpy3D", None, marks=pytest.mark.slow),
        ("nested_univ", None),
        pytest.param("numpy3D", 2, marks=pytest.mark.slow),  # processes that import everything
    ],
)
def test_a_step_of_a_sklearn_pipeline_in_a_search(mtype, n_jobs):
    """Fails where sktime's reset wipes what scikit-learn's callbacks have stored."""
    X, y = make_panel()
    grid = {"pulse__n_crops": [1, 2], "probe__C": [0.1, 1.0]}
    search = GridSearchCV(sklearn_pipeline(), grid, cv=FOLDS, error_score="raise", n_jobs=n_jobs)
    search.fit(convert_to(X, mtype), y)
    expected = plain_search(tuple(grid), tuple(map(tuple, grid.values())))
    for name in ("mean_test_score", "params"):
        np.testing.assert_array_equal(search.cv_results_[name], expected.cv_results_[name])


def test_a_cached_pipeline_trains_once_for_every_probe(tmp_path):
    X, y = make_panel()
    pipeline = sklearn_pipeline().set_params(memory=str(tmp_path))
    GridSearchCV(pipeline, {"probe__C": [0.1, 1.0]}, cv=2, error_score="raise").fit(X, y)
    # Two cached steps, in two folds and once more.
    assert len(list(tmp_path.rglob("output.pkl"))) == 2 * (2 + 1)


def test_callbacks_see_every_epoch_through_the_adapter():
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")
    X, y = make_panel()
    log = FitLog()
    transformer = PULSE.clone().set_params(max_epochs=2).set_callbacks(log)
    for fit in (1, 2):  # a second fit has the callbacks of the first
        transformer.fit(X)
        assert log.epochs("PulseTransformer") == [0, 1] * fit
        assert log.events.count("setup") == log.events.count("teardown") == fit
    left = {name for name in vars(transformer) if "callback" in name}
    assert left == {"callbacks", "_skl_callbacks"}
    log = FitLog()
    search = GridSearchCV(sklearn_pipeline(), {"probe__C": [0.1]}, cv=2, error_score="raise")
    search.set_callbacks(log).fit(X, y)
    assert log.epochs("PulseTransformer") == [0] * (2 + 1)
    stopped = PULSE.clone().set_params(max_epochs=2).set_callbacks(FitLog(stop_after=1)).fit(X)
    assert stopped.estimator_.n_iter_ == 1
    log = FitLog()
    with pytest.raises(ValueError, match="max_epochs"):
        PULSE.clone().set_params(max_epochs=0).set_callbacks(log).fit(X)
    assert log.events[-1] == "teardown"


def test_scikit_learn_without_callbacks():
    class Before(PulsePanelTransformer):
        def _init_callback_context(self, **kwargs):
            return None  # as the stand-in before scikit-learn 1.9 does

    X, _ = make_panel()
    pd.testing.assert_frame_equal(Before(**BRIEF).fit_transform(X), PULSE.fit_transform(X))


def test_names_and_frames_in_a_sklearn_pipeline():
    X, y = make_panel()
    pipeline = sklearn_pipeline().set_output(transform="pandas").fit(X, y)
    names = [f"pulsetransformer{i}" for i in range(8)]
    assert list(pipeline[:-1].get_feature_names_out()) == names
    assert list(pipeline[:-1].transform(X).columns) == names
    assert list(pipeline["probe"].feature_names_in_) == names


def test_the_last_step_of_a_sklearn_pipeline_is_known_to_be_fitted():
    X, y = make_panel()
    ours = as_panel_transformer(StatisticsTransformer())
    expected = ours.clone().fit(X).transform(X)
    with pytest.raises(NotFittedError):
        check_is_fitted(ours)
    assert get_tags(ours).input_tags.allow_nan and not get_tags(ours).target_tags.required
    pipeline = make_sklearn_pipeline(ours, make_linear_probe()).fit(X, y)
    for fitted in (pipeline[:-1], make_sklearn_pipeline(FunctionTransformer(), ours).fit(X)):
        pd.testing.assert_frame_equal(fitted.transform(X), expected)
    plain = make_linear_probe().fit(expected, y)
    assert probe_scores(pipeline, X, y) == probe_scores(plain, expected, y)


@pytest.mark.parametrize("layout", ["ntc", "nct"])
@pytest.mark.parametrize("joined", ["sktime", "scikit-learn"])
def test_the_channels_of_a_panel_are_what_matters(joined, layout):
    """The layout of the wrapped transformer is not that of sktime's arrays."""
    X = np.random.default_rng(0).normal(size=(30, 3, 16))
    y = np.arange(30) % 2
    X[:, 1] *= 1 + 3 * y[:, None]
    ours = as_panel_transformer(StatisticsTransformer(input_layout=layout))
    model = ours * make_linear_probe()
    if joined == "scikit-learn":
        model = make_sklearn_pipeline(ours, make_linear_probe())
    got = channel_importance(model.fit(X, y), X, y, n_repeats=2, random_state=0).importances
    plain = make_sklearn_pipeline(StatisticsTransformer(), make_linear_probe())
    windows = X.swapaxes(1, 2)
    expected = channel_importance(
        plain.fit(windows, y), windows, y, n_repeats=2, random_state=0
    ).importances
    assert got.shape == (3, 2) and got.mean(1).argmax() == 1
    np.testing.assert_array_equal(got, expected)
    named = convert_to(X, "nested_univ").set_axis(["a", "b", "c"], axis=1)
    model.fit(named, y)  # arrays go with these names, though sktime names the channels of arrays
    got = channel_importance(model, named, y, n_repeats=2, random_state=0).importances
    np.testing.assert_array_equal(got, expected)
    for mtype in ("pd-multiindex", "nested_univ", "df-list"):
        if joined == "sktime" or mtype == "nested_univ":  # others have rows that are no samples
            frames = convert_to(X, mtype)
            again = channel_importance(model, frames, y, n_repeats=2, random_state=0).importances
            np.testing.assert_array_equal(again, expected)


def test_models_of_sktime_alone_have_channels_first():
    X = np.random.default_rng(0).normal(size=(14, 3, 16))
    y = np.arange(14) % 2
    X[:, 1] *= 1 + 3 * y[:, None]
    frame = convert_to(X, "nested_univ")
    model = SummaryTransformer() * make_linear_probe()
    for panel in (X, frame):
        model.fit(panel, y)
        got = channel_importance(model, panel, y, n_repeats=2, random_state=0).importances_mean
        assert got.shape == (3,) and got.argmax() == 1


# sktime before us


@pytest.mark.parametrize(
    "make_first",
    [
        lambda: SavitzkyGolayTransformer(window_length=5, polyorder=2),
        lambda: FitInTransform(Differencer()),
        lambda: FitInTransform(Detrender()),
    ],
    ids=["filter", "difference", "detrend"],
)
def test_a_transformer_of_sktime_before_ours(make_first):
    # what sktime's Detrender says of the next sktime, past every filter
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("ignore", FutureWarning)
        first = make_first()
        X, y = make_panel(12)
        panel = convert_to(X, "pd-multiindex")
        few = panel.loc[:3]  # another number of instances
        arrays = [convert_to(first.clone().fit_transform(x), "numpy3D") for x in (panel, few)]
        assert not np.array_equal(arrays[0], X)
        plain = plain_pipeline().fit(arrays[0], y)
        classifier = (first * PULSE * LogisticRegression()).fit(panel, y)
        embedding = classifier.transformers_.transform(few)
        np.testing.assert_array_equal(embedding.to_numpy(), plain[:-1].transform(arrays[1]))
        np.testing.assert_array_equal(classifier.predict(few), plain.predict(arrays[1]))


# Real panels


def compare(X_train, X_test, mtypes, plain_train=None, plain_test=None):
    """The adapter on every container against plain PULSE on an array."""
    plain_train = X_train if plain_train is None else plain_train
    plain_test = X_test if plain_test is None else plain_test
    params = BRIEF | {"max_epochs": 1, "batch_size": 64}
    expected = PulseTransformer(**params, input_layout="nct").fit(plain_train).transform(plain_test)
    assert np.isfinite(expected).all() and expected.std(0).min() > 0
    for mtype in mtypes:
        transformer = PulsePanelTransformer(**params).fit(convert_to(X_train, mtype))
        embedding = transformer.transform(convert_to(X_test, mtype))
        np.testing.assert_array_equal(embedding.to_numpy(), expected, err_msg=mtype)


def test_basic_motions():
    X, y = load_basic_motions(split="train", return_type="nested_univ")
    X_test, y_test = load_basic_motions(split="test", return_type="nested_univ")
    as_array = convert_to(X, "numpy3D"), convert_to(X_test, "numpy3D")
    assert as_array[0].shape == (40, 6, 100)
    compare(X, X_test, MTYPES, *as_array)
    encoder = as_panel_transformer(RandomEncoderTransformer(random_state=0))
    classifier = encoder * StandardScaler() * LogisticRegression(max_iter=1000)
    assert classifier.fit(X, y).score(X_test, y_test) > 0.8


def test_japanese_vowels():
    """Utterances of 7 to 29 steps; the plain route pads by hand."""
    X, _ = load_japanese_vowels(split="train", return_type="nested_univ")
    X_test, _ = load_japanese_vowels(split="test", return_type="nested_univ")

    def pad(nested, n_timesteps):
        padded = np.full((len(nested), 12, n_timesteps), np.nan)
        for i in range(len(nested)):
            for channel in range(12):
                cell = nested.iloc[i, channel].to_numpy()
                padded[i, channel, : len(cell)] = cell
        return padded

    lengths = {len(cell) for cell in X.iloc[:, 0]}
    assert min(lengths) == 7 and max(lengths) == 26
    compare(X, X_test, MTYPES[1:], pad(X, 26), pad(X_test, 29))


def test_uwave_gestures(data_home):
    gesture = fetch_gesture(data_home, download_if_missing=False)
    X = np.ascontiguousarray(gesture.X[::20].swapaxes(1, 2))
    assert X.shape[1] == 3
    compare(X[::2], X[1::2], MTYPES)


@pytest.mark.slow  # the gestures are real recordings too
def test_har_windows(data_home):
    har = fetch_har(data_home, download_if_missing=False)
    X = np.ascontiguousarray(np.asarray(har.X[::320]).swapaxes(1, 2))
    assert X.shape[1:] == (6, 128)
    compare(X[::2], X[1::2], MTYPES)


def test_windows_of_a_real_panel():
    X, y = load_basic_motions(split="train", return_type="numpy3D")
    expected = sliding_windows(X.swapaxes(1, 2), length=50, y=y)
    assert expected.X.shape == (80, 50, 6)
    for mtype in MTYPES:
        w = sliding_windows(convert_to(X, mtype), length=50, y=y, input_layout="nct")
        np.testing.assert_array_equal(w.X, expected.X)
        np.testing.assert_array_equal(w.y, expected.y)
        np.testing.assert_array_equal(w.groups, expected.groups)
    pulse = PulseTransformer(**SMALL_ENCODER, max_epochs=1, random_state=0)
    assert pulse.fit(w.X, groups=w.groups).transform(w.X).shape == (80, 8)
