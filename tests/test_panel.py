"""Our transformers as sktime's: mtypes, lengths, missing values, names, sktime's own suite."""

import builtins
import inspect
import re
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sklearn_pulse.baselines as baselines
from sklearn_pulse import (
    FineTuneClassifier,
    FineTuneRegressor,
    PulseOracleTransformer,
    PulseTransformer,
    RandomEncoderTransformer,
)
from sklearn_pulse.base import BaseEncoderTransformer
from sklearn_pulse.baselines import (
    MiniRocketTransformer,
    PatchTSTTransformer,
    SupervisedClassifier,
)
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import WindowScaler
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, make_windows, small

pytest.importorskip("sktime")

from sktime.datatypes import check_is_mtype, convert_to
from sktime.utils.estimator_checks import check_estimator

from sklearn_pulse.panel import PanelTransformer, PulsePanelTransformer, as_panel_transformer

BRIEF = SMALL_PULSE | {"max_epochs": 1}  # another epoch would only cost time
MTYPES = ["numpy3D", "pd-multiindex", "df-list", "nested_univ"]


def make_panel(n=10, n_timesteps=16, n_channels=2):
    """The same windows channels first, as sktime has them."""
    return np.ascontiguousarray(make_windows(n, n_timesteps, n_channels)[0].swapaxes(1, 2))


def plain(X):
    """The embeddings of plain PULSE, fitted on the same array."""
    return PulseTransformer(**BRIEF, input_layout="nct").fit(X).transform(X)


def pulse(**params):
    return PulsePanelTransformer(**BRIEF | params)


@pytest.fixture(scope="module")
def fitted():
    return pulse().fit(convert_to(make_panel(), "pd-multiindex"))


@pytest.fixture(scope="module")
def encoder():
    """An untrained one, where training is beside the point."""
    return as_panel_transformer(RandomEncoderTransformer(**SMALL_ENCODER, random_state=0))


def test_an_interrupted_refit_leaves_the_first(monkeypatch):
    panel = make_panel()
    transformer = as_panel_transformer(RandomEncoderTransformer(**SMALL_ENCODER, random_state=0))
    before = transformer.fit(panel).transform(panel)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RandomEncoderTransformer, "fit", interrupt)
        with pytest.raises(KeyboardInterrupt):
            transformer.fit(panel[:, :1])
        assert transformer.is_fitted
        with pytest.raises(KeyboardInterrupt):
            transformer.clone().fit(panel)
    pd.testing.assert_frame_equal(transformer.transform(panel), before)


# sktime's suite


def check_whole(transformer, instances, monkeypatch, leave_out=()):
    """Run sktime's tests, every scenario of each, and return the results."""

    def make_some(cls, parameter_set="default"):
        return instances, [f"{cls.__name__}-{number}" for number in range(len(instances))]

    monkeypatch.setattr(transformer, "create_test_instances_and_names", classmethod(make_some))
    results = check_estimator(
        transformer, raise_exceptions=True, verbose=False, tests_to_exclude=list(leave_out)
    )
    assert set(results.values()) == {"PASSED"}
    scenarios = {name for name in results if name.startswith("test_fit_transform_output")}
    for kind in ("Series", "Panel", "PanelUnivariateNumpy", "Hierarchical"):
        assert any(f"FitTransform{kind}" in name for name in scenarios)
    return results


def test_check_estimator(monkeypatch):
    """Whole, on the smallest network: both adapters share all but their parameters."""
    network = {"embedding_dim": 2, "encoder_hidden_dim": 2, "encoder_depth": 1}
    encoder = RandomEncoderTransformer(**network, num_threads=1, random_state=0)
    results = check_whole(PanelTransformer, [PanelTransformer(encoder)], monkeypatch)
    assert len(results) > 150


# Tests of sktime's that train in each of seven scenarios, and ask what copies and fits again do:
# the adapters share it, and PULSE is asked in test_common.py.
REPEATED = [
    "test_deepcopy_fitted",
    "test_deepcopy_fitted_predict",
    "test_fit_idempotent",
    "test_fit_returns_self",
    "test_methods_have_no_side_effects",
    "test_non_state_changing_method_contract",
    "test_persistence_via_pickle",
    "test_save_estimators_to_file",
]


