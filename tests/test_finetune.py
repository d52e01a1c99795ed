import copy
import inspect
import pickle
import re
import shutil
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from skorch.callbacks import Callback, Freezer
from threadpoolctl import threadpool_limits

from sklearn_pulse import (
    CrossPredictionTransformer,
    FineTuneClassifier,
    PulseTransformer,
    RandomEncoderTransformer,
)
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse.base import BaseSSLTransformer
from sklearn_pulse.baselines import (
    PatchTSTTransformer,
    SimMTMTransformer,
    SupervisedClassifier,
    TimeMAETransformer,
)
from sklearn_pulse.datasets import fetch_gesture, fetch_har
from sklearn_pulse.evaluation import LabeledSubsetClassifier, make_linear_probe
from sklearn_pulse.networks import SystemEncoder
from sklearn_pulse.objectives import Classification, Objective, Source
from tests.helpers import (
    INPUT_FORMS,
    SMALL_ENCODER,
    SMALL_PULSE,
    BatchSpy,
    FitLog,
    callback_of,
    make_windows,
    sklearn_suite,
)
from tests.kills import killed

TINY = {"max_epochs": 2, "batch_size": 8, "lr": 1e-2, "num_threads": 1, "random_state": 0}
STILL = {"max_epochs": 1, "lr": 1e-12, "weight_decay": 0.0}


# Before scikit-learn 1.7 the dispatch needs another package.
array_api = pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7), reason="needs scikit-learn 1.7"
)


def scratch(**params):
    return FineTuneClassifier(**(SMALL_ENCODER | TINY | params))


def tuned(transformer, **params):
    return FineTuneClassifier(FrozenEstimator(transformer), **(TINY | params))


def state(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


@pytest.fixture(scope="module")
def pulse():
    """PULSE pretrained on six channels, 32 steps."""
    X, _ = make_windows(24, 32, 6, seed=1)
    return PulseTransformer(**SMALL_PULSE).fit(X)


@pytest.fixture(scope="module")
def windows():
    return make_windows(n_channels=3)


@pytest.fixture(scope="module")
def fitted(pulse, windows):
    return tuned(pulse).fit(*windows)


# --- resume ---


class Steps(Callback):
    def on_batch_end(self, net, training, loss, **kwargs):
        self.losses_ = [*getattr(self, "losses_", []), loss.item()]


@pytest.mark.parametrize(
    ("params", "interval", "at"),
    [
        ({}, 0.0, (2, 2)),
        ({"freeze_epochs": 1}, 60.0, (2, 1)),
        ({"freeze_epochs": 2, "score_with": "probe", "lr_decay": 0.9}, 0.0, (2, 1)),
        ({"validation_fraction": 0.25, "select": "min_val", "patience": 2}, 0.0, (3, 2)),
        ({"callbacks": [Freezer("source.*", at=2)]}, 0.0, (2, 2)),
    ],
)
def test_a_killed_run_resumes_to_the_same_bits(
    pulse, windows, tmp_path, monkeypatch, params, interval, at
):
    monkeypatch.setattr(Checkpoint, "interval", interval)
    settings = params | {"max_epochs": 3, "callbacks": [*params.get("callbacks", []), Steps()]}
    expected = tuned(pulse, **settings).fit(*windows)
    with killed(*at):
        tuned(pulse, **settings, checkpoint_dir=tmp_path).fit(*windows)
    resumed = tuned(pulse, **settings, checkpoint_dir=tmp_path).fit(*windows)
    assert same(state(resumed.net_.module_), state(expected.net_.module_))
    np.testing.assert_array_equal(
        resumed.predict_proba(windows[0]), expected.predict_proba(windows[0])
    )
    losses = [dict(fit.net_.callbacks_)["Steps"].losses_ for fit in (resumed, expected)]
    assert losses[0] == losses[1]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_run_is_known_by_the_encoder_that_it_starts_from(pulse, windows, tmp_path):
    """By its weights and by what they are the weights of, wherever it was loaded from."""
    pulse.save_pretrained(tmp_path / "saved")
    other = PulseTransformer(**SMALL_PULSE | {"random_state": 1}).fit(
        make_windows(24, 32, 6, seed=1)[0]
    )
    mean = copy.deepcopy(pulse).set_params(pooling="mean")
    mean.net_.module_.encoder.pooling = "mean"
    stored = TINY | {"max_epochs": 1, "checkpoint_dir": tmp_path / "runs"}
    runs = []
    for source in (
        FrozenEstimator(pulse),
        tmp_path / "saved",
        FrozenEstimator(other),
        FrozenEstimator(mean),
        FrozenEstimator(pulse),
    ):
        classifier = FineTuneClassifier(source, **stored).fit(*windows)
        plain = clone(classifier).set_params(checkpoint_dir=None).fit(*windows)
        assert same(state(classifier.net_.module_), state(plain.net_.module_))
        runs.append(len(list((tmp_path / "runs").iterdir())))
    assert runs == [1, 1, 2, 3, 3]


def test_a_run_is_known_by_what_the_encoder_was_fitted_with(windows, tmp_path):
    """Not by a parameter that was set later."""
    sizes = SMALL_ENCODER | {"random_state": 0}
    before = RandomEncoderTransformer(**sizes, pooling="max").fit(windows[0])
    mean = RandomEncoderTransformer(**sizes, pooling="mean").fit(windows[0])
    for source in (before.set_params(pooling="mean"), mean):  # their weights are the same
        plain = tuned(source, max_epochs=1).fit(*windows)
        stored = tuned(source, max_epochs=1, checkpoint_dir=tmp_path).fit(*windows)
        assert same(state(stored.net_.module_), state(plain.net_.module_))


@pytest.mark.parametrize("cls", [SimMTMTransformer, PatchTSTTransformer, PulseTransformer])
def test_blank_windows_of_a_bag_change_nothing(cls):
    X, _ = make_windows(24, 32, 2, seed=1)
    encoder = cls(embedding_dim=8, max_epochs=1, batch_size=8, random_state=0).fit(X)
    bags, y = X.reshape(8, 3, 32, 2), np.arange(8) % 2
    padded = np.concatenate([bags, np.full((8, 4, 32, 2), np.nan)], axis=1)
    losses, outputs = [], []
    for windows in (bags, padded):
        fitted = tuned(encoder, max_epochs=3).fit(windows, y)
        losses.append([epoch["train_loss"] for epoch in fitted.history_])
        outputs.append(fitted.predict_proba(bags))
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    np.testing.assert_allclose(outputs[1], outputs[0], rtol=1e-4)


@pytest.mark.parametrize("cls", [PatchTSTTransformer, TimeMAETransformer])
def test_windows_of_a_bag_that_are_not_read_change_nothing(cls):
    """PatchTST reads no steps before its first patch, and TimeMAE none after its last segment."""
    X, _ = make_windows(16, 26, 2, seed=1)
    sizes = {"embedding_dim": 8, "encoder_hidden_dim": 8, "encoder_depth": 1, "patch_length": 6}
    encoder = cls(**sizes, max_epochs=1, batch_size=8, random_state=0).fit(X)
    unread = np.ones(26, dtype=bool)
    unread[encoder.encoder_.steps_read] = False
    assert unread.any()
    bags, y = np.stack([X[:8], X[8:]], axis=1), np.arange(8) % 2
    blank, glimpse = (np.concatenate([bags, np.full((8, 1, 26, 2), np.nan)], 1) for _ in range(2))
    glimpse[:, 2, unread] = 3.0
    fitted = [tuned(encoder, max_epochs=3).fit(windows, y) for windows in (blank, glimpse)]
    losses = [[epoch["train_loss"] for epoch in one.history_] for one in fitted]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)
    first, second = (one.predict_proba(glimpse) for one in fitted)
    np.testing.assert_allclose(second, first, rtol=1e-4)
    bags[0][:, ~unread] = np.nan  # no window of this bag is read
    assert np.isfinite(tuned(encoder).fit(bags, y).history_[-1]["train_loss"])


def test_the_pooling_of_bags_is_another_training(tmp_path):
    X, _ = make_windows(16)
    bags, y = X.reshape(8, 2, 16, 2), np.arange(8) % 2
    for pooling in ("mean", "max"):
        scratch(bag_pooling=pooling, checkpoint_dir=tmp_path).fit(bags, y)
    assert len(list(tmp_path.iterdir())) == 2


# --- scikit-learn's own suite, without an exception, as a classifier and as a transformer ---

suite_warnings = pytest.mark.filterwarnings("ignore:X has more channels")
SUITE = {**SMALL_ENCODER, "encoder_depth": 2, "num_threads": 1, "lr": 3e-2, "batch_size": 100}


@suite_warnings
@sklearn_suite([FineTuneClassifier(**SUITE, max_epochs=5)])
def test_sklearn_suite(estimator, check):
    check(estimator)


