"""What the functions of the theorem take, graphs of one's own too, and what they refuse."""

import sys

import networkx as nx
import numpy as np
import pytest

from sklearn_pulse.theory import minimum_separators, pulse_graph, separates, shared_latents


def test_nodes_of_any_kind_and_masks_of_any_kind():
    graph = nx.DiGraph([((0, "top"), 1), ((0, "top"), 2), (1, "left"), (2, "right")])
    graph.nodes["left"]["kind"] = graph.nodes["right"]["kind"] = "observable"
    for masked in (["left"], {"left"}, ("left",), iter(["left"]), np.array(["left"])):
        assert shared_latents(graph, masked) == {(0, "top")}
    assert minimum_separators(graph, ["left"]) == [{(0, "top")}, {1}, {2}]


def test_nothing_separates_an_observable_from_its_effect():
    graph = nx.DiGraph([("z", "x"), ("z", "y"), ("x", "y")])
    graph.nodes["x"]["kind"] = graph.nodes["y"]["kind"] = "observable"
    assert shared_latents(graph, ["x"], "blocking") == {"z"}
    assert not separates(graph, ["z"], ["x"])
    assert minimum_separators(graph, ["x"]) == []


@pytest.mark.parametrize(
    ("dimensions", "expected"),
    [
        ({}, [{"top"}, {"left"}, {"right"}]),
        ({"top": 2}, [{"left"}, {"right"}]),
        ({"top": 2, "left": 3}, [{"right"}]),
        ({"top": 2, "left": np.int64(2), "right": 3}, [{"top"}, {"left"}]),
    ],
)
def test_dimensions(dimensions, expected):
    graph = nx.DiGraph([("top", "left"), ("top", "right"), ("left", "x"), ("right", "y")])
    graph.nodes["x"]["kind"] = graph.nodes["y"]["kind"] = "observable"
    nx.set_node_attributes(graph, dimensions, "dimension")
    assert minimum_separators(graph, ["x"]) == expected


def test_two_small_variables_weigh_less_than_one_large():
    graph = nx.DiGraph([("a", "all"), ("b", "all"), ("all", "x"), ("a", "y"), ("b", "y")])
    graph.nodes["x"]["kind"] = graph.nodes["y"]["kind"] = "observable"
    assert minimum_separators(graph, ["x"]) == [{"all"}]
    graph.nodes["all"]["dimension"] = 3
    assert minimum_separators(graph, ["x"]) == [{"a", "b"}]


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples must be an integer of at least 1"),
        ({"n_steps": 0}, ValueError, "n_steps must be an integer of at least 1"),
        ({"n_steps": 2.0}, TypeError, "n_steps must be an integer"),
        ({"first_step": "free"}, ValueError, "first_step must be one of 'root', 'driven'"),
    ],
)
def test_bad_sizes(arguments, error, message):
    with pytest.raises(error, match=message):
        pulse_graph(**arguments)


CALLS = {
    "shared_latents": shared_latents,
    "separates": lambda graph, masked: separates(graph, (), masked),
    "minimum_separators": minimum_separators,
}
every_function = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
PAIR = pulse_graph(2, 2)


@every_function
@pytest.mark.parametrize(
    ("masked", "error", "message"),
    [
        ([], ValueError, "masked holds none of the 4 observables .* pass at least one"),
        (
            [f"Y[{i},{t}]" for i in range(2) for t in range(2)],
            ValueError,
            "masked holds all of the 4 .* leave at least one",
        ),
        (
            ["Y[0,2]"],
            ValueError,
            r"observables of the graph only, got 'Y\[0,2\]'; the observables are 'Y\[0",
        ),
        (["Y[0,0]", "system"], ValueError, "masked must hold observables .* got 'system'"),
        ("Y[0,0]", TypeError, r"got the string 'Y\[0,0\]'; pass \['Y\[0,0\]'\]"),
        (None, TypeError, "masked must be an iterable of nodes"),
        ([["Y[0,0]"]], TypeError, "masked must be an iterable of nodes"),
        (np.eye(2, dtype=bool), TypeError, "masked must be an iterable of nodes"),
        (range(9), ValueError, "got 0, 1, 2, 3, 4, 5 and 3 more"),
    ],
)
def test_bad_masks(call, masked, error, message):
    with pytest.raises(error, match=message):
        call(PAIR, masked)


@every_function
@pytest.mark.parametrize(
    ("graph", "error", "message"),
    [
        (nx.Graph(PAIR), TypeError, "graph must be a networkx.DiGraph, got Graph"),
        ({"Y[0,0]": []}, TypeError, "graph must be a networkx.DiGraph, got dict"),
        (nx.DiGraph([("a", "b")]), ValueError, "no observables: set the node attribute kind"),
        (
            nx.DiGraph([*PAIR.edges, ("X[0,1]", "X[0,0]")]),
            ValueError,
            r"the cycle 'X\[0,[01]\]' -> 'X\[0,[01]\]', 'X\[0,[01]\]' -> .*; remove one",
        ),
    ],
    ids=["undirected", "dict", "no observables", "cycle"],
)
def test_bad_graphs(call, graph, error, message):
    with pytest.raises(error, match=message):
        call(graph, ["Y[0,0]"])


@pytest.mark.parametrize(
    ("chosen", "error", "message"),
    [
        (["Y[0,1]"], ValueError, "latents must hold latent variables of the graph only, got 'Y"),
        (["theta"], ValueError, "got 'theta'; the latent variables are .*'system'"),
        ("system", TypeError, r"latents must be .* got the string 'system'; pass \['system'\]"),
    ],
)
def test_bad_latents(chosen, error, message):
    with pytest.raises(error, match=message):
        separates(PAIR, chosen, ["Y[0,0]"])


def test_bad_rule():
    with pytest.raises(ValueError, match="rule must be one of 'literal', 'blocking', got 'all'"):
        shared_latents(PAIR, ["Y[0,0]"], "all")


@pytest.mark.parametrize("dimension", [0, 1.5, None])
def test_bad_dimension(dimension):
    graph = PAIR.copy()
    graph.nodes["system"]["dimension"] = dimension
    with pytest.raises((TypeError, ValueError), match="dimension of node 'system' must be an int"):
        minimum_separators(graph, ["Y[0,0]"])


def test_without_networkx(monkeypatch):
    with monkeypatch.context() as patch:
        patch.delattr(nx, "is_d_separator")
        with pytest.raises(ImportError, match=r"networkx 3\.3 or later, found .*\[theory\]"):
            pulse_graph()
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-pulse\[theory\]'"):
        pulse_graph()
