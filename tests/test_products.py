"""Products by oneDNN: equal to torch's own, whatever the layout of their operands in memory."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from sklearn_pulse import CrossPredictionTransformer, PulseTransformer, _products
from sklearn_pulse._products import Linear, multiply, multiply_transposed
from sklearn_pulse.features import HydraTransformer
from sklearn_pulse.networks import CrossAttention, GRUDecoder, SystemEncoder
from sklearn_pulse.networks._dilated_conv import DilatedConv
from sklearn_pulse.networks._packed_gru import run_gru
from sklearn_pulse.networks._row_pieces import RowLinear

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN"
)


@pytest.fixture(autouse=True)
def by_onednn(monkeypatch):
    """Use oneDNN, whichever processor this is."""
    monkeypatch.setattr(_products, "_IS_FASTER", True)


class Calls(TorchDispatchMode):
    """Notes the operations that run."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))

    def products(self):
        return {name for name in self.seen if "mm" in name or "linear" in name or "conv" in name}


def laid_out(table, how):
    """The same table, by rows, by columns, or with gaps between its rows or columns."""
    if how == "columns":
        return table.t().contiguous().t()
    if how == "gaps":
        return torch.cat([table, table], dim=1)[:, : table.shape[1]]
    if how == "gaps, by columns":
        return torch.cat([table, table]).t().contiguous().t()[: len(table)]
    return table


LAYOUTS = st.sampled_from(["rows", "columns", "gaps", "gaps, by columns"])


@given(
    shape=st.tuples(*(st.integers(0, 40) for _ in range(3))),
    layouts=st.tuples(LAYOUTS, LAYOUTS),
    has_bias=st.booleans(),
)
def test_products_of_any_tables(shape, layouts, has_bias):
    n_rows, n_columns, n_outputs = shape
    torch.manual_seed(0)
    rows, matrix = torch.randn(n_rows, n_columns), torch.randn(n_columns, n_outputs)
    bias = torch.randn(n_outputs) if has_bias else None
    expected = rows.double() @ matrix.double() + (0.0 if bias is None else bias.double())
    rows, matrix = laid_out(rows, layouts[0]), laid_out(matrix, layouts[1])
    out = torch.full((n_rows, n_outputs), torch.nan)
    assert multiply(rows, matrix, bias, out=out) is out
    for result in (multiply(rows, matrix, bias), out):
        torch.testing.assert_close(result.double(), expected, rtol=1e-5, atol=1e-5)


@given(
    shape=st.tuples(*(st.integers(0, 40) for _ in range(3))), layouts=st.tuples(LAYOUTS, LAYOUTS)
)
def test_sums_of_outer_products(shape, layouts):
    n_rows, n_left, n_right = shape
    torch.manual_seed(0)
    left, right = torch.randn(n_rows, n_left), torch.randn(n_rows, n_right)
    expected = left.double().t() @ right.double()
    left, right = laid_out(left, layouts[0]), laid_out(right, layouts[1])
    total = torch.ones(n_left, n_right)
    assert multiply_transposed(left, right, total) is total
    for result in (multiply_transposed(left, right), total - 1.0):
        torch.testing.assert_close(result.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(3,), (2, 5, 3), (0, 3), (50, 3)])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("layer", [Linear, RowLinear])
def test_linear_map_and_its_gradient(layer, has_bias, shape):
    torch.manual_seed(0)
    linear, x = layer(3, 4, bias=has_bias), torch.randn(shape, requires_grad=True)
    leaves = [x, *linear.parameters()]
    with Calls() as calls:
        y = linear(x)
    if y.numel():
        assert calls.products() == {"mkldnn._linear_pointwise.default"}
    seed = torch.randn_like(y)
    results = [
        [result, *torch.autograd.grad(result, leaves, seed)]
        for result in (y, F.linear(x, linear.weight, linear.bias))
    ]
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-5)


