"""The CUDA paths of every method, on a pretended device; `test_gpu` runs on a real one."""

import io
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from skorch.callbacks import Callback
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._python_dispatch import TorchDispatchMode

from perf.step import Launched
from sklearn_pulse import (
    FineTuneClassifier,
    FineTuneRegressor,
    PulseOracleTransformer,
    PulseTransformer,
    baselines,
)
from sklearn_pulse._threads import threads
from sklearn_pulse._training import _captured
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse.features import HydraTransformer, RandomConvolutionTransformer
from sklearn_pulse.networks import SystemEncoder
from sklearn_pulse.objectives import CrossReconstruction, REBARContrast
from tests.helpers import accepted, callback_of, make_windows, small
from tests.kills import killed
from tests.pretended_cuda import leaves, pretended_cuda
from tests.test_device import ON_A_DEVICE
from tests.toy_method import DenoisedMean, DenoisedMeanTransformer

X, y = make_windows()
HOLES = X.copy()
TRAINED = [cls for cls in ON_A_DEVICE if "max_epochs" in accepted(cls, {"max_epochs": 1})]
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
    settings = {"max_epochs": 1, "precision": precision, "device": "auto"}
    estimator = small(cls).set_params(**accepted(cls, settings))
    few = HOLES[:10]  # a batch to train on, and one to validate on

    def compute(fitted):
        return (fitted.transform if hasattr(fitted, "transform") else fitted.predict_proba)(few)

    with monkeypatch.context() as patches, pretended_cuda(patches) as device:
        there = compute(estimator.fit(few, y[:10]))
        for name in ("reconstruct", "score_samples"):
            if callable(getattr(estimator, name, None)):
                getattr(estimator, name)(few)
        estimator.save_pretrained(tmp_path / "model")
    assert device.calls
    here = compute(cls.from_pretrained(tmp_path / "model"))
    if precision == "float32":  # oneDNN computes some convolutions of bfloat16 wrongly
        np.testing.assert_allclose(there, here, atol=1e-5)


