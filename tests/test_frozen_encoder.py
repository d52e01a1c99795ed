"""PulseTransformer whose encoder is another fitted transformer, and whose decoder is trained."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sklearn_pulse import CrossPredictionTransformer, PulseTransformer
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.networks import FixedEncoder
from sklearn_pulse.objectives import CrossReconstruction
from sklearn_pulse.preprocessing import Resampler, WindowScaler
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, make_windows

X, _ = make_windows(24)
HOLES = X.copy()
HOLES[::3, 4:7] = np.nan
SMALL = {name: value for name, value in SMALL_PULSE.items() if name not in SMALL_ENCODER}
SMALL |= {"max_epochs": 1, "gru_num_layers": 1, "batch_size": 24}  # one update
STATISTICS = FrozenEstimator(StatisticsTransformer().fit(X))


@pytest.fixture(scope="module")
def fitted():
    return PulseTransformer(encoder=STATISTICS, **SMALL).fit(X)


@pytest.mark.parametrize("data", [X, HOLES, X.astype(np.float64)], ids=["whole", "holes", "double"])
def test_embeds_as_the_transformer_does(fitted, data):
    np.testing.assert_allclose(fitted.transform(data), STATISTICS.transform(data), rtol=1e-6)


class Counts(StatisticsTransformer):
    """Keep the windows of every call, by their first value."""

    def fit(self, X):
        self.seen_ = []
        return super().fit(X)

    def transform(self, X, **stated):
        self.seen_ += np.asarray(X)[:, 0, 0].tolist()
        return super().transform(X, **stated)


@pytest.mark.parametrize("given", [False, True])
def test_training_embeds_each_window_once(given):
    counts = Counts().fit(X)
    params = SMALL | {"max_epochs": 3, "validation_every": 1, "validation_fraction": 0.25}
    train, X_val = (X[:18], X[18:]) if given else (X, None)
    PulseTransformer(encoder=FrozenEstimator(counts), **params).fit(train, X_val=X_val)
    assert sorted(counts.seen_) == sorted(X[:, 0, 0].tolist())


class Overflows(StatisticsTransformer):
    def transform(self, X, **stated):
        return super().transform(X, **stated) + np.where(np.max(X) > 90, np.inf, 0.0)


def test_an_embedding_that_is_not_finite_is_refused():
    pulse = PulseTransformer(encoder=FrozenEstimator(Overflows().fit(X)), **SMALL).fit(X)
    large = X.copy()
    large[3] += 100
    with pytest.raises(ValueError, match="lead to results that are not finite"):
        pulse.transform(large)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite_are_named_before_the_training(value):
    broken = FunctionTransformer(
        lambda Z: np.where(np.arange(len(Z))[:, None] == 2, value, Z),
        feature_names_out="one-to-one",
    )
    pulse = PulseTransformer(
        encoder=FrozenEstimator(make_pipeline(StatisticsTransformer(), broken).fit(X)), **SMALL
    )
    with pytest.raises(ValueError, match="^The values of X lead to results .* features of encoder"):
        pulse.set_params(validation_fraction=0.0).fit(X)
    with pytest.raises(ValueError, match="^X_val: The values of X lead to results"):
        pulse.fit(X[:2], X_val=X)
    working = PulseTransformer(encoder=STATISTICS, **SMALL).fit(X)
    working.encoder_.transform = pulse.encoder.transform
    for method in (working.transform, working.reconstruct, working.score_samples):
        with pytest.raises(ValueError, match="lead to results that are not finite"):
            method(X)
    with pytest.raises(ValueError, match="lead to a loss that is not finite"):
        working.decoder_reliance(X)


def test_features_of_another_shape_than_their_names():
    flat = FunctionTransformer(
        lambda X: X.mean((1, 2)), feature_names_out=lambda self, names: ["mean"]
    )
    with pytest.raises(TypeError, match=r"^encoder returns features of shape \(\d+,\) .* names 1"):
        PulseTransformer(encoder=FrozenEstimator(flat.fit(X)), **SMALL).fit(X)


def test_the_closed_form_can_be_the_frozen_encoder():
    cross = CrossPredictionTransformer(num_kernels=84, embedding_dim=8, random_state=0).fit(HOLES)
    pulse = PulseTransformer(encoder=FrozenEstimator(cross), **SMALL).fit(HOLES)
    np.testing.assert_allclose(pulse.transform(HOLES), cross.transform(HOLES), atol=1e-5)
    got = pulse.reconstruct(HOLES)
    assert np.isnan(got[:, 0]).all() and np.isfinite(got[:, 1:]).all()
    assert set(pulse.decoder_reliance(HOLES)) == {"embedding", "initial_condition"}


def test_rate_and_channels_are_those_of_the_frozen_transformer():
    known = {"sampling_rate": 64.0, "channel_names": ["bvp", "acc"]}
    cross = CrossPredictionTransformer(num_kernels=84, embedding_dim=8, random_state=0, **known)
    frozen = FrozenEstimator(cross.set_output(transform="pandas").fit(X))
    pulse = PulseTransformer(encoder=frozen, **SMALL).fit(X)
    assert pulse.sampling_rate_in_ == 64.0 and pulse.channel_names_in_.tolist() == ["bvp", "acc"]
    with pytest.raises(ValueError, match="sampled at 32 Hz"):
        pulse.transform(X, sampling_rate=32)
    for other, message in [
        ({"sampling_rate": 32}, "sampled at 32 Hz, but the frozen CrossPredictionTransformer"),
        ({"channel_names": ["acc", "bvp"]}, r"frozen Cross.*in the order \[1, 0\]"),
    ]:
        with pytest.raises(ValueError, match=message):
            PulseTransformer(encoder=frozen, **SMALL, **other).fit(X)


def test_channels_are_those_of_a_frozen_step_of_preprocessing():
    named = [pd.DataFrame(window, columns=["bvp", "acc"]) for window in X]
    pipeline = make_pipeline(WindowScaler(), StatisticsTransformer()).fit(named)
    pulse = PulseTransformer(encoder=FrozenEstimator(pipeline), **SMALL)
    assert pulse.fit(X).channel_names_in_.tolist() == ["bvp", "acc"]
    with pytest.raises(ValueError, match=r"frozen WindowScaler.*in the order \[1, 0\]"):
        pulse.set_params(channel_names=["acc", "bvp"]).fit(X)


def test_a_pipeline_can_be_the_frozen_encoder():
    pipeline = make_pipeline(StatisticsTransformer(), StandardScaler()).fit(X)
    pulse = PulseTransformer(encoder=FrozenEstimator(pipeline), **SMALL).fit(X)
    np.testing.assert_allclose(pulse.transform(X), pipeline.transform(X), rtol=1e-5, atol=1e-6)


def standardized(X):
    """Divide by a spread that is 0 in a window of zeros; change the windows in place."""
    X -= X.mean(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        X /= X.std(1, keepdims=True)
    return X


def test_the_steps_of_a_frozen_pipeline_see_the_windows_alone():
    """Neither the windows that fill a block up nor those of a bag without an observed step."""
    pipeline = make_pipeline(FunctionTransformer(standardized), StatisticsTransformer())
    pulse = PulseTransformer(encoder=FrozenEstimator(pipeline.fit(X.copy())), **SMALL)
    pulse.fit(X)
    reconstructed = pulse.reconstruct(X)
    embedding = torch.from_numpy(pipeline.transform(X.copy()))
    with torch.inference_mode():
        expected = pulse.net_.module_.eval().complete(torch.from_numpy(X), embedding=embedding)
    np.testing.assert_allclose(reconstructed, expected, rtol=1e-5, atol=1e-6)
    scores = pulse.score_samples(X)
    bags = X.reshape(6, 4, *X.shape[1:])
    bags = np.concatenate([bags, np.full_like(bags[:, :1], np.nan)], axis=1)
    np.testing.assert_allclose(pulse.score_samples(bags), scores.reshape(6, 4).mean(1), rtol=1e-5)
    means = embedding.numpy().reshape(6, 4, -1).mean(1)
    np.testing.assert_allclose(pulse.transform(bags), means, rtol=1e-5, atol=1e-6)
    full = make_windows(256)[0]  # nothing fills their block up
    np.testing.assert_array_equal(pulse.reconstruct(full)[:24], pulse.reconstruct(full[:24]))


def test_the_steps_of_a_frozen_pipeline_see_which_value_is_missing():
    """A scaler leaves out the missing values of a channel, not the steps that miss another one."""
    half = X.copy()
    half[::3, 4:9, 0] = np.nan
    pipeline = make_pipeline(WindowScaler(per="window"), StatisticsTransformer()).fit(X)
    pulse = PulseTransformer(encoder=FrozenEstimator(pipeline), **SMALL).fit(half)
    expected = pipeline.transform(half)
    np.testing.assert_array_equal(pulse.transform(half), expected)
    rows, observed = torch.from_numpy(np.nan_to_num(half)), torch.from_numpy(np.isfinite(half))
    with torch.inference_mode():
        completed = pulse.net_.module_.eval().complete(
            rows, observed.all(-1), embedding=torch.from_numpy(expected)
        )
    np.testing.assert_allclose(pulse.reconstruct(half), completed, rtol=1e-5, atol=1e-6)


def test_the_frozen_transformer_warns_at_the_line_of_the_user():
    encoder = PulseTransformer(**SMALL_PULSE | {"encoder_depth": 5}).fit(X)
    pulse = PulseTransformer(encoder=FrozenEstimator(encoder), **SMALL).fit(X)
    long = np.random.default_rng(0).normal(size=(80, 200, 2))
    for method in (pulse.transform, pulse.reconstruct, pulse.score_samples):
        with pytest.warns(UserWarning, match="more than the 16 of fit") as caught:
            pulse.set_params(num_threads=2)
            method(long)
        assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("layout", ["ntc", "nct"])
@pytest.mark.parametrize("before", ["passthrough", FunctionTransformer()])
def test_pipeline_that_begins_before_the_features(layout, before):
    turned = X if layout == "ntc" else X.swapaxes(1, 2)
    steps = [cls(input_layout=layout) for cls in (WindowScaler, StatisticsTransformer)]
    pipeline = make_pipeline(before, make_pipeline(*steps), "passthrough").fit(turned)
    pulse = PulseTransformer(encoder=FrozenEstimator(pipeline), input_layout=layout, **SMALL)
    got = pulse.fit(turned).transform(turned)
    np.testing.assert_allclose(got, pipeline.transform(turned), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda step: make_union(make_pipeline(step)),
        lambda step: make_pipeline(FrozenEstimator(make_pipeline(step))),
        lambda step: make_pipeline(WindowScaler(input_layout=step.input_layout), step),
    ],
    ids=["union", "frozen pipeline", "after a scaler"],
)
def test_layout_and_signals_of_a_step_within(wrap):
    square = np.random.default_rng(0).normal(size=(12, 4, 4))
    turned = square.swapaxes(1, 2)
    known = {"sampling_rate": 64.0, "channel_names": list("abcd")}
    step = StatisticsTransformer(input_layout="nct", **known).fit(turned)
    encoder = wrap(step).fit(turned)
    pulse = PulseTransformer(encoder=FrozenEstimator(encoder), **SMALL).fit(square)
    expected = encoder.transform(turned)
    np.testing.assert_allclose(pulse.transform(square), expected, rtol=1e-5, atol=1e-6)
    assert pulse.sampling_rate_in_ == 64.0 and pulse.channel_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="32 Hz, but the frozen StatisticsTransformer"):
        pulse.set_params(sampling_rate=32).fit(square)


def every_second(X):
    return X[:, ::2]


@pytest.mark.parametrize(
    "half", [Resampler(from_rate=64, to_rate=32), FunctionTransformer(every_second)]
)
@pytest.mark.parametrize("wrap", [copy.copy, make_union], ids=["bare", "union"])
def test_a_rate_behind_a_step_that_changes_it_is_not_that_of_the_windows(half, wrap):
    pipeline = make_pipeline(half, wrap(StatisticsTransformer(sampling_rate=32))).fit(X)
    pulse = PulseTransformer(encoder=FrozenEstimator(pipeline), sampling_rate=64, **SMALL)
    assert pulse.fit(X).sampling_rate_in_ == 64.0


def test_an_encoder_that_is_set_after_fit_waits_for_the_next_fit(fitted):
    pulse, expected = pickle.loads(pickle.dumps(fitted)), fitted.transform(X)
    other = FrozenEstimator(StatisticsTransformer().fit(2 * X))
    for encoder in (
        other,
        FrozenEstimator(make_pipeline(StatisticsTransformer(), PCA(2)).fit(X)),
        None,
    ):
        np.testing.assert_array_equal(pulse.set_params(encoder=encoder).transform(X), expected)
    with pytest.raises(ValueError, match="pickle"):
        pulse.save_pretrained("nowhere")


@pytest.mark.parametrize(
    "make",
    [
        StatisticsTransformer,
        lambda: make_pipeline(StatisticsTransformer(), StandardScaler()),
        lambda: make_union(make_pipeline(StatisticsTransformer(), PCA(3))),
    ],
    ids=["bare", "pipeline", "union"],
)
def test_the_frozen_transformer_is_kept_as_it_was_at_fit(make):
    inner = make().fit(X)
    pulse = PulseTransformer(encoder=FrozenEstimator(inner), **SMALL).fit(X)
    embedded, reconstructed = pulse.transform(X), pulse.reconstruct(X)
    inner.fit(3.0 * X[::2] + 1.0)
    np.testing.assert_array_equal(pulse.transform(X), embedded)
    np.testing.assert_array_equal(pulse.reconstruct(X), reconstructed)


def test_has_no_graph(fitted, tmp_path):
    with pytest.raises(TypeError, match="has no graph"):
        fitted.export(tmp_path / "pulse.pt2", format="torch")


def test_bags_and_layouts(fitted):
    bags = X.reshape(6, 4, *X.shape[1:])
    bags = np.concatenate([bags, np.full_like(bags[:, :1], np.nan)], axis=1)
    expected = STATISTICS.transform(X).reshape(6, 4, -1).mean(1)
    np.testing.assert_allclose(fitted.transform(bags), expected, rtol=1e-5, atol=1e-6)
    padded = np.full((1, 512, *X.shape[1:]), np.nan)  # a whole block of windows is missing
    padded[0, 0] = X[0]
    scores = fitted.score_samples(padded), fitted.score_samples(X[:1])
    np.testing.assert_allclose(*scores, rtol=1e-6)
    turned = X.swapaxes(1, 2)
    frozen = FrozenEstimator(StatisticsTransformer(input_layout="nct").fit(turned))
    first = PulseTransformer(encoder=frozen, input_layout="nct", **SMALL).fit(turned)
    np.testing.assert_array_equal(first.transform(turned), fitted.transform(X))
    got = first.reconstruct(turned).swapaxes(1, 2)
    np.testing.assert_array_equal(got, fitted.reconstruct(X))


def test_only_the_decoder_is_trained(fitted):
    objective = fitted.net_.module_
    assert isinstance(objective.encoder, FixedEncoder)
    assert objective.time_varying is None and not list(objective.encoder.parameters())
    params = SMALL | {"max_epochs": 20, "lr": 2e-2, "batch_size": 8, "gru_num_layers": 2}
    longer = PulseTransformer(encoder=STATISTICS, **params).fit(X)
    assert longer.history_[-1]["train_loss"] < 0.9 * longer.history_[0]["train_loss"]


def test_the_embedding_may_be_given():
    """The loss with a known embedding is that of PULSE whose encoder returns the embedding."""
    torch.manual_seed(0)  # a decoder this narrow may be dead, and then no embedding matters
    encoder = FixedEncoder(lambda windows: np.nanmean(windows, axis=1), embedding_dim=2)
    objective = CrossReconstruction(2, fixed_encoder=encoder, gru_hidden_dim=6).eval()
    x = torch.randn(5, 12, 2)
    observed = torch.ones(5, 12).bool()
    observed[0, 3:5] = False
    starts = torch.tensor([[0, 1, 2, 3, 4]] * 2)
    mean = torch.stack([row[seen].mean(0) for row, seen in zip(x, observed, strict=True)])
    torch.testing.assert_close(objective.encode(x, observed), mean)
    computed = objective(x, observed, starts)
    torch.testing.assert_close(objective(x, observed, starts, mean), computed)
    other = objective(x, observed, starts, mean + 1.0)
    assert abs(other.item() - computed.item()) > 1e-6
    assert objective(x[:, :1]).item() == 0.0
    objective(x[:, :1]).backward()


def test_clone_pickle_and_seed(fitted):
    again = clone(fitted).fit(X)
    np.testing.assert_array_equal(again.reconstruct(X), fitted.reconstruct(X))
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.reconstruct(X), fitted.reconstruct(X))


def test_resumes_only_with_the_same_embeddings(tmp_path):
    params = SMALL | {"checkpoint_dir": str(tmp_path)}
    first = PulseTransformer(encoder=STATISTICS, **params).fit(X)
    again = PulseTransformer(encoder=STATISTICS, **params).fit(X)
    np.testing.assert_array_equal(again.reconstruct(X), first.reconstruct(X))
    scaled = FrozenEstimator(make_pipeline(StatisticsTransformer(), StandardScaler()).fit(X))
    PulseTransformer(encoder=scaled, **params).fit(X)
    assert len(list(tmp_path.iterdir())) == 2


def test_names_and_frames(fitted):
    pulse = clone(fitted).set_output(transform="pandas").fit(X)
    frame = pulse.transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(pulse.get_feature_names_out())


def test_bad_encoders(tmp_path, fitted):
    with pytest.raises(TypeError, match="must be a FrozenEstimator"):
        PulseTransformer(encoder=StatisticsTransformer().fit(X)).fit(X)
    with pytest.raises(NotFittedError, match="StatisticsTransformer that is not fitted: fit it"):
        PulseTransformer(encoder=FrozenEstimator(StatisticsTransformer())).fit(X)
    for wrong in (StatisticsTransformer, "eeg-174hz", None):
        with pytest.raises(TypeError, match="^encoder must be a FrozenEstimator around a fitted"):
            PulseTransformer(encoder=FrozenEstimator(wrong)).fit(X)
    with pytest.raises(TypeError, match="(?s)^encoder=.* without steps, .*: freeze a fitted"):
        PulseTransformer(encoder=FrozenEstimator(make_pipeline("passthrough"))).fit(X)
    scaler = StandardScaler().fit(X[:, 0])
    with pytest.raises(ValueError, match="^encoder begins with a StandardScaler, .* Freeze a"):
        PulseTransformer(encoder=FrozenEstimator(scaler), **SMALL).fit(X)
    nameless = FunctionTransformer(lambda X: X.mean(1)).fit(X)
    with pytest.raises(TypeError, match="^encoder ends with a FunctionTransformer, .* give it a"):
        PulseTransformer(encoder=FrozenEstimator(nameless), **SMALL).fit(X)
    probe = make_pipeline(StatisticsTransformer(), LogisticRegression())
    with pytest.raises(TypeError, match="(?s)^encoder=.* has no transform, .*its classifier"):
        PulseTransformer(encoder=FrozenEstimator(probe.fit(X, np.arange(len(X)) % 2))).fit(X)
    with pytest.raises(ValueError, match="embedding_dim=8 belongs to an encoder that is trained"):
        PulseTransformer(encoder=STATISTICS, embedding_dim=8).fit(X)
    for later in (STATISTICS, None):  # what counts is the encoder of the fit
        with pytest.raises(ValueError, match="a file cannot hold encoder=Frozen.*at fit: pickle"):
            copy.copy(fitted).set_params(encoder=later).save_pretrained(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
    with pytest.raises(ValueError):
        PulseTransformer(encoder=STATISTICS, **SMALL).fit(X[..., :1])  # another number of channels