def test_check_estimator_of_pulse(monkeypatch):
    """What its own parameters, tags and documentation decide, and fits in every scenario."""
    one = PulsePanelTransformer.create_test_instance()
    results = check_whole(PulsePanelTransformer, [one], monkeypatch, leave_out=REPEATED)
    for name in ("test_doctest_examples", "test_set_params", "test_get_test_params_coverage"):
        assert any(result.startswith(name) for result in results)


@pytest.mark.slow
@pytest.mark.parametrize("transformer", [PulsePanelTransformer, PanelTransformer])
def test_check_estimator_on_all_test_parameters(transformer, monkeypatch):
    """test_test_parameters_train trains with each daily."""
    instances, _ = transformer.create_test_instances_and_names()
    assert len(instances) == 2
    check_whole(transformer, instances, monkeypatch)


def test_parameters_are_those_of_pulse():
    ours = inspect.signature(PulsePanelTransformer.__init__).parameters
    theirs = dict(inspect.signature(PulseTransformer.__init__).parameters)
    del theirs["encoder"], theirs["input_layout"], theirs["warm_start"]
    assert dict(ours) == theirs
    assert all(name in PulsePanelTransformer.__doc__ for name in ours if name != "self")
    estimator = pulse(n_crops=3).fit(make_panel()).estimator_
    assert estimator.n_crops == 3 and estimator.input_layout == "nct"


def test_tags():
    tags = PulsePanelTransformer.get_class_tags()
    assert set(MTYPES) < set(tags["X_inner_mtype"])
    assert tags["scitype:transform-output"] == "Primitives"
    for name in ("unequal_length", "missing_values", "multivariate"):
        assert tags[f"capability:{name}"]
    assert not tags["requires_y"] and not tags["fit_is_empty"]
    assert not tags["capability:categorical_in_X"]


# What arrives as what


@pytest.mark.parametrize("mtype", MTYPES)
@pytest.mark.parametrize("n_channels", [1, 2])
def test_every_mtype_is_the_plain_route_to_the_bit(mtype, n_channels):
    X = make_panel(n_channels=n_channels)
    panel = convert_to(X, mtype)
    assert check_is_mtype(panel, mtype)
    transformer = pulse().fit(panel)
    embedding = transformer.transform(panel)
    np.testing.assert_array_equal(embedding.to_numpy(), plain(X))
    assert check_is_mtype(embedding, "pd_DataFrame_Table", scitype="Table")
    assert list(embedding.columns) == [f"pulsetransformer{i}" for i in range(8)]
    assert list(transformer.get_feature_names_out()) == list(embedding.columns)
    other = convert_to(X, MTYPES[MTYPES.index(mtype) - 1])  # fitted on one, given another
    np.testing.assert_array_equal(transformer.transform(other).to_numpy(), embedding.to_numpy())


@pytest.mark.parametrize("mtype", MTYPES)
def test_missing_values_are_those_of_the_plain_route(mtype):
    X = make_panel()
    X[0, 1, 3:6] = np.nan
    X[4, :, 12:] = np.nan
    before = X.copy()
    embedding = pulse().fit_transform(convert_to(X, mtype))
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(embedding.to_numpy(), plain(X))


def unequal(lengths, n_channels=2):
    X = make_panel(len(lengths), max(lengths), n_channels)
    series = [x[:, :n] for x, n in zip(X, lengths, strict=True)]
    padded = X.copy()
    for x, n in zip(padded, lengths, strict=True):
        x[:, n:] = np.nan
    return [pd.DataFrame(x.T, columns=["a", "b"][:n_channels]) for x in series], padded


@pytest.mark.parametrize("mtype", MTYPES[1:])
def test_unequal_lengths_are_padded_with_nan(mtype):
    frames, padded = unequal([16, 9, 12, 16, 5, 11, 14, 8])
    embedding = pulse().fit_transform(convert_to(frames, mtype))
    np.testing.assert_array_equal(embedding.to_numpy(), plain(padded))


