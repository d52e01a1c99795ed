"""Small estimators and data that many tests share."""

import copy
import inspect

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks
from skorch.callbacks import Callback

SMALL_ENCODER = {"embedding_dim": 8, "encoder_hidden_dim": 8, "encoder_depth": 3}
SMALL_PULSE = SMALL_ENCODER | {
    "init_hidden_dim": 8,
    "gru_hidden_dim": 8,
    "max_epochs": 2,
    "batch_size": 8,
    "num_threads": 1,
    "random_state": 0,
}
# What the methods beside it have; a test takes the names that its class knows.
SMALL = SMALL_PULSE | {
    "attention_hidden_dim": 8,
    "attention_kernel_size": 3,
    "attention_bottleneck_dim": 4,
    "attention_epochs": 2,
    "n_candidates": 3,
    "initial_condition_dim": 8,
    "generator_dim": 8,
    "factor_dim": 8,
    "inferred_input_dim": 8,
    "controller_dim": 8,
    "controller_encoder_dim": 8,
    "static_dim": 8,
    "dynamic_dim": 8,
    "num_kernels": 84,
    "n_components": 8,
    "posterior_hidden_dim": 8,
    "prior_hidden_dim": 8,
    "decoder_hidden_dim": 8,
}


def make_windows(n=20, n_timesteps=16, n_channels=2, seed=0):
    """Sines of two frequencies, float32, and which of the two."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    phase = rng.uniform(0, 2 * np.pi, size=(n, 1, n_channels))
    time = np.arange(n_timesteps)[None, :, None]
    X = np.sin((0.3 + 0.6 * y[:, None, None]) * time + phase)
    return (X + 0.1 * rng.normal(size=X.shape)).astype(np.float32), y


class BatchSpy(Callback):
    """Keep the module as it was before training, and every training batch."""

    def on_train_begin(self, net, **kwargs):
        self.before_ = copy.deepcopy(net.module_)
        self.batches_ = []

    def on_batch_begin(self, net, batch, training, **kwargs):
        if training:
            self.batches_.append({name: tensor.clone() for name, tensor in batch.items()})

    @property
    def windows(self):
        """The bytes of every window that was trained on."""
        return {window.tobytes() for batch in self.batches_ for window in batch["x"].numpy()}


def spy_of(estimator):
    """Return the spy among the callbacks of a fitted estimator."""
    (spy,) = [cb for _, cb in estimator.net_.callbacks_ if isinstance(cb, BatchSpy)]
    return spy


def sklearn_suite(estimators):
    """Parametrise a test with scikit-learn's whole suite; a skip or failure is a failure."""
    known = inspect.signature(parametrize_with_checks).parameters
    strict = {"xfail_strict": True} if "xfail_strict" in known else {}  # from scikit-learn 1.8
    return parametrize_with_checks(estimators, **strict)