class Sizes(TorchDispatchMode):
    """Notes how many values the results of operations hold."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.found += [part.numel() for part in leaves(result) if isinstance(part, torch.Tensor)]
        return result


@pytest.mark.parametrize("cls", [RandomConvolutionTransformer, HydraTransformer])
def test_few_windows_are_not_filled_up_to_what_a_device_has_room_for(cls, monkeypatch):
    with pretended_cuda(monkeypatch), Sizes() as sizes:
        cls(random_state=0, device="cuda").fit(X).transform(X[:3])
    assert max(sizes.found) <= 2**25  # of 2**26, twice


def test_rebar_embeds_a_batch_in_few_operations_on_a_device(monkeypatch):
    """Of windows as long as those of HAR; on a CPU it embeds a few anchors at a time."""
    sizes = {"hidden_dim": 16, "kernel_size": 15, "bottleneck_dim": 8, "depth": 1}
    windows = torch.randn(16, 11, 128, 6, generator=torch.Generator().manual_seed(0))

    def step(device):
        objective = REBARContrast(6, attention=sizes, seed=0).to(device)
        anchors, candidates = windows[:, 0].to(device), windows[:, 1:].to(device)
        with Sizes() as found:
            loss = objective(x=anchors, candidates=candidates)
            loss.backward()
        return loss.item(), len(found.found)

    with torch.random.fork_rng(), threads(1):  # with more, it embeds more anchors at a time
        torch.manual_seed(0)
        expected, n_on_a_cpu = step("cpu")
        torch.manual_seed(0)
        with pretended_cuda(monkeypatch):
            loss, n_on_a_device = step("cuda")
    assert loss == pytest.approx(expected, rel=1e-5)
    assert n_on_a_device < n_on_a_cpu / 4


class KeepingWeights(Callback):
    """Keeps a weight, and the optimizer with its state, on the device."""

    def on_train_end(self, net, **kwargs):
        self.kept = {"weights": [net.module_.encoder.input.weight.detach().clone()]}
        self.optimizer = net.optimizer_


@pytest.mark.parametrize("cls", [*ON_A_DEVICE, FineTuneClassifier])
def test_a_pickle_needs_no_device(cls, monkeypatch):
    """skorch pickles some attributes so that they load on any machine; no tensor is elsewhere."""
    found = []

    class Pickler(pickle.Pickler):
        def reducer_override(self, value):
            if isinstance(value, torch.Tensor) and device.holds(value):
                found.append(value)
            return NotImplemented

    with pretended_cuda(monkeypatch) as device:
        Pickler(io.BytesIO()).dump(small(cls, **accepted(cls, {"device": "cuda"})).fit(X, y))
        assert not found
        if cls is PulseTransformer:
            kept = [KeepingWeights()]
            Pickler(io.BytesIO()).dump(small(cls, device="cuda", callbacks=kept).fit(X))
            assert not found
        Pickler(io.BytesIO()).dump(torch.ones(1, device="cuda"))
        assert found


@pytest.mark.parametrize("cls", [PulseTransformer, baselines.REBARTransformer])
def test_a_fit_that_was_killed_goes_on_to_the_same_bits(cls, monkeypatch, tmp_path):
    fitted = small(cls, max_epochs=3).set_params(device="cuda")
    with pretended_cuda(monkeypatch):
        expected = clone(fitted).fit_transform(HOLES)
        fitted.set_params(checkpoint_dir=tmp_path)
        with killed(epoch=2):
            fitted.fit(HOLES)
        np.testing.assert_array_equal(fitted.fit_transform(HOLES), expected)


def test_a_fit_that_was_killed_on_a_device_begins_anew_on_a_machine_without(monkeypatch, tmp_path):
    """The state of a generator of CUDA fits no generator of the CPU."""
    pulse = small(PulseTransformer, max_epochs=3, device="auto", checkpoint_dir=tmp_path)
    with monkeypatch.context() as patches, pretended_cuda(patches), killed(epoch=2):
        pulse.fit(X)
    expected = clone(pulse).set_params(checkpoint_dir=None).fit_transform(X)
    np.testing.assert_array_equal(pulse.fit_transform(X), expected)
    assert len(list(tmp_path.iterdir())) == 2
    pulse.set_params(device="cpu").fit(X)
    assert len(list(tmp_path.iterdir())) == 2


def test_windows_that_the_device_has_no_room_for_are_copied_batch_by_batch(monkeypatch):
    results = []
    for room in (0, 2**30):
        with monkeypatch.context() as patches, pretended_cuda(patches, room):
            results.append(small(PulseTransformer).set_params(device="cuda").fit_transform(HOLES))
    np.testing.assert_array_equal(*results)


@pytest.fixture
def replays(monkeypatch):
    """Steps that were replayed; a capture comes after two steps, to save time."""
    monkeypatch.setattr(_captured, "_EAGER_STEPS", 2)
    done = []
    replay = _captured._Recording.replay
    monkeypatch.setattr(
        _captured._Recording, "replay", lambda *args: done.append(1) or replay(*args)
    )
    return done


def train(cls, **params):
    """Fit on 20 windows: two whole batches an epoch, and a smaller one."""
    settings = {"device": "cuda", "max_epochs": 4, "ramp_epochs": 1, "validation_fraction": 0}
    estimator = small(cls, **accepted(cls, settings | params))
    fitted = estimator.fit(HOLES, y)
    return fitted, fitted.transform(HOLES), [row["train_loss"] for row in fitted.history_]


@pytest.mark.parametrize(
    "cls", [PulseTransformer, PulseOracleTransformer, baselines.LFADSTransformer]
)
def test_a_replayed_step_trains_as_one_that_is_launched(cls, monkeypatch, replays):
    with pretended_cuda(monkeypatch):
        _, *replayed = train(cls)
        n_replayed = len(replays)
        _, *launched = train(cls, callbacks=[Launched()])
    assert len(replays) == n_replayed > 0
    np.testing.assert_equal(replayed, launched)


@pytest.mark.parametrize("windows", [X, HOLES], ids=["whole", "missing steps"])
@pytest.mark.parametrize("cls", sorted(TRAINED, key=lambda cls: cls.__name__))
def test_only_steps_that_a_graph_can_repeat_are_captured(cls, windows, monkeypatch, replays):
    """The pretended device refuses to copy from or to it in a capture; warnings are errors."""
    settings = {"device": "cuda", "max_epochs": 2, "ramp_epochs": 0, "validation_fraction": 0}
    with pretended_cuda(monkeypatch):
        net = small(cls, **accepted(cls, settings)).fit(windows, y).net_
    always, whole = (net.module_.replayed == kind for kind in ("always", "whole"))
    assert bool(replays) == (always or (whole and windows is X))


class Annealed(CrossReconstruction):
    """Loss of a user's own, who reads the epoch and says nothing of graphs."""

    def forward(self, x, observed=None):
        return super().forward(x, observed) + self.epoch * self.encode(x, observed).square().mean()


