"""Products of tables whose number of rows changes: equal results, and shapes that recur."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from sklearn_pulse._threads import threads
from sklearn_pulse.networks import GRUDecoder
from sklearn_pulse.networks._row_pieces import RowLinear, row_pieces, sum_of_products

POWERS = {2**i for i in range(4, 13)}


@given(n_rows=st.integers(1, 20_000))
def test_pieces_cover_the_rows_and_recur(n_rows):
    pieces = row_pieces(torch.zeros(n_rows, 1, dtype=torch.bfloat16))
    sizes = [piece.stop - piece.start for piece in pieces]
    assert [row for piece in pieces for row in (piece.start, piece.stop)][1:-1] == [
        stop for piece in pieces[:-1] for stop in (piece.stop, piece.stop)
    ]
    assert sum(sizes) == n_rows
    assert set(sizes[:-1]) <= POWERS
    assert all(size in POWERS or 0 < size < 16 for size in sizes)


@pytest.mark.parametrize("n_rows", [0, 1, 16, 50, 4096, 5001])
def test_linear_map_and_its_gradient(n_rows):
    torch.manual_seed(0)
    linear, x = RowLinear(7, 5), torch.randn(n_rows, 7).bfloat16().requires_grad_()
    literal, wide = copy.deepcopy(linear).double(), x.detach().double().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        y = linear(x)
    expected = F.linear(wide, literal.weight, literal.bias)
    torch.testing.assert_close(y.double(), expected, rtol=0.02, atol=0.02)
    seed = torch.randn(n_rows, 5).bfloat16()
    ours = torch.autograd.grad(y, [x, linear.weight, linear.bias], seed)
    theirs = torch.autograd.grad(expected, [wide, literal.weight, literal.bias], seed.double())
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(
            own.double(), other, rtol=0.02, atol=0.02 * max(1, n_rows) ** 0.5
        )


def test_sum_over_many_rows_rounds_once():
    """The sums of the pieces are added in float32: ones do not stop at 256, as in bfloat16."""
    ones = torch.ones(40_000, 1, dtype=torch.bfloat16)
    assert sum_of_products(ones, ones).item() == pytest.approx(40_000, rel=2**-8)


class RowsOfProducts(TorchDispatchMode):
    """Notes how many rows each product in bfloat16 has, and over how many it sums."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm):
            left, right = args[-2:]
            if left.dtype == torch.bfloat16:
                self.seen |= {left.shape[0], left.shape[1], right.shape[1]}
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("num_layers", [1, 2])
def test_shapes_of_the_decoder_recur(num_layers):
    """In bfloat16 each new shape costs a compilation; lengths of crops are drawn at every step."""
    torch.manual_seed(0)
    decoder = GRUDecoder(9, n_channels=3, hidden_dim=8, num_layers=num_layers)
    constant, condition = torch.randn(2, 100, 8).unbind()
    drive = torch.randn(60, 100, 1)
    rows = RowsOfProducts()
    with threads(1), torch.autocast("cpu", torch.bfloat16), rows:
        for _ in range(10):
            lengths = torch.randint(1, 61, (100,))
            decoder.roll_out(constant, drive, condition, lengths).square().sum().backward()
    multiples = set(range(16, 113, 16))  # of the recurrence, whose steps have at most 100 rows
    widths = {1, 3, 8, 9, 24}
    sequences = {100}  # the constant part of the drive is multiplied once
    assert rows.seen - POWERS - multiples - widths - sequences <= set(range(1, 16))
    assert rows.seen & multiples


@pytest.mark.parametrize("lengths", [[5, 0, 3, 5], [1], [0, 0, 2]])
def test_recurrence_in_bfloat16_is_that_of_float32(lengths):
    """Products read rows that follow the table; those must not reach a result."""
    torch.manual_seed(0)
    decoder, n = GRUDecoder(4, n_channels=2, hidden_dim=6), len(lengths)
    constant, condition = torch.randn(n, 4).requires_grad_(), torch.randn(n, 6).requires_grad_()
    drive, lengths = torch.zeros(5, n, 0), torch.tensor(lengths)
    leaves = [constant, condition, *decoder.parameters()]
    results = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            y = decoder.roll_out(constant, drive, condition, lengths)
        results.append([y.float(), *torch.autograd.grad(y.float().square().sum(), leaves)])
    for wide, narrow in zip(*results, strict=True):
        torch.testing.assert_close(narrow.float(), wide, rtol=0.05, atol=0.05)