@settings(max_examples=15)
@given(lengths=st.lists(st.integers(1, 20), min_size=2, max_size=6))
def test_an_instance_does_not_know_how_long_the_others_are(lengths):
    frames, _ = unequal([16, 12, *lengths])
    transformer = as_panel_transformer(
        RandomEncoderTransformer(**SMALL_ENCODER, random_state=0, num_threads=1)
    ).fit(frames[:2])
    together = transformer.transform(frames).to_numpy()
    for frame, row in zip(frames, together, strict=True):
        alone = transformer.transform([frame]).to_numpy()[0]
        if max(lengths) <= 16:
            np.testing.assert_array_equal(alone, row)
        np.testing.assert_allclose(alone, row, atol=1e-6)


def test_methods_of_one_length_take_shorter_instances():
    frames, padded = unequal([16, 9, 12, 16, 5, 11])
    wrapped = as_panel_transformer(small(PatchTSTTransformer)).fit(frames)
    short = wrapped.transform(frames[1:2]).to_numpy()
    expected = wrapped.estimator_.transform(padded.swapaxes(1, 2))
    np.testing.assert_array_equal(short, expected[1:2])


def test_index_of_instances_is_kept(encoder):
    X = make_panel(3)
    panel = convert_to(X, "pd-multiindex").rename(index={0: "ben", 1: "anna", 2: "eva"}, level=0)
    embedding = encoder.fit_transform(panel)
    assert embedding.index.tolist() == ["ben", "anna", "eva"]
    assert embedding.index.name == panel.index.names[0]
    shuffled = encoder.transform(panel.loc[["eva", "ben"]])
    pd.testing.assert_frame_equal(shuffled, embedding.loc[["eva", "ben"]])
    interleaved = encoder.transform(panel.sort_index(level=1, sort_remaining=False))
    pd.testing.assert_frame_equal(interleaved.loc[embedding.index], embedding)
    nested = convert_to(X, "nested_univ").set_index(pd.Index([7, 3, 5], name="subject"))
    pd.testing.assert_index_equal(encoder.transform(nested).index, nested.index)
    assert encoder.transform(convert_to(X, "df-list")).index.tolist() == [0, 1, 2]


def test_a_hierarchy_names_the_instances(encoder):
    X = make_panel(4)
    panel = convert_to(X, "pd-multiindex")
    levels = ["ward", *panel.index.names]
    hierarchy = pd.concat({"a": panel.loc[:1], "b": panel.loc[2:]}, names=levels[:1])
    flat = encoder.fit_transform(panel)
    embedding = encoder.fit_transform(hierarchy)
    np.testing.assert_array_equal(embedding.to_numpy(), flat.to_numpy())
    assert embedding.index.tolist() == [("a", 0), ("a", 1), ("b", 2), ("b", 3)]
    assert embedding.index.names == levels[:-1]


def test_a_series_is_a_panel_of_one(encoder):
    X = make_panel(1)
    series = convert_to(X, "df-list")[0]
    expected = encoder.fit_transform(X).to_numpy()
    np.testing.assert_array_equal(encoder.fit_transform(series).to_numpy(), expected)
    np.testing.assert_array_equal(encoder.fit_transform(series.to_numpy()).to_numpy(), expected)


def test_nested_cells_may_be_arrays_and_dates_are_times(encoder):
    X = make_panel(3)
    nested = convert_to(X, "nested_univ")
    expected = encoder.fit_transform(nested).to_numpy()
    arrays = nested.map(lambda cell: cell.to_numpy())
    off = encoder.clone().set_config(input_conversion="off", output_conversion="off")
    np.testing.assert_array_equal(off.fit_transform(arrays).to_numpy(), expected)
    for times in (
        pd.date_range("2024-01-01", periods=16, freq="15ms"),
        pd.date_range("2024-01-01", periods=16, freq="MS"),  # regular in the calendar
        pd.date_range("2024-01-01", periods=16, freq="B"),
        pd.date_range("2024-01-01", periods=16, freq="15625us").round("ms"),  # 64 Hz, rounded
        pd.period_range("2024-01", periods=16, freq="M"),
        pd.timedelta_range("0s", periods=16, freq="s"),
        pd.Index(np.arange(16) * 0.02),
    ):
        index = pd.MultiIndex.from_product([range(3), times])
        frame = pd.DataFrame(X.swapaxes(1, 2).reshape(-1, 2), index, ["var_0", "var_1"])
        np.testing.assert_array_equal(off.transform(frame).to_numpy(), expected)


