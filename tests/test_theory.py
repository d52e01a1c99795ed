"""Theorem 1, and what holds around it, on every mask of small graphs."""

from functools import cache
from itertools import combinations, product

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_pulse.theory import minimum_separators, pulse_graph, separates, shared_latents

SYSTEM = frozenset({"system"})
RULES = ("literal", "blocking")
every_graph = pytest.mark.parametrize("first_step", ["root", "driven"])
every_length = pytest.mark.parametrize("n_steps", [2, 3, 4, 5])


@cache
def make_graph(n_steps, first_step):
    return pulse_graph(2, n_steps, first_step)


def all_masks(n_steps, n_samples=2):
    """Every mask that hides something and not everything, a row a sample, 1 where masked."""
    for bits in product((0, 1), repeat=n_samples * n_steps):
        if 0 < sum(bits) < len(bits):
            yield tuple(bits[i : i + n_steps] for i in range(0, len(bits), n_steps))


def parse(text):
    """Read a mask such as 1111/1000."""
    return tuple(tuple(map(int, row)) for row in text.split("/"))


def nodes(mask):
    return [f"Y[{i},{t}]" for i, row in enumerate(mask) for t, hidden in enumerate(row) if hidden]


def complement(mask):
    return tuple(tuple(1 - hidden for hidden in row) for row in mask)


def constant_rows(mask):
    return all(len(set(row)) == 1 for row in mask)


def states(latents):
    return {latent for latent in latents if latent.startswith("X")}


def observables(graph):
    return {node for node, kind in graph.nodes(data="kind") if kind == "observable"}


def latents(graph):
    return [node for node, kind in graph.nodes(data="kind") if kind != "observable"]


@cache
def found(n_steps, first_step):
    """For every mask the set of each rule, and whether it separates."""
    graph = make_graph(n_steps, first_step)
    result = {}
    for mask in all_masks(n_steps):
        sets = {rule: shared_latents(graph, nodes(mask), rule) for rule in RULES}
        result[mask] = {
            rule: (latents, separates(graph, latents, nodes(mask)))
            for rule, latents in sets.items()
        }
    return result


# The definitions, as they are worded and slowly.


def open_path(graph, path, given):
    """Whether no step of an undirected path is blocked."""
    for before, node, after in zip(path, path[1:], path[2:], strict=False):
        if graph.has_edge(before, node) and graph.has_edge(after, node):
            if not given & (nx.descendants(graph, node) | {node}):
                return False
        elif node in given:
            return False
    return True


def separates_literally(graph, given, masked):
    """No open path leads from a masked observable to a visible one."""
    undirected = graph.to_undirected()
    visible = observables(graph) - set(masked)
    return not any(
        open_path(graph, path, set(given))
        for y in masked
        for other in visible
        for path in nx.all_simple_paths(undirected, y, other)
    )


def shared_literally(graph, masked, rule):
    """Selection, then pruning, by looking at every directed path to the visible side."""
    visible = observables(graph) - set(masked)

    def paths(node, targets):
        return [path for y in targets for path in nx.all_simple_paths(graph, node, y)]

    selected = {z for z in latents(graph) if paths(z, masked) and paths(z, visible)}
    prune = any if rule == "literal" else all
    return {
        z for z in selected if not prune(selected & set(path[1:]) for path in paths(z, visible))
    }


@st.composite
def graphs_and_masks(draw, leaves=True):
    """A random DAG of letters, observables in capitals, and a side of them that is masked."""
    n_latents, n_observables = draw(st.integers(1, 4)), draw(st.integers(2, 4))
    names = list("abcd"[:n_latents] + "WXYZ"[:n_observables])
    if not leaves:
        names = draw(st.permutations(names))
    graph = nx.DiGraph()
    for name in names:
        graph.add_node(name, kind="observable" if name.isupper() else "latent")
    for cause, effect in combinations(names, 2):
        if (not leaves or cause.islower()) and draw(st.booleans()):
            graph.add_edge(cause, effect)
    ys = sorted(observables(graph))
    masked = draw(st.lists(st.sampled_from(ys), unique=True, min_size=1, max_size=len(ys) - 1))
    return graph, masked


# The graph.


@every_graph
@every_length
def test_factors_of_the_joint_density(n_steps, first_step):
    graph = pulse_graph(2, n_steps, first_step)
    driven = first_step == "driven"
    expected = {"system": set()}
    for i in range(2):
        for t in range(n_steps):
            expected[f"Y[{i},{t}]"] = {f"X[{i},{t}]"}
            expected[f"X[{i},{t}]"] = {"system", f"X[{i},{t - 1}]"}
        expected[f"X[{i},0]"] = {"system", f"initial[{i}]"} if driven else set()
        if driven:
            expected[f"initial[{i}]"] = set()
    assert {node: set(graph.predecessors(node)) for node in graph} == expected


