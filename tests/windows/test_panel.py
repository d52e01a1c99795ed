"""Windows of sktime's panels without sktime: instances become recordings and groups."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from sklearn_pulse.windows import random_windows, segment_windows, sliding_windows

LENGTHS = {"ben": 10, "anna": 7, "eva": 12}
RNG = np.random.default_rng(0)
SERIES = {name: RNG.normal(size=(n, 2)).astype(np.float32) for name, n in LENGTHS.items()}
ARRAYS = list(SERIES.values())
INDEX = pd.MultiIndex.from_tuples(
    [(name, step) for name, n in LENGTHS.items() for step in range(n)], names=["subject", "time"]
)
MULTI = pd.DataFrame(np.concatenate(ARRAYS), index=INDEX, columns=["x", "y"])
NESTED = pd.DataFrame(
    {name: [pd.Series(x[:, i]) for x in ARRAYS] for i, name in enumerate("xy")}, index=list(LENGTHS)
)
FRAMES = [pd.DataFrame(x, columns=["x", "y"]) for x in ARRAYS]
PANELS = {"pd-multiindex": MULTI, "nested_univ": NESTED, "df-list": FRAMES}
CUTTERS = {
    "sliding": lambda x, **more: sliding_windows(x, 4, 2, **more),
    "random": lambda x, **more: random_windows(x, 4, 2, random_state=0, **more),
    "segment": lambda x, **more: segment_windows(x, [(0, 1, 9, 5), (2, 0, 8, 6)], 4, **more),
}


@pytest.mark.parametrize("cutter", CUTTERS)
@pytest.mark.parametrize("kind", PANELS)
@pytest.mark.parametrize("lazy", [True, False])
def test_panels_are_lists_of_arrays(cutter, kind, lazy):
    expected = CUTTERS[cutter](ARRAYS)
    w = CUTTERS[cutter](PANELS[kind], lazy=lazy)
    np.testing.assert_array_equal(np.asarray(w.X), expected.X)
    for name in ("recording", "start", "y"):
        np.testing.assert_array_equal(w[name], expected[name])
    names = np.array(list(LENGTHS), dtype=object)
    groups = expected.recording if kind == "df-list" else names[expected.recording]
    assert w.groups.tolist() == groups.tolist()
    named = CUTTERS[cutter](PANELS[kind], groups=[8, 8, 9])
    assert named.groups.tolist() == np.array([8, 8, 9])[expected.recording].tolist()


@pytest.mark.parametrize("cutter", CUTTERS)
def test_channels_first_are_cut_without_a_copy(cutter):
    X = np.random.default_rng(0).normal(size=(3, 2, 12))
    expected = CUTTERS[cutter](X.swapaxes(1, 2))
    w = CUTTERS[cutter](X, input_layout="nct")
    np.testing.assert_array_equal(w.X, expected.X)
    assert np.shares_memory(CUTTERS[cutter](X, input_layout="nct", lazy=True).X.recordings[0], X)
    with (
        pytest.warns(UserWarning, match="more channels .12. than time steps .2.*'nct'"),
        pytest.raises(ValueError, match="has 2 steps|end <= 2"),
    ):
        CUTTERS[cutter](X)
    with pytest.raises(ValueError, match="input_layout must be one of 'ntc', 'nct'"):
        CUTTERS[cutter](X, input_layout="ct")


def test_interleaved_instances():
    by_time = MULTI.sort_index(level="time", sort_remaining=False)
    w = sliding_windows(by_time, 4)
    expected = sliding_windows(ARRAYS, 4)
    order = pd.unique(by_time.index.get_level_values(0)).tolist()
    arrays = [SERIES[name] for name in order]
    np.testing.assert_array_equal(w.X, sliding_windows(arrays, 4).X)
    assert sorted(w.groups) == sorted(np.array(list(LENGTHS))[expected.recording])


@pytest.mark.parametrize("kind", ["pd-multiindex", "nested_univ"])
def test_a_label_per_instance(kind):
    panel = PANELS[kind]
    expected = sliding_windows(ARRAYS, 4, y=["p", "q", "r"])
    for y in (
        ["p", "q", "r"],
        pd.Series(["p", "q", "r"]),
        pd.Series(["p", "q", "r"], index=list(LENGTHS)),
        pd.DataFrame({"label": ["p", "q", "r"]}, index=list(LENGTHS)),
    ):
        assert sliding_windows(panel, 4, y=y).y.tolist() == expected.y.tolist()
    groups = pd.Series([1, 2, 2], index=list(LENGTHS))
    assert sliding_windows(panel, 4, groups=groups).groups.tolist() == [1, 1, 2, 2, 2, 2]
    # pandas aligns by label and sktime by position; if the two differ, the input is refused
    for index in (["anna", "ben", "eva"], ["a", "b", "c"], [2, 1, 0]):
        for name in ("y", "groups"):
            with pytest.raises(ValueError, match=f"the index of {name} does not list the inst"):
                sliding_windows(panel, 4, **{name: pd.Series([0, 1, 2], index=index)})
    numbered = MULTI.rename(index={"ben": 2, "anna": 0, "eva": 1}, level=0)
    with pytest.raises(ValueError, match="in their order"):
        sliding_windows(numbered, 4, y=pd.Series([0, 1, 2]))
    with pytest.raises(ValueError, match="y has 2 columns"):
        sliding_windows(panel, 4, y=pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, 3]}))


def test_a_label_per_step():
    steps = [RNG.integers(3, size=n) for n in LENGTHS.values()]
    expected = sliding_windows(ARRAYS, 4, 2, y=steps)
    y = pd.Series(np.concatenate(steps), index=INDEX)
    assert sliding_windows(MULTI, 4, 2, y=y).y.tolist() == expected.y.tolist()
    assert sliding_windows(MULTI, 4, 2, y=y.to_frame()).y.tolist() == expected.y.tolist()
    assert sliding_windows(NESTED, 4, 2, y=steps).y.tolist() == expected.y.tolist()
    by_time = MULTI.sort_index(level="time", sort_remaining=False)
    aligned = sliding_windows(by_time, 4, 2, y=y.loc[by_time.index])
    per_subject = {name: expected.y[expected.recording == i] for i, name in enumerate(LENGTHS)}
    for name in LENGTHS:
        assert aligned.y[aligned.groups == name].tolist() == per_subject[name].tolist()
    with pytest.raises(ValueError, match="y has one label per step, but not the index of rec"):
        sliding_windows(MULTI, 4, 2, y=y.iloc[::-1])
    with pytest.raises(ValueError, match="with a nested frame, a list with one"):
        sliding_windows(NESTED, 4, 2, y=y)


@pytest.mark.parametrize("kind", ["pd-multiindex", "nested_univ"])
def test_labels_per_step_in_a_list_of_series(kind):
    panel = PANELS[kind]
    if kind == "pd-multiindex":
        panel = panel[panel.index.get_level_values("time") < 7]  # so that no length differs
    else:
        panel = panel.map(lambda cell: cell[:7])
    index = pd.MultiIndex.from_product([list(LENGTHS), range(7)])
    y = pd.Series(np.repeat([2, 0, 1], 7), index)
    expected = sliding_windows(panel, 4, y=np.split(y.to_numpy(), 3)).y.tolist()
    grouped = [steps for _, steps in y.groupby(level=0, sort=False)]
    for right in (grouped, [y[name] for name in LENGTHS], [steps.array for steps in grouped]):
        assert sliding_windows(panel, 4, y=right).y.tolist() == expected
    later = [y["ben"], y["anna"].set_axis(range(1, 8)), y["eva"]]
    # the groups of groupby are sorted: anna comes before ben
    for i, name, wrong in (
        (0, "ben", [steps for _, steps in y.groupby(level=0)]),
        (1, "anna", later),
    ):
        problem = rf"y\[{i}\] has another index than the instance '{name}'.*sort=False"
        with pytest.raises(ValueError, match=problem):
            sliding_windows(panel, 4, y=wrong)


def test_frames_that_are_no_panel_are_refused():
    hierarchy = pd.concat({"a": MULTI}, names=["ward"])
    with pytest.raises(ValueError, match=r"of 3 levels.*Pass a list .*, \[.*\]\.$") as error:
        sliding_windows(hierarchy, 4)
    line = str(error.value).partition("series, ")[2].removesuffix(".")
    series = eval(line, {"recordings": hierarchy})  # as a user who copies it
    np.testing.assert_array_equal(sliding_windows(series, 4).X, sliding_windows(MULTI, 4).X)
    gap = MULTI.drop(index=[("anna", 3)])
    with pytest.raises(ValueError, match="irregular time index in instance 'anna': reindex"):
        sliding_windows(gap, 4)
    with pytest.raises(ValueError, match="irregular time index in instance 1"):
        sliding_windows([FRAMES[0], FRAMES[1].drop(index=3)], 4)
    with pytest.raises(ValueError, match="irregular time index"):
        sliding_windows(MULTI.iloc[::-1], 4)
    backwards = pd.date_range("2024", periods=10, freq="s")[::-1]
    for index in (backwards, np.zeros(10)):
        with pytest.raises(ValueError, match="irregular time index in instance 0"):
            sliding_windows([FRAMES[0].set_axis(index)], 4)
    shifted = NESTED.copy()
    shifted.at["anna", "y"] = shifted.at["anna", "y"].set_axis(range(1, 8))
    with pytest.raises(ValueError, match="channels with different times in instance 'anna'"):
        sliding_windows(shifted, 4)
    with pytest.raises(ValueError, match=r"recordings\[1\] has the channels \['y', 'x'\]"):
        sliding_windows([FRAMES[0], FRAMES[1][["y", "x"]]], 4)
    with pytest.raises(ValueError, match="rows whose instance is NaN"):
        sliding_windows(MULTI.rename(index={"eva": np.nan}, level=0), 4)
    holes = NESTED.copy()
    holes.loc["anna", "y"] = np.nan
    with pytest.raises(ValueError, match="cells without a series of one .* instance 'anna'"):
        sliding_windows(holes, 4)
    with pytest.raises(ValueError, match="bare pandas object"):
        sliding_windows(FRAMES[0], 4)
    with pytest.raises(TypeError, match="the column 'x' of recordings holds '.*', which is no"):
        sliding_windows(MULTI.astype(str) + "!", 4)


def test_other_indexes_are_not_times():
    for index in ([f"t{i}" for i in range(10)], pd.RangeIndex(5, 35, 3)):
        frame = FRAMES[0].set_axis(index)
        np.testing.assert_array_equal(
            sliding_windows([frame], 4).X, sliding_windows([ARRAYS[0]], 4).X
        )


def test_no_sktime_is_needed():
    code = (
        "import sys, pandas as pd; from sklearn_pulse.windows import sliding_windows;"
        "i = pd.MultiIndex.from_product([[0, 1], range(6)]);"
        "sliding_windows(pd.DataFrame({'x': range(12)}, i), 3); print('sktime' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
