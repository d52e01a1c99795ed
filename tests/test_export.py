"""Graphs of encoders and chains: equal to the estimator, for every batch and length."""

import json
import sys
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDOneClassSVM,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from sklearn_pulse import (
    CrossPredictionTransformer,
    FineTuneClassifier,
    FineTuneRegressor,
    RandomEncoderTransformer,
    export,
    save_pretrained,
)
from sklearn_pulse._chain._layers import last_layer, layer_of
from sklearn_pulse._export import EncoderGraph, program_of
from sklearn_pulse.baselines import (
    PatchTSTTransformer,
    SimMTMTransformer,
    SupervisedClassifier,
)
from sklearn_pulse.evaluation import LabeledSubsetClassifier, make_linear_probe
from sklearn_pulse.preprocessing import ChannelWhitener, Resampler, WindowScaler
from tests.helpers import SMALL_ENCODER, make_windows
from tests.persistence.helpers import pulse
from tests.test_common import CLASSES, fit, small

X = make_windows(24, n_timesteps=32)[0]
y = np.array(["calm", "active", "asleep"])[np.arange(24) % 3]
BATCHES = [(1, 32), (7, 32), (2, 9), (3, 80), (4, 1)]
export_needs_torch = pytest.mark.skipif(
    not hasattr(torch.compiler, "is_exporting"), reason="needs torch 2.7"
)
pytestmark = export_needs_torch


def encoder(**params):
    """One block: torch takes most of its time for what a block computes."""
    one = {"encoder_depth": 1, "random_state": 0}
    return RandomEncoderTransformer(**SMALL_ENCODER | one | params)


def windows(n, length, offset=0.0):
    """Windows with missing steps, in all channels or in one; the first is complete."""
    x = np.random.default_rng(n + length).normal(size=(n, length, 2)) + offset
    x[1:, 1 : length // 2] = np.nan
    x[-1, length // 2 + 1 :: 3, 0] = np.nan
    return x.astype(np.float32)


def assert_equal(run, estimator, batches=BATCHES, method="transform", offset=0.0):
    for n, length in batches:
        x = windows(n, length, offset)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of windows longer than those of fit
            expected = getattr(estimator, method)(x)
        found = run(x)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def torch_program(path):
    """A function of windows, and the signature in the file."""
    extra = {"signature.json": ""}
    module = torch.export.load(path, extra_files=extra).module()
    return lambda x: module(torch.from_numpy(x)).detach().numpy(), json.loads(
        extra["signature.json"]
    )


def onnx_program(path):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    signature = json.loads(session.get_modelmeta().custom_metadata_map["signature"])
    (given,), (result,) = session.get_inputs(), session.get_outputs()
    assert given.name == signature["input"]["name"]
    assert given.shape == signature["input"]["dims"]
    assert result.name == signature["output"]["name"]
    return lambda x: session.run(None, {given.name: x})[0], signature


@pytest.fixture(scope="module")
def fitted():
    return encoder(encoder_depth=3, sampling_rate=64, channel_names=["ecg", "ppg"]).fit(X)


@pytest.fixture(scope="module")
def shallow():
    return encoder().fit(X)


@pytest.fixture
def traced_once(monkeypatch):
    """The first program of a test stands for the later ones too: torch takes long to trace one."""
    programs = []

    def first(*args):
        programs[:] = programs or [program_of(*args)]
        return programs[0]

    monkeypatch.setattr("sklearn_pulse._chain._export.program_of", first)


def test_a_chain_under_onnxruntime(tmp_path):
    """From raw counts to probabilities in one graph."""
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    chain = make_pipeline(
        WindowScaler(),
        pulse(encoder_depth=1, max_epochs=1, sampling_rate=64, channel_names=["ecg", "ppg"]),
        LabeledSubsetClassifier(make_linear_probe()),
    )
    chain.fit(1e5 + X, y)
    signature = export(chain, tmp_path / "chain.onnx", units=np.array(["counts", "counts"]))
    run, stored = onnx_program(tmp_path / "chain.onnx")
    assert stored == signature
    assert_equal(run, chain, method="predict_proba", offset=1e5)
    steps = ["WindowScaler", "PulseTransformer", "StandardScaler", "LogisticRegression"]
    assert signature["steps"] == steps
    assert signature["input"] | {"n_timesteps_at_fit": 32} == {
        "name": "windows",
        "dims": ["batch", "time", 2],
        "dtype": "float32",
        "missing": "NaN",
        "n_timesteps_at_fit": 32,
        "channel_names": ["ecg", "ppg"],
        "units": ["counts", "counts"],
        "sampling_rate": 64.0,
    }
    assert signature["output"]["name"] == "probabilities"
    assert signature["output"]["classes"] == ["active", "asleep", "calm"]


def test_an_encoder_as_a_program_of_torch(fitted, tmp_path, monkeypatch):
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    signature = fitted.export("~/encoder.pt2", format="torch")
    run, stored = torch_program(tmp_path / "encoder.pt2")
    assert stored == signature
    assert signature["output"] == {
        "name": "embedding",
        "dims": ["batch", "feature"],
        "dtype": "float32",
    }
    assert_equal(run, fitted)
    unseen = np.full((1, 32, 2), np.nan, dtype=np.float32)
    assert not np.isfinite(run(unseen)).any()


def test_channels_first_and_one_length(tmp_path):
    """The graph has its axes in the order of the signature, whatever the estimator's."""
    model = small(PatchTSTTransformer, input_layout="nct", encoder_depth=1, max_epochs=1)
    model.fit(X.swapaxes(1, 2))
    signature = model.export(tmp_path / "model", format="torch")
    assert signature["input"]["dims"] == ["batch", 32, 2]
    run, _ = torch_program(tmp_path / "model")
    x = windows(5, 32)
    expected = model.transform(x.swapaxes(1, 2))
    np.testing.assert_allclose(run(x), expected, rtol=1e-5, atol=1e-5)
    unseen = np.full((1, 32, 2), np.nan, dtype=np.float32)
    unseen[:, :2] = 0  # no patch reads these steps
    assert np.isnan(run(unseen)).all()  # though the network has biases


@pytest.mark.filterwarnings("ignore:X has (more channels|windows of one time step):UserWarning")
@pytest.mark.parametrize(
    "n_timesteps", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 4))]
)
def test_the_convolutions_of_simmtm_take_the_shortest_windows(n_timesteps, tmp_path):
    """Their stride of three leaves one step of a window of up to three."""
    model = small(SimMTMTransformer, encoder_depth=2, max_epochs=1).fit(X[:, :n_timesteps])
    model.export(tmp_path / "model.pt2", format="torch")
    run, _ = torch_program(tmp_path / "model.pt2")
    assert_equal(run, model, [*BATCHES, (3, 2), (3, 3), (3, 4)])


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's
def test_compiling_is_not_interrupted(shallow):
    """torch.compile still sees one graph, though the networks ask whether they are exported."""
    compiled = torch.compile(shallow.encoder_, fullgraph=True, backend="eager")
    x = torch.from_numpy(X)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), shallow.encoder_(x))