def test_node_attributes():
    graph = pulse_graph(3, 2, "driven")
    assert graph.nodes["system"] == {"kind": "system", "sample": None, "step": None}
    assert graph.nodes["initial[2]"] == {"kind": "initial_state", "sample": 2, "step": None}
    assert graph.nodes["X[2,1]"] == {"kind": "state", "sample": 2, "step": 1}
    assert graph.nodes["Y[2,1]"] == {"kind": "observable", "sample": 2, "step": 1}
    assert len(graph) == 1 + 3 * (1 + 2 * 2)


# Theorem 1.


@every_graph
@every_length
def test_theorem(n_steps, first_step):
    sets = found(n_steps, first_step)
    assert len(sets) == 4**n_steps - 2
    for mask, of_rule in sets.items():
        for rule in RULES:
            assert (of_rule[rule][0] == SYSTEM) == constant_rows(mask), (mask, rule)


@every_graph
@every_length
def test_the_system_separates_whole_samples_and_nothing_always_fails(n_steps, first_step):
    graph = make_graph(n_steps, first_step)
    for mask in all_masks(n_steps):
        assert separates(graph, SYSTEM, nodes(mask)) == constant_rows(mask), mask
        assert not separates(graph, (), nodes(mask)), mask


@every_graph
def test_three_samples(first_step):
    graph = pulse_graph(3, 2, first_step)
    for mask in all_masks(2, n_samples=3):
        assert separates(graph, SYSTEM, nodes(mask)) == constant_rows(mask)
        assert (shared_latents(graph, nodes(mask)) == SYSTEM) == constant_rows(mask)


@every_graph
@every_length
def test_the_blocking_rule_separates(n_steps, first_step):
    for mask, of_rule in found(n_steps, first_step).items():
        assert of_rule["blocking"][1], mask


def one_early_step_at_most(mask):
    """Whether each sample has no masked step, or one that is not its last."""
    return all(sum(row) == 0 or (sum(row) == 1 and not row[-1]) for row in mask)


def opposite_after_the_first_step(mask):
    """Whether one sample is masked and the other visible, whatever the first steps are."""
    return {row[1:] for row in mask} == {(0,) * len(mask[0][1:]), (1,) * len(mask[0][1:])}


@every_graph
@every_length
def test_masks_on_which_the_literal_rule_separates(n_steps, first_step):
    sets = found(n_steps, first_step)
    separated = {mask for mask in sets if sets[mask]["literal"][1]}
    expected = {
        mask
        for mask in sets
        if constant_rows(mask)
        or one_early_step_at_most(mask)
        or one_early_step_at_most(complement(mask))
        or (first_step == "root" and opposite_after_the_first_step(mask))
    }
    assert separated == expected
    fails = {
        "root": {2: 0, 3: 38, 4: 216, 5: 966},
        "driven": {2: 6, 3: 44, 4: 222, 5: 972},
    }
    assert len(sets) - len(separated) == fails[first_step][n_steps]


@every_graph
@every_length
def test_one_sample_masked_and_the_other_partly(n_steps, first_step):
    masks = [
        mask
        for mask in all_masks(n_steps)
        if any(all(row) for row in mask) and not constant_rows(mask)
    ]
    assert len(masks) == 2 * (2**n_steps - 2)
    for mask in masks:
        for rule in RULES:
            latents, _ = found(n_steps, first_step)[mask][rule]
            assert latents != SYSTEM and states(latents), (mask, rule)


@pytest.mark.parametrize("masked", [["Y[0,0]"], ["Y[1,0]"]])
@pytest.mark.parametrize("rule", RULES)
def test_one_step(masked, rule):
    # A first state that is a root never hears of the system: two single steps share nothing.
    root, driven = pulse_graph(2, 1, "root"), pulse_graph(2, 1, "driven")
    assert shared_latents(root, masked, rule) == frozenset()
    assert separates(root, (), masked)
    assert minimum_separators(root, masked) == [frozenset()]
    assert shared_latents(driven, masked, rule) == SYSTEM
    assert separates(driven, SYSTEM, masked)
    assert not separates(driven, (), masked)
    assert minimum_separators(driven, masked) == [SYSTEM, {"X[0,0]"}, {"X[1,0]"}]


# Around the theorem.


