import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from skorch.callbacks import Callback
from torch.optim.lr_scheduler import OneCycleLR

from sklearn_pulse import presets
from sklearn_pulse.baselines import SupervisedClassifier
from tests.helpers import SMALL_ENCODER, BatchSpy, callback_of, make_windows, sklearn_suite
from tests.kills import killed

TINY = {"max_epochs": 2, "batch_size": 8, "lr": 1e-2, "num_threads": 1, "random_state": 0}
X, Y = make_windows()


def supervised(**params):
    return SupervisedClassifier(**SMALL_ENCODER | TINY | params)


def state(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


# --- scikit-learn's own suite, without an exception ---

SUITE = {**SMALL_ENCODER, "encoder_depth": 2, "num_threads": 1, "lr": 3e-2, "max_epochs": 6}
SCORED = ("check_classifiers_train", "check_class_weight_classifiers")


@pytest.mark.filterwarnings("ignore:X has more channels")
@sklearn_suite([SupervisedClassifier(**SUITE, batch_size=100)], forms=False)
def test_sklearn_suite(estimator, check):
    if check.func.__name__ not in SCORED:  # no other looks at what is learnt
        estimator = clone(estimator).set_params(max_epochs=1)
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X has more channels")
@sklearn_suite([SupervisedClassifier(num_threads=1, max_epochs=10)])
def test_sklearn_suite_at_default_widths(estimator, check):
    check(estimator)


# --- the published update, literally ---


@pytest.mark.parametrize("train_head", [True, False])
def test_the_published_update(train_head):
    """AdamW along one cycle; the published optimiser does not hold the head."""
    classifier = supervised(
        train_head=train_head,
        max_epochs=7,
        weight_decay=1e-2,
        validation_fraction=0,
        callbacks=[BatchSpy()],
    ).fit(X, Y)
    spy = callback_of(classifier, BatchSpy)
    assert [len(batch["x"]) for batch in spy.batches_] == [8, 8, 4] * 7
    encoder = copy.deepcopy(spy.before_.encoder)
    weight = spy.before_.head[0].weight.detach().clone().requires_grad_()
    bias = spy.before_.head[0].bias.detach().clone().requires_grad_()
    trained = [*encoder.parameters(), *([weight, bias] if train_head else [])]
    optimizer = torch.optim.AdamW(trained, lr=1e-2, weight_decay=1e-2)
    schedule = OneCycleLR(optimizer, max_lr=1e-2, total_steps=21)
    for batch in spy.batches_:
        logits = encoder(batch["x"]) @ weight.T + bias
        loss = 0.0
        for row, label in zip(logits, batch["y"].tolist(), strict=True):
            loss = loss - torch.log(torch.exp(row[label]) / torch.exp(row).sum())
        optimizer.zero_grad()
        (loss / len(logits)).backward()
        optimizer.step()
        schedule.step()
    for name, p in encoder.state_dict().items():
        torch.testing.assert_close(classifier.encoder_.state_dict()[name], p, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(classifier.head_[0].weight, weight, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(classifier.head_[0].bias, bias, rtol=1e-3, atol=1e-5)
    assert torch.equal(classifier.head_[0].weight, spy.before_.head[0].weight) is not train_head
    assert not torch.allclose(encoder.input.weight, spy.before_.encoder.input.weight, atol=1e-3)


def test_defaults_are_published_but_for_the_head():
    params = SupervisedClassifier().get_params()
    published = {"max_epochs": 100, "lr": 1e-3, "weight_decay": 1e-5, "batch_size": 64}
    published |= {"head_hidden_dim": None, "gradient_clip_value": None, "train_head": True}
    published |= {"embedding_dim": 320, "validation_every": 2, "select": "trailing_mean"}
    assert {name: params[name] for name in published} == published


def test_probabilities_are_the_softmax_of_the_head():
    labels = np.array(["calm", "active"])[Y]
    fitted = supervised().fit(X, labels)
    head = fitted.head_[0]
    assert head.weight.shape == (2, 8)
    logits = fitted.transform(X) @ head.weight.detach().numpy().T + head.bias.detach().numpy()
    powers = np.exp(logits.astype(float))
    expected = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(X), expected, rtol=1e-5)
    assert fitted.classes_.tolist() == ["active", "calm"]
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[expected.argmax(1)])


# --- what is held out ---


def parts(classifier, X, y, **fit):
    """Fit, and return the numbers of the windows trained on."""
    spy = callback_of(
        classifier.set_params(callbacks=[BatchSpy()], max_epochs=1).fit(X, y, **fit), BatchSpy
    )
    rows = torch.cat([batch["x"] for batch in spy.batches_]).numpy()
    return np.sort([np.flatnonzero((X == row).all((1, 2)))[0] for row in rows])


@pytest.mark.parametrize(
    ("counts", "left"),
    [([10, 10], [8, 8]), ([20, 3], [17, 3]), ([10, 1, 1], [8, 1, 1]), ([1, 1], [1, 1])],
)
def test_every_class_is_held_out_alike_and_none_wholly(counts, left):
    y = np.repeat(np.arange(len(counts)), counts)
    windows, _ = make_windows(len(y))
    trained = parts(supervised(), windows, y)
    assert np.bincount(y[trained]).tolist() == left
    y = y[::-1].copy()
    assert np.bincount(y[parts(supervised(validation_fraction=0.9), windows, y)]).min() >= 1


def test_the_seed_draws_what_is_held_out():
    first, same, other = (parts(supervised(random_state=seed), X, Y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert first.tolist() != other.tolist()


def test_groups_are_held_out_whole():
    groups = np.arange(20) // 4
    trained = parts(supervised(validation_fraction=0.3), X, Y, groups=groups)
    assert len(np.intersect1d(groups[trained], np.delete(groups, trained))) == 0
    assert len(trained) in (12, 16)
    with pytest.raises(ValueError, match="cannot be held out.*pass X_val and y_val"):
        supervised().fit(X, Y, groups=np.zeros(20))


@pytest.mark.parametrize("select", ["trailing_mean", "last"])
def test_without_validation_the_last_weights_are_kept(select):
    fitted = supervised(validation_fraction=0, select=select).fit(X, Y)
    assert "valid_loss" not in fitted.history_[-1]
    few = supervised(select=select).fit(X[:4], Y[:4])  # too few to hold one out
    assert "valid_loss" not in few.history_[-1]
    for patience in ({"validation_fraction": 0}, {"validation_fraction": 0.15}):
        with pytest.raises(ValueError, match="patience"):
            supervised(patience=1, **patience).fit(X[:4], Y[:4])
    with pytest.raises(ValueError, match="select='min_val' needs samples to validate on"):
        supervised(validation_fraction=0, select="min_val").fit(X, Y)
    with pytest.raises(ValueError, match="less than one sample, and select='min_val' needs some"):
        supervised(select="min_val").fit(X[:4], Y[:4])


def test_the_selected_epoch():
    """By the validation loss of every second epoch, of windows that are given."""
    X_val, y_val = make_windows(10, seed=1)
    params = {"max_epochs": 8, "lr": 0.02, "callbacks": [Keep()]}
    for select in ("trailing_mean", "min_val", "last"):
        fitted = supervised(select=select, **params).fit(X, Y, X_val=X_val, y_val=y_val)
        losses = [epoch["valid_loss"] for epoch in fitted.history_]
        assert losses[0::2] == losses[1::2]
        assert len(set(losses)) == 4
        epoch = {"min_val": int(np.argmin(losses)), "last": 7}.get(select)
        if epoch is None:
            epoch, kept = max(kept_epochs(losses)), kept_epochs(losses)
            assert len(kept) < 4  # some epoch that could have been was not
        keep = callback_of(fitted, Keep)
        weights = keep.weights_[epoch]
        assert all(torch.equal(weights[k], v) for k, v in fitted.net_.module_.state_dict().items())


def kept_epochs(losses):
    """Epochs that the published rule keeps, one after the other."""
    best, kept = float("inf"), []
    for i in range(4, len(losses)):
        if sum(losses[i - 4 : i + 1]) / 5 <= best:
            best = losses[i]
            kept.append(i)
    return kept


class Keep(Callback):
    """Keep the weights of every epoch."""

    def on_train_begin(self, net, **kwargs):
        self.weights_ = []

    def on_epoch_end(self, net, **kwargs):
        self.weights_.append(state(net.module_))


def test_patience_stops():
    X_val, y_val = make_windows(10, seed=1)
    fitted = supervised(patience=2, max_epochs=30, lr=0.05, validation_every=1)
    assert fitted.fit(X, Y, X_val=X_val, y_val=1 - y_val).n_iter_ < 30


# --- parameters ---


@pytest.mark.parametrize(
    "params",
    [
        {"head_hidden_dim": 5},
        {"train_head": False},
        {"gradient_clip_value": 1e-4},
        {"class_weight": {0: 1.0, 1: 3.0}},
        {"pooling": "mean"},
        {"validation_fraction": 0.3},
    ],
)
def test_each_parameter_matters(params):
    first, second = (supervised(**p).fit(X, Y).predict_proba(X) for p in ({}, params))
    assert not np.allclose(first, second, atol=1e-6)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"select": "best"}, ValueError, "select must be one of 'trailing_mean', 'min_val'"),
        ({"train_head": 1}, TypeError, "train_head must be True or False"),
        ({"validation_every": 0}, ValueError, "validation_every must be an integer of at least 1"),
        ({"gradient_clip_value": 0.0}, ValueError, "gradient_clip_value must be a number in"),
        ({"head_hidden_dim": 0}, ValueError, "head_hidden_dim must be an integer of at least 1"),
    ],
)
def test_bad_parameters(params, error, message):
    with pytest.raises(error, match=message):
        supervised(**params).fit(X, Y)


