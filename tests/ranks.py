"""Processes that train together. One script imports the package once and forks them.

:func:`main` runs groups of jobs in a folder and leaves the outcome of each process in
the folder: what its jobs returned, what they printed, and its exit code.
"""

import atexit
import copy
import os
import pickle
import signal
import socket
import sys
import traceback
import warnings
import weakref
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from joblib import Parallel, delayed
from skorch.callbacks import Callback, EpochScoring, Freezer, Unfreezer
from skorch.callbacks import Checkpoint as SkorchCheckpoint
from torch.utils.checkpoint import checkpoint

from sklearn_pulse import PulseTransformer
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse._training._gradients import SharedGradients
from sklearn_pulse._training._processes import among_others, join
from sklearn_pulse.baselines import SimCLRTransformer, TS2VecTransformer
from sklearn_pulse.baselines._simclr import AugmentationContrast
from sklearn_pulse.objectives import CrossReconstruction
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, accepted, make_windows
from tests.kills import killed
from tests.test_callbacks import fingerprint_of_many

X = make_windows()[0]
GAPS = X.copy()
GAPS[::3, 9:] = np.nan
GAPS[5, :15] = np.nan  # a single step is left: its passes are empty
ENCODER = SMALL_ENCODER | {"encoder_depth": 1}
DECODER = {"init_hidden_dim": 8, "gru_hidden_dim": 8, "gru_num_layers": 1}
NETWORKS = ENCODER | DECODER
FIT = SMALL_PULSE | NETWORKS | {"max_epochs": 2, "batch_size": 5, "validation_every": 1}
PULSE = {  # parameters of the objective, and whether steps are missing
    "crops": ({}, False),
    "gaps": ({}, True),
    "valid": ({"loss_reduction": "valid"}, True),
    "sequence": ({"theta_dropout": "sequence"}, True),
    "fixed": ({"crop": "fixed", "n_crops": 3}, False),
    "random": ({"pairing": "random"}, True),
    "no drive": ({"pairing": "random", "time_varying_dim": 0, "n_crops": 0}, False),
    "shared encoder": ({"pairing": "random", "shared_encoder": True}, False),
}
SIMCLR = {
    "plain": ({}, False),
    "gaps": ({}, True),
    "dropout": ({"representation_dropout": 0.3, "layer_norm": "embedding"}, True),
    "cold": ({"temperature": 0.5}, False),
}


def batch(missing, n=7):
    x = torch.from_numpy((GAPS if missing else X)[:n])
    return {"x": x.nan_to_num(), "observed": x.isfinite().all(-1)} if missing else {"x": x}


def cases():
    """Yield the name of each objective that can be divided, the objective and a batch."""
    for name, (params, missing) in PULSE.items():
        yield f"PULSE {name}", CrossReconstruction(2, **NETWORKS, **params), batch(missing)
    for name, (params, missing) in SIMCLR.items():
        yield f"SimCLR {name}", AugmentationContrast(2, **ENCODER, **params), batch(missing)


def shared_gradients():
    """Return loss, gradients and generator of each objective, of one process and of all."""
    share = join(True, "cpu")
    with among_others(share):
        return {name: _of_both(objective, tensors, share) for name, objective, tensors in cases()}


def _of_both(objective, tensors, share):
    alone = copy.deepcopy(objective)
    loss = alone(**tensors)
    loss.backward()
    objective.share = share
    shared = SharedGradients(objective, share)
    part = shared(**tensors)
    part.backward()
    total = share.total(part) / share.size
    return [
        (loss.item(), _gradients(alone), alone.generator_state().numpy()),
        (total.item(), _gradients(objective), objective.generator_state().numpy()),
    ]


def _gradients(module):
    return {
        name: None if parameter.grad is None else parameter.grad.numpy().copy()
        for name, parameter in module.named_parameters()
    }


class ComputesAgain(CrossReconstruction):
    """PULSE with a penalty whose activations the backward pass computes again."""

    indivisible = None

    def forward(self, x, observed=None):
        penalty = checkpoint(self._penalty, x, use_reentrant=False)
        return super().forward(x, observed) + 1e-3 * penalty

    def _penalty(self, x):
        mine = self.encode(x[self.share.rows(len(x))])
        return mine.square().sum() / len(x)