def test_only_the_gradients_that_are_asked_for_are_computed():
    linear = Linear(3, 4).requires_grad_(False)
    x = torch.randn(5, 3, requires_grad=True)
    y = linear(x).sum()
    with Calls() as calls:
        y.backward()
    assert sum("linear" in name for name in calls.seen) == 1
    assert linear.weight.grad is None


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("shape", [(12, 2), (1, 4), (40, 1), (20, 17)])
@pytest.mark.parametrize("dilation", [1, 11, 12, 64])  # from the length on two taps read nothing
def test_convolution(dilation, shape, holes, turned):
    """Values and gradients against torch's own, with steps or windows side by side in memory."""
    torch.manual_seed(0)
    conv, x = DilatedConv(3, 5, dilation), torch.randn(*shape, 3)
    if turned:
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    x.requires_grad_()
    seen = (torch.rand(*shape, 1) > 0.3).float() if holes else None
    active = (F.gelu(x) * (1.0 if seen is None else seen)).permute(1, 2, 0)
    plain = F.conv1d(active, conv.weight, conv.bias, padding=dilation, dilation=dilation)
    with Calls() as calls:
        results = [conv(x, seen), plain.permute(2, 0, 1)]
    assert not any("addmm" in name for name in calls.seen)
    seed, leaves = torch.randn(*shape, 5), [x, conv.weight, conv.bias]
    for result in tuple(results):
        results.append(torch.autograd.grad(result, leaves, seed))
    torch.testing.assert_close(*results[:2], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(*results[2:], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_timesteps", [1, 15, 16, 37])
@pytest.mark.parametrize("holes", [False, True])
def test_windows_of_a_length_that_does_not_recur(holes, n_timesteps):
    """They are filled up for the convolutions, which no result shows."""
    torch.manual_seed(0)
    encoder = SystemEncoder(2, 8, 16, 3)
    hidden = torch.randn(3, n_timesteps, 8, requires_grad=True)
    observed = torch.rand(3, n_timesteps) > 0.3 if holes else None
    leaves, results = [hidden, *encoder.blocks.parameters()], []
    for recurring in (True, False):
        y = encoder.run_blocks(hidden, observed, recurring)
        if holes:
            y = y[observed]
        results.append([y, *torch.autograd.grad(y.square().sum(), leaves)])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("hidden_dim", [6, 40])
def test_a_decoder_without_a_varying_drive(hidden_dim):
    torch.manual_seed(0)
    decoder = GRUDecoder(4, n_channels=2, hidden_dim=hidden_dim)
    constant, condition = torch.randn(3, 4), torch.randn(3, hidden_dim)
    lengths = torch.tensor([5, 0, 3])
    y = decoder.roll_out(constant, torch.zeros(5, 3, 0), condition, lengths)
    whole = decoder(constant.expand(5, -1, -1), condition)
    running = torch.arange(5).unsqueeze(1) < lengths
    torch.testing.assert_close(y, whole * running.unsqueeze(-1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sizes", [[3] * 4, [20, 17, 3, 1]])
def test_a_recurrence_by_either_library_is_alike(sizes, monkeypatch):
    torch.manual_seed(0)
    leaves = [torch.randn(120, 40), torch.randn(120), torch.randn(sizes[0], 40)]
    weight, bias, state = (leaf.mul_(0.1).requires_grad_() for leaf in leaves)
    inputs = torch.randn(sum(sizes), 120)
    results = []
    for is_faster in (True, False):
        monkeypatch.setattr(_products, "_IS_FASTER", is_faster)
        states = run_gru(inputs.clone(), state, weight, bias, sizes)
        gradients = torch.autograd.grad(states.square().sum(), [weight, bias, state])
        results.append([states, *gradients])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hidden_dim", [8, 31, 32, 40])
def test_few_states_are_multiplied_by_torch_itself(hidden_dim):
    """A call of oneDNN would take longer than their product."""
    torch.manual_seed(0)
    weight, bias = torch.randn(3 * hidden_dim, hidden_dim), torch.randn(3 * hidden_dim)
    leaves = [weight.requires_grad_(), bias.requires_grad_()]
    with Calls() as calls:
        inputs, state = torch.randn(12, 3 * hidden_dim), torch.randn(3, hidden_dim)
        states = run_gru(inputs, state, *leaves, sizes=[3] * 4)
        torch.autograd.grad(states.sum(), leaves[0])
    by_onednn = sum("linear_pointwise" in name for name in calls.seen)
    by_torch = sum("mm.default" in name for name in calls.seen)
    expected = (1, 8) if hidden_dim < 32 else (9, 0)  # the gradient of the weights is one product
    assert (by_onednn, by_torch) == expected


@pytest.mark.parametrize("holes", [False, True])
def test_cross_attention_by_either_library_is_alike(holes, monkeypatch):
    torch.manual_seed(0)
    net, x = CrossAttention(2, hidden_dim=24, kernel_size=5), torch.randn(3, 20, 2)
    visible = torch.rand(3, 20) > 0.4
    observed = torch.rand(3, 20) > 0.2 if holes else None
    results = []
    for is_faster in (True, False):
        monkeypatch.setattr(_products, "_IS_FASTER", is_faster)
        with Calls() as calls:
            rebuilt = net(x, visible, x.flip(0), observed)
            gradients = torch.autograd.grad(rebuilt.square().sum(), list(net.parameters()))
        assert ("mkldnn._linear_pointwise.default" in calls.products()) == is_faster
        results.append([rebuilt, *gradients])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)


def test_a_fit_by_either_library_ends_alike(monkeypatch):
    """Steps of the optimiser multiply what rounding changes, hence few of them."""
    X = np.random.default_rng(0).normal(size=(24, 40, 2))
    X[3, 10:20] = np.nan
    pulse = PulseTransformer(embedding_dim=16, encoder_depth=4, max_epochs=2, random_state=0)
    by_onednn = pulse.fit(X).transform(X)
    again = pulse.fit(X).transform(X)
    monkeypatch.setattr(_products, "_IS_FASTER", False)
    np.testing.assert_array_equal(again, by_onednn)
    np.testing.assert_allclose(pulse.fit(X).transform(X), by_onednn, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("cls", [CrossPredictionTransformer, HydraTransformer])
def test_features_by_either_library_are_alike(cls, monkeypatch):
    """And those of a window do not depend on the windows beside it."""
    X = np.random.default_rng(0).normal(size=(300, 40, 2)).cumsum(1)
    X[3, 10:20] = np.nan
    transformer = cls(random_state=0, device="cpu")
    with Calls() as calls:
        by_onednn = transformer.fit(X).transform(X)
    assert "mkldnn._linear_pointwise.default" in calls.products()
    np.testing.assert_array_equal(transformer.transform(X[[299, 3, 7]]), by_onednn[[299, 3, 7]])
    monkeypatch.setattr(_products, "_IS_FASTER", False)
    by_torch = transformer.transform(X)  # an embedding is rounded to hundredths
    assert np.abs(by_torch - by_onednn).max() < 0.011
    assert np.mean(np.abs(by_torch - by_onednn) > 1e-4) < 1e-3


@pytest.mark.parametrize(
    ("maker", "family", "is_zen_5"),
    [
        ("GenuineIntel", 26, False),
        ("AuthenticAMD", 25, False),  # Zen 4
        ("AuthenticAMD", 26, True),
        (None, 26, False),
        ("AuthenticAMD", None, False),
    ],
)
@pytest.mark.parametrize("system", ["Linux", "Windows", "sandbox"])
def test_which_processor_it_is(system, maker, family, is_zen_5, tmp_path, monkeypatch):
    info = tmp_path / "cpuinfo"
    monkeypatch.setattr(_products, "_CPU_INFO", Path(info))
    named = "" if family is None else f"Family {family} Model 68 "
    monkeypatch.setattr("platform.processor", lambda: f"AMD64 {named}Stepping 0, {maker}")
    if system == "Linux":
        lines = [f"vendor_id\t: {maker or 'HygonGenuine'}"]
        lines += [] if family is None else [f"cpu family\t: {family}", "model\t\t: 68"]
        info.write_text("\n".join(["processor\t: 0", *lines]) + "\n")
        monkeypatch.delattr("platform.processor")  # which starts a process
    elif system == "sandbox":
        info.mkdir()  # what is there cannot be read
    assert _products._is_zen_5() == is_zen_5


@pytest.mark.parametrize("kind", ["float64", "bfloat16", "autocast", "switched off"])
def test_torch_chooses_elsewhere(kind, request):
    linear, x = nn.Sequential(Linear(3, 4)), torch.randn(5, 3)
    dtype = getattr(torch, kind, torch.float32) if kind != "autocast" else torch.float32
    linear, x = linear.to(dtype), x.to(dtype)
    if kind == "switched off":
        request.addfinalizer(lambda: torch.backends.mkldnn.set_flags(True))
        torch.backends.mkldnn.set_flags(False)
    with torch.autocast("cpu", torch.bfloat16, enabled=kind == "autocast"), Calls() as calls:
        linear(x)
    assert not any("linear_pointwise" in name for name in calls.seen)


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512", reason="products go to torch there"
)
@pytest.mark.parametrize("widths", [(64, 320), (321, 192), (6, 5)])
def test_a_row_has_the_same_bits_at_every_place_unless_a_gradient_is_recorded(widths):
    torch.manual_seed(0)
    linear, x = Linear(*widths), torch.randn(70, widths[0])
    with torch.inference_mode():
        whole = linear(x)
        for first, n_rows in [(0, 1), (69, 1), (5, 2), (4, 7), (9, 16), (1, 17), (2, 64), (1, 69)]:
            rows = slice(first, first + n_rows)
            assert torch.equal(linear(x[rows]), whole[rows])
        assert torch.equal(linear(x[3]), whole[3])
