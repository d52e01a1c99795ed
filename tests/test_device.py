"""Numbers of threads and errors of memory: what a fit leaves behind, and what it says."""

import os
import signal
import threading

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits
from torch.utils._python_dispatch import TorchDispatchMode

from sklearn_pulse import (
    CrossPredictionTransformer,
    PulseOracleTransformer,
    PulseTransformer,
    baselines,
    sampling,
)
from sklearn_pulse._threads import limited_threads, threads
from sklearn_pulse._training._device import memory_errors, resolve_device
from sklearn_pulse.base import _encoder
from sklearn_pulse.baselines import _ts2vec
from sklearn_pulse.features import _convolution_base
from sklearn_pulse.objectives import _rebar_contrast
from tests.helpers import SMALL_PULSE, make_windows, small

X = make_windows()[0]


def test_a_gpu_is_hidden_from_tests_that_do_not_ask_for_it():
    """They compare with the CPU, whatever the machine has; so do the processes that they start."""
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    assert not torch.cuda.is_available()


def in_new_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_limits_of_threads_that_overlap_leave_no_trace():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    entered, leave = threading.Event(), threading.Event()

    def limited():
        with threads(1):
            entered.set()
            leave.wait(60)
            inside = torch.get_num_threads()
        return inside, torch.get_num_threads()

    try:
        results = []
        with threads(1):
            # This thread begins under the limit of the other one, and ends after it.
            second = threading.Thread(target=lambda: results.append(limited()))
            second.start()
            entered.wait(60)
        assert torch.get_num_threads() == 3
        leave.set()
        second.join()
        assert results == [(1, 3)]
        assert torch.get_num_threads() == 3
        assert in_new_thread(torch.get_num_threads) == 3
    finally:
        torch.set_num_threads(before)


def test_limits_of_threads_nest():
    before = torch.get_num_threads()
    with threads(before + 1):
        with threads(before + 2):
            with threads(before + 1):
                assert torch.get_num_threads() == before + 1
            assert torch.get_num_threads() == before + 2
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def out_of_memory(kind, message):
    def fail(*args, **kwargs):
        raise kind(message)

    return fail


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        (torch.OutOfMemoryError, "CUDA out of memory.", torch.OutOfMemoryError),
        (RuntimeError, "DefaultCPUAllocator: can't allocate memory", MemoryError),
        (MemoryError, "Unable to allocate 9 GiB", MemoryError),
    ],
)
def test_running_out_of_memory_names_what_to_lower(kind, message, expected, monkeypatch):
    pulse = PulseTransformer(**SMALL_PULSE).fit(X)
    embedding = pulse.transform(X)
    with monkeypatch.context() as patch:
        patch.setattr("torch.Tensor.backward", out_of_memory(kind, message))
        with pytest.raises(expected, match=f"lower one of batch_size=.*n_crops=.*{message[:9]}"):
            pulse.fit(X)
        patch.setattr(type(pulse.net_.module_), "encode", out_of_memory(kind, message))
        with pytest.raises(expected, match=r"cut them shorter, or set device='cpu'"):
            pulse.transform(X)
    np.testing.assert_array_equal(pulse.transform(X), embedding)


def test_other_errors_of_torch_stay_as_they_are(monkeypatch):
    monkeypatch.setattr("torch.Tensor.backward", out_of_memory(RuntimeError, "another"))
    with pytest.raises(RuntimeError, match=r"^another$"):
        PulseTransformer(**SMALL_PULSE).fit(X)


@pytest.mark.parametrize("name", ["init_dilation", "embedding_dim", "n_crops", "batch_size"])
def test_integers_beyond_32_bits_are_refused_by_name(name):
    with pytest.raises(ValueError, match=rf"{name} must be an integer from . to 2147483647"):
        PulseTransformer(**SMALL_PULSE | {name: 2**70}).fit(X)


def test_integers_of_features_beyond_32_bits_are_refused_by_name():
    with pytest.raises(ValueError, match="n_components must be an integer from 1 to 2147483647"):
        CrossPredictionTransformer(n_components=2**70).fit(X)