class ComputesAgainTransformer(PulseTransformer):
    _objective_class = ComputesAgain


class Steps(Callback):
    """Keep the gradient of every update."""

    def on_train_begin(self, net, **kwargs):
        self.gradients_ = []

    def on_grad_computed(self, net, named_parameters, **kwargs):
        grads = [p.grad.flatten() for _, p in named_parameters if p.grad is not None]
        self.gradients_.append(torch.cat(grads).numpy().copy())


def fitted(estimator, windows=X, **params):
    """Fit and return what decides whether two fits are the same."""
    if estimator.callbacks is None:
        estimator.set_params(callbacks=[Steps()])
    estimator.fit(windows, **params)
    net = estimator.net_
    return {
        "weights": {name: w.numpy().copy() for name, w in net.module_.state_dict().items()},
        "history": [(e["train_loss"], e.get("valid_loss"), e.get("score")) for e in net.history],
        "gradients": getattr(dict(net.callbacks_).get("Steps"), "gradients_", None),
        "embedding": estimator.transform(windows),
        "share": net.share,
        "n_iter": estimator.n_iter_,
        "selected": estimator.selected_epoch_,
    }


def pulse(**params):
    return PulseTransformer(**(FIT | {"distributed": True} | params))


def again(**params):
    return ComputesAgainTransformer(**(FIT | {"distributed": True} | params))


def stored(folder, **params):
    return pulse(checkpoint_dir=folder, callbacks=[Steps()], **params)


def simclr(**params):
    return SimCLRTransformer(**accepted(SimCLRTransformer, FIT) | {"distributed": True} | params)


class Kill(Callback):
    """End one process in the second epoch, as the system does when memory runs out."""

    def on_epoch_begin(self, net, **kwargs):
        if len(net.history) == 2 and rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)


class Act(Callback):
    """Change the gradients of one process, or draw in it from the objective's generator."""

    def __init__(self, draws):
        self.draws = draws

    def on_grad_computed(self, net, named_parameters, **kwargs):
        if rank() == 1 and self.draws:
            torch.rand(1, generator=net.module_.generator(torch.device("cpu")))
        elif rank() == 1:
            for _, parameter in named_parameters:
                parameter.grad = None


class Stop(Callback):
    """Stop in one process, after its first epoch."""

    def on_epoch_end(self, net, **kwargs):
        net.stop_training_ |= rank() == 1


def best_in_epoch_one(net, X, y):
    return float(len(net.history))


def loss_of_all(net, X, y):
    """Compute the loss of all windows, as a user's function may do between the epochs."""
    objective = net.module_.eval()
    with torch.no_grad(), objective.seeded(0):
        return float(objective(**X[torch.arange(len(X))]))


def scored(estimator):
    return fitted(estimator.set_params(callbacks=[EpochScoring(loss_of_all, name="score")]))


def loading(folder):
    """Return the callbacks that load the weights of the first epoch at the end."""
    score = EpochScoring(best_in_epoch_one, name="score")
    best = SkorchCheckpoint("score_best", dirname=str(folder / "skorch"), load_best=True)
    return [score, best, Steps()]


def rank():
    return int(os.environ["RANK"])


def fit_interrupted(folder):
    """Be interrupted in the middle of the second epoch, in all processes."""
    Checkpoint.interval = 0.0
    with killed(2, 3):
        stored(folder).fit(X)


def warned():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pulse(max_epochs=1).fit(X, groups=np.zeros(len(X)))
    return [str(warning.message) for warning in caught]


