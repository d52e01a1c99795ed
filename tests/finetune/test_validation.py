"""Which epoch is kept, and which part is validated on."""

import numpy as np
import pytest
from skorch.callbacks import Callback

from tests.helpers import BatchSpy, callback_of, make_windows

from .tuning import same, scratch, state, tuned


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
