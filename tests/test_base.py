"""Contracts of the base classes: one signature per hook, and a fit that is whole or absent."""

import inspect

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from skorch.callbacks import Callback

from sklearn_pulse import FineTuneClassifier, FineTuneRegressor, PulseTransformer, baselines
from sklearn_pulse.base import TrainedEmbedder, WindowEmbedder
from sklearn_pulse.baselines import REBARTransformer, SupervisedClassifier
from tests.helpers import SMALL, make_windows

X, y = make_windows()


def descendants(cls):
    return {cls}.union(*(descendants(sub) for sub in cls.__subclasses__()))


def small(cls, **params):
    known = inspect.signature(cls).parameters
    return cls(**{name: value for name, value in (SMALL | params).items() if name in known})


def test_a_hook_has_the_same_signature_everywhere():
    assert baselines.__all__  # imports every method, so that it is among the descendants
    assert len(descendants(TrainedEmbedder)) > 10
    wrong = []
    for cls in descendants(WindowEmbedder):
        for name, method in vars(cls).items():
            if not name.startswith("_") or name.startswith("__") or not inspect.isfunction(method):
                continue
            for base in cls.__mro__[1:]:
                inherited = vars(base).get(name)
                if inspect.isfunction(inherited):
                    expected = list(inspect.signature(inherited).parameters)
                    if list(inspect.signature(method).parameters) != expected:
                        wrong.append(f"{cls.__name__}.{name}: {expected} in {base.__name__}")
    assert not wrong


def test_facts_of_a_method_have_a_default_on_the_base():
    facts = ("schedule", "betas", "max_updates", "drop_last", "patience", "warm_start")
    for cls in descendants(TrainedEmbedder):
        for name in facts:
            assert hasattr(cls, name), (cls, name)


class Interrupt(Callback):
    """Raise as Ctrl-C does, in the second epoch."""

    def on_epoch_begin(self, net, **kwargs):
        if len(net.history) == 2:
            raise KeyboardInterrupt


TRAINED = [
    small(PulseTransformer),
    small(REBARTransformer),
    small(SupervisedClassifier),
    small(FineTuneClassifier),
    small(FineTuneRegressor),
]


@pytest.mark.parametrize("estimator", TRAINED, ids=lambda estimator: type(estimator).__name__)
def test_a_fit_that_fails_leaves_the_earlier_fit(estimator):
    fitted = estimator.set_params(callbacks=None).fit(X, y)
    before, embedding = dict(vars(fitted)), fitted.transform(X)
    other = np.repeat(X[:, :, :1], 3, axis=2)  # three channels, other labels
    other_labels = np.arange(len(X)) % 4
    infinite = other.copy()
    infinite[-1, 0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        fitted.fit(infinite, other_labels)
    fitted.set_params(callbacks=[Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(other, other_labels)
    after = vars(fitted) | {"callbacks": None}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] or after[name] == before[name] for name in before)
    np.testing.assert_array_equal(fitted.transform(X), embedding)


@pytest.mark.parametrize("estimator", TRAINED, ids=lambda estimator: type(estimator).__name__)
def test_an_interrupted_first_fit_leaves_the_estimator_unfitted(estimator):
    fresh = small(type(estimator), callbacks=[Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)
    with pytest.raises(NotFittedError):
        fresh.transform(X)