@pytest.mark.parametrize(
    "method",
    [
        cls
        for cls in (PulseTransformer, *(getattr(baselines, name) for name in baselines.__all__))
        if issubclass(cls, BaseEncoderTransformer)
    ],
)
def test_every_transformer_can_be_wrapped(method):
    params = {"max_epochs": 1, "attention_epochs": 1}
    X = make_panel(12)
    expected = small(method, **params, input_layout="nct").fit(X).transform(X)
    # The adapter sets the layout, whatever the method.
    for layout in ("ntc", "nct") if method is PulseTransformer else ("ntc",):
        wrapped = as_panel_transformer(small(method, **params, input_layout=layout))
        embedding = wrapped.fit_transform(convert_to(X, "pd-multiindex"))
        np.testing.assert_array_equal(embedding.to_numpy(), expected)
    assert list(embedding.columns) == [
        f"{method.__name__.lower()}{i}" for i in range(len(expected[0]))
    ]


def test_a_frozen_transformer_stays_as_it_is():
    X, _ = make_windows(10)
    trained = PulseTransformer(**SMALL_PULSE).fit(X)
    wrapped = as_panel_transformer(FrozenEstimator(trained)).clone()
    panel = convert_to(make_panel(), "nested_univ")
    embedding = wrapped.fit(panel.iloc[:2]).transform(panel)
    np.testing.assert_array_equal(embedding.to_numpy(), trained.transform(X))
    with pytest.raises(ValueError, match="X has 1 channels, but the estimator was fitted on 2"):
        wrapped.fit(panel.iloc[:, :1])


def test_a_frozen_transformer_without_a_fit_is_named():
    with pytest.raises(NotFittedError, match="FrozenEstimator"):
        as_panel_transformer(FrozenEstimator(StatisticsTransformer())).fit(make_panel())


@pytest.mark.parametrize("mtype", ["numpy3D", "df-list", "pd-multiindex"])
def test_values_that_float32_does_not_hold_are_warned_of(mtype):
    far = 1e9 + np.random.default_rng(0).normal(size=(12, 2, 30))
    panel = convert_to(far, mtype) if mtype != "numpy3D" else far
    with pytest.warns(UserWarning, match="float32 does not hold the variation of X"):
        as_panel_transformer(StatisticsTransformer()).fit(panel)


def test_output_of_the_wrapped_one_does_not_matter(encoder):
    X = make_panel(3)
    expected = encoder.fit_transform(X)
    framed = as_panel_transformer(encoder.estimator.set_output(transform="pandas"))
    pd.testing.assert_frame_equal(framed.fit_transform(X), expected)
    assert encoder.set_output(transform="pandas") is encoder
    with pytest.raises(ValueError, match="returns a pandas DataFrame.*not 'polars'"):
        encoder.set_output(transform="polars")


# Wrong use


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (PulseOracleTransformer(), "PulseOracleTransformer learns from labels.*Transformer()"),
        (SupervisedClassifier(), "SupervisedClassifier.*PulseTransformer()"),
        (FineTuneClassifier(), "FineTuneClassifier.*PulseTransformer()"),
        (FineTuneRegressor(), "FineTuneRegressor learns from labels.*PulseTransformer()"),
        (
            make_pipeline(StandardScaler(), PulseTransformer()),
            "got Pipeline: wrap only the transformer",
        ),
        (StandardScaler(), "transformer of windows.*got StandardScaler: wrap"),
        (PulseTransformer, "got type: wrap"),
    ],
)
def test_what_cannot_be_wrapped(estimator, message):
    with pytest.raises(TypeError, match=message):
        as_panel_transformer(estimator)
    with pytest.raises(TypeError, match=message):
        PanelTransformer(estimator).fit(make_panel())


