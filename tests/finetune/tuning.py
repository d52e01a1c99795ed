"""Fine-tuned classifiers of a few weights."""

import pytest
import sklearn
import torch
from sklearn.frozen import FrozenEstimator

from sklearn_pulse import FineTuneClassifier
from tests.helpers import SMALL_ENCODER

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