class AnnealedTransformer(PulseTransformer):
    _objective_class = Annealed


class Scaled(DenoisedMean):
    """Objective of a user's own, whose embedding reads a value back."""

    def encode(self, x, observed=None):
        return super().encode(x / float(x.abs().max()), observed)


class ScaledTransformer(DenoisedMeanTransformer):
    _objective_class = Scaled


class ScaledEncoder(SystemEncoder):
    """Encoder of a user's own, which reads a value back."""

    def forward(self, x, observed=None):
        return super().forward(x / float(x.abs().max()), observed)


class ScaledWithin(DenoisedMean):
    """Objective of a user's own, with that encoder."""

    def __init__(self, n_channels, **params):
        super().__init__(n_channels, **params)
        sizes = (params["encoder_hidden_dim"], params["embedding_dim"], params["encoder_depth"])
        self.encoder = ScaledEncoder(n_channels, *sizes, params["pooling"])


class ScaledWithinTransformer(DenoisedMeanTransformer):
    _objective_class = ScaledWithin


def test_a_loss_or_an_embedding_of_a_users_own_is_replayed_only_if_it_says_so(monkeypatch, replays):
    with pretended_cuda(monkeypatch):
        _, _, losses = train(AnnealedTransformer)
        assert not replays
        _, _, launched = train(AnnealedTransformer, callbacks=[Launched()])
        assert losses == launched
        for cls in (ScaledTransformer, ScaledWithinTransformer):
            source = FrozenEstimator(small(cls, device="cuda").fit(X))
            tuned = small(FineTuneClassifier, pretrained=source, device="cuda", max_epochs=4)
            tuned.fit(X, y)  # a capture that fails would warn
            assert not replays


def test_the_device_knows_what_a_graph_cannot_repeat(monkeypatch, replays):
    with pretended_cuda(monkeypatch) as device:
        there = torch.arange(3.0, device="cuda")
        device.captures = True
        for copies in (
            lambda: there.cpu(),
            lambda: int(there.sum()),
            lambda: there[there > 1],
            lambda: torch.tensor([1.0], device="cuda"),
            lambda: torch.ones(1).to("cuda"),
        ):
            with pytest.raises(RuntimeError, match="while a graph is captured"):
                copies()


class Changing(Callback):
    """Changes what a step computes, in Python alone: first a number, then what is trained."""

    def on_epoch_begin(self, net, **kwargs):
        if len(net.history) == 3:
            net.module_.dropout = 0.5
        if len(net.history) == 5:
            net.module_.decoder.requires_grad_(False)


def test_a_step_that_differs_is_not_replayed(monkeypatch, replays):
    with pretended_cuda(monkeypatch):
        _, *replayed = train(PulseTransformer, max_epochs=6, callbacks=[Changing()])
        n_replayed = len(replays)
        _, *launched = train(PulseTransformer, max_epochs=6, callbacks=[Changing(), Launched()])
    assert n_replayed == 12 - 3 * 2
    np.testing.assert_equal(replayed, launched)


class Smoothing(Callback):
    """Adds the gradient of the step before, without a copy of it."""

    def on_train_begin(self, net, **kwargs):
        self.before = {}

    def on_grad_computed(self, net, named_parameters, **kwargs):
        present = {name: weight.grad for name, weight in named_parameters}
        for name, weight in net.module_.named_parameters():
            if name in self.before and weight.grad is not None:
                weight.grad = weight.grad + self.before[name]
        self.before = present


class KeepingErrors(Callback):
    """Keeps what the objective of LFADS says of each step."""

    def on_train_begin(self, net, **kwargs):
        self.kept = []

    def on_batch_end(self, net, **kwargs):
        self.kept.append(net.module_.last_error)