def test_channels_must_be_those_of_fit(fitted):
    frames = convert_to(make_panel(), "df-list")
    panel = convert_to(make_panel(), "pd-multiindex")
    nested = convert_to(make_panel(), "nested_univ")
    for other in (frames, panel, nested):
        fitted.transform(other)
    for wrong in (
        panel.rename(columns={"var_0": "x"}),
        panel[["var_1", "var_0"]],
        panel[["var_0"]],
        nested[["var_1", "var_0"]],
        [frame[["var_0"]] for frame in frames],
    ):
        with pytest.raises(ValueError, match=r"but PulsePanelTransformer has \['var_0', 'var_1'\]"):
            fitted.transform(wrong)
    swapped = as_panel_transformer(StatisticsTransformer()).fit(panel[["var_1", "var_0"]])
    with pytest.raises(ValueError, match=r"but PanelTransformer has \['var_1', 'var_0'\]"):
        swapped.transform(panel)
    with pytest.raises(ValueError, match="X has 1 channels, but PulsePanelTransformer was fitted"):
        fitted.transform(make_panel(n_channels=1))
    with pytest.raises(ValueError, match=r"shape \(n_instances, n_channels, n_timesteps\)"):
        fitted.transform(make_windows()[0])


def test_the_warning_of_swapped_axes_names_what_the_adapter_can_do():
    """It has no parameter for the layout."""
    with pytest.warns(UserWarning, match="other way round, swap them or"):
        pulse().fit(make_panel().swapaxes(1, 2))


def test_channels_must_be_those_of_the_other_instances():
    frames = convert_to(make_panel(), "df-list")
    for wrong in (frames[3].rename(columns={"var_0": "x"}), frames[3][["var_0"]]):
        with pytest.raises(ValueError, match=r"X\[3\] has the channels .* but X\[0\] has"):
            pulse().fit([*frames[:3], wrong, *frames[4:]])
    numbered = [frame.set_axis([0, 1], axis=1) for frame in frames]
    with pytest.raises(ValueError, match=r"X\[3\] has the channels \[0\] but"):
        pulse().fit([*numbered[:3], numbered[3][[0]], *numbered[4:]])


@pytest.mark.parametrize("mtype", MTYPES[1:])
def test_irregular_times(fitted, mtype):
    panel = convert_to(make_panel(4), "pd-multiindex")
    gap = panel.drop(index=[(2, 5)])
    with pytest.raises(ValueError, match="irregular time index in instance 2: reindex"):
        fitted.transform(convert_to(gap, mtype))
    # as the message says: the missing step becomes NaN, and is masked
    whole = gap.reindex(panel.index)
    X = make_panel(4)
    X[2, :, 5] = np.nan
    expected = fitted.estimator_.transform(X)
    np.testing.assert_array_equal(fitted.transform(convert_to(whole, mtype)).to_numpy(), expected)


def test_time_steps_must_agree(fitted):
    frames = convert_to(make_panel(3), "df-list")
    frames[1].index = frames[1].index * 2
    with pytest.raises(ValueError, match="different time steps, 1 and, in instance 1, 2: bring"):
        fitted.transform(frames)
    nested = convert_to(make_panel(3), "nested_univ")
    nested.at[1, "var_1"] = nested.at[1, "var_1"].iloc[:-2]
    with pytest.raises(ValueError, match="channels with different times in instance 1"):
        fitted.transform(nested)


@pytest.mark.parametrize("mtype", ["pd-multiindex", "df-list", "nested_univ"])
def test_a_stated_rate_is_that_of_the_time_index(mtype):
    frames = {}
    for rate in (50, 64):
        times = pd.date_range("2026", periods=40, freq=pd.Timedelta(seconds=1 / rate))
        panel = pd.concat({i: pd.DataFrame({"x": np.arange(40.0)}, index=times) for i in range(3)})
        frames[rate] = convert_to(panel.rename_axis(["instance", "time"]), mtype)
    features = as_panel_transformer(StatisticsTransformer(sampling_rate=50.5)).fit(frames[50])
    other = "sampling_rate=50.5, but the time index of X has 64 steps a second"
    with pytest.raises(ValueError, match=other):
        features.transform(frames[64])
    with pytest.raises(ValueError, match=other):
        as_panel_transformer(StatisticsTransformer(sampling_rate=50.5)).fit(frames[64])
    with pytest.raises(TypeError, match="sampling_rate must be"):
        as_panel_transformer(StatisticsTransformer(sampling_rate="50")).fit(frames[50])


