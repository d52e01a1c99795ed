"""The CUDA paths of every method, on a pretended device; `test_gpu` runs on a real one."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from sklearn_pulse import FineTuneClassifier, FineTuneRegressor, PulseTransformer, baselines
from sklearn_pulse.features import _convolution_base
from tests.helpers import accepted, make_windows, small
from tests.kills import killed
from tests.pretended_cuda import pretended_cuda
from tests.test_device import ON_A_DEVICE

X, y = make_windows()
HOLES = X.copy()
HOLES[3, 10:] = np.nan


def test_the_device_refuses_tensors_of_the_cpu(monkeypatch):
    with pretended_cuda(monkeypatch):
        here, there = torch.ones(3), torch.ones(3, device="cuda")
        assert there.is_cuda and there.device.type == "cuda" and (2 * there).is_cuda
        assert here.device.type == here.to("cuda").cpu().device.type == "cpu"
        with pytest.raises(RuntimeError, match=r"add of .* \[\(3,\)\] on the CPU"):
            torch.add(there, here)
        with pytest.raises(TypeError, match="to numpy"):
            there.numpy()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("cls", ON_A_DEVICE)
def test_every_method_computes_on_one_device(cls, precision, monkeypatch, tmp_path):
    monkeypatch.setitem(_convolution_base._BLOCK_OUTPUTS, "cuda", 2**16)  # to save time
    settings = {"max_epochs": 1, "precision": precision, "device": "auto"}
    estimator = small(cls).set_params(**accepted(cls, settings))

    def compute(fitted):
        return (fitted.transform if hasattr(fitted, "transform") else fitted.predict_proba)(HOLES)

    with monkeypatch.context() as patches, pretended_cuda(patches) as device:
        there = compute(estimator.fit(HOLES, y))
        for name in ("reconstruct", "score_samples"):
            if callable(getattr(estimator, name, None)):
                getattr(estimator, name)(HOLES)
        estimator.save_pretrained(tmp_path / "model")
    assert device.calls
    here = compute(cls.from_pretrained(tmp_path / "model"))
    if precision == "float32":  # oneDNN computes some convolutions of bfloat16 wrongly
        np.testing.assert_allclose(there, here, atol=1e-5)


@pytest.mark.parametrize("cls", [PulseTransformer, baselines.REBARTransformer])
def test_a_fit_that_was_killed_goes_on_to_the_same_bits(cls, monkeypatch, tmp_path):
    fitted = small(cls, max_epochs=3).set_params(device="cuda")
    with pretended_cuda(monkeypatch):
        expected = clone(fitted).fit_transform(HOLES)
        fitted.set_params(checkpoint_dir=tmp_path)
        with killed(epoch=2):
            fitted.fit(HOLES)
        np.testing.assert_array_equal(fitted.fit_transform(HOLES), expected)


def test_windows_that_the_device_has_no_room_for_are_copied_batch_by_batch(monkeypatch):
    results = []
    for room in (0, 2**30):
        with monkeypatch.context() as patches, pretended_cuda(patches, room):
            results.append(small(PulseTransformer).set_params(device="cuda").fit_transform(HOLES))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("cls", [FineTuneClassifier, FineTuneRegressor])
def test_fine_tuning_computes_on_one_device(cls, monkeypatch):
    with pretended_cuda(monkeypatch) as device:
        pulse = small(PulseTransformer).set_params(device="cuda").fit(HOLES)
        tuned = cls(FrozenEstimator(pulse), max_epochs=1, device="cuda").fit(HOLES, y)
        assert np.isfinite(tuned.score(HOLES, y))
    assert "backward" in device.calls