class NoFloat64(TorchDispatchMode):
    """A device without float64, as a GPU of Apple's: what makes such a tensor fails."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        parts = result if isinstance(result, tuple | list) else [result]
        if any(isinstance(part, torch.Tensor) and part.dtype == torch.float64 for part in parts):
            raise TypeError(f"{function} makes float64")
        return result


ON_A_DEVICE = [
    cls
    for cls in (
        PulseTransformer,
        PulseOracleTransformer,
        CrossPredictionTransformer,
        *(getattr(baselines, name) for name in baselines.__all__),
    )
    if "device" in cls().get_params()
]


@pytest.mark.parametrize("cls", ON_A_DEVICE)
def test_no_method_needs_float64_where_there_is_none(cls, monkeypatch):
    for module in (sampling, _ts2vec):
        monkeypatch.setattr(module, "finest_float", lambda device: torch.float32)
    estimator = small(cls, max_epochs=1)
    holes = X.copy()
    holes[3, 10:] = np.nan
    with NoFloat64():
        estimator.fit(holes, np.arange(len(holes)) % 2)
        compute = estimator.transform if hasattr(estimator, "transform") else estimator.predict
        assert np.isfinite(compute(holes)).all()


def test_mps_is_a_device_where_pytorch_finds_it(monkeypatch):
    with pytest.raises(ValueError, match="device='mps', but PyTorch finds no GPU of Apple's"):
        PulseTransformer(**SMALL_PULSE, device="mps").fit(X)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    for name in ("mps", "mps:0", torch.device("mps")):
        assert resolve_device(name).type == "mps"
    assert resolve_device("auto").type != "mps"
    tables = _encoder._BLOCK_STEPS, _encoder._MAX_BLOCK, _convolution_base._BLOCK_OUTPUTS
    for table in (*tables, _rebar_contrast._MAX_JOINT_STEPS, _rebar_contrast._PART_STEPS):
        assert table.keys() == {"cpu", "cuda", "mps"}
    settings = PulseTransformer(device="mps")._training_params(X)
    assert settings["optimizer__fused"] is False


def test_a_cuda_device_has_a_number_that_pytorch_finds(monkeypatch, tmp_path):
    small(PulseTransformer, max_epochs=1).fit(X).save_pretrained(tmp_path / "pulse")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name in ("cuda", "cuda:1"):
        assert resolve_device(name) == torch.device(name)
    absent = (
        "device='cuda:2', but PyTorch finds 2 CUDA device.s., numbered from 0: set device='cuda'"
    )
    with pytest.raises(ValueError, match=f"^{absent}"):
        small(PulseTransformer, device="cuda:2").fit(X)
    with pytest.raises(ValueError, match=f"^{absent}"):  # which does not blame the file
        PulseTransformer.from_pretrained(tmp_path / "pulse", device="cuda:2")


def test_memory_of_apples_gpu_has_the_remedy():
    with pytest.raises(torch.OutOfMemoryError, match="cut them shorter. MPS backend"):
        with memory_errors("cut them shorter."):
            raise RuntimeError("MPS backend out of memory (allocated 3 GB)")


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def start_limited():
    """Start a thread under a limit of one thread; return what ends it."""
    entered, leave = threading.Event(), threading.Event()

    def limited():
        with limited_threads(1):
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=limited)
    thread.start()
    assert entered.wait(60)

    def end():
        leave.set()
        thread.join()

    return end


def test_limits_of_linear_algebra_that_overlap_leave_no_trace():
    def inside():
        with limited_threads(1):
            return blas_threads()

    with threadpool_limits(2, "blas"):
        before = blas_threads()  # one where the libraries have no other
        assert in_new_thread(inside) == {1}  # though this thread has set a limit
        assert blas_threads() == before
        with limited_threads(1):
            with limited_threads(2):  # of one thread, the inner limit counts
                assert blas_threads() == before
            end = start_limited()
            with limited_threads(2):  # of several threads, the smallest
                assert blas_threads() == {1}
        assert blas_threads() == {1}
        end()
        assert blas_threads() == before
        with limited_threads(None):
            assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_no_limit_of_another_thread():
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        end = start_limited()
        child = os.fork()
        if child == 0:  # pragma: no cover
            try:
                signal.alarm(60)
                os._exit(blas_threads() != before)
            finally:
                os._exit(2)
        try:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert blas_threads() == {1}  # the parent keeps it
        finally:
            end()