@pytest.mark.slow
@suite_warnings
@sklearn_suite([FineTuneClassifier()])
def test_sklearn_suite_at_defaults(estimator, check):
    check(estimator)


# --- the published update, literally ---


@pytest.mark.parametrize("head_hidden_dim", [5, None])
def test_the_published_update(pulse, windows, head_hidden_dim):
    """Adam with the penalty in the gradient, and a learning rate that falls a little each batch."""
    lr, decay, penalty, beta1, beta2, eps = 3e-3, 0.9, 1e-2, 0.9, 0.999, 1e-8
    classifier = tuned(
        pulse,
        head_hidden_dim=head_hidden_dim,
        lr=lr,
        lr_decay=decay,
        weight_decay=penalty,
        callbacks=[BatchSpy()],
    ).fit(*windows)
    spy = callback_of(classifier, BatchSpy)
    before = spy.before_.state_dict()
    assert [len(batch["x"]) for batch in spy.batches_] == [8, 8, 4] * 2

    encoder = copy.deepcopy(pulse.encoder_)
    start = {name: before[f"source.encoder.{name}"] for name in encoder.state_dict()}
    assert same(start, encoder.state_dict())
    weights = {f"source.encoder.{name}": p for name, p in encoder.named_parameters()}
    for name, tensor in before.items():
        if name.startswith(("in_head", "head")):
            weights[name] = tensor.clone().requires_grad_()
    first, second = (dict.fromkeys(weights, 0.0) for _ in range(2))
    for step, batch in enumerate(spy.batches_):
        x = batch["x"] @ weights["in_head.weight"].T + weights["in_head.bias"]
        hidden = encoder(x)
        if head_hidden_dim is not None:
            hidden = torch.tanh(hidden @ weights["head.0.weight"].T + weights["head.0.bias"])
        last = "head.0" if head_hidden_dim is None else "head.2"
        logits = hidden @ weights[f"{last}.weight"].T + weights[f"{last}.bias"]
        loss = 0.0
        for row, label in zip(logits, batch["y"].tolist(), strict=True):
            loss = loss - torch.log(torch.exp(row[label]) / torch.exp(row).sum())
        gradients = torch.autograd.grad(loss / len(logits), list(weights.values()))
        with torch.no_grad():
            for (name, weight), gradient in zip(weights.items(), gradients, strict=True):
                gradient = gradient + penalty * weight
                first[name] = beta1 * first[name] + (1 - beta1) * gradient
                second[name] = beta2 * second[name] + (1 - beta2) * gradient**2
                mean = first[name] / (1 - beta1 ** (step + 1))
                square = second[name] / (1 - beta2 ** (step + 1))
                weight -= lr * decay**step * mean / (square.sqrt() + eps)
    after = classifier.net_.module_.state_dict()
    for name, weight in weights.items():
        torch.testing.assert_close(after[name], weight.detach(), rtol=1e-3, atol=2e-5)
        assert not torch.allclose(after[name], before[name], atol=1e-3)


def test_defaults_are_published():
    params = FineTuneClassifier().get_params()
    published = {"max_epochs": 40, "lr": 3e-4, "weight_decay": 1e-6, "lr_decay": 0.9999}
    published |= {"batch_size": 30, "head_hidden_dim": 64, "freeze_epochs": 0, "select": "last"}
    assert {name: params[name] for name in published} == published


# --- the pretrained encoder ---


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_the_weights_arrive_through_clone(pulse, windows, n_jobs):
    results = cross_validate(
        tuned(pulse, **STILL), *windows, cv=2, return_estimator=True, n_jobs=n_jobs
    )
    for estimator in results["estimator"]:
        for name, tensor in estimator.encoder_.state_dict().items():
            torch.testing.assert_close(tensor, pulse.encoder_.state_dict()[name])


@pytest.mark.parametrize("freeze_epochs", [0, 1])
def test_what_was_given_is_never_modified(pulse, windows, freeze_epochs):
    frozen = FrozenEstimator(pulse)
    module = pulse.net_.module_
    module.train()
    before = state(module), module.generator_state(), len(pulse.history_), module.epoch, module.seed
    X, _ = make_windows(5, 32, 6)
    embedding = pulse.transform(X)
    module.train()
    classifier = FineTuneClassifier(frozen, **TINY, freeze_epochs=freeze_epochs).fit(*windows)
    classifier.predict(windows[0])
    assert classifier.pretrained is frozen
    assert frozen.estimator is pulse
    assert same(before[0], module.state_dict())
    assert module.training
    assert all(p.requires_grad for p in module.parameters())
    assert torch.equal(before[1], module.generator_state())
    assert (len(pulse.history_), module.epoch, module.seed) == before[2:]
    np.testing.assert_array_equal(pulse.transform(X), embedding)
    assert not same(state(pulse.encoder_), classifier.encoder_.state_dict())


def test_a_saved_folder_is_the_same(pulse, windows, fitted, tmp_path):
    pulse.save_pretrained(tmp_path / "pulse")
    for folder in (tmp_path / "pulse", str(tmp_path / "pulse")):
        classifier = FineTuneClassifier(folder, **TINY).fit(*windows)
        np.testing.assert_array_equal(
            classifier.predict_proba(windows[0]), fitted.predict_proba(windows[0])
        )
    with pytest.raises(FileNotFoundError, match="no folder"):
        FineTuneClassifier(tmp_path / "nothing").fit(*windows)


def test_a_model_is_saved_with_the_encoder_that_it_started_from(pulse, windows, tmp_path):
    """Whatever has become of the folder, or of the transformer, since."""
    source, saved = tmp_path / "source", tmp_path / "saved"
    X, _ = make_windows(24, 32, 6, seed=1)
    first = PulseTransformer(**SMALL_PULSE).fit(X)
    first.save_pretrained(source)
    from_folder = FineTuneClassifier(source, **TINY).fit(*windows)
    from_memory = tuned(first).fit(*windows)
    expected = pulse.transform(X)  # fitted as `first` was
    shutil.rmtree(source)
    for change in ({"random_state": 1}, {"embedding_dim": 5}):
        first.set_params(**change).fit(X)
        for model in (from_folder, from_memory):
            model.save_pretrained(saved)
            loaded = FineTuneClassifier.from_pretrained(saved, device="cpu")
            np.testing.assert_array_equal(loaded.pretrained.estimator.transform(X), expected)
            np.testing.assert_array_equal(
                loaded.predict_proba(windows[0]), model.predict_proba(windows[0])
            )


def test_the_order_of_the_channels_is_that_of_the_encoder(windows):
    X, y = windows
    names = ["ecg", "ppg", "acc"]
    encoder = PulseTransformer(**SMALL_PULSE, channel_names=names, sampling_rate=64).fit(X)
    with pytest.raises(ValueError, match=r"pretrained PulseTransformer.*in the order \[2, 1, 0\]"):
        tuned(encoder, channel_names=names[::-1]).fit(X, y)
    with pytest.raises(ValueError, match="sampled at 32 Hz, but the pretrained PulseTransformer"):
        tuned(encoder, channel_names=names, sampling_rate=32).fit(X, y)
    for known in (names, None, ["ecg", "eda", "acc"]):  # new channels are mapped to the old ones
        tuned(encoder, channel_names=known, **STILL).fit(X, y)


def test_refused_as_pretrained(pulse, windows):
    pipe = make_pipeline(pulse, LogisticRegression())
    untrained = RandomEncoderTransformer(**SMALL_ENCODER).fit(windows[0])
    fixed = PulseTransformer(encoder=FrozenEstimator(untrained), max_epochs=1).fit(windows[0])
    for pretrained, error, match in [
        (pulse, TypeError, "bare PulseTransformer, .*FrozenEstimator"),
        (
            FrozenEstimator(pipe),
            TypeError,
            "freezes a Pipeline.*of sklearn_pulse alone",
        ),
        (FrozenEstimator(LogisticRegression()), TypeError, "freezes a LogisticRegression"),
        (FrozenEstimator(fixed), TypeError, "freezes a PulseTransformer whose encoder has no wei"),
        (
            FrozenEstimator(CrossPredictionTransformer()),
            TypeError,
            "CrossPredictionTransformer that has no weights to fine-tune.* on its output",
        ),
        (FrozenEstimator(PulseTransformer()), NotFittedError, "PulseTransformer that is not fit"),
        (pulse.encoder_, TypeError, "pretrained must be a FrozenEstimator.*folder.*None"),
        (7, TypeError, "pretrained must be"),
    ]:
        with pytest.raises(error, match=match):
            FineTuneClassifier(pretrained).fit(*windows)