@every_graph
@pytest.mark.parametrize("mask", [parse("1111/1000"), parse("0000/0111")])
def test_a_partial_mask_that_needs_the_system_and_a_state(mask, first_step):
    graph = make_graph(4, first_step)
    assert minimum_separators(graph, nodes(mask)) == [
        {"system", "X[1,0]"},
        {"system", "X[1,1]"},
    ]
    sets = found(4, first_step)[mask]
    if first_step == "root":
        assert sets["blocking"] == sets["literal"] == ({"system", "X[1,0]"}, True)
    else:
        assert sets["blocking"][0] >= {"system", "X[1,0]"}
        assert sets["literal"] == ({"X[1,0]"}, False)


@every_graph
@every_length
def test_states_at_the_borders_of_a_masked_run(n_steps, first_step):
    # They need the system besides, unless the run is one step that has a successor.
    graph = make_graph(n_steps, first_step)
    for first, last in product(range(n_steps), repeat=2):
        if first > last or (first, last) == (0, n_steps - 1):
            continue
        masked = [f"Y[0,{t}]" for t in range(first, last + 1)]
        borders = {f"X[0,{t}]" for t in (first - 1, last) if 0 <= t < n_steps - 1}
        assert separates(graph, borders, masked) == (first == last < n_steps - 1)
        assert separates(graph, borders | SYSTEM, masked)


@every_graph
@pytest.mark.parametrize("n_steps", [2, 3, 4])
def test_whole_samples_have_three_minimal_separators(n_steps, first_step):
    graph = make_graph(n_steps, first_step)
    masked = [f"Y[0,{t}]" for t in range(n_steps)]
    sets = [
        set(chosen)
        for size in range(len(latents(graph)) + 1)
        for chosen in combinations(latents(graph), size)
        if separates(graph, chosen, masked)
    ]
    minimal = [one for one in sets if not any(other < one for other in sets)]
    samples = [{f"X[{i},{t}]" for t in range(n_steps)} for i in range(2)]
    assert minimal == [SYSTEM, *samples]
    # So the system is what crosses only if it is the smallest of the three.
    for excess, expected in {-1: [SYSTEM], 0: [SYSTEM, *samples], 1: samples}.items():
        larger = graph.copy()
        larger.nodes["system"]["dimension"] = n_steps + excess
        assert minimum_separators(larger, masked) == expected


@every_graph
def test_minimum_separators_of_every_mask(first_step):
    graph = make_graph(3, first_step)
    for mask in all_masks(3):
        smallest = minimum_separators(graph, nodes(mask))
        assert all(separates(graph, one, nodes(mask)) for one in smallest)
        assert (smallest == [SYSTEM]) == (SYSTEM in smallest) == constant_rows(mask)
        assert len(found(3, first_step)[mask]["blocking"][0]) >= len(smallest[0])


def test_no_larger_set_is_tried_than_needed():
    graph = pulse_graph(2, 40)  # of 2 ** 81 sets
    assert minimum_separators(graph, [f"Y[0,{t}]" for t in range(40)]) == [SYSTEM]


# Against the definitions.


@every_graph
def test_d_separation_is_that_of_the_definition(first_step):
    graph = make_graph(2, first_step)
    for mask in all_masks(2):
        for size in range(len(latents(graph)) + 1):
            for chosen in combinations(latents(graph), size):
                masked = nodes(mask)
                expected = separates_literally(graph, chosen, masked)
                assert separates(graph, chosen, masked) == expected, (mask, chosen)


@every_graph
@pytest.mark.parametrize("rule", RULES)
def test_rules_are_those_of_the_definition(first_step, rule):
    graph = make_graph(3, first_step)
    for mask in all_masks(3):
        expected = shared_literally(graph, nodes(mask), rule)
        assert shared_latents(graph, nodes(mask), rule) == expected, mask


@given(graphs_and_masks(leaves=False))
@settings(max_examples=60)
def test_any_graph(drawn):
    graph, masked = drawn
    before = graph.copy()
    for rule in RULES:
        result = shared_latents(graph, masked, rule)
        assert isinstance(result, frozenset)
        assert result == shared_literally(graph, masked, rule)
        assert separates(graph, result, masked) == separates_literally(graph, result, masked)
    subsets = [
        frozenset(chosen)
        for size in range(len(latents(graph)) + 1)
        for chosen in combinations(latents(graph), size)
    ]
    separating = [one for one in subsets if separates_literally(graph, one, masked)]
    fewest = min(map(len, separating), default=None)
    expected = [one for one in separating if len(one) == fewest]
    assert minimum_separators(graph, masked) == expected
    assert nx.utils.graphs_equal(graph, before)


@given(graphs_and_masks())
@settings(max_examples=60)
def test_the_blocking_rule_separates_where_observables_are_leaves(drawn):
    graph, masked = drawn
    assert separates(graph, shared_latents(graph, masked, "blocking"), masked)