def test_an_estimator_has_the_names_of_the_panel(tmp_path):
    rng = np.random.default_rng(0)
    ab = [pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"]) for _ in range(6)]
    ba = [frame[["b", "a"]] for frame in ab]
    plain = StatisticsTransformer(channel_names=["a", "b"])
    other = r"X has the channels \['b', 'a'\], but the estimator has \['a', 'b'\]"
    for stated in (plain, FrozenEstimator(clone(plain).fit(np.stack(ab)))):
        as_panel_transformer(stated).fit(ab).transform(ab)
        with pytest.raises(ValueError, match=other):
            as_panel_transformer(stated).fit(ba)
    small = {"embedding_dim": 8, "max_epochs": 1, "random_state": 0}
    with pytest.raises(ValueError, match=other):
        PulsePanelTransformer(**small, channel_names=["a", "b"]).fit(ba)
    panel = PulsePanelTransformer(**small).fit(ab)
    assert panel.channel_names is None
    panel.estimator_.save_pretrained(tmp_path / "model")
    loaded = PulseTransformer.from_pretrained(tmp_path / "model")
    with pytest.raises(ValueError, match="channel"):
        loaded.transform(ba)


@pytest.mark.parametrize("is_frozen", [True, False])
def test_stated_names_hold_after_a_fit_on_an_array_without_names(is_frozen):
    named = StatisticsTransformer(channel_names=["a", "b"], input_layout="nct")
    X = make_panel(4)
    estimator = FrozenEstimator(named.fit(X)) if is_frozen else named
    panel = as_panel_transformer(estimator).fit(X)
    assert panel.channel_names_in_ == ["a", "b"]
    frames = [pd.DataFrame(x.T, columns=["a", "b"]) for x in X]
    np.testing.assert_array_equal(panel.transform(frames), panel.transform(X))
    converted = convert_to(X, "pd-multiindex")  # as a pipeline of sktime does
    again = as_panel_transformer(estimator).fit(converted)
    assert again.channel_names_in_ == ["a", "b"]
    np.testing.assert_array_equal(again.transform(converted), panel.transform(X))
    with pytest.raises(ValueError, match=r"X has the channels \['b', 'a'\], but PanelTransformer"):
        panel.transform([frame[["b", "a"]] for frame in frames])


@pytest.mark.parametrize("names", ["ab", 3])
def test_names_of_another_kind_are_refused_beside_a_panel_with_names(names):
    frames = [pd.DataFrame(x.T, columns=["a", "b"]) for x in make_panel(2)]
    with pytest.raises(TypeError, match="channel_names must be a list of strings"):
        as_panel_transformer(StatisticsTransformer(channel_names=names)).fit(frames)


def test_aggregates_would_count_twice(encoder):
    from sktime.transformations.hierarchical.aggregate import Aggregator

    panel = convert_to(make_panel(3), "pd-multiindex")
    with pytest.raises(ValueError, match=r"aggregates \('__total'\)"):
        encoder.fit(Aggregator().fit_transform(panel))


@pytest.mark.parametrize("mtype", MTYPES)
def test_an_instance_without_a_finite_step(fitted, mtype):
    X = make_panel(4)
    X[2, 0] = np.nan  # a step needs all channels
    for method in (fitted.transform, pulse().fit):
        with pytest.raises(ValueError, match="no finite time step in sample 2"):
            method(convert_to(X, mtype))
    X = make_panel(4)
    X[1, 0, 3] = np.inf
    with pytest.raises(ValueError, match="infinity.*sample 1"):
        fitted.transform(convert_to(X, mtype))


def test_panels_into_the_plain_estimator():
    X = make_panel(4)
    hierarchy = pd.concat({"a": convert_to(X, "pd-multiindex")})
    for frame in (convert_to(X, "pd-multiindex"), convert_to(X, "nested_univ"), hierarchy):
        with pytest.raises(TypeError, match="pass a list.*as_panel_transformer") as error:
            PulseTransformer().fit(frame)
        remedy = re.search("its series, as (.*), to the steps", str(error.value))[1]
        series = eval(remedy, {"X": frame, "sktime": pytest.importorskip("sktime")})
        np.testing.assert_array_equal(
            np.asarray(WindowScaler(per="window").fit_transform(series)),
            WindowScaler(per="window").fit_transform(X.swapaxes(1, 2)),
        )
        assert StatisticsTransformer().fit_transform(series).shape[0] == 4
    frames, _ = unequal([16, 9, 12])
    with pytest.raises(ValueError, match="differ in length.*sklearn_pulse.panel"):
        PulseTransformer().fit(frames)


def test_lengths_are_named_where_no_step_may_be_missing():
    frames, _ = unequal([40, 50, 60])
    transformer = as_panel_transformer(MiniRocketTransformer(num_kernels=84))
    with pytest.raises(ValueError, match="series of 40 to 60 steps, and MiniRocketTransf"):
        transformer.fit(frames)
    transformer.fit(make_panel(4, 60))
    with pytest.raises(ValueError, match="series of 40 to 60 steps, .* cut or resample them"):
        transformer.transform(frames)


def test_bad_parameters_fail_at_fit():
    with pytest.raises(ValueError, match="n_crops must be"):
        pulse(n_crops=-1).fit(make_panel())
    off = pulse().set_config(input_conversion="off")
    with pytest.raises(TypeError, match="must be a panel of one of the mtypes.*'numpy3D'"):
        off.fit(np.zeros((3, 4)))


# Imports; tests/test_architecture.py tells what else is not imported


def test_without_sktime_the_extra_is_named(monkeypatch):
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "sktime":
            raise ModuleNotFoundError("No module named 'sktime'")
        return original(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "sklearn_pulse.panel")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"needs sktime: pip install 'sklearn-pulse\[sktime\]'"):
        import sklearn_pulse.panel  # noqa: F401


