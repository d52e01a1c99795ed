import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_pulse import RandomEncoderTransformer
from sklearn_pulse.evaluation import PROBE_SCORERS, make_linear_probe, probe_scores
from sklearn_pulse.plotting import LabelEfficiencyDisplay
from tests.helpers import SMALL_ENCODER, make_windows

FRACTIONS = (0.02, 0.1, 0.5, 1.0)
SCORES = np.array([[0.4, 0.6, 0.2], [0.5, 0.7, 0.6], [0.8, 0.6, 0.7], [0.9, 0.8, 1.0]])
from_estimators = LabelEfficiencyDisplay.from_estimators
from_scores = LabelEfficiencyDisplay.from_scores


def task(n=90, n_groups=9, n_classes=3, seed=0):
    """Embeddings whose first column is the number of the row, labels, and groups."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    Z = rng.normal(size=(n, 4)) + y[:, None]
    Z[:, 0] = np.arange(n)
    return Z, y, np.arange(n) * n_groups // n


class Recorder(ClassifierMixin, BaseEstimator):
    """A probe that notes which rows it learns from and is scored on."""

    log = []

    def fit(self, X, y):
        self.rows_, self.classes_ = X[:, 0].astype(int), np.unique(y)
        self.probe_ = LogisticRegression(max_iter=1000).fit(X[:, 1:], y)
        return self

    def predict(self, X):
        return self.probe_.predict(X[:, 1:])

    def score(self, X, y):
        accuracy = self.probe_.score(X[:, 1:], y)
        self.log.append((self.rows_.tolist(), X[:, 0].astype(int).tolist(), accuracy))
        return accuracy


@pytest.fixture
def log():
    Recorder.log.clear()
    return Recorder.log


def band_edges(band, fractions):
    """Lower and upper edge of a band at the fractions."""
    vertices = np.concatenate([path.vertices for path in band.get_paths()])
    at = [vertices[np.isclose(vertices[:, 0], fraction), 1] for fraction in fractions]
    return [values.min() for values in at], [values.max() for values in at]


# What is drawn


def test_lines_bands_points_and_the_majority(legend):
    single = np.array([0.3, 0.3, 0.4, 0.5])
    display = from_scores({"A": SCORES, "B": single}, FRACTIONS, majority_score=0.35)
    for line, mean in zip(display.lines_, (SCORES.mean(1), single), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), FRACTIONS)
        np.testing.assert_allclose(line.get_ydata(), mean)
    low, high = band_edges(display.bands_[0], FRACTIONS)
    np.testing.assert_allclose(low, SCORES.mean(1) - SCORES.std(1))
    np.testing.assert_allclose(high, SCORES.mean(1) + SCORES.std(1))
    expected = [(x, score) for x, row in zip(FRACTIONS, SCORES, strict=True) for score in row]
    np.testing.assert_allclose(display.points_[0].get_offsets(), expected)
    assert list(display.majority_line_.get_ydata()) == [0.35, 0.35]
    assert list(display.ax_.lines) == [*display.lines_, display.majority_line_]
    assert legend(display.ax_) == ["A", "B", "majority class"]
    assert display.ax_.get_legend().get_title().get_text() == "mean ±1 std of 1 to 3 runs"
    assert display.figure_ is display.ax_.figure


def test_axes_are_logarithmic_and_say_percent():
    ax = from_scores({"A": SCORES}, FRACTIONS, score_name="macro AUROC").ax_
    assert ax.get_xscale() == "log"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["2 %", "10 %", "50 %", "100 %"]
    assert ax.get_ylabel() == "macro AUROC"
    assert ax.get_xlabel()


def test_a_second_display_on_the_axes_leaves_the_labels_of_the_first(legend):
    first = from_scores({"A": SCORES}, FRACTIONS, majority_score=0.35)
    ax = from_scores({"B": [0.5, 0.6]}, (0.01, 0.1), ax=first.ax_).ax_
    ticks = [tick.get_text() for tick in ax.get_xticklabels()]
    assert ticks == ["1 %", "2 %", "10 %", "50 %", "100 %"]
    assert ax.get_legend().get_title().get_text() == "mean ±1 std of 3 runs\none run each"
    assert {*legend(ax)} == {"A", "B", "majority class"}


def test_quantiles_or_no_band():
    display = from_scores({"A": SCORES}, FRACTIONS, band="quantiles", points=False)
    low, high = band_edges(display.bands_[0], FRACTIONS)
    np.testing.assert_allclose(low, np.quantile(SCORES, 0.1, axis=1))
    np.testing.assert_allclose(high, np.quantile(SCORES, 0.9, axis=1))
    assert display.points_ == []
    assert display.ax_.get_legend().get_title().get_text() == "mean, 10 to 90 % of 3 runs"
    display.plot(band="none")
    assert display.bands_ == []
    assert display.ax_.get_legend().get_title().get_text() == "mean of 3 runs"


def test_missing_results_leave_a_gap():
    scores = SCORES.copy()
    scores[0, 1] = np.nan
    scores[2] = np.nan
    display = from_scores({"A": scores}, FRACTIONS)
    np.testing.assert_allclose(
        display.lines_[0].get_ydata(), [0.3, SCORES[1].mean(), np.nan, SCORES[3].mean()]
    )
    display.figure_.canvas.draw()


@settings(deadline=None, max_examples=10)
@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 25), st.integers(0, 2**16))
def test_any_number_of_fractions_repeats_and_methods(n_fractions, n_repeats, n_methods, seed):
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(seed)
    fractions = np.sort(rng.uniform(0.001, 1, size=n_fractions))
    scores = {f"method {i}": rng.uniform(size=(n_fractions, n_repeats)) for i in range(n_methods)}
    display = from_scores(scores, fractions)
    for line, values in zip(display.lines_, scores.values(), strict=True):
        np.testing.assert_allclose(line.get_ydata(), values.mean(1))
    assert len({line.get_color() for line in display.lines_}) == n_methods
    plt.close("all")


@pytest.mark.parametrize("n_methods", [1, 14, 30])
def test_nothing_overlaps_or_is_cut_off(n_methods):
    fractions = np.concatenate([np.geomspace(0.001, 0.9, 30), [1.0]])
    scores = {f"method {i}": np.linspace(0.3, 0.9, 31) for i in range(n_methods)}
    display = from_scores(scores, fractions, majority_score=0.2)
    display.figure_.canvas.draw()
    ticks = [text.get_window_extent() for text in display.ax_.get_xticklabels()]
    assert len(ticks) > 3
    assert all(left.x1 < right.x0 for left, right in zip(ticks, ticks[1:], strict=False))
    legend, figure = display.ax_.get_legend().get_window_extent(), display.figure_.bbox
    assert figure.x0 <= legend.x0 <= legend.x1 <= figure.x1
    assert figure.y0 <= legend.y0 <= legend.y1 <= figure.y1
    assert (legend.x0 >= display.ax_.get_window_extent().x1) == (n_methods > 10)


def test_axes_are_used_as_given(headless):
    figure, axes = headless.subplots(1, 2)
    headless.sca(axes[1])
    display = from_scores({"A": SCORES}, FRACTIONS, ax=axes[0], ls=":", color="black")
    assert display.ax_ is axes[0]
    assert display.figure_ is figure
    assert headless.get_fignums() == [figure.number]
    assert headless.gca() is axes[1]
    assert not axes[1].has_data()
    assert (display.lines_[0].get_ls(), display.lines_[0].get_color()) == (":", "black")
    np.testing.assert_array_equal(display.bands_[0].get_facecolor()[0, :3], [0, 0, 0])


# What is computed


@pytest.mark.parametrize("as_objects", [False, True])
def test_text_labels_beside_the_mark(as_objects):
    """The mark is no class, and unlabelled rows are not scored."""
    Z, y, groups = task(n_classes=2)
    y[::3] = -1
    text = [-1 if label == -1 else ["rest", "walk"][label] for label in y.tolist()]
    if as_objects:
        text = np.array(text, dtype=object)
    settings = {"groups": groups, "cv": 3, "fractions": (0.2, 1.0), "n_draws": 2}
    marked = np.where(y == -1, "?", np.array(["rest", "walk"])[y])
    numbers, words, others = (
        from_estimators({"Z": Z}, None, labels, unlabeled_label=mark, **settings)
        for labels, mark in ((y, -1), (text, -1), (marked, "?"))
    )
    for display in (words, others):
        np.testing.assert_array_equal(numbers.scores["Z"], display.scores["Z"])
        assert numbers.majority_score == display.majority_score


def test_minus_one_may_be_a_class():
    Z, y, groups = task(n_classes=2)
    settings = {"groups": groups, "cv": 3, "fractions": (0.2, 1.0), "n_draws": 2}
    signs = from_estimators({"Z": Z}, None, 2 * y - 1, unlabeled_label=None, **settings)
    expected = from_estimators({"Z": Z}, None, y, **settings)
    np.testing.assert_array_equal(signs.scores["Z"], expected.scores["Z"])


def test_two_displays_on_one_axes_can_be_told_apart(legend, headless):
    ax = headless.subplots()[1]
    for name in ("A", "B"):
        display = from_scores({name: [0.5, 0.6]}, (0.1, 1.0), majority_score=0.4, ax=ax)
    assert legend(ax) == ["A", "majority class", "B"]
    first, majority, second = ax.get_lines()
    assert first.get_color() != second.get_color() and first.get_marker() != second.get_marker()
    assert display.majority_line_ is majority


def test_all_labels_are_plain_cross_validation():
    Z, y, groups = task()
    display = from_estimators({"Z": Z}, None, y, groups=groups, fractions=(0.1, 1.0), n_draws=2)
    expected = cross_val_score(make_linear_probe(), Z, y, groups=groups, cv=GroupKFold(5))
    np.testing.assert_allclose(display.scores["Z"][1], np.repeat(expected, 2))
    np.testing.assert_allclose(display.lines_[0].get_ydata(), display.scores["Z"].mean(1))
    assert display.scores["Z"].shape == (2, 10)
    majority = [
        (y[test] == np.bincount(y[train]).argmax()).mean()
        for train, test in GroupKFold(5).split(Z, y, groups)
    ]
    np.testing.assert_allclose(display.majority_score, np.mean(majority))


def test_a_probe_with_a_scoring_of_its_own_needs_the_same_score():
    """The line of the majority class and the axis would be those of the accuracy."""
    Z, y, _ = task()
    search = GridSearchCV(GaussianNB(), {}, scoring="balanced_accuracy", cv=2)
    options = {"cv": 3, "fractions": (1.0,), "n_draws": 1, "probe": search}
    with pytest.raises(ValueError, match="scoring='balanced_accuracy', but the name of the axis"):
        from_estimators({"Z": Z}, None, y, **options)
    display = from_estimators({"Z": Z}, None, y, scoring="balanced_accuracy", **options)
    assert display.majority_score == pytest.approx(1 / len(np.unique(y)))
    assert display.score_name == "balanced accuracy"
    accuracy = options | {"probe": search.set_params(scoring=None)}
    assert from_estimators({"Z": Z}, None, y, **accuracy).score_name == "accuracy"


def test_without_groups_folds_are_stratified():
    Z, y, _ = task()
    display = from_estimators({"Z": Z}, None, y, cv=3, fractions=(1.0,), n_draws=1)
    expected = cross_val_score(make_linear_probe(), Z, y, cv=StratifiedKFold(3))
    np.testing.assert_allclose(display.scores["Z"][0], expected)


def test_draws_are_honest(log):
    Z, y, groups = task()
    display = from_estimators(
        {"A": Z, "B": Z.copy()},
        None,
        y,
        groups=groups,
        cv=3,
        fractions=(0.1, 0.5),
        n_draws=2,
        probe=Recorder(),
    )
    assert log[:12] == log[12:]  # both methods see the same labels
    assert len(log) == 24
    for i, (train_rows, test_rows, accuracy) in enumerate(log[:12]):
        split, draw, fraction = np.unravel_index(i, (3, 2, 2))
        train, test = list(GroupKFold(3).split(Z, y, groups))[split]
        assert set(train_rows) <= set(train)
        assert test_rows == test.tolist()
        assert not set(groups[train_rows]) & set(groups[test_rows])
        assert len(train_rows) == int((0.1, 0.5)[fraction] * len(train)) + 3  # one more a class
        assert set(y[train_rows]) == {0, 1, 2}
        assert display.scores["A"][fraction, split * 2 + draw] == accuracy
        if fraction == 1:
            assert set(log[i - 1][0]) <= set(train_rows)
    assert log[0][0] != log[2][0]  # another draw, other labels


def test_unlabelled_rows_are_neither_learnt_from_nor_scored_nor_embedded(log):
    Z, y, groups = task()
    y = np.where(np.arange(90) % 3 == 0, -1, y)

    class Embedder(TransformerMixin, BaseEstimator):
        calls = []

        def fit(self, X, y=None):
            self.fitted_ = True
            return self

        def transform(self, X):
            self.calls.append(X[:, 0].astype(int).tolist())
            return X

    labelled = np.flatnonzero(y != -1).tolist()
    settings = {"groups": groups, "cv": 3, "fractions": (0.2, 1.0), "probe": Recorder()}
    display = from_estimators({"Z": Embedder().fit(Z)}, Z, y, **settings)
    assert Embedder.calls == [labelled]  # once, whatever the number of splits
    assert sorted({row for rows, _, _ in log for row in rows}) == labelled
    assert sorted({row for _, rows, _ in log for row in rows}) == labelled
    text = np.array(["unlabelled", "a", "b", "c"])[y + 1].astype(object)
    text[y == -1] = -1
    again = from_estimators({"Z": Z}, None, text, **settings)
    np.testing.assert_array_equal(again.scores["Z"], display.scores["Z"])


def test_whole_groups_are_labelled(log):
    Z, _, groups = task()
    y = np.arange(len(Z)) % 3  # every group shows every class
    display = from_estimators(
        {"Z": Z}, None, y, groups=groups, cv=3, n_groups=(1, 2, 9), n_draws=2, probe=Recorder()
    )
    assert display.fractions is None
    assert display.scores["Z"].shape == (3, 6)
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["1", "2", "9"]
    assert display.ax_.get_xlabel() == "labelled groups of each class"
    learnt = {}
    for rows, scored, _ in log:
        labelled = set(groups[rows])
        assert sorted(rows) == np.flatnonzero(np.isin(groups, list(labelled))).tolist()
        assert not labelled & set(groups[scored])
        learnt.setdefault(tuple(scored), []).append(labelled)
    for of_split in learnt.values():
        assert sorted(map(len, of_split))[-1] == 6  # all groups of the training part
        assert [len(labelled) for labelled in of_split].count(1) == 2
        assert [len(labelled) for labelled in of_split].count(2) == 2


def test_more_groups_keep_those_of_fewer(log):
    Z, _, groups = task()
    y = np.arange(len(Z)) % 3
    from_estimators(
        {"Z": Z}, None, y, groups=groups, cv=3, n_groups=(1, 2, 4), n_draws=1, probe=Recorder()
    )
    learnt = [set(groups[rows]) for rows, _, _ in log]
    for one, two, four in zip(learnt[::3], learnt[1::3], learnt[2::3], strict=True):
        assert one < two < four


def test_scores_by_number_of_groups():
    display = from_scores({"A": SCORES}, n_groups=(1, 2, 4, 8), majority_score=0.3)
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), (1, 2, 4, 8))
    np.testing.assert_allclose(display.lines_[0].get_ydata(), SCORES.mean(1))
    again = LabelEfficiencyDisplay(display.scores, n_groups=display.n_groups).plot()
    np.testing.assert_array_equal(again.lines_[0].get_xdata(), (1, 2, 4, 8))


def test_frozen_encoders_pipelines_and_embeddings_agree():
    X, y = make_windows(40)
    encoder = RandomEncoderTransformer(**SMALL_ENCODER, random_state=0).fit(X)
    pipeline = make_pipeline(RandomEncoderTransformer(**SMALL_ENCODER, random_state=0)).fit(X)
    weights = [weight.clone() for weight in encoder.encoder_.parameters()]
    display = from_estimators(
        {
            "fitted": encoder,
            "frozen": FrozenEstimator(encoder),
            "pipeline": pipeline,
            "embedding": encoder.transform(X),
            "data frame": pd.DataFrame(encoder.transform(X)),
        },
        X,
        y,
        cv=[(np.arange(30), np.arange(30, 40)), (np.arange(10, 40), np.arange(10))],
        fractions=(0.1, 1.0),
        n_draws=2,
    )
    for scores in display.scores.values():
        np.testing.assert_array_equal(scores, display.scores["embedding"])
    assert all((a == b).all() for a, b in zip(weights, encoder.encoder_.parameters(), strict=True))


def test_scorers():
    Z, y, groups = task(n_classes=2)
    shared = {"groups": groups, "cv": 3, "fractions": (0.2, 1.0), "n_draws": 1}
    display = from_estimators({"Z": Z}, None, y, scoring="roc_auc", **shared)
    expected = cross_val_score(
        make_linear_probe(), Z, y, groups=groups, cv=GroupKFold(3), scoring="roc_auc"
    )
    np.testing.assert_allclose(display.scores["Z"][1], expected)
    assert display.majority_score == 0.5
    assert display.ax_.get_ylabel() == "roc auc"

    def rows_scored(estimator, X, y):
        return len(y)

    display = from_estimators({"Z": Z}, None, y, scoring=rows_scored, **shared)
    np.testing.assert_array_equal(display.scores["Z"], 30)
    assert display.ax_.get_ylabel() == "score"
    display = from_estimators({"Z": Z}, None, y, scoring=rows_scored, score_name="rows", **shared)
    assert display.ax_.get_ylabel() == "rows"


@pytest.mark.filterwarnings("ignore:Only one class is present")
def test_folds_without_a_score_count_in_no_mean():
    y, groups = np.arange(60) % 2, np.arange(60) // 20
    y[groups == 2] = 0  # this group has no score, since it has one class
    Z = np.random.default_rng(0).normal(size=(60, 4))
    Z[:, 0] += y
    cv = [(groups != 1, groups == 1), (groups != 2, groups == 2)]
    cv = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in cv]
    settings = {"fractions": (0.5, 1.0), "n_draws": 3, "scoring": PROBE_SCORERS["auroc"]}
    display = from_estimators({"noise": Z}, None, y, cv=cv, **settings)
    assert np.isnan(display.scores["noise"]).sum(axis=1).tolist() == [3, 3]
    assert display.majority_score == 0.5
    assert display.majority_line_.get_ydata()[0] == 0.5
    assert "of 3 runs" in display.ax_.get_legend().get_title().get_text()
    undefined = from_estimators({"noise": Z}, None, y, cv=cv[1:], **settings)
    assert undefined.majority_score is None and undefined.majority_line_ is None


def test_small_probes_share_no_product_among_threads(monkeypatch):
    threads = []

    class Watching(LogisticRegression):
        def fit(self, X, y):
            threads.extend(pool["num_threads"] for pool in blas_pools())
            return super().fit(X, y)

    def scores():
        threads.clear()
        embeddings = {"noise": np.random.default_rng(0).normal(size=(40, 3))}
        display = from_estimators(embeddings, None, np.arange(40) % 2, n_draws=2, probe=Watching())
        return display.scores["noise"]

    with threadpool_limits(2, "blas"):
        before = blas_pools()
        small = scores()
        assert set(threads) == {1}
        monkeypatch.setattr("sklearn_pulse._blas._WORTH_SHARING", 40 * 3)
        np.testing.assert_allclose(scores(), small)
        assert max(threads) == max(pool["num_threads"] for pool in before)
        assert blas_pools() == before


def blas_pools():
    return [pool for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_same_seed_same_scores_and_no_global_generator():
    Z, y, groups = task()
    shared = {"groups": groups, "cv": 3, "fractions": (0.05,)}
    np.random.seed(3)
    state = np.random.get_state()[1].copy()
    first, again, other = (
        from_estimators({"Z": Z}, None, y, random_state=seed, **shared).scores["Z"]
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(np.random.get_state()[1], state)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


# What is refused


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"fractions": ()}, ValueError, "fractions must be a sequence"),
        ({"fractions": 0.5}, TypeError, "fractions must be a sequence"),
        ({"fractions": (0.0, 0.5)}, ValueError, r"fractions must be a number in \(0, 1\]"),
        ({"fractions": (0.5, 0.1)}, ValueError, "fractions must ascend"),
        ({"fractions": (0.1, True)}, TypeError, "each of fractions must be .*got True"),
        ({"n_groups": (1,)}, ValueError, "pass one of them"),
        ({"fractions": None, "n_groups": ()}, ValueError, "n_groups must be a sequence"),
        ({"fractions": None, "n_groups": 2}, TypeError, "n_groups must be a sequence"),
        ({"fractions": None, "n_groups": (0.5,)}, TypeError, "n_groups must be an integer"),
        ({"fractions": None, "n_groups": (0, 1)}, ValueError, "integer of at least 1"),
        ({"fractions": None, "n_groups": (2, 1)}, ValueError, "n_groups must ascend"),
        (  # before any method is looked at
            {"fractions": None, "n_groups": np.uint8([2, 1]), "estimators": {}},
            ValueError,
            "n_groups must ascend",
        ),
        (
            {"fractions": None, "n_groups": (1,), "groups": None},
            ValueError,
            "pass the group of each window as groups",
        ),
        ({"n_draws": 0}, ValueError, "n_draws must be an integer of at least 1"),
        ({"random_state": "a"}, TypeError, "random_state must be an integer"),
        ({"scoring": probe_scores}, TypeError, "one score, but gives accuracy, auroc, auprc: call"),
        ({"scoring": ["accuracy"]}, TypeError, "one score, but gives accuracy: call once for each"),
        ({"estimators": {}}, ValueError, "estimators must be a dictionary"),
        ({"estimators": [np.zeros((90, 2))]}, TypeError, "estimators must be a dictionary"),
        ({"estimators": {"Z": np.zeros((80, 2))}}, ValueError, "80 embeddings for 90 labels"),
        ({"estimators": {"Z": 3}}, TypeError, r"estimators\['Z'\]=3 is neither a transformer"),
        ({"estimators": {"Z": np.zeros(90)}}, ValueError, "2D array"),
        ({"estimators": {"Z": np.full((90, 2), np.nan)}}, ValueError, "embedding of 'Z'.*NaN"),
        ({"estimators": {"P": RandomEncoderTransformer()}}, ValueError, "X is None"),
        ({"estimators": {"P": make_linear_probe()}}, TypeError, r"pipeline\[:-1\]"),
        ({"estimators": {"P": RandomEncoderTransformer}}, TypeError, "is a class"),
        ({"y": np.full(90, -1)}, ValueError, "All 90 rows of y are -1"),
        ({"y": np.zeros(80)}, ValueError, "inconsistent numbers of samples"),
        (
            {"y": np.repeat([-1, 0, 1], 30), "cv": [(np.arange(30), np.arange(30, 90))]},
            ValueError,
            "training part of split 0 holds no labelled row: label more rows, or pass another cv",
        ),
        ({"groups": np.zeros(80)}, ValueError, "inconsistent numbers of samples"),
        ({"groups": [*"a" * 89, np.nan]}, ValueError, r"groups is missing for 1 row\(s\)"),
        ({"band": "sem"}, ValueError, "band must be one of"),
        ({"points": 1}, TypeError, "points must be True or False"),
        ({"ax": 3}, TypeError, "ax must be one Axes"),
        ({"n_draw": 3}, AttributeError, "n_draw"),
        ({"unlabeled_label": 0.5}, TypeError, "unlabeled_label must be an integer, text or None"),
    ],
)
def test_bad_arguments_leave_no_figure(headless, arguments, error, message, monkeypatch):
    Z, y, groups = task()
    shared = {"estimators": {"Z": Z}, "X": None, "y": y, "groups": groups}
    shared |= {"fractions": (1.0,), "n_draws": 1, "cv": 2}
    if "y" in arguments:
        shared["X"] = Z
    if {*arguments} & {"band", "points", "ax", "n_draw"}:  # before anything is fitted
        monkeypatch.setattr(LogisticRegression, "fit", None)
    with pytest.raises(error, match=message):
        from_estimators(**(shared | arguments))
    assert headless.get_fignums() == []


def test_encoders_must_be_fitted():
    X, y = make_windows()
    with pytest.raises(NotFittedError, match=r"estimators\['PULSE'\] is not fitted.*fit it first"):
        from_estimators({"PULSE": RandomEncoderTransformer()}, X, y)


def test_scores_need_one_kind_of_amount():
    with pytest.raises(ValueError, match="pass one of them"):
        from_scores({"A": SCORES})
    with pytest.raises(ValueError, match="pass one of them"):
        from_scores({"A": SCORES}, FRACTIONS, n_groups=(1, 2, 3, 4))


@pytest.mark.parametrize(
    "scores",
    [
        {},
        {"A": SCORES[:2]},
        {"A": SCORES[None]},
        {"A": np.zeros((4, 0))},
        {"A": ["high"] * 4},
        {"A": [[0.5], [0.5], [0.5], [0.5, 0.6]]},
        {"A": [0.5, 0.5, np.inf, 0.6]},  # whose line would be broken, and its run not counted
    ],
)
def test_scores_of_another_shape(headless, scores):
    with pytest.raises(ValueError, match="scores"):
        from_scores(scores, FRACTIONS)
    assert headless.get_fignums() == []


@pytest.mark.parametrize("majority_score", ["0.5", True, [0.5]])
def test_the_score_of_the_majority_is_a_number(headless, majority_score):
    with pytest.raises(TypeError, match="majority_score must be a number or None"):
        from_scores({"A": SCORES}, FRACTIONS, majority_score=majority_score)
    assert headless.get_fignums() == []
