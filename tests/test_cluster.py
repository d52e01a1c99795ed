"""A real Dask scheduler with workers in processes of their own: search, embed and fit on them."""

import os
import signal
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from skorch.callbacks import Callback

from sklearn_pulse import CrossPredictionTransformer, PulseTransformer
from sklearn_pulse.corpus import dask_workers, embed_dataset, fit_dataset
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.windows import open_recordings, sliding_windows
from tests.helpers import SMALL_PULSE, small

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytest.importorskip("zarr")
pytestmark = pytest.mark.xdist_group("cluster")  # one cluster for all
RECORDINGS = [
    np.random.default_rng(number).normal(size=(50_000, 2)).astype(np.float32) for number in range(6)
]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with (
        forking(),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            local_directory=tmp_path_factory.mktemp("workers"),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def forking():
    """Fork the workers from one process, which imports what they need, once for both.

    Spawned, each of them would import it.
    """
    method = dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    needed = ["distributed", "torch._dynamo", "sklearn_pulse.base"]
    distributed.utils.get_mp_context().set_forkserver_preload(needed)
    return method


@pytest.fixture
def sent(monkeypatch):
    """Bytes of the messages that this process, the client and the scheduler, has written."""
    from distributed.comm.tcp import TCP

    write, sizes = TCP.write, []

    async def counted(self, *args, **kwargs):
        sizes.append(await write(self, *args, **kwargs))
        return sizes[-1]

    monkeypatch.setattr(TCP, "write", counted)
    return sizes


def windows(recordings=RECORDINGS, lazy=True):
    y, groups = [0, 1] * 3, [0, 0, 1, 1, 2, 2]
    return sliding_windows(recordings, 16, 7000, y=y, groups=groups, lazy=lazy)


def search(cv, **params):
    """Two candidates in three folds, each fit with groups, on one thread."""
    brief = {"encoder_depth": 1, "gru_num_layers": 1, "max_epochs": 1}
    pulse = PulseTransformer(**SMALL_PULSE | brief | params)
    pipeline = make_pipeline(pulse.set_fit_request(groups=True), LogisticRegression())
    grid = {"pulsetransformer__n_crops": [1, 2]}
    return GridSearchCV(pipeline, grid, cv=cv, refit=False, error_score="raise")


def results(fitted):
    """Scores and parameters without times."""
    return {k: v for k, v in fitted.cv_results_.items() if not k.endswith("_time")}


def test_a_search_equals_the_serial_one_and_sends_the_data_once(client, sent):
    w = windows()
    with sklearn.config_context(enable_metadata_routing=True):
        serial = search(GroupKFold(3)).fit(w.X, w.y, groups=w.groups)
        with joblib.parallel_config("dask"):
            before = sum(sent)
            spread = search(GroupKFold(3)).fit(w.X, w.y, groups=w.groups)
    np.testing.assert_equal(results(spread), results(serial))
    size = sum(x.nbytes for x in RECORDINGS)
    # Once from the client to the scheduler, and once to a worker; six fits need the data.
    assert sum(sent) - before < 3 * size


def test_recordings_in_files_are_not_sent(client, sent, tmp_path):
    for number, recording in enumerate(RECORDINGS):
        np.save(tmp_path / f"{number}.npy", recording)
    w = windows(open_recordings(tmp_path))
    pipeline = make_pipeline(StatisticsTransformer(), LogisticRegression())
    settings = {"cv": GroupKFold(3), "refit": False, "error_score": "raise"}
    cheap = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1]}, **settings)
    serial = results(cheap.fit(w.X, w.y, groups=w.groups))
    with joblib.parallel_config("dask"):
        before = sum(sent)
        np.testing.assert_equal(results(cheap.fit(w.X, w.y, groups=w.groups)), serial)
    assert sum(sent) - before < sum(x.nbytes for x in RECORDINGS) / 4


def test_workers_embed_a_corpus(client, tmp_path):
    import dask.array as da

    w = windows(lazy=False)
    statistics = StatisticsTransformer().fit(w.X)
    for name, source in {"lazy": windows().X, "dask": da.from_array(w.X, chunks=(9, 8, 2))}.items():
        group = embed_dataset(statistics, source, tmp_path / name)
        np.testing.assert_array_equal(group["embedding"][:], statistics.transform(w.X))
        assert group["done"][:].all()
    import zarr

    with pytest.raises(ValueError, match="in the memory of this process"):
        embed_dataset(statistics, w.X, zarr.open_group(zarr.storage.MemoryStore()))


def test_the_same_data_are_sent_again_and_again(client):
    w = windows(lazy=False)
    for _ in range(40):  # `scatter` of joblib waited for ever before the twentieth time
        with dask_workers(w.X, w.y):
            pass
    with dask_workers(), joblib.Parallel() as parallel:  # no data to keep
        assert parallel(joblib.delayed(abs)(i) for i in [-1, 2]) == [1, 2]


@pytest.mark.parametrize("known", [True, False])
def test_workers_sum_the_moments_of_the_closed_form(client, monkeypatch, known):
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 20)
    monkeypatch.setattr("sklearn_pulse._closed_form._pieces._PIECE", 10)
    w = windows(lazy=False)
    groups = w.recording if known else None
    here = small(CrossPredictionTransformer).fit(w.X, groups=groups)
    there = fit_dataset(small(CrossPredictionTransformer), w.X, groups=groups)
    np.testing.assert_array_equal(there.transform(w.X), here.transform(w.X))
    np.testing.assert_equal(there.predictability_, here.predictability_)


class Mortal(Callback):
    """Note each training, and kill the process of the first one after two of its epochs."""

    def __init__(self, folder):
        self.folder = str(folder)

    def note(self, text):
        with open(Path(self.folder) / "log", "a") as log:
            log.write(text + "\n")

    def on_train_end(self, net, **kwargs):
        self.note("end")

    def on_epoch_begin(self, net, **kwargs):
        self.note(f"epoch {len(net.history)}")

    def on_epoch_end(self, net, **kwargs):
        if len(net.history) == 3 and (Path(self.folder) / "armed").exists():
            (Path(self.folder) / "armed").unlink(missing_ok=True)
            self.note("killed")
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_worker_loses_no_finished_result(client, tmp_path):
    w = windows(lazy=False)
    w.X = np.tile(w.X, (3, 1, 1))  # so many windows that folds are sent, not copied into each call
    w.y, w.groups = np.tile(w.y, 3), np.tile(w.groups, 3)
    params = {"max_epochs": 4, "batch_size": 32, "callbacks": [("mortal", Mortal(tmp_path))]}
    folds = list(GroupKFold(3).split(w.X, w.y, w.groups))
    with sklearn.config_context(enable_metadata_routing=True):
        serial = search(folds, **params).fit(w.X, w.y, groups=w.groups)
        log = tmp_path / "log"
        n_fits = log.read_text().count("end")
        log.unlink()
        (tmp_path / "armed").touch()
        params["checkpoint_dir"] = tmp_path / "checkpoints"
        with dask_workers(w.X, w.y, folds):
            time.sleep(3)  # in which Dask's memory manager would drop all copies but one
            spread = search(folds, **params).fit(w.X, w.y, groups=w.groups)
    np.testing.assert_equal(results(spread), results(serial))
    lines = log.read_text().split("\n")
    assert lines.count("killed") == 1
    # The killed fit goes on at the epoch whose end was not stored; no other fit is repeated, but
    # a result that had not left the worker yet.
    assert n_fits <= lines.count("end") <= n_fits + 1
    assert lines.count("epoch 1") <= n_fits