@pytest.mark.parametrize(
    ("cls", "kind"),
    [(PulseTransformer, Smoothing), (baselines.LFADSTransformer, KeepingErrors)],
)
def test_a_callback_keeps_what_a_replayed_step_computed(cls, kind, monkeypatch, replays):
    with pretended_cuda(monkeypatch):
        fitted, *replayed = train(cls, callbacks=[kind()])
        n_replayed = len(replays)
        other, *launched = train(cls, callbacks=[kind(), Launched()])
    assert len(replays) == n_replayed > 0
    np.testing.assert_equal(replayed, launched)
    kept = [vars(callback_of(each, kind)).get("kept") for each in (fitted, other)]
    assert kept[0] == kept[1]


class Rewinding(Callback):
    """Gives the objective a new generator, once steps are replayed."""

    def on_epoch_begin(self, net, **kwargs):
        if len(net.history) == 3:
            net.module_.set_generator_state(None, torch.device(net.device))


class AskingForGradients(Callback):
    """Keeps the gradient of each batch."""

    def on_train_begin(self, net, **kwargs):
        self.kept = []

    def on_batch_begin(self, net, batch, **kwargs):
        batch["x"].requires_grad_()

    def on_batch_end(self, net, batch, **kwargs):
        self.kept.append(batch["x"].grad.sum().item())


class Watching(Callback):
    """Has a hook on all modules of the program."""

    def on_train_begin(self, net, **kwargs):
        self.hook = register_module_forward_hook(lambda *args: None)

    def on_train_end(self, net, **kwargs):
        self.hook.remove()


@pytest.mark.parametrize(
    ("kind", "expected"), [(Rewinding, 4), (AskingForGradients, 0), (Watching, 0)]
)
def test_a_step_that_a_graph_cannot_repeat_is_not_replayed(kind, expected, monkeypatch, replays):
    with pretended_cuda(monkeypatch):
        _, *replayed = train(PulseTransformer, callbacks=[kind()])
        n_replayed = len(replays)
        _, *launched = train(PulseTransformer, callbacks=[kind(), Launched()])
    assert n_replayed == expected
    np.testing.assert_equal(replayed, launched)


def test_a_step_that_cannot_be_captured_is_launched(monkeypatch, replays):
    def refuse(compute, generator):
        compute()
        raise RuntimeError("operation not permitted")

    with pretended_cuda(monkeypatch):
        _, *launched = train(PulseTransformer, callbacks=[Launched()])
        monkeypatch.setattr(_captured, "_capture", refuse)
        with pytest.warns(UserWarning, match=r"slower. CUDA says: operation not permitted"):
            _, *refused = train(PulseTransformer)
    assert not replays
    np.testing.assert_equal(refused, launched)


def test_an_interrupt_in_a_capture_ends_the_fit(monkeypatch, replays):
    def interrupted(compute, generator):
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("capture is invalid")

    with pretended_cuda(monkeypatch):
        monkeypatch.setattr(_captured, "_capture", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(PulseTransformer)


@pytest.mark.parametrize(
    "at", [(4, 1), (2, 3)], ids=["in replays", "before the last, smaller batch of an epoch"]
)
def test_a_fit_that_was_killed_goes_on_in_replays(at, monkeypatch, tmp_path, replays):
    monkeypatch.setattr(Checkpoint, "interval", 0.0)
    settings = {"max_epochs": 4, "device": "cuda", "validation_fraction": 0}
    pulse = small(PulseTransformer, checkpoint_dir=tmp_path, **settings)
    with pretended_cuda(monkeypatch):
        expected = clone(pulse).set_params(checkpoint_dir=None).fit_transform(HOLES)
        n_replayed = len(replays)
        with killed(*at):
            pulse.fit(HOLES)
        np.testing.assert_array_equal(pulse.fit_transform(HOLES), expected)
    assert n_replayed == 6
    assert len(replays) - n_replayed == 4  # two steps less before the kill, and two after it


@pytest.mark.parametrize("cls", [FineTuneClassifier, FineTuneRegressor])
def test_fine_tuning_computes_on_one_device(cls, monkeypatch):
    with pretended_cuda(monkeypatch) as device:
        pulse = small(PulseTransformer).set_params(device="cuda").fit(HOLES)
        tuned = cls(FrozenEstimator(pulse), max_epochs=1, device="cuda").fit(HOLES, y)
        assert np.isfinite(tuned.score(HOLES, y))
    assert "backward" in device.calls