def test_encoder_parameters_belong_to_a_new_encoder(pulse, windows):
    with pytest.raises(ValueError, match="encoder_depth=2, but the pretrained encoder has 3"):
        tuned(pulse, encoder_depth=2).fit(*windows)
    tuned(pulse, **STILL, **SMALL_ENCODER).fit(*windows)  # the same values are no contradiction


def test_encoder_parameters_are_those_that_the_encoder_was_built_with(pulse, windows, fitted):
    # The fine-tuned estimator's own parameters stayed at their defaults.
    tuned(tuned(fitted).fit(*windows), **STILL, **SMALL_ENCODER).fit(*windows)
    with pytest.raises(ValueError, match="encoder_depth=2, but the pretrained encoder has 3"):
        tuned(fitted, encoder_depth=2).fit(*windows)
    changed = copy.deepcopy(pulse).set_params(encoder_depth=2)
    with pytest.raises(ValueError, match="encoder_depth=2, but the pretrained encoder has 3"):
        tuned(changed, encoder_depth=2).fit(*windows)
    tuned(changed, **STILL, **SMALL_ENCODER).fit(*windows)


@pytest.mark.parametrize(
    "cls", [PatchTSTTransformer, TimeMAETransformer, RandomEncoderTransformer, SimMTMTransformer]
)
def test_parameters_of_another_name_in_the_net_are_those_of_the_fit(cls, windows):
    sizes = {"embedding_dim": 8, "encoder_hidden_dim": 12, "encoder_depth": 2}
    training = {} if cls is RandomEncoderTransformer else {"max_epochs": 1}
    encoder = cls(**sizes, **training, random_state=0).fit(windows[0])
    others = {"embedding_dim": 16, "encoder_hidden_dim": 20, "encoder_depth": 3}
    encoder.set_params(**others)  # without a fit
    tuned(encoder, **STILL, **sizes).fit(*windows)
    for name, other in others.items():
        with pytest.raises(ValueError, match=f"{name}={other}, .* encoder has {sizes[name]}"):
            tuned(encoder, **{name: other}).fit(*windows)


def test_from_scratch_starts_where_the_untrained_encoder_is(windows):
    control = RandomEncoderTransformer(**SMALL_ENCODER, random_state=0).fit(windows[0])
    classifier = scratch(callbacks=[BatchSpy()]).fit(*windows)
    before = callback_of(classifier, BatchSpy).before_.state_dict()
    for name, tensor in control.encoder_.state_dict().items():
        assert torch.equal(before[f"source.encoder.{name}"], tensor)
    assert not same(control.encoder_.state_dict(), classifier.encoder_.state_dict())


@pytest.mark.filterwarnings("ignore:X has more channels")
@pytest.mark.parametrize(("n_channels", "n_pretrained", "n_timesteps"), [(9, 3, 33), (13, 2, 5)])
def test_a_row_of_other_channels_does_not_depend_on_its_place(
    n_channels, n_pretrained, n_timesteps
):
    rng = np.random.default_rng(0)
    sizes = {"embedding_dim": 16, "encoder_hidden_dim": 16, "encoder_depth": 2}
    encoder = RandomEncoderTransformer(**sizes, random_state=0)
    encoder.fit(rng.normal(size=(4, 32, n_pretrained)))
    X = rng.normal(size=(40, n_timesteps, n_channels)).astype(np.float32)
    model = FineTuneClassifier(FrozenEstimator(encoder), max_epochs=1, random_state=0)
    model.fit(X, np.arange(40) % 2)
    alone = np.concatenate([model.transform(X[[row]]) for row in range(40)])
    np.testing.assert_array_equal(alone, model.transform(X))


def test_same_channels_need_no_map(pulse):
    X, y = make_windows(n_channels=6)
    classifier = tuned(pulse, **STILL).fit(X, y)
    assert isinstance(classifier.net_.module_.in_head, torch.nn.Identity)
    np.testing.assert_allclose(classifier.transform(X), pulse.transform(X), atol=1e-5)


@pytest.mark.parametrize(("source", "target"), [((30, 1), (25, 1)), ((16, 6), (40, 3))])
def test_one_call_transfers(source, target):
    """Stand-ins of EEG to Epilepsy and of HAR to Gesture: other lengths, other channels."""
    encoder = PulseTransformer(**SMALL_PULSE).fit(make_windows(24, *source)[0])
    X, y = make_windows(40, *target)
    classifier = FineTuneClassifier(
        FrozenEstimator(encoder), batch_size=10, lr=1e-2, max_epochs=8, random_state=0
    ).fit(X, y)
    assert classifier.score(X, y) > 0.9
    assert classifier.transform(X).shape == (40, 8)


def test_a_fine_tuned_encoder_can_be_fine_tuned_again(fitted, windows):
    X, y = make_windows(n_channels=2)
    again = tuned(fitted, callbacks=[BatchSpy()]).fit(X, y)
    first = {f"source.{name}": tensor for name, tensor in state(fitted.net_.module_).items()}
    assert same(first, callback_of(again, BatchSpy).before_.state_dict())
    assert again.transform(X).shape == (20, 8)


class Noisy(Objective):
    """An embedding that is noisy in training and passes a fixed map, for any other method."""

    def __init__(self, n_channels, *, width=6, seed=0):
        super().__init__(seed)
        self.encoder = torch.nn.Linear(n_channels, width)
        self.fixed = torch.nn.Linear(width, width).requires_grad_(False)
        self.norm = torch.nn.BatchNorm1d(width)
        self.unused = torch.nn.Linear(3, 3)

    def encode(self, x, observed=None):
        rows = self.norm(self.fixed(self.encoder(x).mean(1)))
        if self.training:
            rows = rows + torch.randn(rows.shape, generator=self.generator(x.device))
        return rows

    def forward(self, x, observed=None):
        return self.encode(x, observed).square().mean() + self.unused.weight.square().sum()


class NoisyTransformer(PulseTransformer):
    """Another method: windows of one length, at least two in a batch."""

    _objective_class = Noisy
    _variable_length = False
    _min_batch_size = 2
    __init__ = PulseTransformer.__init__

    def _objective_params(self):
        return {}

    @property
    def _n_features_out(self):
        return 6


def test_another_method_keeps_its_own_encoding_and_its_limits():
    X, y = make_windows(17)
    encoder = NoisyTransformer(**SMALL_PULSE).fit(X)
    assert issubclass(NoisyTransformer, BaseSSLTransformer)
    first, second = (tuned(encoder, callbacks=[BatchSpy()]).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    other = tuned(encoder, random_state=1).fit(X, y)
    assert first.history_[0]["train_loss"] != other.history_[0]["train_loss"]
    # Seventeen in batches of eight: none of one, which batch normalisation could not take.
    assert [len(batch["x"]) for batch in callback_of(first, BatchSpy).batches_] == [8, 9] * 2
    before, after = (
        callback_of(first, BatchSpy).before_.state_dict(),
        first.net_.module_.state_dict(),
    )
    for name, changes in (("encoder", True), ("fixed", False), ("unused", False)):
        key = f"source.{name}.weight"
        assert torch.equal(before[key], after[key]) != changes
    assert not first.__sklearn_tags__().variable_length
    with pytest.raises(ValueError, match="windows of 9 time steps.*pretrained NoisyTransformer"):
        tuned(encoder).fit(X[:, :9], y)
    with pytest.raises(ValueError, match="takes no other length"):
        first.predict(X[:, :9])
    with pytest.raises(ValueError, match="X_val has windows of 9 time steps, X of 16"):
        tuned(encoder).fit(X, y, X_val=X[:, :9], y_val=y)
    assert tuned(encoder).fit(X, y, X_val=X, y_val=y).history_[0]["valid_batch_count"] == 2
    first.set_params(pretrained=None, **SMALL_ENCODER).fit(X, y)
    assert first.__sklearn_tags__().variable_length
    assert first.predict(X[:, :9]).shape == (17,)


# --- freezing ---


def test_a_frozen_encoder_stays_while_the_rest_trains(pulse, windows):
    classifier = tuned(pulse, freeze_epochs=2, callbacks=[BatchSpy()]).fit(*windows)
    before, after = (
        callback_of(classifier, BatchSpy).before_.state_dict(),
        classifier.net_.module_.state_dict(),
    )
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]) == name.startswith("source"), name
    thawed = tuned(pulse, freeze_epochs=1).fit(*windows)
    assert not same(state(pulse.encoder_), thawed.encoder_.state_dict())
    whole = tuned(pulse).fit(*windows)
    assert whole.history_[1]["train_loss"] != thawed.history_[1]["train_loss"]


def test_an_encoder_that_was_frozen_is_fine_tuned_again(pulse, windows, tmp_path):
    first = tuned(pulse, freeze_epochs=2).fit(*windows)
    again = tuned(first).fit(*windows).encoder_.state_dict()
    assert not same(state(first.encoder_), again)
    first.save_pretrained(tmp_path / "first")
    loaded = FineTuneClassifier(tmp_path / "first", **TINY).fit(*windows)
    assert same(again, loaded.encoder_.state_dict())


