"""Colours that everybody tells apart, colour bars, and panels that name their channel."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from sklearn import config_context

from sklearn_pulse import PulseTransformer
from sklearn_pulse.plotting import (
    DriftDisplay,
    EmbeddingDisplay,
    LabelEfficiencyDisplay,
    PredictabilityDisplay,
    ReconstructionDisplay,
    TrainingCurveDisplay,
)
from sklearn_pulse.plotting._style import distinct_colors, distinct_markers
from tests.helpers import SMALL_PULSE, make_windows

X, y = make_windows(20)
Z = np.random.default_rng(0).normal(size=(60, 5))
# Linear RGB to what people see who lack the cones for red, green or blue (Machado, Oliveira and
# Fernandes, 2009, severity 1).
MACHADO = {
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


def lab(rgb):
    """CIE L*a*b* of linear RGB, in which distances are about as large as they look."""
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.clip(rgb, 0, 1) @ np.array(to_xyz).T / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack(
        [116 * f[:, 1] - 16, *(c * (f[:, i] - f[:, i + 1]) for i, c in ((0, 500), (1, 200)))], 1
    )


def smallest_distance(colors, kind):
    rgb = np.array([to_rgb(color) for color in colors])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = lab(linear @ np.array(MACHADO[kind]).T)
    apart = np.linalg.norm(seen[:, None] - seen, axis=-1)
    return apart[np.triu_indices(len(colors), 1)].min()


@pytest.mark.parametrize("kind", MACHADO)
def test_colours_differ_for_everybody(kind):
    """The colours of "tab10" do not: their smallest distances are 5 (protan) and 7 (deutan)."""
    assert smallest_distance([f"C{i}" for i in range(8)], kind) < 8
    assert smallest_distance(distinct_colors(8), kind) > 15


def test_many_classes_have_markers_too():
    assert distinct_markers(8) == ["o"] * 8
    many = distinct_markers(25)
    assert len(set(many)) == 10 and all(a != b for a, b in zip(many, many[1:], strict=False))
    display = EmbeddingDisplay.from_embedding(Z, np.arange(60) % 12)
    shapes = {points.get_paths()[0].vertices.tobytes() for points in display.collections_}
    assert len(shapes) == 10


def test_curves_of_one_axes_differ_in_our_colours(headless):
    history = [{"train_loss": 1.0}, {"train_loss": 0.5}]
    first = TrainingCurveDisplay.from_history(history)
    second = TrainingCurveDisplay.from_history(history, ax=first.ax_)
    drawn = [to_rgb(display.lines_[0].get_color()) for display in (first, second)]
    assert drawn == [color[:3] for color in distinct_colors(2)]


def test_continuous_values_have_a_colour_bar():
    age = np.linspace(18.5, 80, 60)
    age[:5] = np.nan
    display = EmbeddingDisplay.from_embedding(Z, age, y_name="age in years")
    unknown, points = display.collections_
    assert len(unknown.get_offsets()) == 5
    np.testing.assert_array_equal(points.get_array(), age[5:])
    assert display.colorbar_.ax.get_ylabel() == "age in years"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["unknown"]
    assert display.colorbar_.vmin == age[5] and display.colorbar_.vmax == 80


@pytest.mark.parametrize(
    ("values", "continuous"),
    [
        (np.arange(60.0), True),  # more than twenty
        (np.arange(60.0) % 3, False),
        (np.arange(60.0) % 3 + 0.5, True),
        (np.arange(60), False),  # integers are classes
    ],
)
def test_what_is_continuous(values, continuous):
    display = EmbeddingDisplay.from_embedding(Z, values)
    assert (display.colorbar_ is not None) == continuous
    assert (display.ax_.get_legend() is None) == continuous


def test_bad_continuous_values(headless):
    with pytest.raises(ValueError, match="target_names names classes, but y holds continuous"):
        EmbeddingDisplay.from_embedding(Z, np.arange(60.0), target_names=["young", "old"])
    for values in (np.append(np.arange(59.0), np.inf), np.tile([0.0, 1.0, np.inf], 20)):
        with pytest.raises(ValueError, match="y holds an infinity: pass finite values"):
            EmbeddingDisplay.from_embedding(Z, values)
    assert headless.get_fignums() == []


def test_the_legend_has_the_name_of_y():
    display = EmbeddingDisplay.from_embedding(Z, np.arange(60) % 2, y_name="class")
    assert display.ax_.get_legend().get_title().get_text() == "class"


def test_every_panel_names_its_channel(headless):
    pulse = PulseTransformer(**SMALL_PULSE).fit(X)
    display = ReconstructionDisplay.from_estimator(pulse, X)
    assert [ax.get_ylabel() for ax in display.axes_] == ["channel 0", "channel 1"]
    pulse.channel_names_in_ = np.array(["red", "green"])
    display = ReconstructionDisplay.from_estimator(pulse, X)
    assert [ax.get_ylabel() for ax in display.axes_] == ["red", "green"]
    display = ReconstructionDisplay.from_estimator(pulse, X, channel_names=["I", "II"])
    assert [ax.get_ylabel() for ax in display.axes_] == ["I", "II"]
    n_figures = len(headless.get_fignums())
    with pytest.raises(ValueError, match="channel_names has 1 names for 2 channels"):
        ReconstructionDisplay.from_estimator(pulse, X, channel_names=["I"])
    assert len(headless.get_fignums()) == n_figures


HISTORY = [{"train_loss": 1.0, "valid_loss": 1.0}, {"train_loss": 0.5, "valid_loss": 0.6}]
LINES = {
    TrainingCurveDisplay: lambda **kw: TrainingCurveDisplay.from_history(HISTORY, **kw),
    LabelEfficiencyDisplay: lambda **kw: LabelEfficiencyDisplay.from_scores(
        {"a": [0.5, 0.7], "b": [0.6, 0.8]}, (0.1, 1.0), **kw
    ),
}


@pytest.mark.parametrize("display", LINES)
@pytest.mark.parametrize(
    "style",
    [{"c": "red", "markersize": 7}, {"color": "red", "ms": 7, "linestyle": ":"}],
)
def test_lines_take_every_name_of_a_keyword(display, style):
    lines = LINES[display](**style).lines_
    assert all(line.get_color() == "red" and line.get_markersize() == 7 for line in lines)
    assert lines[0].get_linestyle() == style.get("linestyle", "-")


@pytest.mark.parametrize("width", ["lw", "linewidth", "linewidths"])
@pytest.mark.parametrize("color", ["c", "color"])
@pytest.mark.parametrize("y", [None, np.arange(60) % 3])
def test_points_take_every_name_of_a_keyword(width, color, y):
    display = EmbeddingDisplay.from_embedding(Z, y, **{width: 2, color: "red"})
    for points in display.collections_:
        assert points.get_linewidth() == [2]
        assert to_rgb(points.get_facecolor()[0]) == (1, 0, 0)


@pytest.mark.parametrize("color", ["c", "color"])
def test_continuous_values_colour_the_points_alone(headless, color):
    with pytest.raises(ValueError, match="continuous values of y colour the points: leave out c"):
        EmbeddingDisplay.from_embedding(Z, np.arange(60.0), **{color: "red"})
    assert headless.get_fignums() == []


def test_one_axes_is_no_list_of_axes(headless):
    _, axes = headless.subplots(1, 2)
    for draw in (*LINES.values(), lambda **kw: EmbeddingDisplay.from_embedding(Z, **kw)):
        for several in (axes, list(axes)):
            with pytest.raises(TypeError, match=r"ax must be one Axes .* such as axes\[0\]"):
                draw(ax=several)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    drawings = [
        *LINES.values(),
        lambda: EmbeddingDisplay.from_embedding(Z),
        lambda: EmbeddingDisplay.from_embedding(Z, np.arange(60) % 2),
    ]
    for draw in drawings:
        with pytest.raises(ImportError, match=r"needs matplotlib.*sklearn-pulse\[plot\]"):
            draw()


def test_every_name_stands_in_the_legend(legend):
    """Matplotlib leaves out empty labels, and those that begin with "_"."""
    display = EmbeddingDisplay.from_embedding(Z, ["", "_a", "b"] * 20)
    assert [text.strip() for text in legend(display.ax_)] == ["", "_a", "b"]
    display = EmbeddingDisplay.from_embedding(Z, np.arange(60) % 2, target_names=["_a", "b"])
    assert [text.strip() for text in legend(display.ax_)] == ["_a", "b"]
    display = LabelEfficiencyDisplay.from_scores({"_a": [0.5, 0.7], "b": [0.6, 0.8]}, (0.1, 1.0))
    assert [text.strip() for text in legend(display.ax_)] == ["_a", "b"]
    display = TrainingCurveDisplay.from_history(HISTORY, name="_a")
    assert [text.strip() for text in legend(display.ax_)][0] == "_a, training"


def test_everything_is_seen_on_a_dark_ground(headless):
    with headless.style.context("dark_background"):
        display = EmbeddingDisplay.from_embedding(Z, np.arange(60) % 8)
        bars = PredictabilityDisplay({"a": 0.1}, [0.1, 0.2]).plot()
        curves = [TrainingCurveDisplay.from_history(HISTORY)]
        curves += [TrainingCurveDisplay.from_history(HISTORY, ax=curves[0].ax_) for _ in range(7)]
    colors = [to_rgb(points.get_facecolor()[0]) for points in display.collections_]
    colors += [to_rgb(line.get_color()) for line in bars.ax_.lines]
    colors += [to_rgb(curve.lines_[0].get_color()) for curve in curves]
    assert to_rgb(display.ax_.get_facecolor()) == (0, 0, 0) not in colors
    assert len(set(colors[:8])) == 8


def test_a_figure_is_no_axes(headless):
    figure, _ = headless.subplots()
    for draw in (*LINES.values(), lambda **kw: EmbeddingDisplay.from_embedding(Z, **kw)):
        with pytest.raises(TypeError, match="ax must be one Axes of matplotlib, got Figure"):
            draw(ax=figure)
    for wrong in (figure, [None]):
        with pytest.raises(TypeError, match="each of ax or axes must be an Axes"):
            DriftDisplay.from_scores(Z[:, 0], Z[:, 0], ax=wrong)


@pytest.mark.parametrize("names", ["ab", {0: "a", 1: "b"}, {"a", "b"}, 2])
def test_names_stand_in_an_order(headless, names):
    with pytest.raises(TypeError, match="target_names must be a list of names"):
        EmbeddingDisplay.from_embedding(Z, np.arange(60) % 2, target_names=names)
    with pytest.raises(TypeError, match="channel_names must be a list of names"):
        DriftDisplay.from_scores(Z[:, :2], Z[:, :2], channel_names=names)
    assert headless.get_fignums() == []


@pytest.mark.parametrize("dispatch", [False, True])
def test_tensors_are_drawn_as_arrays(dispatch, monkeypatch):
    """Also those of a network in training, in bfloat16, and where scikit-learn computes on them."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # which scikit-learn asks for
    if dispatch and find_spec("sklearn.externals.array_api_compat") is None:  # before 1.7
        pytest.importorskip("array_api_compat")
    tensor = torch.tensor(Z, dtype=torch.bfloat16, requires_grad=True)
    array = tensor.detach().float().numpy()
    labels = np.arange(60) % 2
    with config_context(array_api_dispatch=dispatch):
        for method in ("pca", "tsne"):
            coordinates = [
                EmbeddingDisplay.from_embedding(z, method=method, random_state=0).coordinates
                for z in (tensor, array)
            ]
            np.testing.assert_array_equal(*coordinates)
        scores = [
            LabelEfficiencyDisplay.from_estimators(
                {"Z": z}, None, labels, cv=2, fractions=(1.0,), n_draws=1
            ).scores["Z"]
            for z in (tensor, array)
        ]
        np.testing.assert_array_equal(*scores)
        shares = [
            DriftDisplay.from_scores(z, z[:, :5]).scores.share_outside for z in (tensor, array)
        ]
        np.testing.assert_array_equal(*shares)
    points = EmbeddingDisplay(tensor[:, :2]).plot().collections_[0]
    np.testing.assert_array_equal(points.get_offsets(), array[:, :2])
    curve = LabelEfficiencyDisplay.from_scores({"a": tensor[:2]}, (0.1, 1.0)).lines_[0]
    np.testing.assert_array_equal(curve.get_ydata(), array[:2].astype(float).mean(axis=1))
