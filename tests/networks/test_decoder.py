"""The decoder on packed sequences against torch's own GRU and plain products."""

import hypothesis.strategies as st
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings

from sklearn_pulse.networks import GRUDecoder, SeededDropout, _autocast
from sklearn_pulse.networks._packed_gru import run_gru
from sklearn_pulse.networks._packing import Packing
from sklearn_pulse.networks._repeated_input import DropoutMask, project_repeated

N_STEPS = 9


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def inputs(batch, n_constant=5, n_varying=2, hidden_dim=4):
    """A constant part, a drive and an initial state, all with gradients."""
    shapes = (batch, n_constant), (N_STEPS, batch, n_varying), (batch, hidden_dim)
    return [draw(*shape, seed=i).requires_grad_() for i, shape in enumerate(shapes)]


def decoder(n_constant=5, n_varying=2, **params):
    torch.manual_seed(0)
    return GRUDecoder(n_constant + n_varying, 3, 4, **params).double()


def padded(module, constant, drive, condition, lengths):
    """What torch's GRU says of every step, and zero past the ends."""
    repeated = constant.expand(N_STEPS, -1, -1)
    whole = module(torch.cat([repeated, drive], dim=2), condition)
    return torch.stack(
        [
            torch.stack([step[i] if t < n else step[i] * 0 for i, n in enumerate(lengths)])
            for t, step in enumerate(whole)
        ]
    )


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("n_varying", [0, 2])
@pytest.mark.parametrize("lengths", [[9, 9], [3, 9, 0, 1, 9], [1], [0, 2]], ids=str)
def test_values_and_gradients_are_those_of_torch(lengths, n_varying, num_layers):
    module = decoder(n_varying=n_varying, num_layers=num_layers)
    arguments = inputs(len(lengths), n_varying=n_varying)
    results = [
        module.roll_out(*arguments, torch.tensor(lengths)),
        padded(module, *arguments, lengths),
    ]
    torch.testing.assert_close(*results)
    weights = [*arguments, *module.parameters()]
    seed = draw(*results[0].shape, seed=7)
    ours, theirs = (torch.autograd.grad(r, weights, seed, allow_unused=True) for r in results)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


def test_nothing_runs_where_every_length_is_zero():
    module = decoder()
    result = module.roll_out(*inputs(2), torch.tensor([0, 0]))
    assert result.shape == (N_STEPS, 2, 3)
    assert not result.any()


def test_steps_past_the_end_do_not_matter():
    module, (constant, drive, condition) = decoder(), inputs(2)
    lengths = torch.tensor([4, 9])
    changed = drive.detach().clone()
    changed[4:, 0] = torch.nan
    torch.testing.assert_close(
        module.roll_out(constant, changed, condition, lengths),
        module.roll_out(constant, drive, condition, lengths),
    )


def test_the_padded_run_of_a_gpu_is_the_same_function():
    module, arguments, lengths = decoder(), inputs(3), torch.tensor([9, 0, 4])
    # `roll_out` takes this way on CUDA alone.
    padded_run = module._run_padded(*arguments, lengths, None)
    torch.testing.assert_close(padded_run, module.roll_out(*arguments, lengths))

    def keep_all(shape):
        return torch.ones(shape, dtype=torch.int16)

    doubled = module._run_padded(*arguments, lengths, SeededDropout(keep_all, 2.0))
    constant, drive, condition = arguments
    twice = module.roll_out(2 * constant, 2 * drive, condition, lengths)
    torch.testing.assert_close(doubled, twice)


@settings(deadline=None, max_examples=40)
@given(lengths=st.lists(st.integers(0, N_STEPS), min_size=1, max_size=7))
def test_packing_and_padding(lengths):
    packing = Packing.of(torch.tensor(lengths), N_STEPS)
    assert sum(packing.sizes) == sum(lengths)
    assert packing.sizes == sorted(packing.sizes, reverse=True)
    padded = draw(N_STEPS, len(lengths), 2)
    running = torch.arange(N_STEPS).unsqueeze(1) < torch.tensor(lengths)
    expected = torch.where(running.unsqueeze(2), padded, 0.0)
    assert torch.equal(packing.pad(packing.pack(padded), N_STEPS), expected)


def masked_rows(constant, drive, sizes, bits, scale):
    """The rows that dropout leaves, one by one."""
    rows, first = [], 0
    for size in sizes:
        for i in range(size):
            row = torch.cat([constant[i], drive[first + i]])
            rows.append(row * bits[first + i].double() * scale)
        first += size
    return torch.stack(rows)


@pytest.mark.parametrize("n_varying", [0, 2])
@pytest.mark.parametrize("chunk", [1, 4, 4096])
def test_dropout_multiplies_each_row_by_its_own_mask(chunk, n_varying, monkeypatch):
    monkeypatch.setattr("sklearn_pulse.networks._repeated_input.CHUNK_ROWS", chunk)
    sizes = [3, 3, 2, 1]
    constant, drive = draw(3, 5).requires_grad_(), draw(9, n_varying, seed=1).requires_grad_()
    weight, bias = draw(4, 5 + n_varying, seed=2).requires_grad_(), draw(4).requires_grad_()
    bits = (draw(9, 5 + n_varying, seed=3) > 0).to(torch.int16)
    results = [
        project_repeated(constant, drive, weight, bias, sizes, DropoutMask(bits, 1.25)),
        F.linear(masked_rows(constant, drive, sizes, bits, 1.25), weight, bias),
    ]
    torch.testing.assert_close(*results)
    seed, leaves = draw(9, 4, seed=5), [constant, drive, weight, bias]
    ours, theirs = (torch.autograd.grad(result, leaves, seed) for result in results)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("chunk", [1, 4, 4096])
def test_gradient_of_the_recurrence(chunk, monkeypatch):
    """By finite differences."""
    monkeypatch.setattr("sklearn_pulse.networks._packed_gru.CHUNK_ROWS", chunk)
    arguments = [draw(6, 9), draw(3, 3, seed=1), draw(9, 3, seed=2), draw(9, seed=3)]
    for argument in arguments:
        argument.requires_grad_()

    def states(inputs, *rest):
        return run_gru(inputs.clone(), *rest, sizes=[3, 2, 1])

    assert torch.autograd.gradcheck(states, arguments)


def test_a_layer_of_torch_runs_in_float32_where_it_lacks_bfloat16(monkeypatch):
    """As on CUDA, where autocast would take float16."""
    module = decoder().float()
    drive, condition = torch.randn(5, 2, 7), torch.randn(2, 4)
    monkeypatch.setattr(_autocast, "_LSTM_LACKS_BFLOAT16", True)
    seen = []
    module.gru.register_forward_pre_hook(
        lambda gru, args: seen.append((torch.is_autocast_enabled("cpu"), *(x.dtype for x in args)))
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert module(drive, condition).dtype == torch.bfloat16
    assert seen == [(False, torch.float32, torch.float32)]


def test_bfloat16_is_near():
    module, arguments = decoder(), inputs(5)
    lengths = torch.tensor([9, 3, 9, 1, 5])
    exact = module.roll_out(*arguments, lengths)
    module, arguments = module.float(), [a.detach().float() for a in arguments]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = module.roll_out(*arguments, lengths)
    assert rough.dtype == torch.bfloat16
    torch.testing.assert_close(rough.double(), exact, rtol=0.05, atol=0.03)