def test_what_a_callback_froze_in_pretraining_is_fine_tuned(windows, tmp_path):
    X, y = windows
    frozen = PulseTransformer(**SMALL_PULSE, callbacks=[Freezer("encoder.*")]).fit(X)
    assert all(weight.requires_grad for weight in frozen.encoder_.parameters())
    again = tuned(frozen).fit(X, y).encoder_.state_dict()
    assert not same(state(frozen.encoder_), again)
    frozen.set_params(callbacks=None).save_pretrained(tmp_path / "frozen")
    loaded = FineTuneClassifier(tmp_path / "frozen", **TINY).fit(X, y)
    assert same(again, loaded.encoder_.state_dict())


def test_a_callback_freezes_the_encoder(pulse, windows):
    classifier = tuned(pulse, callbacks=[Freezer("source.*"), BatchSpy()]).fit(*windows)
    before, after = (
        callback_of(classifier, BatchSpy).before_.state_dict(),
        classifier.net_.module_.state_dict(),
    )
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]) == name.startswith("source"), name


def test_frozen_means_no_gradient_and_no_drift_of_statistics():
    source = Source(Noisy(2), n_channels=2, embedding_dim=6, min_batch_size=2)
    objective = Classification(2, n_classes=2, source=source, freeze_epochs=1)
    x, y = torch.randn(8, 5, 2), torch.arange(8) % 2
    for epoch, changes in ((0, False), (1, True)):
        objective.epoch = epoch
        objective.train()
        before = state(objective.source)
        objective(x, y, torch.ones(8)).backward()
        assert (objective.source.encoder.weight.grad is not None) == changes
        assert objective.source.training == changes
        assert same(before, state(objective.source)) != changes
        assert objective.head[0].weight.grad is not None
    assert objective.source.fixed.weight.grad is None
    objective.eval()
    assert not objective.source.training


# --- which epoch, which part ---


class Epochs(Callback):
    def on_train_begin(self, net, **kwargs):
        self.states_ = []

    def on_epoch_end(self, net, **kwargs):
        self.states_.append(state(net.module_))


@pytest.mark.parametrize("select", ["last", "min_val"])
def test_the_selected_epoch_is_that_of_the_rule(pulse, windows, select):
    X, y = windows
    classifier = tuned(
        pulse, lr=0.1, max_epochs=6, select=select, random_state=1, callbacks=[Epochs()]
    )
    classifier.fit(X, y, X_val=X[:6] + 0.5, y_val=y[:6])
    states = callback_of(classifier, Epochs).states_
    losses = [epoch["valid_loss"] for epoch in classifier.history_]
    assert np.argmin(losses) != 5  # otherwise the two rules are one
    kept = states[np.argmin(losses) if select == "min_val" else -1]
    assert same(kept, classifier.net_.module_.state_dict())


def test_early_stopping(pulse, windows):
    classifier = tuned(pulse, lr=1e-12, max_epochs=9, patience=2, validation_fraction=0.3)
    assert classifier.fit(*windows).n_iter_ == 3  # one that improves on nothing, and two more


def test_validation_loss_is_the_cross_entropy_of_the_validation_part(pulse, windows):
    X, y = windows
    classifier = tuned(pulse, max_epochs=3, validation_fraction=0.3, callbacks=[BatchSpy()])
    seen = callback_of(classifier.fit(X, y), BatchSpy).windows
    held_out = np.array([window.tobytes() not in seen for window in X])
    assert held_out.sum() == 6
    assert np.bincount(y[held_out]).tolist() == [3, 3]  # every class alike
    right = classifier.predict_proba(X)[np.arange(20), y]
    loss = -np.log(right[held_out]).mean()
    np.testing.assert_allclose(classifier.history_[-1]["valid_loss"], loss, rtol=1e-5)


def test_groups_are_never_in_both_parts(pulse, windows):
    X, y = windows
    groups = np.arange(20) // 2
    classifier = tuned(pulse, validation_fraction=0.3, callbacks=[BatchSpy()])
    seen = callback_of(classifier.fit(X, y, groups=groups), BatchSpy).windows
    trained = np.array([window.tobytes() in seen for window in X])
    assert trained.sum() == 14
    assert not set(groups[trained]) & set(groups[~trained])


@pytest.mark.parametrize("groups", [None, np.arange(20) // 2])
def test_the_seed_draws_what_is_held_out(pulse, windows, groups):
    trained = []
    for seed in (0, 0, 1):
        params = {"validation_fraction": 0.3, "random_state": seed, "callbacks": [BatchSpy()]}
        classifier = tuned(pulse, **params).fit(*windows, groups=groups)
        trained.append(callback_of(classifier, BatchSpy).windows)
    assert trained[0] == trained[1] != trained[2]


def test_refused_validation(pulse, windows):
    X, y = windows
    for params in ({"select": "min_val"}, {"patience": 3}):
        with pytest.raises(ValueError, match="needs samples to validate on: set validation_frac"):
            tuned(pulse, **params).fit(X, y)
    classifier = tuned(pulse, validation_fraction=0.3)
    with pytest.raises(ValueError, match="X_val and y_val come together"):
        classifier.fit(X, y, X_val=X)
    with pytest.raises(ValueError, match=r"y_val holds classes that y does not: \[2, 5\]"):
        classifier.fit(X[:3], y[:3], X_val=X[:3], y_val=[5, 2, 0])
    with pytest.raises(ValueError, match=r"samples: X_val has 3, y_val has 2\."):
        classifier.fit(X, y, X_val=X[:3], y_val=y[:2])
    for value, message in ((np.inf, "contains infinity"), (np.nan, "no finite time step in sam")):
        bad = X[:3].copy()
        bad[1] = value
        with pytest.raises(ValueError, match=f"^X_val: .*{message}"):
            classifier.fit(X, y, X_val=bad, y_val=y[:3])
    numbers = np.arange(len(X))
    for labels in (numbers, numbers.astype(str)):
        with pytest.raises(TypeError, match="only one of y and y_val is text: make both"):
            other = numbers.astype(str) if labels is numbers else numbers
            classifier.fit(X, labels, X_val=X, y_val=other)
    with pytest.raises(ValueError, match="cannot be held out.*set it to 0, or pass X_val"):
        classifier.fit(X[:3], y[:3])
    with pytest.raises(ValueError, match=r"groups has shape \(3,\)"):
        classifier.fit(X, y, groups=[0, 1, 2])
    with pytest.raises(
        ValueError, match=r"the groups held out .* every sample of \[.\]: pass X_val"
    ):
        classifier.fit(X, y, groups=y)
    classifier.set_params(validation_fraction=0.9)
    rare = np.arange(20) < 2
    with pytest.raises(
        ValueError, match=r"the samples .* \[ True\]: .* a lower validation_fraction"
    ):
        classifier.fit(X, rare)


@pytest.mark.parametrize("n_timesteps", [9, 24])
def test_windows_to_validate_on_are_read_whole(n_timesteps):
    X, y = make_windows(12, 24, 2)
    losses = [
        scratch(max_epochs=1).fit(X[:, :16], y, X_val=part, y_val=y).history_[-1]["valid_loss"]
        for part in (X[:, :n_timesteps], X[:, : min(n_timesteps, 16)])
    ]
    assert (losses[0] == losses[1]) == (n_timesteps <= 16)


# --- labels and weights ---


@pytest.mark.parametrize("labels", [["left", "right"], [-1, 1], [True, False], [7, 3]])
def test_any_labels(pulse, windows, labels):
    X, y = windows
    X = X * (1 + 3 * y)[:, None, None]  # the classes are easily told apart
    names = np.asarray(labels)[y]
    classifier = tuned(pulse, max_epochs=8).fit(X, names)
    classes, numbers = np.unique(names, return_inverse=True)
    np.testing.assert_array_equal(classifier.classes_, classes)
    assert classifier.predict(X).dtype == classes.dtype
    assert np.mean(classifier.predict(X) == names) > 0.9
    column = pd.Series(names, dtype=object if labels[0] == "left" else None)
    for same in (numbers, column):
        again = tuned(pulse, max_epochs=8).fit(X, same)
        np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))


