"""Grid searches against slower ones with equal results: in processes, and with a folder."""

import tempfile

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline

from perf.duel import devices, duel
from sklearn_pulse import CrossPredictionTransformer, PulseTransformer

N_WINDOWS, N_TIMESTEPS, N_CHANNELS = 384, 64, 3
GRID = {
    "pulsetransformer__n_crops": [1, 2, 3],
    "pulsetransformer__gru_num_layers": [1, 2],
    "pulsetransformer__gru_hidden_dim": [16, 32],
}


def search(device, n_jobs, X, y):
    """Search 12 settings in 3 folds with one thread per process."""
    pulse = PulseTransformer(
        embedding_dim=32,
        encoder_hidden_dim=16,
        encoder_depth=5,
        max_epochs=3,
        device=device,
        num_threads=1,
        random_state=0,
    )
    pipeline = make_pipeline(pulse, LogisticRegression(max_iter=1000))
    return GridSearchCV(pipeline, GRID, cv=KFold(3), n_jobs=n_jobs, refit=False).fit(X, y)


@pytest.mark.parametrize("device", devices())
def test_search(benchmark, device):
    """Two workers on a CPU with two cores, six on a GPU."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_WINDOWS, N_TIMESTEPS, N_CHANNELS)).astype(np.float32)
    y = rng.integers(0, 3, N_WINDOWS)
    n_jobs = 6 if device == "cuda" else 2
    scores = [search(device, n, X, y).cv_results_["mean_test_score"] for n in (1, n_jobs)]
    np.testing.assert_array_equal(*scores)
    duel(
        benchmark,
        lambda: search(device, n_jobs, X, y),
        lambda: search(device, 1, X, y),
        device=torch.device(device),
        n_windows=36 * 3 * N_WINDOWS * 2 // 3,  # fits * epochs * windows of two folds
        rounds=3,
        size=f"{n_jobs} processes",
        task="search",
    )


MAPS = {
    "crosspredictiontransformer__alpha": [0.0, 0.5, 1.0],
    "crosspredictiontransformer__nearest": [0.0, 0.5],
}
N_OF_SIZE_HAR = 480


def search_maps(memory, X, y, person):
    """Search 6 maps in 3 folds."""
    cross = CrossPredictionTransformer(memory=memory, num_threads=1, random_state=0)
    pipeline = make_pipeline(cross, LogisticRegression(max_iter=1000))
    search = GridSearchCV(pipeline, MAPS, cv=GroupKFold(3), refit=False)
    return search.fit(X, y, groups=person).cv_results_["mean_test_score"]


def test_search_of_maps(benchmark):
    """With a new folder, against a search that computes features for each fit."""
    person = np.repeat(np.arange(12), N_OF_SIZE_HAR // 12)
    y = np.arange(N_OF_SIZE_HAR) // 10 % 4
    X = np.random.default_rng(0).normal(size=(N_OF_SIZE_HAR, 128, 6)).astype(np.float32).cumsum(1)
    X *= 1 + y[:, None, None]

    def in_folder():
        with tempfile.TemporaryDirectory() as folder:
            return search_maps(folder, X, y, person)

    np.testing.assert_array_equal(in_folder(), search_maps(None, X, y, person))
    duel(
        benchmark,
        in_folder,
        lambda: search_maps(None, X, y, person),
        device=torch.device("cpu"),
        n_windows=18 * N_OF_SIZE_HAR * 2 // 3,  # fits * windows of two folds
        rounds=2,
        size="maps of cross-prediction",
        task="search of maps",
    )