def test_patience_without_validation_names_what_the_class_has():
    with pytest.raises(ValueError, match="^patience needs samples to validate on"):
        supervised(patience=3, validation_fraction=0).fit(X, Y)


def test_missing_steps_bags_and_pickles():
    holes = X.copy()
    holes[::2, 10:] = np.nan
    fitted = supervised().fit(holes, Y)
    probabilities = fitted.predict_proba(holes)
    assert np.isfinite(probabilities).all()
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).predict_proba(holes), probabilities
    )
    np.testing.assert_array_equal(clone(fitted).fit(holes, Y).predict_proba(holes), probabilities)
    bags = np.concatenate([X[:, None], X[:, None]], axis=1)
    np.testing.assert_allclose(fitted.predict_proba(bags), fitted.predict_proba(X), rtol=1e-5)
    assert supervised().fit(bags, Y).predict(bags).shape == (20,)


def test_a_killed_run_resumes_to_the_same_bits(tmp_path):
    expected = supervised(max_epochs=3).fit(X, Y)
    with killed(2, 2):
        supervised(max_epochs=3, checkpoint_dir=tmp_path).fit(X, Y)
    resumed = supervised(max_epochs=3, checkpoint_dir=tmp_path).fit(X, Y)
    np.testing.assert_array_equal(resumed.predict_proba(X), expected.predict_proba(X))
    assert len(list(tmp_path.iterdir())) == 1