def test_the_probe_learns_any_labels(pulse, windows):
    X, y = windows
    names = np.array(["left", "right"])
    classifier = tuned(pulse, score_with="probe").fit(X, names[y])
    np.testing.assert_array_equal(classifier.probe_.classes_, names)
    numbered = tuned(pulse, score_with="probe").fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(X), numbered.predict_proba(X))
    np.testing.assert_array_equal(classifier.predict(X), names[numbered.predict(X)])


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_the_probe_learns_dates(pulse, windows, unit):
    X, y = windows
    dates = np.array(["2020-01-01", "2021-02-03"], dtype=f"M8[{unit}]")
    classifier = tuned(pulse, score_with="probe").fit(X, dates[y])
    numbered = tuned(pulse, score_with="probe").fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(X), numbered.predict_proba(X))
    np.testing.assert_array_equal(classifier.predict(X), dates[numbered.predict(X)])
    np.testing.assert_array_equal(classifier.probe_.classes_, dates)


def test_probabilities_are_the_softmax_of_the_head(fitted, windows):
    X, y = windows
    embedding = torch.from_numpy(fitted.transform(X))
    logits = fitted.head_(embedding).detach().numpy().astype(np.float64)
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(X), expected, rtol=1e-5)
    np.testing.assert_array_equal(fitted.predict(X), expected.argmax(1))
    assert fitted.score(X, y) == np.mean(expected.argmax(1) == y)


def test_three_classes_and_scorers(pulse):
    X, _ = make_windows(30, n_channels=3)
    y = np.arange(30) % 3
    X *= (1 + 3 * y)[:, None, None]
    auroc = make_scorer(roc_auc_score, response_method="predict_proba", multi_class="ovr")
    results = cross_validate(tuned(pulse, max_epochs=8), X, y, cv=3, scoring=auroc)
    assert results["test_score"].mean() > 0.8


def test_refused_labels(pulse, windows):
    X, y = windows
    for labels, match in [
        (None, "requires y to be passed, but the target y is None"),
        (np.zeros(20), "at least 2 classes in the data, but the data contains only one class"),
        (y[:-1], "X has 20, y has 19"),
        (np.linspace(0, 1, 20), "Unknown label type"),
    ]:
        with pytest.raises(ValueError, match=match):
            tuned(pulse).fit(X, labels)
    with pytest.raises(TypeError, match="y mixes text with other labels"):
        tuned(pulse).fit(X, np.where(y, "a", y.astype(object)))
    with pytest.raises(ValueError, match=r"only one class: 1\. Add .* to X and y \(.* weight 0"):
        tuned(pulse).fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match="no sample to train on a weight above zero"):
        tuned(pulse, class_weight={0: 0, 1: 0}).fit(X, y)
    with pytest.raises(ValueError, match="no sample to validate on a weight above zero"):
        tuned(pulse, class_weight={0: 0, 1: 1}).fit(X, y, X_val=X[y == 0], y_val=y[y == 0])
    for value in (-1, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"class_weight\[0\] must be a number in \[0, inf\)"):
            tuned(pulse, class_weight={0: value, 1: 2}).fit(X, y)
    for value, kind in (("even", ValueError), (2, TypeError), ([1, 2], TypeError)):
        with pytest.raises(kind, match="class_weight must be None, 'balanced' or a dict"):
            tuned(pulse, class_weight=value).fit(X, y)
    for weight in (["a"] * 20, [1j] * 20, [None] * 20, np.ones(3), -np.ones(20)):
        with pytest.raises(ValueError, match="^sample_weight must hold one number of at least 0"):
            tuned(pulse).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="^pretrained must be a path"):
        FineTuneClassifier("").fit(X, y)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.5}])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_weighted(pulse, windows, class_weight, weighted):
    """The weighted mean of the cross-entropy: sum_i w_i l_i / sum_i w_i."""
    X, y = windows[0][:14], windows[1][:14] & (np.arange(14) > 4)
    sample_weight = np.linspace(0.1, 2, 14) if weighted else None
    classifier = tuned(pulse, **STILL, class_weight=class_weight)
    classifier.set_params(batch_size=14).fit(X, y, sample_weight=sample_weight)
    own = np.ones(14) if sample_weight is None else sample_weight
    by_class = {0: 1.0, 1: 1.0} if class_weight is None else class_weight
    if class_weight == "balanced":
        by_class = {k: own.sum() / (2 * own[y == k].sum()) for k in (0, 1)}
    weight = own * [by_class[label] for label in y]
    losses = -np.log(classifier.predict_proba(X)[np.arange(14), y])
    expected = (weight * losses).sum() / weight.sum()
    np.testing.assert_allclose(classifier.history_[0]["train_loss"], expected, rtol=1e-5)


@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 1: 0.5}])
def test_the_validation_loss_is_weighted_whatever_the_unit_of_the_weights(windows, class_weight):
    """The weighted mean of the cross-entropy of the validation part."""
    X, y = windows
    classifier = scratch(class_weight=class_weight)
    by_class = {0: 1.0, 1: 1.0} if class_weight is None else class_weight
    weight = np.array([by_class[label] for label in y[:7]])
    for own in (None, np.full(20, 4.0), 1.0 + y):
        classifier.fit(X, y, X_val=X[:7] + 0.5, y_val=y[:7], sample_weight=own)
        losses = -np.log(classifier.predict_proba(X[:7] + 0.5)[np.arange(7), y[:7]])
        expected = (weight * losses).sum() / weight.sum()
        np.testing.assert_allclose(classifier.history_[-1]["valid_loss"], expected, rtol=1e-5)


@pytest.mark.parametrize("params", [{}, {"score_with": "probe"}, {"validation_fraction": 0.3}])
def test_a_weight_is_a_number_of_repeats_and_order_is_nothing(pulse, windows, params):
    X, y = windows
    weight = np.random.default_rng(0).integers(0, 4, 20)
    repeats = np.random.default_rng(1).permutation(np.repeat(np.arange(20), weight))
    weighted = tuned(pulse, **params).fit(X, y, sample_weight=weight)
    repeated = tuned(pulse, **params).fit(X[repeats], y[repeats])
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    assert not np.array_equal(
        weighted.predict_proba(X), tuned(pulse, **params).fit(X, y).predict_proba(X)
    )
    if "score_with" in params:
        embedding = weighted.transform(X).astype(float)
        probe = make_linear_probe().fit(embedding[repeats], y[repeats])
        np.testing.assert_allclose(
            weighted.predict_proba(X), probe.predict_proba(embedding), atol=1e-3
        )


def test_equal_windows_with_other_labels_or_masks_stay_apart(windows):
    X, y = np.repeat(windows[0][:1], 6, axis=0), np.array([0, 1, 0, 1, 0, 0])
    X[4, 3] = 0
    X[5, 3] = np.nan
    classifier = scratch(callbacks=[BatchSpy()]).fit(X, y)
    batch = callback_of(classifier, BatchSpy).batches_[0]
    assert sorted(batch["weight"].tolist()) == pytest.approx([2 / 3, 2 / 3, 4 / 3, 4 / 3])
    assert batch["observed"].sum() == 4 * 16 - 1


def test_the_order_of_equal_windows_in_several_groups_is_nothing(windows):
    X, y = np.repeat(windows[0][:4], 5, axis=0), np.repeat([0, 1, 0, 1], 5)
    groups = np.tile(["a", "b", "c", "d", "e"], 4)
    order = np.random.default_rng(1).permutation(20)
    found = []
    for rows in (np.arange(20), order, order[::-1]):
        classifier = scratch(validation_fraction=0.4)
        classifier.fit(X[rows], y[rows], groups=groups[rows])
        found.append(classifier.predict_proba(windows[0]))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


MARKED = [0, 1, 0, 1, 0, 1, 0, 1, -1, -1] * 2
DOOR = "LabeledSubsetClassifier({0}(...){1}); or set unlabeled_label=None"


@pytest.mark.parametrize("cls", [FineTuneClassifier, SupervisedClassifier])
@pytest.mark.parametrize(
    ("labels", "marker"),
    [
        (MARKED, -1),
        (np.array(MARKED, dtype=float), -1),
        (np.array(MARKED, dtype=object), -1),
        ([0, -1] * 10, -1),
        ([-1] * 20, -1),
        (["walk", "run", "walk", -1] * 5, -1),  # NumPy makes "-1" of it
        (["walk", "run", "?", "run"] * 5, "?"),
        ([0, 1, 9, 1] * 5, 9),
    ],
)
def test_a_sample_without_a_label_is_no_class(windows, cls, labels, marker):
    classifier = cls(unlabeled_label=marker)
    mark = "" if marker == -1 else f", unlabeled_label={marker!r}"  # -1 is the wrapper's own mark
    with pytest.raises(ValueError, match=re.escape(DOOR.format(cls.__name__, mark))):
        classifier.fit(windows[0], labels)
    assert not hasattr(classifier, "classes_")


