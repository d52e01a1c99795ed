"""scikit-learn's own suite, pipelines, searches and what is drawn in them."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pulse import FineTuneClassifier, PulseTransformer
from sklearn_pulse.datasets import fetch_gesture, fetch_har
from sklearn_pulse.networks import SystemEncoder
from sklearn_pulse.objectives import Classification, Source
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, FitLog, make_windows, sklearn_suite

from .noisy import Noisy
from .tuning import scratch, tuned

suite_warnings = pytest.mark.filterwarnings("ignore:X has more channels")
SUITE = {**SMALL_ENCODER, "encoder_depth": 2, "num_threads": 1, "lr": 3e-2, "batch_size": 100}
SCORED = ("check_classifiers_train", "check_class_weight_classifiers")


@suite_warnings
@sklearn_suite([FineTuneClassifier(**SUITE, max_epochs=5)])
def test_sklearn_suite(estimator, check):
    if check.func.__name__ not in SCORED:  # no other looks at what is learnt
        estimator = clone(estimator).set_params(max_epochs=1)
    check(estimator)


@pytest.mark.slow
@suite_warnings
@sklearn_suite([FineTuneClassifier()])
def test_sklearn_suite_at_defaults(estimator, check):
    check(estimator)


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
