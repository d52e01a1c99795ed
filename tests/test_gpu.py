"""The CUDA paths; run where there is a GPU."""

import os
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from perf.step import Launched
from sklearn_pulse import (
    CrossPredictionTransformer,
    PulseOracleTransformer,
    PulseTransformer,
    baselines,
)
from sklearn_pulse._share import Share
from sklearn_pulse.base import _encoder as _embedding
from sklearn_pulse.baselines import _timemae
from sklearn_pulse.features import HydraTransformer, RandomConvolutionTransformer
from sklearn_pulse.features._convolutions import POOLINGS
from sklearn_pulse.objectives import CrossReconstruction
from tests.helpers import accepted, make_windows, small
from tests.kills import killed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.usefixtures("whole_float32"),
]
ROOT = Path(__file__).parents[1]
X, y = make_windows(60)
HOLES = X.copy()
HOLES[::2, 9:] = np.nan
pulse = partial(small, PulseTransformer)


def test_auto_is_cuda():
    assert torch.device(pulse().fit(X).net_.device).type == "cuda"


@pytest.mark.parametrize("windows", [X, HOLES], ids=["whole", "missing steps"])
def test_embedding_equals_that_of_the_cpu(windows):
    params = {"max_epochs": 1, "lr": 1e-9}
    np.testing.assert_allclose(
        pulse(**params).fit_transform(windows),
        pulse(**params, device="cpu").fit_transform(windows),
        atol=1e-4,
    )


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_same_seed_same_bits(precision):
    first, second = (pulse(precision=precision).fit_transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("windows", [X, HOLES], ids=["whole", "missing steps"])
@pytest.mark.parametrize(
    "transformer",
    [
        RandomConvolutionTransformer(840, poolings=POOLINGS, difference=True, random_state=0),
        HydraTransformer(8, random_state=0),
    ],
    ids=["random convolutions", "Hydra"],
)
def test_convolution_features_are_those_of_the_cpu(transformer, windows):
    here, there = (
        clone(transformer).set_params(device=device).fit_transform(windows)
        for device in ("cpu", "cuda")
    )
    # An output may lie above its threshold on one device alone.
    assert np.mean(np.abs(here - there) > 1e-4 * (1 + np.abs(here))) < 1e-3


@pytest.mark.parametrize("windows", [X, HOLES], ids=["whole", "missing steps"])
def test_cross_prediction_is_that_of_the_cpu(windows):
    """Directions may turn among themselves, which products of embeddings do not see."""
    cross = CrossPredictionTransformer(num_kernels=840, random_state=0, device="cuda")
    groups = np.arange(len(windows)) // 10
    first, second = (clone(cross).fit(windows, groups=groups).transform(windows) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    fitted = clone(cross).set_params(device="cpu").fit(windows, groups=groups)
    expected = fitted.transform(windows)
    there, here = (Z @ Z.T for Z in (first, expected))
    assert np.abs(there - here).max() < 0.02 * np.abs(here).max()
    moved = fitted.set_params(device="cuda").transform(windows)  # rounded to hundredths
    assert np.abs(moved - expected).mean() < 0.01


@pytest.fixture
def replays(monkeypatch):
    """Steps that were replayed."""
    done = []
    replay = torch.cuda.CUDAGraph.replay
    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", lambda self: done.append(1) or replay(self))
    return done


WHOLE = [
    baselines.DSVAETransformer,
    baselines.PatchTSTTransformer,
    baselines.SimMTMTransformer,
    baselines.SupervisedClassifier,
    baselines.TimeMAETransformer,
]
ALWAYS = [
    PulseTransformer,
    PulseOracleTransformer,
    baselines.LFADSTransformer,
    baselines.SimCLRTransformer,
]


def train(cls, windows, **params):
    """Fit on 60 windows: seven whole batches an epoch, and a smaller one."""
    settings = {"max_epochs": 5, "device": "cuda", "ramp_epochs": 1, "validation_fraction": 0}
    fitted = small(cls, **accepted(cls, settings | params)).fit(windows, y)
    return fitted.history_[-1]["train_loss"], fitted.transform(windows)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("cls", "windows"),
    [(cls, X) for cls in ALWAYS + WHOLE] + [(cls, HOLES) for cls in ALWAYS],
)
def test_a_replayed_step_trains_as_one_that_is_launched(cls, windows, precision, replays):
    replayed = train(cls, windows, precision=precision)
    n_replayed = len(replays)
    launched = train(cls, windows, precision=precision, callbacks=[Launched()])
    assert n_replayed == len(replays) > 0
    np.testing.assert_equal(replayed, launched)


def test_a_step_that_cannot_be_captured_is_launched(monkeypatch, replays):
    expected = train(baselines.TimeMAETransformer, HOLES)
    monkeypatch.setattr(_timemae.MaskedSegments, "replayed", "always")
    with pytest.warns(UserWarning, match="could not capture"):
        launched = train(baselines.TimeMAETransformer, HOLES)
    assert not replays
    np.testing.assert_equal(launched, expected)
    assert torch.randn(3, device="cuda").isfinite().all()  # torch's own generator draws


def test_a_fit_that_was_killed_in_replays_goes_on_to_the_same_bits(tmp_path, replays):
    pulse_ = pulse(max_epochs=6, device="cuda", checkpoint_dir=tmp_path)
    expected = clone(pulse_).set_params(checkpoint_dir=None).fit_transform(X)
    with killed(epoch=4):
        pulse_.fit(X)
    n_replayed = len(replays)
    np.testing.assert_array_equal(pulse_.fit_transform(X), expected)
    assert n_replayed


def test_data_larger_than_the_device_is_gathered(monkeypatch):
    resident = pulse().fit_transform(X)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 0))
    np.testing.assert_array_equal(pulse().fit_transform(X), resident)


