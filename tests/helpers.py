"""Small estimators and data that many tests share."""

import contextlib
import copy
import inspect

import numpy as np
import pytest
import torch
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
    "regressor_depth": 1,
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


def accepted(cls, params):
    """Return those of the parameters that a class has."""
    names = inspect.signature(cls).parameters
    return {name: value for name, value in params.items() if name in names}


def small(cls, **params):
    """Make an estimator of the sizes of `SMALL`, as far as its class has them.

    A name of `SMALL` that the class lacks is passed over here too; any other must be its own.
    """
    others = {name: value for name, value in params.items() if name not in SMALL}
    return cls(**accepted(cls, SMALL | params) | others)


def memory_map(X, folder):
    path = folder / "X.npy"
    np.save(path, X)
    return np.load(path, mmap_mode="r")


# One set of windows in every form that `fit` takes, some of them in a file of a folder.
INPUT_FORMS = {
    "float64": lambda X, folder: X.astype(np.float64),
    "Fortran order": lambda X, folder: np.asfortranarray(X),
    "read-only memory map": memory_map,
    "read-only": lambda X, folder: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "torch": lambda X, folder: torch.from_numpy(X),
    "torch with a gradient": lambda X, folder: torch.from_numpy(X.copy()).requires_grad_(),
    "nested list": lambda X, folder: X.tolist(),
    "numbers of dtype object": lambda X, folder: X.astype(object),
    "strided": lambda X, folder: np.repeat(X, 2, axis=0)[::2],
    "time first in memory": lambda X, folder: X.transpose(1, 0, 2).copy().transpose(1, 0, 2),
}


class BatchSpy(Callback):
    """Keep the module as it was before training, and each training batch with what it met.

    `settings_` are those of the optimiser's first group of parameters at the batch.
    """

    def on_train_begin(self, net, **kwargs):
        self.before_ = copy.deepcopy(net.module_)
        self.batches_, self.settings_, self.losses_ = [], [], []

    def on_batch_begin(self, net, batch, training, **kwargs):
        if training:
            group = net.optimizer_.param_groups[0]
            names = ("lr", "betas", "weight_decay")
            self.settings_.append({name: group[name] for name in names if name in group})
            self.batches_.append({name: tensor.clone() for name, tensor in batch.items()})

    def on_batch_end(self, net, training, loss, **kwargs):
        if training:
            self.losses_.append(loss.item())

    def setting(self, name):
        """One setting of the optimiser, batch by batch."""
        return [settings[name] for settings in self.settings_]

    @property
    def windows(self):
        """The bytes of every window that was trained on."""
        return {window.tobytes() for batch in self.batches_ for window in batch["x"].numpy()}


class InDouble(Callback):
    """Train in float64. A spy that comes after it keeps what is trained on."""

    def on_train_begin(self, net, **kwargs):
        net.module_.double()

    def on_batch_begin(self, net, batch, **kwargs):
        batch["x"] = batch["x"].double()


def callbacks_of(fitted, kind=Callback):
    """Return the copies of the callbacks of a kind that a fitted estimator, or a net, holds."""
    net = getattr(fitted, "net_", fitted)
    return [callback for _, callback in net.callbacks_ if isinstance(callback, kind)]


def callback_of(fitted, kind):
    """Return the only copy of a callback of a kind."""
    (callback,) = callbacks_of(fitted, kind)
    return callback


class FitLog:
    """A callback of scikit-learn that notes every task, and may ask to stop after some epochs.

    `look` is called at the end of each epoch with the fitted estimator and the data.
    """

    max_propagation_depth = None

    def __init__(self, stop_after=None, look=None):
        self.stop_after, self.look = stop_after, look
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        name = type(estimator).__name__
        self.events.append(("begin", name, context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        name = type(estimator).__name__
        self.events.append(("end", name, context.task_name, context.task_id))
        if context.task_name != "epoch":
            return False
        if self.look is not None:
            self.look(fitted_estimator, X, y)
        return context.task_id + 1 == self.stop_after

    def tasks(self, estimator, kind="end"):
        """Return the names and numbers of the tasks of an estimator that began, or ended."""
        return [event[2:] for event in self.events if event[:2] == (kind, estimator)]

    def epochs(self, estimator, kind="end"):
        """Return the numbers of the epochs of an estimator that began, or ended."""
        return [number for task, number in self.tasks(estimator, kind) if task == "epoch"]


def weights_of(fitted):
    """Return all parameters of the module of a fitted estimator, in one row."""
    return torch.cat([p.detach().flatten() for p in fitted.net_.module_.parameters()])


# Checks of scikit-learn's suite that give the same numbers in another form. The bases convert the
# input, so that one estimator of a base stands for the others; each estimator has windows in other
# forms in test_common.py.
FORMS = {
    "check_array_api_input",
    "check_classifier_data_not_an_array",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_f_contiguous_array_estimator",
    "check_readonly_memmap_input",
    "check_regressor_data_not_an_array",
    "check_transformer_data_not_an_array",
    "check_transformer_preserve_dtypes",
}


def sklearn_suite(estimators, forms=True):
    """Parametrise a test with scikit-learn's whole suite; a skip or failure is a failure.

    Where `forms` is false, or a tuple of other classes, the checks of the input's form are slow.
    """
    known = inspect.signature(parametrize_with_checks).parameters
    strict = {"xfail_strict": True} if "xfail_strict" in known else {}  # from scikit-learn 1.8
    suite = parametrize_with_checks(estimators, **strict)
    names, cells = suite.args

    def is_slow(estimator, check):
        if forms is True or forms and isinstance(estimator, forms):
            return False
        return check.func.__name__ in FORMS or check.keywords.get("readonly_memmap", False)

    cells = [
        pytest.param(*cell, marks=pytest.mark.slow) if is_slow(*cell) else cell for cell in cells
    ]
    return pytest.mark.parametrize(names, cells, **suite.kwargs)


def bridged(x):
    """A window with missing steps on straight lines between observed ones, zero elsewhere."""
    time, observed = np.arange(len(x)), np.isfinite(x).all(1)
    channels = x.astype(np.float64).T
    lines = [np.interp(time, time[observed], c[observed], left=0, right=0) for c in channels]
    return np.stack(lines, axis=1)


@contextlib.contextmanager
def full_disk(n_bytes=2000):
    """Let no file of this process grow beyond this size, as if the disk were full."""
    resource = pytest.importorskip("resource", reason="this system has no such limit")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