def test_it_learns():
    X_test, y_test = make_windows(40, seed=1)
    assert supervised(max_epochs=15).fit(X, Y).score(X_test, y_test) > 0.9


# --- presets ---

# Data set: batch; mode, channels, window, down-sampling, fraction of validation.
TABLE = {
    "har": (64, "labeled", 6, 128, 1, 1.0),
    "ecg": (64, "labeled", 2, 500, 5, 0.1),
    "ppg": (64, "labeled", 1, 960, 4, 1.0),
    "eeg": (64, "labeled", 2, 1000, 3, 1.0),
    "synthetic": (128, "labeled", 3, 100, 1, 1.0),
    "har-transfer": (64, "labeled", 6, 128, 1, 1.0),
    "eeg-transfer": (64, "labeled", 1, 1000, 3, 1.0),
}


@pytest.mark.parametrize("dataset", TABLE)
def test_presets(dataset):
    estimator = SupervisedClassifier(**presets.get("supervised", dataset))
    cut = presets.windows("supervised", dataset)
    names = "mode n_channels length downsample fraction_val".split()
    assert (estimator.batch_size, *(cut[name] for name in names)) == TABLE[dataset]
    assert (cut["fraction"], cut["stride"], cut["stride_val"]) == (1.0, None, None)
    assert (estimator.max_epochs, estimator.lr, estimator.weight_decay) == (100, 1e-3, 1e-5)
    assert estimator.train_head is True
    published = SupervisedClassifier(**presets.get("supervised", dataset, published=True))
    assert published.train_head is False
    n_channels = presets.windows("supervised", dataset, published=True)["n_channels"]
    assert n_channels == (1 if dataset == "eeg" else cut["n_channels"])
