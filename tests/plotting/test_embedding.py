import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.colors import to_rgba_array
from sklearn import config_context
from sklearn.manifold import TSNE
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import StandardScaler

from sklearn_pulse.plotting import EmbeddingDisplay

rng = np.random.default_rng(0)
Z = rng.normal(size=(60, 5)) * [1, 2, 3, 4, 5] + rng.normal(size=5)
from_embedding = EmbeddingDisplay.from_embedding


def test_pca_is_of_the_standardised_embedding():
    display = from_embedding(Z)
    scaled = (Z - Z.mean(0)) / Z.std(0)
    U, s, _ = np.linalg.svd(scaled, full_matrices=False)
    np.testing.assert_allclose(np.abs(display.coordinates), np.abs(U[:, :2] * s[:2]))
    share = s[0] ** 2 / (s**2).sum()
    assert display.ax_.get_xlabel() == f"PC1 ({share:.0%} of variance)"


def test_tsne_is_the_published_one():
    many = np.random.default_rng(1).normal(size=(200, 3))
    display = from_embedding(many, method="tsne", random_state=3)
    expected = TSNE(perplexity=50, learning_rate=50, init="pca", random_state=3).fit_transform(many)
    np.testing.assert_allclose(display.coordinates, expected, rtol=1e-4)
    assert from_embedding(many[:5], method="tsne").coordinates.shape == (5, 2)


@pytest.mark.parametrize("method", ["pca", "tsne"])
@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_a_configured_output_changes_no_picture(method, output):
    embed = StandardScaler().fit(Z)
    params = {"y": np.arange(60) % 3, "method": method, "random_state": 0}
    expected = EmbeddingDisplay.from_estimator(embed, Z, **params)
    with config_context(transform_output=output):
        display = EmbeddingDisplay.from_estimator(embed, Z, **params)
    np.testing.assert_array_equal(display.coordinates, expected.coordinates)


@pytest.mark.parametrize("n_classes", [3, 12, 25])
def test_classes_can_be_told_apart(n_classes, headless, legend):
    y = np.arange(60) % n_classes
    display = from_embedding(Z, y, name="PULSE")
    colors = {tuple(points.get_facecolor()[0]) for points in display.collections_}
    assert len(colors) == n_classes
    assert legend(display.ax_) == [str(label) for label in range(n_classes)]
    for label, points in enumerate(display.collections_):
        np.testing.assert_allclose(points.get_offsets(), display.coordinates[y == label])
    assert {handle.get_alpha() for handle in display.ax_.get_legend().legend_handles} == {1}
    display.figure_.canvas.draw()
    box, axes = display.ax_.get_legend().get_window_extent(), display.ax_.get_window_extent()
    assert box.x1 <= display.figure_.bbox.x1
    assert box.y0 >= display.figure_.bbox.y0
    assert box.x0 >= axes.x1  # beside the points
    assert display.ax_.get_title() == "PULSE"
    figure, ax = headless.subplots()
    display.plot(ax=ax)
    figure.canvas.draw()
    box, axes = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert (box.x0 >= axes.x1) == (n_classes > 10)


def test_text_labels_stand_sorted_in_the_legend(legend):
    names = ["rest", "walk", "run"] * 20
    assert legend(from_embedding(Z, names).ax_) == ["rest", "run", "walk"]
    assert legend(from_embedding(Z, np.array(names, dtype=object)).ax_) == ["rest", "run", "walk"]
    partly = [-1 if i < 12 else name for i, name in enumerate(names)]
    display = from_embedding(Z, partly)
    assert legend(display.ax_) == ["unlabelled", "rest", "run", "walk"]
    assert len(display.collections_[0].get_offsets()) == 12