@pytest.mark.slow
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_method_under_onnxruntime(cls, tmp_path):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    model = fit(small(cls), X)
    model.export(tmp_path / "model.onnx")
    run, _ = onnx_program(tmp_path / "model.onnx")
    batches = BATCHES[:4] if cls().__sklearn_tags__().variable_length else BATCHES[:2]
    assert_equal(run, model, batches)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["onnx", "torch"])
def test_the_published_sizes(format, tmp_path):
    for name in ("onnx", "onnxscript", "onnxruntime") if format == "onnx" else ():
        pytest.importorskip(name)
    model = RandomEncoderTransformer(random_state=0).fit(X)
    model.export(tmp_path / "model", format=format)
    read = onnx_program if format == "onnx" else torch_program
    assert_equal(read(tmp_path / "model")[0], model, [(1, 32), (7, 128), (2, 1500)])


def tuned(cls=FineTuneClassifier, **params):
    """Fine-tuned from an encoder of three channels, so that a map of channels comes first."""
    three = encoder().fit(np.concatenate([X, X[..., :1]], axis=-1))
    return cls(FrozenEstimator(three), max_epochs=1, random_state=0, **params)


RATES = 60 + 50 * X[:, 0].astype(np.float64)  # targets far from zero, in units of their own
HEADS = [
    (tuned(), y, "predict_proba"),
    (tuned(score_with="probe"), y == "calm", "predict_proba"),
    (tuned(FineTuneRegressor), RATES[:, 0], "predict"),
]
MORE_HEADS = [
    (tuned(head_hidden_dim=None), y == "calm", "predict_proba"),
    (tuned(score_with="probe"), y, "predict_proba"),
    (tuned(FineTuneRegressor), RATES, "predict"),
    (tuned(FineTuneRegressor), RATES[:, :1], "predict"),
    (SupervisedClassifier(**SMALL_ENCODER, max_epochs=1, random_state=0), y, "predict_proba"),
]


