"""What a file asks for is compared with what it holds, before it is built."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save
from torch import nn

from sklearn_pulse import CrossPredictionTransformer, PulseTransformer
from sklearn_pulse._persistence import check_sizes
from sklearn_pulse.features import RandomConvolutionTransformer
from tests.helpers import SMALL_ENCODER
from tests.persistence.helpers import X, pulse, read_config, write_config, write_weights


def weights(net):
    return net.state_dict()


def test_a_net_is_compared_without_its_memory():
    with pytest.raises(ValueError, match=r"'weight' is torch.float32 of shape \(3, 2\)"):
        check_sizes(lambda: nn.Linear(10**9, 10**9), weights(nn.Linear(2, 3)))
    check_sizes(lambda: nn.Linear(2, 3), weights(nn.Linear(2, 3)))


def test_building_stops_where_the_file_has_no_weights():
    built = []

    def endless():
        while True:
            built.append(nn.Linear(2, 2))

    with pytest.raises(ValueError, match="more layers than the weights fill"):
        check_sizes(endless, weights(nn.Linear(2, 2)))
    assert len(built) < 5_000


def test_tables_are_bounded():
    class Table(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.register_buffer("table", torch.zeros(n), persistent=False)

    with pytest.raises(ValueError, match="tables of 4000000000000 bytes"):
        check_sizes(lambda: Table(10**12), {})
    check_sizes(lambda: Table(10**6), {})


def test_comparing_moves_no_generator():
    generator, stored = torch.Generator().manual_seed(0), weights(nn.Linear(2, 3))
    before = torch.get_rng_state(), generator.get_state()

    def build():
        net = nn.Linear(2, 3)
        nn.init.normal_(net.weight, generator=generator)
        return net

    check_sizes(build, stored)
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.equal(before[1], generator.get_state())


def test_settings_of_a_machine_are_in_no_file(tmp_path):
    pulse(num_threads=1).fit(X).save_pretrained(tmp_path / "model")
    config = read_config(tmp_path / "model")
    local = {"checkpoint_dir", "compile", "device", "num_threads"}
    assert not local & config["parameters"].keys()
    for name in ("num_threads", "compile"):
        changed = config | {"parameters": config["parameters"] | {name: 1}}
        write_config(tmp_path / "model", changed)
        with pytest.raises(ValueError, match=f"no parameter '{name}' that a file may set"):
            PulseTransformer.from_pretrained(tmp_path / "model")


def test_weights_that_overflow_are_refused_on_both_ways(tmp_path):
    fitted = pulse().fit(X)
    fitted.save_pretrained(tmp_path / "model")
    state = load_file(tmp_path / "model" / "model.safetensors")
    write_weights(tmp_path / "model", save({name: w * 1e38 for name, w in state.items()}))
    with pytest.raises(ValueError, match="model holds no model .*embedding of a plain sine"):
        PulseTransformer.from_pretrained(tmp_path / "model")
    with torch.no_grad():
        for weight in fitted.net_.module_.parameters():
            weight *= 1e38
    with pytest.raises(ValueError, match="cannot be saved: .*embedding of a plain sine"):
        fitted.save_pretrained(tmp_path / "second")
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize("layout", ["ntc", "nct"])
def test_the_sine_goes_through_every_layout_and_table(tmp_path, layout):
    data = X if layout == "ntc" else X.transpose(0, 2, 1)
    fitted = pulse(input_layout=layout).fit(data)
    fitted.save_pretrained(tmp_path / "model")
    restored = PulseTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(restored.transform(data), fitted.transform(data))


DOORS = {
    "fit": lambda n: pulse(num_threads=n).fit(X),
    "transform": lambda n: pulse().fit(X).set_params(num_threads=n).transform(X),
    "reconstruct": lambda n: pulse().fit(X).set_params(num_threads=n).reconstruct(X),
    "convolutions": lambda n: RandomConvolutionTransformer(84, num_threads=n).fit(X),
    "cross-prediction": lambda n: CrossPredictionTransformer(num_threads=n).fit(X),
}


@pytest.mark.parametrize("door", DOORS)
def test_threads_are_bounded(door):
    with pytest.raises(ValueError, match="num_threads must be an integer from 1 to 1024"):
        DOORS[door](10**6)


def test_threads_of_panels_are_bounded():
    panel = pytest.importorskip("sklearn_pulse.panel")
    transformer = panel.PulsePanelTransformer(
        **SMALL_ENCODER, max_epochs=1, num_threads=10**6, random_state=0
    )
    with pytest.raises(ValueError, match="num_threads must be an integer from 1 to 1024"):
        transformer.fit(X.transpose(0, 2, 1))


def test_threads_of_the_benchmark_are_bounded(tmp_path, capsys):
    from sklearn_pulse.benchmark import Execution
    from sklearn_pulse.benchmark.__main__ import main

    with pytest.raises(ValueError, match="num_threads must be an integer from 1 to 1024"):
        Execution(tmp_path, num_threads=10**6)
    with pytest.raises(SystemExit):
        main(["linear-probe", "--threads", "1000000", "--out", str(tmp_path)])
    assert "num_threads must be an integer from 1 to 1024" in capsys.readouterr().err
