"""Graphs behind Theorem 1: the latent variables that connect masked and visible data."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

from ._extras import needs
from ._parameters import check_integer, check_option

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["minimum_separators", "pulse_graph", "separates", "shared_latents"]


def pulse_graph(
    n_samples: int = 2, n_steps: int = 4, first_step: Literal["root", "driven"] = "root"
) -> nx.DiGraph:
    """Make the graph of several samples of one dynamical system.

    The system acts on every transition between the states of every sample, and each state acts on
    its own observable. Samples share only the system.

    Parameters
    ----------
    n_samples : int, default=2
        Number of samples of the system. Two samples are the pair of the theorem.
    n_steps : int, default=4
        Number of time steps of each sample, the paper's W.
    first_step : {"root", "driven"}, default="root"
        Causes of the first state of a sample. With "root" it has no cause, and the system first
        acts on the second state (paper, Appendix A). With "driven" its causes are the system and an
        initial state, as in the cross-reconstruction objective (paper, Eq. 2), where the first
        state is the first output of the decoder.

    Returns
    -------
    networkx.DiGraph
        Graph whose nodes are strings: ``"system"``, ``"X[i,t]"`` for the state and ``"Y[i,t]"`` for
        the observable of sample i at step t, both counted from zero, and ``"initial[i]"`` for the
        initial states of a driven graph. Node attributes are `kind` ("system", "state",
        "initial_state" or "observable"), `sample` and `step` (None for nodes without a sample or
        step).

    Raises
    ------
    TypeError
        If `n_samples` or `n_steps` is not an integer.
    ValueError
        If `n_samples` or `n_steps` is smaller than 1, or `first_step` is unknown.
    ImportError
        If networkx is missing or older than 3.3.

    References
    ----------
    Paper, Eq. 1 and Appendix A.

    Examples
    --------
    >>> graph = pulse_graph(n_steps=2)
    >>> list(graph)
    ['system', 'X[0,0]', 'Y[0,0]', 'X[0,1]', 'Y[0,1]', 'X[1,0]', 'Y[1,0]', 'X[1,1]', 'Y[1,1]']
    >>> graph.nodes["X[0,1]"]
    {'kind': 'state', 'sample': 0, 'step': 1}
    >>> sorted(graph.predecessors("X[0,1]"))
    ['X[0,0]', 'system']
    """
    check_integer("n_samples", n_samples, 1)
    check_integer("n_steps", n_steps, 1)
    check_option("first_step", first_step, ("root", "driven"))
    graph = _networkx().DiGraph()
    graph.add_node("system", kind="system", sample=None, step=None)
    for sample in range(n_samples):
        before = None
        if first_step == "driven":
            before = f"initial[{sample}]"
            graph.add_node(before, kind="initial_state", sample=sample, step=None)
        for step in range(n_steps):
            state, observable = f"X[{sample},{step}]", f"Y[{sample},{step}]"
            graph.add_node(state, kind="state", sample=sample, step=step)
            graph.add_node(observable, kind="observable", sample=sample, step=step)
            graph.add_edge(state, observable)
            if before is not None:
                graph.add_edges_from([("system", state), (before, state)])
            before = state
    return graph


def shared_latents(
    graph: nx.DiGraph,
    masked: Iterable[Hashable],
    rule: Literal["literal", "blocking"] = "literal",
) -> frozenset[Hashable]:
    """Select the latent variables that masked and visible observables share, and prune them.

    A latent variable is selected if both a masked and a visible observable are among its
    descendants.

    Parameters
    ----------
    graph : networkx.DiGraph
        An acyclic graph whose observables have the node attribute ``kind="observable"``; every
        other node is latent. :func:`pulse_graph` makes one.
    masked : iterable of nodes
        The observables that are hidden and to be predicted; all other observables are visible.
        Neither side may be empty. The paper's m is 0 where an observable is masked.
    rule : {"literal", "blocking"}, default="literal"
        Condition to prune a selected variable. With "literal", as the paper words it, another
        selected variable lies on some directed path from it to the visible side. With "blocking",
        another selected variable lies on every such path.

    Returns
    -------
    frozenset of nodes
        The selected variables that are not pruned.

    Raises
    ------
    TypeError
        If `graph` is not a directed networkx graph, or `masked` is not an iterable of nodes.
    ValueError
        If `graph` has a cycle or no observables; if `masked` is empty, holds every observable, or
        holds anything else than observables of the graph; if `rule` is unknown.
    ImportError
        If networkx is missing or older than 3.3.

    See Also
    --------
    separates : Whether given variables block every path between the two sides.

    Notes
    -----
    Where no observable has children, as in the paper's graph, the set of the blocking rule always
    separates the two sides, though a smaller set may do so too; the set of the literal rule often
    does not. For two or more steps, the set of either rule is ``{"system"}`` exactly if one sample
    of the pair is wholly masked and the other wholly visible (Theorem 1).

    References
    ----------
    Paper, Theorem 1 and Appendix A, which takes the two stages from Kong et al., "Understanding
    masked autoencoders via hierarchical latent variable models", CVPR 2023.

    Examples
    --------
    >>> graph = pulse_graph(n_steps=3, first_step="driven")
    >>> shared_latents(graph, ["Y[0,0]", "Y[0,1]", "Y[0,2]"])
    frozenset({'system'})
    >>> shared_latents(graph, ["Y[0,0]", "Y[0,1]"])
    frozenset({'X[0,1]'})
    >>> sorted(shared_latents(graph, ["Y[0,0]", "Y[0,1]"], rule="blocking"))
    ['X[0,1]', 'system']
    """
    check_option("rule", rule, ("literal", "blocking"))
    nx = _networkx()
    hidden, visible = _sides(graph, masked)
    below = {latent: nx.descendants(graph, latent) for latent in _latents(graph)}
    selected = {latent for latent in below if below[latent] & hidden and below[latent] & visible}
    if rule == "literal":
        # Every selected variable leads to the visible side, so a selected descendant lies between.
        return frozenset(latent for latent in selected if not below[latent] & selected)
    free = set(graph) - selected

    def reaches_visible(latent: Hashable) -> bool:
        return not visible.isdisjoint(nx.descendants(graph.subgraph(free | {latent}), latent))

    return frozenset(filter(reaches_visible, selected))


def separates(graph: nx.DiGraph, latents: Iterable[Hashable], masked: Iterable[Hashable]) -> bool:
    """Return whether given latent variables d-separate masked and visible observables.

    Parameters
    ----------
    graph : networkx.DiGraph
        An acyclic graph whose observables have the node attribute ``kind="observable"``; every
        other node is latent. :func:`pulse_graph` makes one.
    latents : iterable of nodes
        Latent variables that are given; may be empty.
    masked : iterable of nodes
        The observables that are hidden; all other observables are visible. Neither side may be
        empty.

    Returns
    -------
    bool
        True if `latents` block every path between the two sides, so that the masked side depends
        on the visible side through `latents` alone.

    Raises
    ------
    TypeError
        If `graph` is not a directed networkx graph, or `masked` or `latents` is not an iterable of
        nodes.
    ValueError
        If `graph` has a cycle or no observables; if `masked` is empty, holds every observable, or
        holds anything else than observables of the graph; if `latents` holds anything else than
        latent variables of the graph.
    ImportError
        If networkx is missing or older than 3.3.

    References
    ----------
    Paper, Appendix A.

    Examples
    --------
    The last masked state alone does not separate the sides: a path through the system avoids it.

    >>> graph = pulse_graph(n_steps=3)
    >>> separates(graph, ["X[0,1]"], masked=["Y[0,0]", "Y[0,1]"])
    False
    >>> separates(graph, ["X[0,1]", "system"], masked=["Y[0,0]", "Y[0,1]"])
    True
    """
    hidden, visible = _sides(graph, masked)
    given = _as_set("latents", latents)
    _check_known("latents", given, set(_latents(graph)), "latent variables")
    return bool(_networkx().is_d_separator(graph, hidden, visible, given))


def minimum_separators(graph: nx.DiGraph, masked: Iterable[Hashable]) -> list[frozenset[Hashable]]:
    """Find the smallest sets of latent variables that separate masked and visible observables.

    The search tries every set, from small to large. It is feasible for about fifteen latent
    variables.

    Parameters
    ----------
    graph : networkx.DiGraph
        An acyclic graph whose observables have the node attribute ``kind="observable"``; every
        other node is latent. The node attribute `dimension` of a latent variable, a positive
        integer, is its size; without this attribute the size is 1.
    masked : iterable of nodes
        The observables that are hidden; all other observables are visible. Neither side may be
        empty.

    Returns
    -------
    list of frozenset of nodes
        All separating sets of the smallest total dimension, in the order of the graph's nodes. The
        list is empty if no set separates the sides, for example if one observable acts on another.

    Raises
    ------
    TypeError
        If `graph` is not a directed networkx graph, `masked` is not an iterable of nodes, or a
        `dimension` is not an integer.
    ValueError
        If `graph` has a cycle or no observables; if `masked` is empty, holds every observable, or
        holds anything else than observables of the graph; if a `dimension` is smaller than 1.
    ImportError
        If networkx is missing or older than 3.3.

    References
    ----------
    Paper, Appendix A, where the shared variables are the separating set of lowest dimension.

    Examples
    --------
    >>> graph = pulse_graph(n_steps=2)
    >>> minimum_separators(graph, ["Y[0,0]", "Y[0,1]"])
    [frozenset({'system'})]

    If the system is larger than all states of a sample together, these states are smaller sets:

    >>> graph.nodes["system"]["dimension"] = 3
    >>> [sorted(separator) for separator in minimum_separators(graph, ["Y[0,0]", "Y[0,1]"])]
    [['X[0,0]', 'X[0,1]'], ['X[1,0]', 'X[1,1]']]
    """
    hidden, visible = _sides(graph, masked)
    dimension = {latent: graph.nodes[latent].get("dimension", 1) for latent in _latents(graph)}
    for latent, size in dimension.items():
        check_integer(f"dimension of node {latent!r}", size, 1)
    is_d_separator = _networkx().is_d_separator
    smallest_first = sorted(dimension.values())
    lowest = sum(smallest_first)
    found: list[frozenset[Hashable]] = []
    for n_latents in range(len(dimension) + 1):
        if sum(smallest_first[:n_latents]) > lowest:
            break
        for candidate in combinations(dimension, n_latents):
            total = sum(dimension[latent] for latent in candidate)
            if total <= lowest and is_d_separator(graph, hidden, visible, set(candidate)):
                found = found if total == lowest else []
                found.append(frozenset(candidate))
                lowest = total
    return found


def _networkx() -> Any:
    """Import networkx, or raise an ImportError that names the extra."""
    with needs("sklearn_pulse.theory needs networkx", "theory"):
        import networkx as nx
    if not hasattr(nx, "is_d_separator"):
        raise ImportError(
            f"sklearn_pulse.theory needs networkx 3.3 or later, found {nx.__version__}: pip install"
            " --upgrade 'sklearn-pulse[theory]'"
        )
    return nx


def _latents(graph: nx.DiGraph) -> list[Hashable]:
    return [node for node, kind in graph.nodes(data="kind") if kind != "observable"]


def _sides(graph: nx.DiGraph, masked: Iterable[Hashable]) -> tuple[set[Hashable], set[Hashable]]:
    """Check the graph and the mask; return the masked and the visible observables."""
    _check_acyclic(graph)
    observables = set(graph) - set(_latents(graph))
    if not observables:
        raise ValueError(
            "graph has no observables: set the node attribute kind='observable' on the measured"
            " nodes, for example graph.add_node('Y', kind='observable')"
        )
    hidden = _as_set("masked", masked)
    _check_known("masked", hidden, observables, "observables")
    if not hidden or hidden == observables:
        amount = "all" if hidden else "none"
        raise ValueError(
            f"masked holds {amount} of the {len(observables)} observables of the graph, but neither"
            " side may be empty: pass at least one observable and leave at least one out"
        )
    return hidden, observables - hidden


def _check_acyclic(graph: Any) -> None:
    """Raise unless `graph` is a directed graph without a cycle."""
    nx = _networkx()
    if not (isinstance(graph, nx.Graph) and graph.is_directed()):
        raise TypeError(
            f"graph must be a networkx.DiGraph, got {type(graph).__name__}; make one with"
            " pulse_graph, or with networkx.DiGraph(edges) from causes to effects"
        )
    if not nx.is_directed_acyclic_graph(graph):
        edges = ", ".join(f"{edge[0]!r} -> {edge[1]!r}" for edge in nx.find_cycle(graph))
        raise ValueError(
            f"graph must be acyclic, but it has the cycle {edges}; remove one of these edges, or"
            " give each time step nodes of its own"
        )


def _as_set(name: str, nodes: Any) -> set[Hashable]:
    """Return `nodes` as a set, or raise a TypeError that names the expected type."""
    if isinstance(nodes, str):
        raise TypeError(
            f"{name} must be an iterable of nodes, got the string {nodes!r}; pass [{nodes!r}]"
        )
    try:
        return set(nodes)
    except TypeError as error:
        raise TypeError(
            f"{name} must be an iterable of nodes of the graph, such as a list of their names,"
            f" got {nodes!r}"
        ) from error


def _check_known(name: str, nodes: set[Hashable], known: set[Hashable], what: str) -> None:
    """Raise unless all `nodes` are among the `known` nodes."""
    unknown = sorted(map(repr, nodes - known))
    if unknown:
        raise ValueError(
            f"{name} must hold {what} of the graph only, got {_some(unknown)}; the {what} are"
            f" {_some(sorted(map(repr, known)))}"
        )


def _some(names: list[str], n_shown: int = 6) -> str:
    """List the first names and the number of further names."""
    more = len(names) - n_shown
    return ", ".join(names[:n_shown]) + (f" and {more} more" if more > 0 else "")