@pytest.mark.parametrize(
    ("model", "target", "method"),
    HEADS + [pytest.param(*case, marks=pytest.mark.slow) for case in MORE_HEADS],
    ids=lambda value: str(value)[:30],
)
def test_a_network_with_a_head_predicts(model, target, method, tmp_path):
    model = clone(model).fit(X, target)
    signature = model.export(tmp_path / "model.pt2", format="torch")
    run, stored = torch_program(tmp_path / "model.pt2")
    assert stored == signature
    assert_equal(run, model, method=method)
    of_classes = {"name": "probabilities", "classes": np.unique(target).tolist()}
    expected = of_classes if method == "predict_proba" else {"name": "prediction"}
    assert signature["output"].items() >= expected.items()
    assert len(signature["output"]["dims"]) == np.ndim(run(windows(2, 9)))


@pytest.mark.slow
@pytest.mark.parametrize(("model", "target", "method"), HEADS + MORE_HEADS)
def test_a_network_with_a_head_under_onnxruntime(model, target, method, tmp_path):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    chain = make_pipeline(WindowScaler(), clone(model)).fit(X, target)
    export(chain, tmp_path / "model.onnx")
    run, _ = onnx_program(tmp_path / "model.onnx")
    assert_equal(run, chain, method=method)


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("parts", [{}, {"with_mean": False}, {"with_std": False}])
def test_windows_are_scaled_by_their_own_statistics(robust, parts):
    scaler = WindowScaler(per="window", robust=robust, **parts).fit(X)
    layer = layer_of(scaler, takes_windows=True)
    for n, length in [(1, 32), (7, 33), (3, 80), (4, 1)]:
        x = windows(n, length, offset=1e5)
        x[:, ::5, 1] = np.nan  # by itself, whatever the other channel holds
        x[-1, :, 1] = np.nan
        x[0, :, 0] = x[0, 0, 0]  # a channel without spread
        found = layer(torch.from_numpy(x))
        assert found.dtype == torch.float32
        np.testing.assert_allclose(found.numpy(), scaler.transform(x), rtol=1e-6, atol=1e-6)


def test_channels_are_whitened_in_the_graph(tmp_path):
    whitener = ChannelWhitener(0.05).fit(windows(9, 40, offset=1e5))
    layer = layer_of(whitener, takes_windows=True)
    for n, length in [(1, 32), (7, 33), (4, 1)]:
        x = windows(n, length, offset=1e5)
        x[:, ::5, 1] = np.nan  # by itself, whatever the other channel holds
        found = layer(torch.from_numpy(x))
        assert found.dtype == torch.float32
        np.testing.assert_allclose(found.numpy(), whitener.transform(x), rtol=1e-6, atol=1e-6)
    chain = make_pipeline(ChannelWhitener(0.05), encoder()).fit(X)
    steps = export(chain, tmp_path / "chain.pt2", format="torch")["steps"]
    assert steps[0] == "ChannelWhitener"
    assert_equal(torch_program(tmp_path / "chain.pt2")[0], chain, offset=1e4)


@pytest.mark.slow  # the test above computes the same layer by torch
@pytest.mark.parametrize("robust", [False, True])
def test_a_scaler_of_windows_under_onnxruntime(robust, tmp_path):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    chain = make_pipeline(WindowScaler(per="window", robust=robust), encoder()).fit(X)
    export(chain, tmp_path / "chain.onnx")
    assert_equal(onnx_program(tmp_path / "chain.onnx")[0], chain, offset=1e4)


def test_parameters_that_were_set_after_fit_are_not_exported(traced_once, tmp_path):
    chain = make_pipeline(WindowScaler(per="window"), encoder()).fit(X)
    chain[0].set_params(per="channel", robust=True, with_mean=False, with_std=False)
    chain[1].set_params(precision="bfloat16")
    export(chain, tmp_path / "chain.pt2", format="torch")
    assert_equal(torch_program(tmp_path / "chain.pt2")[0], chain, offset=1e4)
    chain[1].set_params(precision="of another version")
    export(chain, tmp_path / "chain.pt2", format="torch")


