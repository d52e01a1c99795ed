"""Trial: a method trained on a data set with a seed, which several cells share."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import shutil
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import cross_validate
from sklearn.utils.metadata_routing import get_routing_for_object

from .._version import __version__
from ..base import BaseEncoderTransformer
from ..evaluation import probe_scores
from ._budgets import Budget
from ._cells import read_record
from ._execution import Condition
from ._methods import Method
from ._task import Task

Scores = dict[str, float | list[float]]


class Trial:
    """Method on a task: its trained transformer and the embeddings, each computed once.

    Parameters
    ----------
    condition : Condition
        Method, data set, seed, scored part, budget and execution.
    task : Task
        Task of the training.
    preset : str
        Name of the data set in :mod:`sklearn_pulse.presets`.
    division : str, default="paper"
        Name of the division of the task into parts.
    """

    def __init__(
        self, condition: Condition, task: Task, preset: str, *, division: str = "paper"
    ) -> None:
        self.method = condition.method
        self.dataset = condition.dataset
        self.seed = condition.seed
        self.scored = condition.scored
        self.budget = condition.budget
        self.execution = condition.execution
        self.task = task
        self.preset = preset
        self.division = division
        self.record: dict[str, Any] = {}

    @functools.cached_property
    def name(self) -> str:
        """Name of the files of the transformer, which differs between data and settings."""
        identity = encoder_identity(self.method, self.preset, self.seed, self.budget)
        identity |= {"task": self.task.name, "division": self.division}
        identity["data"] = self.task.digest(labels=self.method.needs_labels)
        digest = hashlib.blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=6)
        return f"{self.task.name}-{self.method.name}-{self.seed}-{digest.hexdigest()}"

    @functools.cached_property
    def encoder(self) -> Any:
        """The fitted transformer; trained transformers are stored in the results folder."""
        if not self.method.is_trained:
            return self._fit_control()
        folder = self.execution.folder / "encoders" / self.name
        record = folder.parent / f"{self.name}.json"
        locks = self.execution.folder / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        # Cells of other protocols or parts may need the same encoder, in other processes.
        with FileLock(locks / f"{self.name}.lock"):
            if not (folder.exists() and record.exists()):
                self._train(folder, record)
        self.record |= read_record(record)
        try:
            encoder = BaseEncoderTransformer.from_pretrained(folder, device=self.execution.device)
        except (FileNotFoundError, ValueError) as error:
            raise ValueError(
                f"{folder} is damaged: delete it, and its encoder is trained again ({error})"
            ) from error
        return encoder.set_params(num_threads=self.execution.num_threads)

    def _fit_control(self) -> Any:
        """Return the control, or the method in closed form, fitted on the training windows."""
        control = self.method.build(self.method.settings(self.preset), self.seed, **self.options)
        rows = self.task.rows("train")
        known: dict[str, Any] = {"y": None}
        if self.task.recording is not None:
            known |= {"recording": self.task.recording[rows], "groups": self.task.groups[rows]}
            if self.task.start is not None:
                known["start"] = self.task.start[rows]
        asked = _asked_at_fit(control, known)
        if "recording" not in asked and "groups" in asked:
            known["groups"] = known["recording"]
        start = time.perf_counter()
        control.fit(self.task.X[rows], **{name: known[name] for name in asked})
        self.record["fit_seconds"] = time.perf_counter() - start
        self.record["estimator"] = repr(control)
        return control

    def _train(self, folder: Path, record: Path) -> None:
        """Pre-train and save; a killed run continues from its last checkpoint."""
        settings = self.method.settings(self.preset)
        transformer = self.method.build(settings, self.seed, **self.options)
        checkpoints = folder.parent / f"{self.name}.checkpoints"  # names may hold a dot
        limits = self.budget.pretraining(transformer.get_params())
        transformer.set_params(**limits, checkpoint_dir=checkpoints)
        cut = self.method.cut(self.preset)
        length = int(cut.get("length") or self.task.X.shape[1])
        take = self.task.labeled_windows if self.method.needs_labels else self._unlabeled
        (train, y), (val, y_val) = (
            take(cut, part, self.seed, self.budget.n_windows(length, part))
            for part in ("train", "val")
        )
        start = time.perf_counter()
        # Without a validation part, the transformer takes a part of the training windows.
        known = {"X_val": val} if len(val) else {}
        if self.method.needs_labels:
            transformer.fit(train, y, **known, **({"y_val": y_val} if known else {}))
        else:
            transformer.fit(train, **known)
        facts = {
            "fit_seconds": time.perf_counter() - start,
            "n_pretraining_windows": len(train),
            "n_timesteps": train.shape[1],
            "n_epochs": transformer.n_iter_,
            "selected_epoch": transformer.selected_epoch_,
            "train_loss": transformer.history_[-1]["train_loss"],
            "valid_loss": transformer.history_[-1].get("valid_loss"),
        }
        folder.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps(facts), encoding="utf-8")
        transformer.save_pretrained(folder)
        shutil.rmtree(checkpoints)

    def _unlabeled(self, *args: Any) -> tuple[Any, None]:
        """Return windows for pre-training, and None instead of labels."""
        return self.task.pretraining_windows(*args), None

    @property
    def options(self) -> dict[str, Any]:
        """Parameters of estimators that the execution sets."""
        return {"device": self.execution.device, "num_threads": self.execution.num_threads}

    @functools.cached_property
    def rows(self) -> NDArray[np.intp]:
        """Numbers of the labelled windows that train the probe, then of the scored windows."""
        return np.concatenate([self.task.rows("train"), self.task.rows(self.scored)])

    @property
    def split(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions in `rows` of the windows that train the probe, and of the scored windows."""
        n_train = len(self.task.rows("train"))
        return np.arange(n_train), np.arange(n_train, len(self.rows))

    @property
    def y(self) -> NDArray[Any]:
        """Labels of the windows of `rows`."""
        return self.task.y[self.rows]

    @functools.cached_property
    def embedding(self) -> NDArray[Any]:
        """Embeddings of the windows of `rows`."""
        if self.method.make is None:
            return np.zeros((len(self.rows), 1))
        encoder = self.encoder
        start = time.perf_counter()
        embedding = encoder.transform(self.task.X[self.rows])
        self.record["embed_seconds"] = time.perf_counter() - start
        return _checked(embedding, len(self.rows))

    @property
    def probe(self) -> BaseEstimator:
        """The unfitted classifier of the embeddings."""
        return self.method.probe()