def seeded_in_one():
    """Fit with a seed in one process alone; the group's short limit ends a wait."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    seeds = (None, 0), (0, None)
    return [_refusal(pulse(random_state=seed[rank()], max_epochs=1)) for seed in seeds]


def _refusal(estimator):
    try:
        estimator.fit(X)
    except ValueError as error:
        return str(error)


def in_a_search():
    fit = delayed(pulse(max_epochs=1).fit)
    Parallel(n_jobs=2, backend="threading")(fit(X) for _ in range(2))


def fit_and_end():
    """Print at the end of the process whether its group still exists."""
    groups = []
    atexit.register(lambda: print("group", "stays" if groups[0]() else "is gone", flush=True))
    pulse(max_epochs=1).fit(X)
    groups.append(weakref.ref(dist.group.WORLD))


FREEZE = {"max_epochs": 3, "callbacks": [Freezer("encoder.*", at=2), Unfreezer("encoder.*", at=3)]}
OTHER = {"weight_decay": 0.5, "bag_pooling": "max"}
# Each group of jobs is run by so many processes.
GROUPS = {
    "gradients of three": (3, {"gradients": lambda folder: shared_gradients()}),
    "fits": (
        2,
        {
            "gradients": lambda folder: shared_gradients(),
            "PULSE": lambda folder: fitted(pulse()),
            "PULSE with gaps": lambda folder: fitted(pulse(), GAPS),
            "PULSE that freezes": lambda folder: fitted(pulse(**FREEZE)),
            "PULSE that loads": lambda folder: fitted(pulse(callbacks=loading(folder))),
            "PULSE without a seed": lambda folder: fitted(pulse(random_state=None)),
            "PULSE with a score": lambda folder: scored(pulse()),
            "PULSE that computes again": lambda folder: fitted(again()),
            "SimCLR": lambda folder: fitted(simclr()),
            "SimCLR with a score": lambda folder: scored(simclr()),
            "auto": lambda folder: fitted(simclr(distributed="auto")),
            "loud": lambda folder: fitted(pulse(verbose=2, max_epochs=1))["n_iter"],
            "warned": lambda folder: warned(),
            "stopped by one": lambda folder: fitted(pulse(callbacks=[Stop()]))["n_iter"],
            "interrupted": lambda folder: fit_interrupted(folder / "by two"),
            "resumed": lambda folder: fitted(stored(folder / "by one")),
            "other data": lambda folder: pulse().fit(X + rank()),
            "other parameters": lambda folder: pulse(**(OTHER if rank() else {})).fit(X),
            "other gradients": lambda folder: pulse(callbacks=[Act(draws=False)]).fit(X),
            "other draws": lambda folder: pulse(callbacks=[Act(draws=True)]).fit(X),
            "small batch": lambda folder: pulse(batch_size=16).fit(X),
            "small validation": lambda folder: pulse().fit(X, X_val=X[:1]),
            "in a search": lambda folder: in_a_search(),
            "indivisible": lambda folder: TS2VecTransformer(distributed="auto").fit(X),
        },
    ),
    "seeded in one": (2, {"fits": lambda folder: seeded_in_one()}),
    "killed": (2, {"fit": lambda folder: pulse(callbacks=[Kill()]).fit(X)}),
    "ends": (1, {"fit": lambda folder: fit_and_end()}),
    "callbacks": (1, {"fingerprint": lambda folder: fingerprint_of_many()}),
}
ENDS = ("ends",)  # as a process does by itself, and not at once


def launch(group, folder):
    """Fork the processes of a group and wait for them."""
    size, jobs = GROUPS[group]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = [_start(rank, size, port, jobs, folder, group) for rank in range(size)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    (folder / f"{group}.codes").write_bytes(pickle.dumps(codes))


def _start(rank, size, port, jobs, folder, group):
    child = os.fork()
    if child:
        return child
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    for stream, name in ((1, "out"), (2, "err")):
        file = os.open(folder / f"{group}.{rank}.{name}", os.O_WRONLY | os.O_CREAT)
        os.dup2(file, stream)
    results, code = {}, 0
    for name, job in jobs.items():
        try:
            print(f"<{name}>", flush=True)
            results[name] = job(folder)
        except BaseException as error:
            traceback.print_exc()
            results[name], code = error, 1
        sys.stdout.flush()
    (folder / f"{group}.{rank}.results").write_bytes(pickle.dumps(results))
    if group in ENDS:
        sys.exit(code)
    os._exit(code)


def main(folder, groups):
    """Run the jobs of some groups."""
    torch.set_num_threads(1)
    # The first fit imports much of torch: here once, and not in each of the processes.
    pulse(distributed=False, max_epochs=1).fit(X)
    for group in groups:
        launch(group, Path(folder))