@pytest.mark.parametrize("missing", [np.nan, None, -1])
@pytest.mark.parametrize("classes", [(0.0, 1.0), ("a", "b")], ids=["numbers", "text"])
def test_a_missing_label_is_grey(legend, classes, missing):
    display = from_embedding(Z, [*classes, missing] * 20)
    assert legend(display.ax_) == ["unlabelled", *map(str, classes)]
    assert [len(points.get_offsets()) for points in display.collections_] == [20, 20, 20]


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (np.ma.masked_equal(np.arange(60) % 3, 2), ["unlabelled", "0", "1"]),
        (np.ma.masked_equal(["a", "b", "c"] * 20, "c"), ["unlabelled", "a", "b"]),
        (pd.Series(["a", "b", pd.NA] * 20, dtype="string"), ["unlabelled", "a", "b"]),
        (pd.Series([True, False, pd.NA] * 20, dtype="boolean"), ["unlabelled", "False", "True"]),
        (np.array(["2020-01-01", "2020-01-02", "NaT"] * 20, dtype="M8[D]"), None),
    ],
    ids=["masked", "masked text", "string", "boolean", "dates"],
)
def test_a_missing_label_of_any_type_is_grey(legend, y, names):
    display = from_embedding(Z, y)
    assert legend(display.ax_) == (names or ["unlabelled", "2020-01-01", "2020-01-02"])
    assert [len(points.get_offsets()) for points in display.collections_] == [20, 20, 20]


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="needs NumPy 2")
def test_a_missing_label_of_string_dtype_is_grey(legend):
    y = np.array(["a", "b", np.nan] * 20, dtype=np.dtypes.StringDType(na_object=np.nan))
    assert legend(from_embedding(Z, y).ax_) == ["unlabelled", "a", "b"]


@pytest.mark.parametrize("kind", ["list", "objects", "masked"])
def test_a_missing_continuous_value_is_grey(legend, kind):
    known = np.arange(60) % 3 < 2
    ages = np.linspace(20.5, 80, 60)
    y = [age if seen else None for age, seen in zip(ages, known, strict=True)]
    y = {"list": y, "objects": np.array(y), "masked": np.ma.masked_array(ages, ~known)}[kind]
    display = from_embedding(Z, y)
    assert legend(display.ax_) == ["unknown"] and display.colorbar_ is not None
    np.testing.assert_array_equal(display.collections_[1].get_array(), ages[known])


def test_equal_embeddings_have_no_variance():
    display = from_embedding(np.ones((6, 3)))
    assert display.ax_.get_xlabel() == "PC1 (0% of variance)"


def test_a_column_of_labels(legend):
    assert legend(from_embedding(Z, np.array([["a"], ["b"]] * 30)).ax_) == ["a", "b"]


def test_names_of_classes(legend):
    y = np.arange(60) % 2 * 2  # classes 0 and 2 of three
    names = ["rest", "walk", "run"]
    assert legend(from_embedding(Z, y, target_names=names).ax_) == ["rest", "run"]
    assert legend(from_embedding(Z, y + 1, target_names=["a", "b"]).ax_) == ["a", "b"]
    text = np.where(y == 0, "N", "AFIB")
    assert legend(from_embedding(Z, text, target_names=["fib", "normal"]).ax_) == ["fib", "normal"]


def test_labels_that_may_count_from_0_or_from_1_are_refused(headless):
    """A part of the labels 1 to 3 would get the names of their neighbours."""
    names = ["rest", "walk", "run"]
    y = np.arange(60) % 3 + 1
    labels = from_embedding(Z, y, target_names=names).ax_.get_legend().get_texts()
    assert [text.get_text() for text in labels] == names
    headless.close("all")
    with pytest.raises(ValueError, match=r"labels 1 to 2 of 3 .*from 0 or from 1: pass .*\[y - 1"):
        from_embedding(Z[y < 3], y[y < 3], target_names=names)
    assert headless.get_fignums() == []


def test_a_class_looks_the_same_whichever_others_occur(legend):
    y = np.arange(60) % 3
    looks = []
    for part in (y >= 0, y != 1):
        display = from_embedding(Z[part], y[part], target_names=["rest", "walk", "run"])
        drawn = zip(legend(display.ax_), display.collections_, strict=True)
        looks.append({name: tuple(points.get_facecolor()[0]) for name, points in drawn})
    assert looks[1] == {name: looks[0][name] for name in ("rest", "run")}