def test_a_stream_of_small_blocks_is_one_large_block(monkeypatch):
    fitted = pulse().fit(X)
    whole = fitted.transform(X)
    monkeypatch.setitem(_embedding._MAX_BLOCK, "cuda", 7)
    np.testing.assert_allclose(fitted.transform(X), whole, atol=1e-5)


def test_loss_and_gradient_equal_those_of_the_cpu():
    torch.manual_seed(0)
    objective = CrossReconstruction(3, embedding_dim=8, encoder_hidden_dim=8)
    objective.eval()  # the devices draw other masks
    x, starts = torch.randn(5, 32, 3), torch.tensor([[0, 3, 9, 1, 15]]).repeat(2, 1)
    results = []
    for device in ("cpu", "cuda"):
        objective.to(device).zero_grad()
        objective.decoder.train()  # cuDNN has no gradient of a GRU in evaluation
        loss = objective(x=x.to(device), starts=starts.to(device))
        loss.backward()
        gradients = [p.grad for p in objective.parameters()]  # which move with the objective
        results.append([x.detach().cpu().clone() for x in [loss, *gradients]])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


def test_bfloat16_keeps_the_gradient_of_a_small_loss():
    """float16, which autocast takes for a GRU on CUDA, would lose it."""
    torch.manual_seed(0)
    objective = CrossReconstruction(3, embedding_dim=8, encoder_hidden_dim=8).to("cuda")
    x = torch.randn(64, 32, 3, device="cuda")
    starts = torch.full((2, 64), 3, device="cuda")
    gradients = []
    for enabled in (False, True):
        objective.zero_grad()
        torch.manual_seed(1)
        with torch.autocast("cuda", torch.bfloat16, enabled=enabled):
            loss = objective(x=x, starts=starts)
        (1e-3 * loss).backward()
        gradients.append(torch.cat([p.grad.flatten() for p in objective.encoder.parameters()]))
    whole, half = gradients
    assert (half - whole).norm() < 0.3 * whole.norm()  # 0.14 on an H200


def test_processes_of_a_search_change_no_score(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)  # as in the processes
    pipeline = make_pipeline(pulse(device="cuda", num_threads=1), LogisticRegression())
    grid, y = {"pulsetransformer__n_crops": [1, 2]}, np.arange(len(X)) % 2
    search = GridSearchCV(pipeline, grid, cv=3, scoring="neg_log_loss")
    scores = [
        clone(search).set_params(n_jobs=n).fit(X, y).cv_results_["mean_test_score"] for n in (1, 3)
    ]
    np.testing.assert_array_equal(*scores)


def test_a_pickle_loads_without_cuda(tmp_path):
    fitted = pulse().fit(X)
    path = tmp_path / "pulse.pkl"
    path.write_bytes(pickle.dumps(fitted))
    code = (
        "import pickle, sys, numpy as np, warnings; warnings.simplefilter('ignore');"
        "p = pickle.load(open(sys.argv[1], 'rb'));"
        "from tests.test_gpu import X; np.save(sys.argv[2], p.transform(X))"
    )
    out = tmp_path / "Z.npy"
    env = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", code, str(path), str(out)]
    subprocess.run(command, env=env, cwd=ROOT, check=True)
    np.testing.assert_allclose(np.load(out), fitted.transform(X), atol=1e-4)


def test_a_finished_run_is_read_to_the_same_bits(tmp_path):
    expected = pulse(max_epochs=4).fit_transform(X)
    pulse(max_epochs=4, checkpoint_dir=tmp_path).fit(X)
    np.testing.assert_array_equal(
        pulse(max_epochs=4, checkpoint_dir=tmp_path).fit_transform(X), expected
    )


@pytest.mark.parametrize("theta_dropout", ["step", "sequence"])
def test_shares_of_a_batch_add_up(theta_dropout):
    """On padded crops, which CUDA runs, each process draws the masks of its own rows."""
    torch.manual_seed(0)
    sizes = {"embedding_dim": 8, "encoder_hidden_dim": 8, "theta_dropout": theta_dropout}
    objective = CrossReconstruction(3, **sizes).cuda()
    x, losses = torch.randn(5, 32, 3, device="cuda"), []
    for share in (Share(), Share(0, 2), Share(1, 2)):
        objective.share = share
        with objective.seeded(1):
            losses.append(objective(x=x).item())
    assert losses[1] + losses[2] == pytest.approx(losses[0], abs=1e-5)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_two_devices_train_as_one(tmp_path):
    """Each process takes the device of its LOCAL_RANK, and they meet by NCCL."""
    np.save(tmp_path / "X.npy", X)
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, numpy as np, torch\n"
        "from sklearn_pulse.baselines import SimCLRTransformer\n"
        "X, rank = np.load(sys.argv[1]), int(os.environ['RANK'])\n"
        "simclr = SimCLRTransformer(embedding_dim=8, max_epochs=2, batch_size=16,\n"
        "    device='cuda', distributed=True, random_state=0).fit(X)\n"
        "assert simclr.encoder_(torch.zeros(1, 16, 2, device='cuda')).device.index == rank\n"
        "if rank == 0: np.save(sys.argv[2], simclr.transform(X))\n"
    )
    embeddings = []
    for n in (1, 2):
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n)]
        command = [sys.executable, *launcher, script, tmp_path / "X.npy", tmp_path / f"{n}.npy"]
        subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
        embeddings.append(np.load(tmp_path / f"{n}.npy"))
    np.testing.assert_allclose(*embeddings, atol=1e-3)
