"""Parts of a batch in threads of their own: the same numbers, gradients and errors as in one."""

import threading
import time
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from sklearn_pulse import PulseTransformer
from sklearn_pulse._threads import _pool, n_workers, run_side_by_side, threads, workers_only
from sklearn_pulse.networks import SystemEncoder, run_parts
from sklearn_pulse.networks._packing import Packing
from sklearn_pulse.objectives import CrossReconstruction
from tests.helpers import SMALL_PULSE, make_windows

N_WINDOWS, N_TIMESTEPS, N_CHANNELS = 150, 24, 2  # enough for parts of both networks


def make_objective(**changed):
    torch.manual_seed(0)
    sizes = {"embedding_dim": 5, "encoder_hidden_dim": 4, "encoder_depth": 3, "gru_hidden_dim": 6}
    return CrossReconstruction(N_CHANNELS, **(sizes | changed))


def make_batch(with_gaps=False):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N_WINDOWS, N_TIMESTEPS, N_CHANNELS, generator=generator)
    observed = torch.rand(N_WINDOWS, N_TIMESTEPS, generator=generator) > 0.2
    return {"x": x, "observed": observed} if with_gaps else {"x": x}


def step(objective, batch, number, autocast=False):
    """Return the loss and the gradients with a number of threads."""
    objective.zero_grad()
    objective.set_generator_state(None, torch.device("cpu"))
    with threads(number):
        with torch.autocast("cpu", torch.bfloat16, autocast):
            loss = objective(**batch)
        loss.backward()
    return loss.detach(), [weight.grad.clone() for weight in objective.parameters()]


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("with_gaps", [False, True])
@pytest.mark.parametrize(
    "changed",
    [{}, {"dropout": 0.0}, {"shared_encoder": True}, {"time_varying_dim": 0}],
    ids=["default", "no-dropout", "shared", "constant"],
)
def test_loss_and_gradients_are_those_of_one_thread(number, with_gaps, changed):
    objective, batch = make_objective(**changed), make_batch(with_gaps)
    loss, gradients = step(objective, batch, 1)
    parts_loss, parts_gradients = step(objective, batch, number)
    torch.testing.assert_close(parts_loss, loss)
    for one, several in zip(gradients, parts_gradients, strict=True):
        torch.testing.assert_close(several, one, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("autocast", [False, True])
def test_bits_repeat(autocast):
    objective, batch = make_objective(), make_batch()
    first = step(objective, batch, 3, autocast)
    second = step(objective, batch, 3, autocast)
    torch.testing.assert_close(second, first, rtol=0, atol=0)


def test_bfloat16_reaches_the_parts():
    seen = []

    def function(x):
        seen.append((torch.is_autocast_enabled("cpu"), torch.is_grad_enabled()))
        return (x @ x.T,)

    parts = [(torch.ones(2, 2),), (torch.ones(3, 2),)]
    with threads(2), torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        products = run_parts(function, parts, [])
    assert seen == [(True, False)] * 2
    assert [product.dtype for (product,) in products] == [torch.bfloat16] * 2


def test_parts_run_in_threads_of_their_own_with_one_torch_thread():
    met = threading.Barrier(2, timeout=60)

    def call():
        met.wait()  # passes only if both run at the same time
        return threading.get_ident(), torch.get_num_threads()

    with threads(2):
        results = run_side_by_side([call, call])
        assert torch.get_num_threads() == 2
    assert {number for _, number in results} == {1}
    assert len({ident for ident, _ in results} | {threading.get_ident()}) == 3


def test_threads_that_begin_later_have_the_number_of_the_caller():
    found = []
    with threads(2):
        run_side_by_side([torch.get_num_threads] * 2)
        later = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        later.start()
        later.join()
    assert found == [2]


def test_after_an_error_no_call_goes_on():
    began, running = [], []

    def call(i):
        began.append(i)
        running.append(i)
        time.sleep(0.05)
        running.remove(i)
        if i == 0:
            raise RuntimeError("of a call")

    with threads(2):
        with pytest.raises(RuntimeError, match="of a call"):
            run_side_by_side([partial(call, i) for i in range(20)])
        assert not running
        assert len(began) < 20
        assert torch.get_num_threads() == 2


def test_if_a_thread_cannot_start_no_call_goes_on(monkeypatch):
    began, running, start = [], [], threading.Thread.start

    def start_one(thread):
        if began:
            raise RuntimeError("can't start new thread")
        start(thread)
        while not began:
            time.sleep(0.001)

    def call(i):
        running.append(i)
        began.append(i)
        time.sleep(0.05)
        running.remove(i)

    _pool.cache_clear()  # whose threads have started
    monkeypatch.setattr(threading.Thread, "start", start_one)
    with threads(2):
        with pytest.raises(RuntimeError, match="can't start new thread"):
            run_side_by_side([partial(call, i) for i in range(20)])
        assert not running
        assert len(began) < 20


def test_more_parts_than_threads_keep_their_order():
    with threads(2):
        assert run_side_by_side([lambda i=i: i for i in range(20)]) == list(range(20))


def test_workers_only_leaves_one_thread_to_everything_else():
    with threads(3):
        with workers_only():
            assert (torch.get_num_threads(), n_workers()) == (1, 3)
        assert (torch.get_num_threads(), n_workers()) == (3, 3)


def test_an_error_of_a_part_reaches_the_caller():
    def fail(x):
        if len(x) == 1:
            raise IndexError("no such step")
        return (x * 2,)

    parts = [(torch.ones(2, 1, requires_grad=True),), (torch.ones(1, 1),), (torch.ones(3, 1),)]
    with threads(2), pytest.raises(IndexError, match="no such step"):
        run_parts(fail, parts, [])
    with threads(2):  # the threads still work
        assert len(run_parts(fail, [parts[0], parts[2]], [])) == 2


def test_frozen_and_unread_weights_have_no_gradient():
    frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    unread, weight = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    parts = [(torch.ones(2),), (torch.ones(2),)]
    with threads(2):
        outputs = run_parts(lambda x: (x * weight * frozen,), parts, [frozen, unread, weight])
        sum(output.sum() for (output,) in outputs).backward()
    assert frozen.grad is None and unread.grad is None
    assert weight.grad.tolist() == [2.0, 2.0]


def test_an_output_without_a_gradient_is_passed_on():
    weight = nn.Parameter(torch.ones(2))
    with threads(2):
        parts = run_parts(lambda x: (x * weight, x), [(torch.ones(2),)] * 2, [weight])
        sum(output.sum() for output, _ in parts).backward()
    assert weight.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("n_parts", [1, 2, 5])
def test_a_split_packing_holds_the_same_sequences(n_parts):
    lengths = torch.tensor([4, 0, 7, 1, 7, 3, 2])
    packing = Packing.of(lengths, n_steps=7)
    steps = torch.arange(7).unsqueeze(1).expand(7, 7) * 10 + torch.arange(7)  # step, sequence
    packed = packing.pack(steps)
    found = {}
    for i, (rows, sizes) in enumerate(packing.split(n_parts)):
        table = packed[rows].split(sizes)
        for j, sequence in enumerate(packing.order[i : packing.sizes[0] : n_parts].tolist()):
            found[sequence] = [step[j].item() // 10 for step in table if j < len(step)]
            assert all(step[j].item() % 10 == sequence for step in table if j < len(step))
    assert found == {i: list(range(n)) for i, n in enumerate(lengths.tolist()) if n}


def test_embeddings_are_those_of_one_thread():
    torch.manual_seed(0)
    encoder, x = SystemEncoder(N_CHANNELS, 4, 5, 3), make_batch()["x"]
    with torch.inference_mode():
        with threads(1):
            expected = encoder(x)
        with threads(3):
            torch.testing.assert_close(encoder(x), expected, rtol=1e-5, atol=1e-6)


def test_fits_side_by_side_share_the_threads():
    X = np.tile(make_windows()[0], (8, 1, 1))

    def fit():
        model = PulseTransformer(**SMALL_PULSE | {"num_threads": 2, "random_state": 0})
        return model.fit_transform(X)

    alone, results = fit(), []
    running = [threading.Thread(target=lambda: results.append(fit())) for _ in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert len(results) == 3
    for result in results:
        np.testing.assert_array_equal(result, alone)