@pytest.mark.parametrize(
    ("labels", "marker"),
    [
        (MARKED, None),
        ([-1, 1] * 10, -1),  # the usual names of two classes
        (np.array([-1.0, 1.0] * 10), -1),
        (["-1", "1"] * 10, -1),
        ([-2, -1, 0, 1, 2] * 4, -1),  # an ordered scale
        ([0, 1] * 10, -1),
        ([0, 1] * 10, "?"),
    ],
)
def test_a_class_may_be_called_minus_one(windows, labels, marker):
    fitted = scratch(unlabeled_label=marker, max_epochs=1).fit(windows[0], labels)
    np.testing.assert_array_equal(fitted.classes_, np.unique(labels))


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="needs NumPy 2")
@pytest.mark.parametrize("options", [{}, {"na_object": np.nan}])
def test_labels_of_numpys_string_type_name_the_remedy(windows, options):
    """scikit-learn learns and scores none."""
    X, y = windows[0][:8], np.array(["rest", "walking"] * 4)
    modern = y.astype(np.dtypes.StringDType(**options))
    remedy = r"y has dtype StringDType\(.*pass y.astype\(object\)"
    probe = LabeledSubsetClassifier(LogisticRegression())
    for fit in (
        scratch(max_epochs=1).fit,
        SupervisedClassifier().fit,
        lambda X, y: probe.fit(X[:, :, 0], y),
    ):
        with pytest.raises(TypeError, match=remedy):
            fit(X, modern)
    with pytest.raises(TypeError, match="y_val has dtype StringDType"):
        scratch(max_epochs=1).fit(X, y, X_val=X, y_val=modern)
    fitted = scratch(max_epochs=1).fit(X, modern.astype(object))
    assert fitted.classes_.tolist() == ["rest", "walking"]


@pytest.mark.parametrize("dispatch", [False, pytest.param(True, marks=array_api)])
def test_labels_may_be_a_tensor(windows, monkeypatch, dispatch):
    """scikit-learn keeps tensors if it dispatches on arrays."""
    X, y = windows
    expected = scratch(max_epochs=1).fit(X, y, sample_weight=np.arange(20.0), X_val=X, y_val=y)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    labels = torch.from_numpy(y)
    weight = torch.arange(20.0, requires_grad=True)
    with sklearn.config_context(array_api_dispatch=dispatch):
        fitted = scratch(max_epochs=1)
        fitted.fit(X, labels, sample_weight=weight, X_val=X, y_val=labels)
        partly = torch.where(torch.arange(20) < 12, labels, -1)
        wrapped = LabeledSubsetClassifier(scratch(max_epochs=1)).fit(X, partly)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.predict_proba(X))
    assert fitted.classes_.tolist() == wrapped.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("exponent", [1023, -1074])
def test_weights_at_the_ends_of_float64(windows, exponent):
    X, y = windows
    expected = scratch().fit(X, y, X_val=X[:6], y_val=y[:6])
    weight = np.full(20, np.ldexp(1.0, exponent))
    fitted = scratch().fit(X, y, X_val=X[:6], y_val=y[:6], sample_weight=weight)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.predict_proba(X))
    assert fitted.history_[-1]["train_loss"] == expected.history_[-1]["train_loss"]
    assert 0 < fitted.history_[-1]["valid_loss"] < np.inf


@pytest.mark.parametrize("exponent", [1023, -1074])
@pytest.mark.parametrize("score_with", ["head", "probe"])
def test_class_weights_at_the_ends_of_float64(windows, score_with, exponent):
    X, y = windows
    expected = scratch(score_with=score_with, class_weight={0: 0.5, 1: 0.5}).fit(X, y)
    class_weight = dict.fromkeys((0, 1), np.ldexp(1.0, exponent))
    fitted = scratch(score_with=score_with, class_weight=class_weight).fit(X, y)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.predict_proba(X))
    assert fitted.history_[-1]["train_loss"] == expected.history_[-1]["train_loss"] > 0


def test_missing_labels_name_the_remedy(windows):
    X, y = windows
    for labels in (
        [None, *y[1:]],
        np.where(y, np.nan, 0.0),
        ["a", None, "b", "b"] * 5,
        ["a", np.nan, "b", "b"] * 5,
        pd.Series(pd.array([None, *y[1:]], dtype="Int64")),
    ):
        with pytest.raises(ValueError, match="y contains NaN or None.*by -1.*LabeledSubsetClassif"):
            scratch().fit(X, labels)
    with pytest.raises(ValueError, match="y_val contains NaN or None in 1 of 2"):
        scratch().fit(X, y, X_val=X[:2], y_val=[0.0, np.nan])
    with pytest.raises(TypeError, match="unlabeled_label must be an integer, text or None"):
        scratch(unlabeled_label=0.5).fit(X, y)


def test_few_labels(windows):
    X, y = windows
    partly = np.where(np.arange(20) < 8, y, -1)
    wrapped = LabeledSubsetClassifier(scratch()).fit(X, partly)
    assert wrapped.classes_.tolist() == [0, 1]
    alone = scratch().fit(X[:8], y[:8])
    np.testing.assert_array_equal(wrapped.predict_proba(X), alone.predict_proba(X))
    assert wrapped.score(X, partly) == alone.score(X[:8], y[:8])
    pipe = make_pipeline(FunctionTransformer(), LabeledSubsetClassifier(scratch()))
    grid = {"labeledsubsetclassifier__estimator__lr": [1e-3, 1e-2]}
    search = GridSearchCV(pipe, grid, cv=StratifiedKFold(2), error_score="raise").fit(X, partly)
    assert search.predict(X).shape == (20,)


# --- the probe ---


def test_the_probe_repeats_to_the_bit_for_a_number_of_threads():
    X, y = make_windows(1500, 8, 1)[0], np.arange(1500) % 3
    wide = {"embedding_dim": 320, "encoder_hidden_dim": 4, "encoder_depth": 1, "max_epochs": 1}
    classifier = FineTuneClassifier(**(TINY | wide | {"batch_size": 500}), score_with="probe")
    coefs = []
    for number in (1, 2):
        with threadpool_limits(number, "blas"):
            coefs.append(clone(classifier).fit(X, y).probe_[-1].coef_)
    np.testing.assert_array_equal(*coefs)


@pytest.mark.parametrize("configured", ["fit", "predict"])
def test_the_probe_predicts_without_a_warning_under_any_output(windows, configured, tmp_path):
    X, y = windows
    contexts = {"fit": sklearn.config_context(), "predict": sklearn.config_context()}
    contexts[configured] = sklearn.config_context(transform_output="pandas")
    with contexts["fit"]:
        classifier = scratch(score_with="probe").fit(X, y)
        classifier.save_pretrained(tmp_path / "saved")
    with contexts["predict"], warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = classifier.predict_proba(X)
        loaded = FineTuneClassifier.from_pretrained(tmp_path / "saved").predict_proba(X)
    np.testing.assert_array_equal(loaded, expected)


@pytest.mark.parametrize("class_weight", [None, {0: 5.0, 1: 1.0}])
def test_the_probe_reads_the_fine_tuned_embedding(pulse, windows, class_weight, tmp_path):
    X, y = windows
    y = np.array(["a", "b"])[y]
    X, y = X[:15], y[:15]
    if class_weight is not None:
        class_weight = {"a": 5.0, "b": 1.0}
    classifier = tuned(pulse, score_with="probe", class_weight=class_weight).fit(X, y)
    probe = make_linear_probe()
    if class_weight is not None:
        probe.set_params(probe__class_weight=class_weight)
    probe.fit(classifier.transform(X).astype(float), y)
    np.testing.assert_allclose(
        classifier.predict_proba(X), probe.predict_proba(classifier.transform(X)), atol=1e-3
    )
    np.testing.assert_array_equal(classifier.predict(X), probe.predict(classifier.transform(X)))
    np.testing.assert_array_equal(classifier.probe_.classes_, classifier.classes_)
    again = clone(classifier.probe_).fit(classifier.transform(X).astype(float), y)
    np.testing.assert_allclose(
        again.predict_proba(classifier.transform(X)), classifier.predict_proba(X), atol=1e-3
    )
    head = tuned(pulse, class_weight=class_weight).fit(X, y)
    np.testing.assert_array_equal(head.transform(X), classifier.transform(X))
    assert not np.allclose(head.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(
        classifier.set_params(score_with="head").predict_proba(X), head.predict_proba(X)
    )
    assert not hasattr(classifier.fit(X, y), "probe_")
    with pytest.raises(ValueError, match="set after a fit with 'head'"):
        head.set_params(score_with="probe").predict(X)
    with pytest.raises(ValueError, match="score_with must be"):
        head.set_params(score_with="tail").predict(X)
    head.set_params(score_with="probe")
    with pytest.raises(ValueError, match="cannot be saved: .*set after a fit with 'head'"):
        head.save_pretrained(tmp_path / "model")


# --- parameters ---


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("head_hidden_dim", 0),
        ("freeze_epochs", -1),
        ("select", "first"),
        ("score_with", "tail"),
        ("embedding_dim", 0),
        ("pooling", "min"),
        ("max_epochs", 0),
        ("lr", 0.0),
        ("weight_decay", -1.0),
        ("lr_decay", 1.1),
        ("batch_size", 0),
        ("class_weight", "unbalanced"),
        ("validation_fraction", 1.0),
        ("patience", 0),
        ("bag_pooling", "sum"),
        ("precision", "float16"),
        ("compile", "yes"),
        ("device", "abacus"),
        ("num_threads", 0),
        ("input_layout", "tnc"),
        ("callbacks", 3),
        ("verbose", -1),
    ],
)
def test_refused_parameters(windows, name, value):
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        FineTuneClassifier(**{name: value}).fit(*windows)