@pytest.mark.parametrize(("mark", "other"), [("?", "rest"), (None, -1)])
def test_the_mark_of_unlabelled_samples_is_the_callers(mark, other, legend):
    y = np.array([other, "walk" if mark else 1, mark or other] * 20, dtype=object)
    shown = legend(from_embedding(Z, y, unlabeled_label=mark).ax_)
    assert shown == (["unlabelled", "rest", "walk"] if mark else ["-1", "1"])
    with pytest.raises(TypeError, match="unlabeled_label must be an integer, text or None"):
        from_embedding(Z, y, unlabeled_label=0.5)


def test_style_is_the_callers(headless):
    display = from_embedding(Z, alpha=0.5, color="red", s=3)
    (points,) = display.collections_
    np.testing.assert_allclose(points.get_facecolor()[0], [1, 0, 0, 0.5])
    figure, axes = headless.subplots(1, 2)
    display.plot(ax=axes[0], name="other")
    assert display.figure_ is figure
    assert axes[0].get_title() == "other"
    assert not axes[1].has_data()


def test_many_points_are_fainter():
    few, many = (
        EmbeddingDisplay(np.zeros((n, 2))).plot().collections_[0].get_alpha() for n in (100, 5000)
    )
    assert many < few


@pytest.mark.parametrize(
    ("embedding", "y", "names", "message"),
    [
        (np.zeros((4, 1)), None, None, r"embedding has shape \(4, 1\), .* of one dimension, draw"),
        (np.zeros((1, 4)), None, None, r"embedding has shape \(1, 4\), .* pass more windows"),
        (np.zeros((0, 4)), None, None, r"embedding has shape \(0, 4\), .* pass more windows"),
        (np.full((4, 4), np.nan), None, None, "NaN"),
        (np.zeros(4), None, None, "2D array"),
        (Z, np.arange(60) % 3, ["a", "b"], "2 names for the 3 classes"),
        (Z, ["a", "b", "c"] * 20, ["x", "y", "z", "?"], "4 names for the 3 classes"),
        (Z, np.zeros((60, 2)), None, "one label per row"),
    ],
)
def test_bad_input_leaves_no_figure(headless, embedding, y, names, message):
    with pytest.raises(ValueError, match=message):
        from_embedding(embedding, y, target_names=names)
    assert headless.get_fignums() == []


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_an_offset_hides_no_class(method):
    y = np.arange(90) % 3
    Z = np.random.default_rng(0).normal(size=(90, 5)) + 8 * np.eye(5)[y] + 1e9
    drawn = from_embedding(Z, y, method=method, random_state=0).coordinates
    assert silhouette_score(drawn, y) > 0.5


def test_the_tsne_of_equal_embeddings_is_one_point():
    display = from_embedding(np.ones((10, 3)), method="tsne", random_state=0)
    assert not display.coordinates.any() and display.ax_.get_xlabel() == "t-SNE 1"