def test_a_fine_tuned_network_before_the_last_step_embeds(tmp_path):
    chain = make_pipeline(tuned(), StandardScaler(), LinearSVC()).fit(X, y)
    assert export(chain, tmp_path / "chain.pt2", format="torch")["output"]["name"] == "scores"
    assert_equal(torch_program(tmp_path / "chain.pt2")[0], chain, method="decision_function")


def test_the_layout_of_a_fine_tuned_network_may_be_that_of_its_encoder(tmp_path):
    """`input_layout=None` of a fine-tuned network means the layout of the pretrained encoder."""
    swapped = encoder(input_layout="nct").fit(X.swapaxes(1, 2))
    model = FineTuneClassifier(FrozenEstimator(swapped), max_epochs=1, random_state=0)
    model.fit(X.swapaxes(1, 2), y).export(tmp_path / "model.pt2", format="torch")
    x = windows(5, 32)
    expected = model.predict_proba(x.swapaxes(1, 2))
    found = torch_program(tmp_path / "model.pt2")[0](x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_probe_that_was_asked_for_too_late_is_refused(tmp_path):
    late = tuned().fit(X, y).set_params(score_with="probe")
    with pytest.raises(ValueError, match="score_with='probe' was set after a fit with 'head'"):
        late.export(tmp_path / "model.pt2", format="torch")


LAST = [
    (LogisticRegression(), y, "predict_proba"),
    (LogisticRegression(), y == "calm", "predict_proba"),
    (LogisticRegression(solver="liblinear"), y == "calm", "predict_proba"),
    (SGDClassifier(loss="log_loss", random_state=0), y, "predict_proba"),
    (SGDClassifier(random_state=0), y == "calm", "decision_function"),
    (LinearSVC(), y, "decision_function"),
    (LinearSVC(fit_intercept=False), y == "calm", "decision_function"),
    (RidgeClassifier(), y, "decision_function"),
    (RidgeClassifier(), y == "calm", "decision_function"),
    (Ridge(), X[:, 0, 0], "predict"),
    (Ridge(fit_intercept=False), X[:, 0], "predict"),
    (LinearRegression(), X[:, 0], "predict"),
    (StandardScaler(with_std=False), y, "transform"),
    (StandardScaler(with_mean=False), y, "transform"),
    (MinMaxScaler(clip=True), y, "transform"),
    (RobustScaler(), y, "transform"),
    (PCA(2, whiten=True), y, "transform"),
    (PCA(2, svd_solver="arpack"), y, "transform"),  # its components are a reversed view
]


@pytest.mark.parametrize(("step", "target", "method"), LAST, ids=lambda value: str(value)[:40])
def test_every_last_step(step, target, method):
    rows = np.random.default_rng(0).normal(3, 2, size=(24, 8)).astype(np.float32)
    step.fit(rows, target)
    layer, found, output = last_layer(step)
    assert found == method
    expected = getattr(step, method)(2 * rows)
    result = layer(torch.from_numpy(2 * rows)).numpy()
    assert result.shape == expected.shape and len(output["dims"]) == expected.ndim
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("step", "target"),
    [
        (SVC(kernel="linear", decision_function_shape="ovo"), y),  # a score per pair of classes
        (PLSRegression(), 1e-7 * X[:, 0]),  # centres the rows; no error that is 1e-5 shows it
        (SGDOneClassSVM(), None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_coefficients_do_not_make_a_linear_model(step, target, tmp_path):
    chain = make_pipeline(encoder(), step).fit(X, target)
    with pytest.raises(TypeError, match=f"{type(step).__name__} has no graph, as it is no linear"):
        export(chain, tmp_path / "chain.pt2", format="torch")
    assert not list(tmp_path.iterdir())


def test_a_component_without_variance_is_divided_by_the_least_scale():
    rows = np.zeros((3, 2), dtype=np.float32)
    rows[:, 0] = [-2, 0, 2]
    pca = PCA(whiten=True).fit(rows)
    assert pca.explained_variance_[1] == 0
    result = last_layer(pca)[0](torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(result, pca.transform(rows), rtol=1e-6)


@pytest.mark.parametrize("target", [y, y == "calm"])
def test_sparse_coefficients_are_those_of_the_array(target):
    rows = np.random.default_rng(0).normal(size=(24, 8)).astype(np.float32)
    step = LogisticRegression().fit(rows, target)
    expected = step.predict_proba(rows)
    layer, method, _ = last_layer(step.sparsify())
    assert method == "predict_proba"
    np.testing.assert_allclose(layer(torch.from_numpy(rows)).numpy(), expected, rtol=1e-5)


def test_a_whitened_chain_of_few_windows_is_exported(tmp_path):
    """The last of five components of five windows has no variance."""
    chain = make_pipeline(encoder(encoder_depth=3), PCA(whiten=True)).fit(X[:5])
    assert chain[-1].explained_variance_[-1] < 1e-12
    export(chain, tmp_path / "chain.pt2", format="torch")
    assert (tmp_path / "chain.pt2").exists()


def test_large_scores_near_zero_are_rounded_as_large_ones(tmp_path):
    chain = make_pipeline(encoder(), StandardScaler(), LinearSVC()).fit(X, y)
    chain[-1].coef_ *= 1e5
    chain[-1].intercept_ *= 1e5
    signature = export(chain, tmp_path / "model.pt2", format="torch")
    assert signature["output"]["name"] == "scores"


def test_probabilities_of_far_scores_under_onnxruntime(tmp_path):
    """Its sigmoid is never below 1e-8, which the share of a class must not depend on."""
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    chain = make_pipeline(encoder(), SGDClassifier(loss="log_loss", random_state=0)).fit(X, y)
    chain[-1].coef_ *= 10 / np.abs(chain.decision_function(X)).max()
    chain[-1].intercept_ = np.array([-40.0, -41.0, -42.0])
    export(chain, tmp_path / "chain")
    found = onnx_program(tmp_path / "chain")[0](X.astype(np.float32))
    np.testing.assert_allclose(found, chain.predict_proba(X), rtol=1e-4)


def test_several_labels_per_sample_are_refused(tmp_path):
    several = np.column_stack([np.arange(24) % 2, np.arange(24) % 3 == 0]).astype(int)
    chain = make_pipeline(encoder(), RidgeClassifier()).fit(X, several)
    with pytest.raises(TypeError, match="RidgeClassifier of several labels per sample"):
        export(chain, tmp_path / "chain.pt2", format="torch")


def test_steps_without_a_graph_are_refused_by_name(tmp_path):
    chain = make_pipeline(Resampler(64, 32), encoder(), LinearSVC()).fit(X, y)
    with pytest.raises(TypeError, match="Resampler has no graph.*before the graph, or serve"):
        export(chain, tmp_path / "chain.onnx")
    bags = X.reshape(6, 4, 32, 2)
    by_recording = make_pipeline(WindowScaler(per="recording"), encoder()).fit(bags)
    with pytest.raises(TypeError, match="WindowScaler has no graph. A WindowScaler with per='ch"):
        export(by_recording, tmp_path / "chain.onnx")
    neighbours = make_pipeline(encoder(), KNeighborsClassifier(1)).fit(X, y)
    with pytest.raises(TypeError, match=r"KNeighborsClassifier has no graph.*export.*chain\[:-1\]"):
        export(neighbours, tmp_path / "chain.onnx")
    step_by_step = make_pipeline(StandardScaler(), encoder()).fit(X[..., 0])
    with pytest.raises(TypeError, match="StandardScaler has no graph before the encoder. A W"):
        export(step_by_step, tmp_path / "chain.pt2", format="torch")
    cross = CrossPredictionTransformer(num_kernels=84, embedding_dim=8).fit(X)
    with pytest.raises(TypeError, match="CrossPredictionTransformer: exactly one step must have"):
        export(make_pipeline(cross), tmp_path / "chain.onnx")
    wrapped = FixedThresholdClassifier(make_pipeline(encoder(), LinearSVC())).fit(X, y == "calm")
    with pytest.raises(TypeError, match="Export the chain that FixedThresholdClassifier wraps"):
        export(wrapped, tmp_path / "chain.onnx")
    with pytest.raises(TypeError, match="The chain of no steps: exactly one step must have"):
        export(make_pipeline("passthrough"), tmp_path / "chain.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("scaler", "params"),
    [
        (StandardScaler(), {"with_std": False}),
        (StandardScaler(), {"with_mean": False}),
        (RobustScaler(), {"with_scaling": False}),
        (RobustScaler(), {"with_centering": False}),
    ],
)
def test_a_scaler_goes_by_what_was_set_after_fit(scaler, params):
    rows = np.random.default_rng(0).normal(3, 2, size=(24, 8)).astype(np.float32)
    scaler.fit(rows).set_params(**params)
    result = last_layer(scaler)[0](torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(result, scaler.transform(rows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "step",
    [
        FixedThresholdClassifier(LogisticRegression(), threshold=0.9),  # its classes are others
        CalibratedClassifierCV(LogisticRegression(), cv=2),
        RFE(LogisticRegression()),
    ],
    ids=lambda step: type(step).__name__,
)
def test_a_step_with_an_estimator_in_it_is_no_linear_step(step, tmp_path):
    chain = make_pipeline(encoder(), step).fit(X, y == "calm")
    with pytest.raises(TypeError, match=type(step).__name__):
        export(chain, tmp_path / "chain.pt2", format="torch")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("write", [export, save_pretrained])
def test_a_search_is_asked_for_the_model_that_it_found(write, tmp_path):
    grid = {"logisticregression__C": [0.1, 1]}
    search = GridSearchCV(make_pipeline(encoder(), LogisticRegression()), grid, cv=2).fit(X, y)
    probe = GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2)
    for model in (search, make_pipeline(encoder(), probe).fit(X, y)):
        with pytest.raises(TypeError, match="GridSearchCV is a search: put .* best_estimator_"):
            write(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_wrong_arguments(fitted, tmp_path):
    path = tmp_path / "encoder.onnx"
    with pytest.raises(ValueError, match="format must be one of 'onnx', 'torch', got 'tflite'"):
        fitted.export(path, format="tflite")
    with pytest.raises(ValueError, match="units must be a list of 2 strings, one per channel"):
        fitted.export(path, units=["mV"])
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        fitted.export(tmp_path)
    with pytest.raises(NotFittedError):
        export(make_pipeline(encoder(), LinearSVC()), path)


@pytest.mark.parametrize("format", ["torch", pytest.param("onnx", marks=pytest.mark.slow)])
def test_the_autocast_of_a_caller_is_no_part_of_the_graph(format, shallow, tmp_path):
    if format == "onnx":
        pytest.importorskip("onnxscript")
    path = tmp_path / "encoder.pt2"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        shallow.export(path, format=format)
    run, _ = (onnx_program if format == "onnx" else torch_program)(path)
    assert_equal(run, shallow)
    if format == "torch":  # a cast of 0 and 1 changes no value
        assert "bfloat16" not in torch.export.load(path).graph_module.code


def test_without_the_packages_of_onnx(shallow, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setattr(torch.export, "export", None)  # none is traced before it is found missing
    (tmp_path / "encoder.onnx").write_text("earlier")
    with pytest.raises(ImportError, match=r"format='onnx' needs onnx: .*sklearn-pulse\[export\]"):
        shallow.export(tmp_path / "encoder.onnx")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["earlier"]


def test_a_graph_that_computes_something_else_is_not_written(
    shallow, traced_once, tmp_path, monkeypatch
):
    forward = EncoderGraph.forward
    monkeypatch.setattr(EncoderGraph, "forward", lambda self, windows: forward(self, windows) + 1)
    with pytest.raises(ValueError, match="RandomEncoderTransformer is not exported: .*else for 1"):
        shallow.export(tmp_path / "encoder.pt2", format="torch")
    monkeypatch.setattr("sklearn_pulse._export._check._LARGEST", 1)  # a window beyond it counts too
    with pytest.raises(ValueError, match="RandomEncoderTransformer is not exported: .*else for 1"):
        shallow.export(tmp_path / "encoder.pt2", format="torch")
    chain = make_pipeline(shallow, StandardScaler().fit(shallow.transform(X)))
    message = "The chain of RandomEncoderTransformer, StandardScaler is not exported: .*else for 1"
    with pytest.raises(ValueError, match=message):
        export(chain, tmp_path / "chain.pt2", format="torch")
    assert not list(tmp_path.iterdir())


def test_a_chain_that_cannot_compute_is_at_fault_itself(tmp_path):
    chain = make_pipeline(encoder(), StandardScaler(), LogisticRegression()).fit(X, y)
    chain[1].scale_[:] = 1e-300
    message = "The chain of .* it cannot compute the windows that it is compared on .*infinity"
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
        export(chain, tmp_path / "chain.pt2", format="torch")


def test_what_torch_cannot_trace_is_an_error(shallow, tmp_path, monkeypatch):
    monkeypatch.setattr(
        EncoderGraph, "forward", lambda self, windows: windows[: int(windows.sum().item())]
    )
    with pytest.raises(ValueError, match="torch.export cannot write it as a graph for every batch"):
        shallow.export(tmp_path / "encoder.pt2", format="torch")
