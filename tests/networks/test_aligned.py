"""Convolutions by matrix products."""

import pytest
import torch

from sklearn_pulse.networks._aligned import ProductConv1d


@pytest.mark.parametrize(
    ("in_channels", "kernel_size", "stride", "padding"),
    [(8, 8, 1, 4), (16, 4, 4, 0), (12, 8, 8, 0), (6, 16, 1, 8), (2, 3, 1, 1), (1, 25, 3, 12)],
)
@pytest.mark.parametrize("recorded", [True, False])
def test_a_convolution_in_bfloat16_is_that_of_the_rounded_numbers(
    in_channels, kernel_size, stride, padding, recorded
):
    torch.manual_seed(0)
    conv = ProductConv1d(in_channels, 5, kernel_size, stride, padding)
    x = torch.randn(3, in_channels, 50).bfloat16().float().requires_grad_()
    with torch.no_grad():
        for weight in conv.parameters():
            weight.copy_(weight.bfloat16())
    leaves = [x, *conv.parameters()]
    with torch.set_grad_enabled(recorded):
        plain = torch.nn.functional.conv1d(x, conv.weight, conv.bias, stride, padding)
        with torch.autocast("cpu", torch.bfloat16):
            rounded = conv(x)
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.float(), plain, rtol=0.01, atol=0.01)
    if recorded:
        seed = torch.randn(plain.shape)
        ours, theirs = (torch.autograd.grad(y, leaves, seed.to(y.dtype)) for y in (rounded, plain))
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine, other, rtol=0.02, atol=0.02 * float(other.abs().max()))