def test_a_decay_of_one_keeps_the_learning_rate(windows):
    fitted = scratch(lr_decay=1.0, callbacks=[BatchSpy()]).fit(*windows)
    assert callback_of(fitted, BatchSpy).setting("lr") == [1e-2] * 6


def test_shared_parameters_have_one_default():
    ours, theirs = (
        inspect.signature(cls).parameters for cls in (FineTuneClassifier, RandomEncoderTransformer)
    )
    assert set(theirs) <= set(ours)
    own = {"input_layout"}  # that of the encoder, which may be pretrained
    assert all(ours[name].default == theirs[name].default for name in theirs.keys() - own)


def test_bfloat16_and_verbose(windows, capsys):
    classifier = scratch(precision="bfloat16", verbose=1, patience=1, validation_fraction=0.3)
    classifier.set_params(lr=1e-12, max_epochs=4).fit(*windows)
    assert np.isfinite(classifier.predict_proba(windows[0])).all()
    assert "Stopping since valid_loss" in capsys.readouterr().out


# --- the promises that scikit-learn's suite does not make for 3-D data ---


def test_same_seed_same_bits_and_another_seed_others(pulse, windows, fitted):
    X, y = windows
    expected = fitted.predict_proba(X)
    torch.manual_seed(5)
    np.random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    np.testing.assert_array_equal(tuned(pulse).fit(X, y).predict_proba(X), expected)
    assert torch.equal(before[0], torch.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])
    np.testing.assert_array_equal(clone(fitted).fit(X, y).predict_proba(X), expected)
    assert not np.array_equal(tuned(pulse, random_state=1).fit(X, y).predict_proba(X), expected)


def test_threads_give_the_bits_of_one(pulse, windows):
    jobs = [joblib.delayed(tuned(pulse, random_state=i).fit)(*windows) for i in range(2)]
    first, second = (
        [c.predict_proba(windows[0]) for c in joblib.Parallel(n, backend="threading")(jobs)]
        for n in (1, 2)
    )
    np.testing.assert_array_equal(first, second)


def test_the_head_computes_with_as_many_threads_as_were_asked_for(windows):
    seen = []
    for num_threads in (1, 3):
        fitted = scratch(num_threads=num_threads).fit(*windows)
        fitted.head_.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
        fitted.predict_proba(windows[0])
    assert seen == [1, 3]


@pytest.mark.parametrize("score_with", ["head", "probe"])
def test_a_row_does_not_depend_on_the_others(pulse, score_with):
    X, y = make_windows(300, 16, 3)
    classifier = tuned(pulse, max_epochs=1, score_with=score_with).fit(X[:20], y[:20])
    tolerance = {"rtol": 0, "atol": 0 if score_with == "head" else 1e-12}
    expected = classifier.predict_proba(X)
    order = np.random.default_rng(0).permutation(300)
    np.testing.assert_allclose(classifier.predict_proba(X[order]), expected[order], **tolerance)
    np.testing.assert_allclose(classifier.predict_proba(X[[7]])[0], expected[7], **tolerance)
    X[8, 3:] = np.nan
    rest = np.delete(np.arange(300), 8)
    np.testing.assert_allclose(classifier.predict_proba(X)[rest], expected[rest], **tolerance)


@pytest.mark.parametrize("score_with", ["head", "probe"])
def test_pickle(pulse, windows, score_with):
    X, y = windows
    classifier = tuned(pulse, score_with=score_with).fit(X, y)
    restored = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(restored.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(restored.fit(X, y).predict_proba(X), classifier.predict_proba(X))


@pytest.mark.parametrize(
    "form",
    ["float64", "Fortran order", "read-only memory map", "torch", "nested list", "strided"],
)
def test_every_form_of_the_input_gives_the_same_bits(pulse, windows, fitted, form, tmp_path):
    X, y = windows
    before = X.copy()
    other = INPUT_FORMS[form](X, tmp_path)
    classifier = tuned(pulse).fit(other, list(y))
    np.testing.assert_array_equal(classifier.predict_proba(other), fitted.predict_proba(X))
    np.testing.assert_array_equal(X, before)


def test_channels_first_give_the_bits_of_channels_last(pulse, windows, fitted):
    X, y = windows
    swapped = X.swapaxes(1, 2)
    channels_first = copy.deepcopy(pulse).set_params(input_layout="nct")
    classifier = tuned(channels_first).fit(swapped, y)
    np.testing.assert_array_equal(classifier.predict_proba(swapped), fitted.predict_proba(X))
    assert classifier.input_layout_ == "nct"
    with pytest.raises(ValueError, match="looks transposed"):
        classifier.predict(X)
    with pytest.raises(ValueError, match="expecting 3 channels"):
        classifier.predict(swapped[:, :2])


@pytest.mark.parametrize("layout", ["ntc", "nct"])
def test_the_layout_is_that_of_the_encoder(layout, tmp_path):
    """As many channels as steps: neither a shape nor a warning tells the layouts apart."""
    X, y = make_windows(20, 12, 12)
    X = X if layout == "ntc" else np.ascontiguousarray(X.swapaxes(1, 2))
    encoder = RandomEncoderTransformer(**SMALL_ENCODER, random_state=0, input_layout=layout).fit(X)
    own = tuned(encoder, **STILL).fit(X, y)
    np.testing.assert_allclose(own.transform(X), encoder.transform(X), rtol=1e-5, atol=1e-6)
    validated = tuned(encoder, **STILL).fit(X, y, X_val=X[:8], y_val=y[:8])
    np.testing.assert_array_equal(validated.transform(X), own.transform(X))
    loss = -np.log(own.predict_proba(X)[np.arange(8), y[:8]]).mean()
    np.testing.assert_allclose(validated.history_[-1]["valid_loss"], loss, rtol=1e-5)
    same = tuned(encoder, **STILL, input_layout=layout).fit(X, y)
    np.testing.assert_array_equal(same.predict_proba(X), own.predict_proba(X))
    encoder.save_pretrained(tmp_path / "encoder")
    stored = FineTuneClassifier(tmp_path / "encoder", **TINY | STILL).fit(X, y)
    np.testing.assert_array_equal(stored.predict_proba(X), own.predict_proba(X))
    twice = tuned(own, **STILL).fit(X, y)
    assert twice.input_layout_ == layout
    other = {"ntc": "nct", "nct": "ntc"}[layout]
    message = f"input_layout='{other}', but the pretrained RandomEncoderTransformer.*'{layout}'"
    with pytest.raises(ValueError, match=message):
        tuned(encoder, input_layout=other).fit(X, y)


def test_an_encoder_of_tables_agrees_with_either_layout():
    X, y = make_windows(20, 12, 1)
    encoder = RandomEncoderTransformer(**SMALL_ENCODER, random_state=0).fit(X[:, :, 0])
    swapped = tuned(encoder, input_layout="nct").fit(X.swapaxes(1, 2), y)
    np.testing.assert_array_equal(
        swapped.predict_proba(X.swapaxes(1, 2)), tuned(encoder).fit(X, y).predict_proba(X)
    )


def test_pulse_reads_a_fine_tuned_encoder_in_its_layout():
    X, y = make_windows(12, 12, 12)
    swapped = X.swapaxes(1, 2)
    encoders = [
        scratch(input_layout=layout, max_epochs=1).fit(windows, y)
        for layout, windows in (("ntc", X), ("nct", swapped))
    ]
    encoders.append(tuned(encoders[1], **STILL).fit(swapped, y))  # knows it from its encoder
    settings = {name: SMALL_PULSE[name] for name in SMALL_PULSE if name not in SMALL_ENCODER}
    frozen = [PulseTransformer(encoder=FrozenEstimator(e), **settings) for e in encoders]
    rows = [pulse.fit(X).transform(X) for pulse in frozen]
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_allclose(rows[2], rows[0], rtol=1e-5, atol=1e-6)


def test_fitted_attributes_and_names(pulse, windows, fitted):
    X, y = windows
    assert (fitted.n_timesteps_in_, fitted.n_channels_in_, fitted.n_features_in_) == (16, 3, 3)
    assert fitted.n_iter_ == len(fitted.history_) == 2
    assert fitted.history_[0].keys() >= {"train_loss", "dur"}
    frame = pd.DataFrame(X[:, :, 0]).rename(columns=str)
    table = tuned(pulse).fit(frame, y)
    assert (table.n_features_in_, table.n_timesteps_in_, table.n_channels_in_) == (16, 16, 1)
    assert table.feature_names_in_.tolist() == list(map(str, range(16)))
    names = [f"finetuneclassifier{i}" for i in range(8)]
    assert table.set_output(transform="pandas").transform(frame).columns.tolist() == names
    assert table.predict(frame).shape == (20,)
    with pytest.raises(NotFittedError):
        tuned(pulse).predict(X)


def test_missing_steps(pulse, windows):
    X, y = windows
    X = X.copy()
    X[::2, 10:] = np.nan
    X[1::3, 4, 1] = np.nan
    before = X.copy()
    classifier = tuned(pulse).fit(X, y)
    np.testing.assert_array_equal(X, before)
    assert np.isfinite([epoch["train_loss"] for epoch in classifier.history_]).all()
    # A step that is missing in one channel is missing in all, the map of the channels included.
    wholly = X.copy()
    wholly[1::3, 4] = np.nan
    np.testing.assert_array_equal(classifier.predict_proba(wholly), classifier.predict_proba(X))
    np.testing.assert_allclose(
        classifier.predict_proba(X[::2]), classifier.predict_proba(X[::2, :10]), atol=1e-6
    )
    X[3] = np.nan
    with pytest.raises(ValueError, match="no finite time step in sample 3"):
        tuned(pulse).fit(X, y)
    X[3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        tuned(pulse).fit(X, y)


def test_a_pretrained_encoder_warns_only_beyond_what_it_has_seen(pulse, windows, recwarn, tmp_path):
    longer = tuned(pulse).fit(*make_windows(10, 40, 3))
    longer.save_pretrained(tmp_path / "longer")
    for model in (longer, FineTuneClassifier.from_pretrained(tmp_path / "longer")):
        assert model.n_timesteps_trained_ == 40  # pretraining has seen fewer
    X, y = make_windows(10, 6, 3)
    classifier = tuned(pulse).fit(X, y)
    classifier.predict(make_windows(4, 30, 3)[0])  # pretraining has seen as long ones
    new = scratch().fit(X, y)
    assert not [warning for warning in recwarn if "never trained" in str(warning.message)]
    with pytest.warns(UserWarning, match="never trained"):
        new.predict(make_windows(4, 30, 3)[0])


def test_bags_are_pooled_before_the_head(pulse):
    X, _ = make_windows(24, 16, 3)
    bags, y = X.reshape(6, 4, 16, 3).copy(), np.arange(6) % 2
    bags[2, 1:] = np.nan  # windows that only pad a bag
    bags[3, 0, 5:] = np.nan
    for bag_pooling in ("mean", "max"):
        classifier = tuned(pulse, **STILL, bag_pooling=bag_pooling)
        classifier.set_params(batch_size=6).fit(bags, y)
        usable = np.isfinite(bags).all(-1).any(-1)
        pooled = [
            getattr(np, bag_pooling)(classifier.transform(bag[keep]), axis=0)
            for bag, keep in zip(bags, usable, strict=True)
        ]
        np.testing.assert_allclose(classifier.transform(bags), pooled, rtol=1e-5)
        losses = -np.log(classifier.predict_proba(bags)[np.arange(6), y])
        np.testing.assert_allclose(classifier.history_[0]["train_loss"], losses.mean(), rtol=1e-5)


@settings(max_examples=15, deadline=None)
@given(
    X=st.tuples(st.integers(2, 5), st.integers(1, 6), st.integers(1, 3)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.floats(-1e3, 1e3) | st.just(np.nan))
    )
)
@pytest.mark.filterwarnings("ignore:X has more channels", "ignore:The scale of X is extreme")
@pytest.mark.filterwarnings("ignore:float32 does not hold the variation")  # of tiny values
def test_any_finite_values_and_any_missing_steps(X):
    X[:, 0] = np.nan_to_num(X[:, 0])  # one observed step at least
    classifier = scratch(max_epochs=1).fit(X, np.arange(len(X)) % 2)
    proba = classifier.predict_proba(X)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(1), 1)


