"""`fit` whose steps a GPU replays, against the same fit whose steps launch every kernel."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from perf.duel import duel
from perf.sizes import NAMES, Size
from perf.step import Launched
from sklearn_pulse import PulseTransformer, baselines, presets
from sklearn_pulse.benchmark._methods import method_name

N_BATCHES = 50  # the first ten are launched
METHODS = {
    "DSVAE": baselines.DSVAETransformer,
    "LFADS": baselines.LFADSTransformer,
    "PatchTST": baselines.PatchTSTTransformer,
    "SimCLR": baselines.SimCLRTransformer,
    "SimMTM": baselines.SimMTMTransformer,
    "TimeMAE": baselines.TimeMAETransformer,
}
CASES = {f"PULSE, {NAMES[name]}": (PulseTransformer, name) for name in NAMES}
CASES |= {f"{title}, HAR": (cls, "har") for title, cls in METHODS.items()}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="only CUDA replays")
@pytest.mark.parametrize("case", CASES)
def test_replay(benchmark, case):
    """Both fits end with the same bits."""
    cls, dataset = CASES[case]
    size = Size(dataset)
    shape = N_BATCHES * size.batch_size, size.n_timesteps, size.n_channels
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    method = method_name(cls)
    params = presets.get(method, dataset) | {"max_epochs": 1, "batch_size": size.batch_size}
    if method == "lfads":
        params["ramp_epochs"] = 0  # no epoch differs from the one before
    replayed = cls(**params, validation_fraction=0, device="cuda", random_state=0)
    launched = clone(replayed).set_params(callbacks=[Launched()])
    embeddings = [estimator.fit(X).transform(X[:64]) for estimator in (replayed, launched)]
    np.testing.assert_array_equal(*embeddings)
    duel(
        benchmark,
        lambda: replayed.fit(X),
        lambda: launched.fit(X),
        device=torch.device("cuda"),
        n_windows=len(X),
        rounds=3,
        size=case,
        task="replay",
    )
