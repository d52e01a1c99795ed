"""The encoder that fine-tuning starts from, and what is refused as one."""

import copy
import shutil

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from sklearn_pulse import (
    CrossPredictionTransformer,
    FineTuneClassifier,
    PulseTransformer,
    RandomEncoderTransformer,
)
from sklearn_pulse.base import BaseSSLTransformer
from sklearn_pulse.baselines import PatchTSTTransformer, SimMTMTransformer, TimeMAETransformer
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, BatchSpy, callback_of, make_windows

from .noisy import NoisyTransformer
from .tuning import STILL, TINY, same, scratch, state, tuned


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
