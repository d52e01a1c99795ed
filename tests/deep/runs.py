"""Fits in processes of their own, which are killed at any moment and started again."""

import multiprocessing
import time
from functools import partial

import numpy as np
import torch
import torch._dynamo
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from skorch.callbacks import Callback

from sklearn_pulse import FineTuneClassifier, PulseTransformer, RandomEncoderTransformer
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse.baselines import REBARTransformer, TS2VecTransformer
from tests.helpers import SMALL_ENCODER, callbacks_of, make_windows, small

X, Y = make_windows(16)
GROUPS = np.arange(16) // 4
# Draws in validation, and several batches per epoch.
long = partial(small, max_epochs=8, batch_size=4, deterministic_validation=False)


class Losses(Callback):
    """Keep the loss of every batch, as an attribute without an underscore."""

    def on_train_begin(self, net, **kwargs):
        self.losses = []

    def on_batch_end(self, net, training, loss, **kwargs):
        self.losses.append((training, loss.item()))


def pulse(folder):
    return long(PulseTransformer, checkpoint_dir=folder, callbacks=[Losses()]).fit(X)


def rebar(folder):
    params = {"attention_epochs": 25, "attention_batch_size": 4, "callbacks": [Losses()]}
    return long(REBARTransformer, checkpoint_dir=folder, **params).fit(X, groups=GROUPS)


def ts2vec(folder):
    params = {"max_updates": 30, "drop_last": True, "select": "average", "callbacks": [Losses()]}
    return long(TS2VecTransformer, checkpoint_dir=folder, **params).fit(X)


def fine_tune(folder):
    source = RandomEncoderTransformer(**SMALL_ENCODER, num_threads=1, random_state=0).fit(X)
    params = {"freeze_epochs": 2, "validation_fraction": 0.25, "select": "min_val", "lr": 1e-2}
    params |= {"max_epochs": 8, "batch_size": 4, "num_threads": 1, "random_state": 0}
    params |= {"checkpoint_dir": folder, "callbacks": [Losses()]}
    return FineTuneClassifier(FrozenEstimator(source), **params).fit(X, Y)


def search(folder):
    model = make_pipeline(
        long(PulseTransformer, checkpoint_dir=folder, max_epochs=3, callbacks=[Losses()]),
        LogisticRegression(max_iter=1000),
    )
    grid = {"pulsetransformer__n_crops": [1, 2], "logisticregression__C": [0.1, 1.0]}
    return GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, Y)


RUNS = {run.__name__: run for run in (pulse, rebar, ts2vec, fine_tune, search)}


def outcome(fitted):
    """Everything that a resumed fit must repeat to the bit, as one list."""
    if isinstance(fitted, GridSearchCV):
        scores = fitted.cv_results_["mean_test_score"].tolist()
        return [scores, *outcome(fitted.best_estimator_[0])]
    found = []
    for stage in ("cross_attention_net_", "net_"):
        net = getattr(fitted, stage, None)
        if net is None:  # a method of one stage
            continue
        timeless = [{k: v for k, v in epoch.items() if k != "dur"} for epoch in net.history]
        weights = {name: value.tolist() for name, value in net.module_.state_dict().items()}
        losses = [callback.losses for callback in callbacks_of(net, Losses)]
        found += [timeless, weights, losses]
    return found


def work(name, folder, interval, begun):
    """Fit in this process, and say when it begins."""
    torch.set_num_threads(1)
    Checkpoint.interval = interval
    begun.send(None)
    RUNS[name](folder)


def start(name, folder, interval):
    """Start a fit in a process that is forked from a server with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.deep.runs"])
    receives, sends = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(name, str(folder), interval, sends), daemon=True)
    process.start()
    sends.close()  # a process that ends before it begins is then an error, and not waited for
    receives.recv()
    return process


def kills(name, parent, n_kills, intervals=(0.0, 60.0)):
    """Kill fits at moments drawn uniformly over a whole fit.

    The intervals in turn are the seconds between two states within an epoch. A whole fit takes the
    shorter time of two, so that one slow fit does not put most moments after the end.

    Yields
    ------
    folder : Path
        Checkpoints of a killed fit.
    exit_code : int
        How the fit ended.
    """
    draw = np.random.default_rng(0)
    durations = dict.fromkeys(intervals, np.inf)
    for number, interval in enumerate([*intervals, *intervals]):
        folder = parent / f"whole-{number}"
        process, began = start(name, folder, interval), time.monotonic()
        process.join()
        assert process.exitcode == 0
        durations[interval] = min(durations[interval], time.monotonic() - began)
    for i in range(n_kills):
        folder, interval = parent / f"killed-{i}", intervals[i % len(intervals)]
        process = start(name, folder, interval)
        process.join(draw.uniform(0, durations[interval]))
        process.kill()
        process.join()
        yield folder, process.exitcode