# --- inside scikit-learn ---


def test_in_a_pipeline_and_a_search(pulse, windows):
    pipe = make_pipeline(FunctionTransformer(np.negative), tuned(pulse))
    grid = {"finetuneclassifier__pretrained": [None, FrozenEstimator(pulse)]}
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(*windows)
    best = clone(pipe).set_params(**search.best_params_).fit(*windows)
    np.testing.assert_array_equal(search.predict_proba(windows[0]), best.predict_proba(windows[0]))


def test_what_the_encoder_draws_depends_on_the_seed_of_the_fine_tuning():
    """Whatever the seed of the pretraining, what it drew, and how often it was fine-tuned."""
    batch = torch.randn(8, 5, 2), torch.arange(8) % 2, torch.ones(8)
    for n_before in (0, 1, 2):
        losses = []
        for source_seed, seed in ((0, 3), (1, 3), (0, 4)):
            torch.manual_seed(0)
            source = Noisy(2, seed=source_seed)
            for _ in range(n_before):
                once = Source(source, 2, embedding_dim=6, min_batch_size=2)
                source = Classification(2, n_classes=2, source=once, seed=source_seed).train()
                source(*batch)
            again = Source(source, 2, embedding_dim=6, min_batch_size=2)
            objective = Classification(2, n_classes=2, source=again, seed=seed).train()
            losses.append(objective(*batch).item())
        assert losses[0] == losses[1] != losses[2]


def test_what_the_encoder_draws_is_seeded_through_the_head():
    source = Source(Noisy(2), n_channels=2, embedding_dim=6, min_batch_size=2)
    objective = Classification(2, n_classes=2, source=source).train()
    x = torch.from_numpy(make_windows(4)[0])

    def drawn(seed):
        with objective.seeded(seed):
            return objective.encode(x)

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))


def test_the_objective_without_a_source_is_the_encoder_and_a_head():
    objective = Classification(3, n_classes=4, **SMALL_ENCODER)
    assert isinstance(objective.encoder, SystemEncoder)
    x, y = torch.randn(5, 7, 3), torch.tensor([0, 1, 2, 3, 0])
    before = x.clone()
    loss = objective(x, y, torch.ones(5))
    loss.backward()
    torch.testing.assert_close(
        loss, torch.nn.functional.cross_entropy(objective.head(objective.encoder(x)), y)
    )
    assert torch.equal(x, before)
    assert all(p.grad is not None for p in objective.parameters())


@pytest.mark.parametrize("score_with", ["head", "probe"])
def test_progress_of_sklearn(windows, score_with):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")

    seen, (X, y) = [], windows
    log = FitLog(look=lambda fitted, X, y: seen.append(fitted.predict_proba(X)))
    classifier = scratch(max_epochs=3, score_with=score_with).set_callbacks(log)
    for data in (X, 3 * X):  # nothing that the first fit has learnt may serve the second
        classifier.fit(data, y)
        np.testing.assert_array_equal(seen[-1], classifier.predict_proba(data))
    assert log.epochs("FineTuneClassifier") == [0, 1, 2] * 2


@pytest.mark.slow
def test_activities_to_gestures(data_home):
    har = fetch_har(data_home, download_if_missing=False)
    gesture = fetch_gesture(data_home, download_if_missing=False, n_timesteps=206)
    small = SMALL_PULSE | {"embedding_dim": 32, "encoder_hidden_dim": 32, "encoder_depth": 6}
    encoder = PulseTransformer(**small | {"batch_size": 32}).fit(har.X[::20])
    train, held_out = train_test_split(
        np.flatnonzero(gesture.split == "train"), train_size=240, random_state=0
    )
    classifier = tuned(encoder, max_epochs=20, lr=3e-3, batch_size=30)
    classifier.fit(gesture.X[train], gesture.y[train])
    assert classifier.score(gesture.X[held_out], gesture.y[held_out]) > 0.5  # chance is 1 in 8


def test_samples_that_differ_in_the_sign_of_zero_are_the_same_sample():
    X = np.random.default_rng(0).normal(size=(12, 32, 2))
    X[:, :, 1] = 0.0
    y, signed = np.arange(12) % 2, X.copy()
    signed[:, ::2, 1] = -0.0
    model = FineTuneClassifier(**SMALL_ENCODER, max_epochs=2, random_state=0)
    once = model.fit(X, y).predict_proba(X)
    twice = model.fit(np.concatenate([X, signed]), np.concatenate([y, y])).predict_proba(X)
    np.testing.assert_array_equal(once, twice)