@pytest.mark.parametrize("method", ["pca", "tsne"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_unit_of_embeddings_does_not_matter(method, dtype):
    points = Z.astype(dtype)
    units = (2.0**-60, 2.0**70) if dtype == np.float32 else (2.0**-60, 2.0**600)
    small, large = (
        from_embedding(points * dtype(unit), method=method, random_state=0).coordinates
        for unit in units
    )
    np.testing.assert_array_equal(small, large)
    assert small.std() > 0.5
    if method == "pca":
        np.testing.assert_array_equal(small, from_embedding(points, random_state=0).coordinates)


@pytest.mark.parametrize(
    "make",
    [
        lambda y: pd.Series(y, dtype="Int64"),
        pl.Series,
        pd.Categorical,
        lambda y: pd.Series(y, dtype="Int64").astype("category"),
    ],
)
def test_integers_beside_a_missing_one_stay_integers(make, legend):
    y = make([0, 2, None] * 20)
    assert legend(from_embedding(Z, y).ax_) == ["unlabelled", "0", "2"]
    display = from_embedding(Z, y, target_names=["rest", "walk", "run"])
    assert legend(display.ax_) == ["unlabelled", "rest", "run"]


@pytest.mark.parametrize("dtype", ["category", "interval"])
def test_intervals_are_classes(dtype, legend):
    ages = pd.Series(np.linspace(20, 80, 60))
    y = pd.cut(ages, [0.5, 40.5, 60.5, 80.5]).astype(dtype)
    names = ["(0.5, 40.5]", "(40.5, 60.5]", "(60.5, 80.5]"]
    assert legend(from_embedding(Z, y).ax_) == names
    assert legend(from_embedding(Z, y.where(ages > 25)).ax_) == ["unlabelled", *names]


def test_objects_that_are_numbers_are_continuous_too():
    ages = np.linspace(18.5, 80, 60)
    display = from_embedding(Z, ages.astype(object))
    assert display.colorbar_ is not None
    np.testing.assert_array_equal(display.collections_[0].get_array(), ages)


def test_the_seed_is_named(headless):
    with pytest.raises(TypeError, match="random_state must be an integer .* got True; pass"):
        from_embedding(Z, random_state=True)
    with pytest.raises(ValueError, match="random_state must be an integer from 0 .* got -1; pass"):
        from_embedding(Z, method="tsne", random_state=-1)
    assert headless.get_fignums() == []


@pytest.mark.parametrize(
    ("keyword", "error"),
    [({"bogus": 1}, AttributeError), ({"marker": "?"}, ValueError), ({"s": [1, 2]}, ValueError)],
)
def test_keywords_that_points_lack_leave_no_empty_figure(headless, keyword, error):
    with pytest.raises(error):
        from_embedding(Z, np.arange(60) % 3, **keyword)
    assert headless.get_fignums() == []
    figure, ax = headless.subplots()
    with pytest.raises(error):
        from_embedding(Z, ax=ax, **keyword)
    assert headless.get_fignums() == [figure.number]


def test_labels_of_a_wrong_kind(headless):
    for y in (7, "rest", (label for label in "ab"), {0: "a"}):
        with pytest.raises(TypeError, match="y must hold one label per embedding, got"):
            from_embedding(Z, y)
    with pytest.raises(TypeError, match="y holds labels without an order .* all of them text"):
        from_embedding(Z, ["rest", 1, 2] * 20)
    assert headless.get_fignums() == []


@pytest.mark.parametrize("classes", [2, None])
def test_a_style_of_each_point_goes_to_that_point(classes):
    y = np.array([0, 1, 1, 0, 1, 0]) if classes else np.array([0.5, np.nan, 1, 2, np.nan, 3])
    embedding = np.random.default_rng(0).normal(size=(6, 3))
    sizes = np.arange(6.0) + 10
    edges = ["red", "blue", "green", "red", "blue", "green"]
    display = EmbeddingDisplay.from_embedding(embedding, y, linewidth=1, edgecolors=edges, s=sizes)
    groups = [y == 0, y == 1] if classes else [np.isnan(y), ~np.isnan(y)]
    for rows, points in zip(groups, display.collections_, strict=True):
        np.testing.assert_array_equal(points.get_sizes(), sizes[rows])
        expected = to_rgba_array(np.array(edges)[rows])[:, :3]
        np.testing.assert_allclose(points.get_edgecolors()[:, :3], expected)
    display.figure_.canvas.draw()
    with pytest.raises(ValueError, match="alpha is one number for all points"):
        EmbeddingDisplay.from_embedding(embedding, y, alpha=np.linspace(0.1, 1, 6))
    three = EmbeddingDisplay.from_embedding(embedding[:3], color=(0.1, 0.2, 0.3), alpha=1)
    np.testing.assert_allclose(three.collections_[0].get_facecolor()[:, :3], [[0.1, 0.2, 0.3]])


def test_minus_one_beside_one_is_drawn_as_a_class(legend):
    embedding = np.random.default_rng(0).normal(size=(6, 3))
    assert legend(EmbeddingDisplay.from_embedding(embedding, [-1, 1] * 3).ax_) == ["-1", "1"]
    shown = EmbeddingDisplay.from_embedding(embedding, [-1, 0] * 3)
    assert legend(shown.ax_) == ["unlabelled", "0"]