def encoder_identity(method: Method, preset: str, seed: int, budget: Budget) -> dict[str, Any]:
    """Return the settings on which the weights of a transformer depend, beside the data."""
    settings = method.settings(preset)
    # Decides whether `fit` gets the groups.
    routing = {"metadata_routing": True} if get_config()["enable_metadata_routing"] else {}
    return routing | {
        "package": __version__,
        "method": method.name,
        "settings": settings,
        "parameters": method.parameters(settings, seed),
        "windows": method.cut(preset) if method.is_trained else None,
        "seed": seed,
        "budget": budget.identity() if method.is_trained else None,
    }


def _asked_at_fit(estimator: Any, names: Iterable[str]) -> set[str]:
    """Return which arguments `fit` takes, by its signature or by scikit-learn's routing."""
    asked = {*names} & inspect.signature(estimator.fit).parameters.keys()
    if get_config()["enable_metadata_routing"] and hasattr(estimator, "get_metadata_routing"):
        asked |= get_routing_for_object(estimator).consumes("fit", names)
    return asked


def _checked(embedding: Any, n_windows: int) -> NDArray[Any]:
    """Return an embedding as an array; raise unless it has a row of finite numbers per window."""
    Z = np.asarray(embedding)
    if Z.ndim != 2 or len(Z) != n_windows or Z.dtype.kind not in "biuf":
        raise ValueError(
            f"transform gives shape {Z.shape} and type {Z.dtype} for {n_windows} windows: return a"
            " dense array of real numbers, with a row of features per window."
        )
    is_finite = np.isfinite(Z).all(axis=1)
    if not is_finite.all():
        raise ValueError(
            f"transform gives NaN or infinity for {np.sum(~is_finite)} of {n_windows} windows"
            f" (first window {is_finite.argmin()}): return finite features."
        )
    return Z if Z.dtype.kind == "f" else Z.astype(np.float64)


def cross_validated(trial: Trial, Z: NDArray[Any], y: NDArray[Any], cv: Any) -> Scores:
    """Return each score of the probe: a number for one split, a list for several splits.

    Undefined scores are left out, such as AUROC if only one class is scored.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # such scores are left out below
        result = cross_validate(
            trial.probe,
            Z,
            y,
            cv=cv,
            scoring=probe_scores,
            params={},  # scikit-learn 1.6 routes no None
            error_score="raise",
        )
    values = {
        name.removeprefix("test_"): value.tolist()
        for name, value in result.items()
        if name.startswith("test_") and np.isfinite(value).all()
    }
    return {name: value[0] if len(value) == 1 else value for name, value in values.items()}