def test_aeons_lists_are_panels():
    """Arrays of shape (n_channels, n_timesteps), of one length or several."""
    rng = np.random.default_rng(0)
    unequal = [rng.normal(size=(2, n)) for n in (12, 16, 14)]
    frames = [pd.DataFrame(x.T) for x in unequal]
    settings = BRIEF
    expected = PulsePanelTransformer(**settings).fit_transform(frames)
    objects = np.empty(3, dtype=object)
    objects[:] = unequal
    for panel in (unequal, tuple(unequal), objects, tuple(frames)):
        embedder = PulsePanelTransformer(**settings).fit(panel)
        assert embedder.update(panel) is embedder  # and nothing is learnt
        pd.testing.assert_frame_equal(embedder.transform(panel), expected)
    cube = rng.normal(size=(3, 2, 16))
    pd.testing.assert_frame_equal(
        PulsePanelTransformer(**settings).fit_transform(list(cube)),
        PulsePanelTransformer(**settings).fit_transform(cube),
    )
    series = [rng.normal(size=n) for n in (12, 16)]
    assert PulsePanelTransformer(**settings).fit_transform(series).shape == (2, 8)


def test_bad_lists_of_arrays():
    with pytest.raises(ValueError, match=r"X\[1\] has 3 channels but X\[0\] has 2: in a list"):
        PulsePanelTransformer(**SMALL_PULSE).fit([np.ones((2, 9)), np.ones((3, 9))])
    with pytest.raises(ValueError, match="X is an empty list"):
        PulsePanelTransformer(**SMALL_PULSE).fit([])


def test_masked_values_are_missing_where_series_are_padded():
    rng = np.random.default_rng(0)
    embedder = as_panel_transformer(RandomEncoderTransformer(**SMALL_ENCODER, random_state=0))
    embedder.fit([rng.normal(size=(2, n)) for n in (12, 16)])
    masked = np.ma.masked_array(rng.normal(size=(3, 2, 12)), rng.random((3, 2, 12)) < 0.2)
    got, expected = embedder.transform(masked), embedder.transform(masked.filled(np.nan))
    pd.testing.assert_frame_equal(got, expected)


def test_an_array_without_series_is_refused():
    embedder = as_panel_transformer(RandomEncoderTransformer(**SMALL_ENCODER))
    with pytest.raises(ValueError, match=r"X has shape \(0, 2, 12\), and no series"):
        embedder.fit(np.empty((0, 2, 12)))
