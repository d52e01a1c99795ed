"""Initialisation draws from generators of its own: other threads and forks notice nothing."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import torch
from torch import nn

from sklearn_pulse import PulseTransformer
from sklearn_pulse._training._draws import OwnDraws
from tests.helpers import SMALL_PULSE, make_windows

X = make_windows()[0]
DRAWS = {
    "linear": lambda: nn.Linear(3, 2).weight,
    "convolution": lambda: nn.Conv1d(2, 3, 3).bias,
    "gru": lambda: nn.GRU(2, 3).weight_hh_l0,
    "attention": lambda: nn.MultiheadAttention(4, 2).in_proj_weight,
    "embedding": lambda: nn.Embedding(3, 2).weight,
    "orthogonal": lambda: nn.init.orthogonal_(torch.empty(3, 3)),
    "truncated": lambda: nn.init.trunc_normal_(torch.empty(3, 3)),
    "randn": lambda: torch.randn(2, 3),
    "rand": lambda: torch.rand(2, 3, dtype=torch.float64),
    "randint": lambda: torch.randint(5, (4,)),
    "randint from": lambda: torch.randint(2, 5, (4,)),
    "randperm": lambda: torch.randperm(9),
    "normal": lambda: torch.normal(torch.zeros(3), 2.0),
    "normal of numbers": lambda: torch.normal(0.0, 1.0, (3,)),
    "bernoulli": lambda: torch.bernoulli(torch.full((9,), 0.5)),
    "multinomial": lambda: torch.multinomial(torch.ones(5), 3),
    "dropout": lambda: nn.functional.dropout(torch.ones(9)),
    "data": lambda: nn.Parameter(torch.empty(3)).data.uniform_(),
    "the caller's generator": lambda: torch.randn(3, generator=torch.Generator().manual_seed(9)),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_draws_are_those_of_a_seeded_global_generator(draw):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        expected = draw().detach().clone(), draw().detach().clone()
    before = torch.get_rng_state()
    with OwnDraws(3):
        drawn = draw().detach().clone(), draw().detach().clone()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(map(torch.equal, drawn, expected))


def test_a_draw_without_a_generator_is_refused_by_name():
    with OwnDraws(0), pytest.raises(NotImplementedError, match="native_dropout.*takes no gen"):
        torch.native_dropout(torch.ones(3), 0.5, True)


def test_nothing_is_drawn_on_the_meta_device():
    with OwnDraws(0):
        assert nn.Linear(2, 2, device="meta").weight.is_meta
        assert torch.randn(2, device="meta").is_meta


def blocked(monkeypatch):
    """Start a thread that stops in the middle of initialising a net; return what lets it go on."""
    inside, go_on, results = threading.Event(), threading.Event(), []
    original = nn.GRU.reset_parameters

    def wait(self):
        if threading.current_thread() is thread:
            inside.set()
            assert go_on.wait(60)
        original(self)

    def fit():
        results.append(PulseTransformer(**SMALL_PULSE).fit(X).transform(X))

    monkeypatch.setattr(nn.GRU, "reset_parameters", wait)
    thread = threading.Thread(target=fit, daemon=True)
    thread.start()
    assert inside.wait(60)

    def finish():
        go_on.set()
        thread.join(60)
        return results[0]

    return finish


def test_draws_of_another_thread_and_a_fit_leave_one_another_alone(monkeypatch):
    alone = PulseTransformer(**SMALL_PULSE).fit(X).transform(X)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        expected = torch.randn(6)
        torch.manual_seed(7)
        drawn = [torch.randn(3)]
        finish = blocked(monkeypatch)
        drawn.append(torch.randn(3))
        np.testing.assert_array_equal(finish(), alone)
    # torch fills three and six numbers from the same stream.
    assert torch.equal(torch.cat(drawn), expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_forked_while_a_net_is_initialised_can_fit(monkeypatch):
    finish = blocked(monkeypatch)
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            signal.alarm(60)
            PulseTransformer(**SMALL_PULSE | {"num_threads": 1}).fit(X)
            os._exit(0)
        finally:
            os._exit(1)
    status = None
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert finish().shape == (len(X), SMALL_PULSE["embedding_dim"])
    assert done and os.waitstatus_to_exitcode(status) == 0
