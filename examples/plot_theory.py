"""
Theorem 1 as a picture
======================

Which latent variables do the masked observables of two samples of one dynamical system share with
the visible observables? The theorem says: only the system, if and only if one sample is fully
masked and the other fully visible. This example draws the graph. The shared variables that remain
after pruning are blue, once pruned as the paper words it and once by a rule whose result always
separates the masked from the visible observables.

::

    python examples/plot_theory.py                                    # one sample masked
    python examples/plot_theory.py 1111/1000 --first-step driven      # 1 is masked, 0 visible

At the end, the example counts the masks on which the pruning as worded leaves too few variables.
The count takes a few seconds.
"""

import argparse
from itertools import product
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import networkx as nx

from sklearn_pulse.theory import minimum_separators, pulse_graph, separates, shared_latents

parser = argparse.ArgumentParser(description="Which variables connect masked and visible steps?")
parser.add_argument(
    "mask", nargs="?", default="1111/0000", help="1 masked, 0 visible, a / between the samples"
)
parser.add_argument(
    "--first-step",
    choices=["root", "driven"],
    default="root",
    help="whether the system acts on the first state",
)
arguments = parser.parse_args()
rows = arguments.mask.split("/")
n_steps = len(rows[0])
n_each = [len(row) for row in rows]
if not n_steps or set(arguments.mask) - set("01/") or n_each != [n_steps] * 2:
    parser.error(
        f"mask {arguments.mask!r} is not valid: write two samples of equal length such as 1111/1000"
    )
if len(set(arguments.mask.replace("/", ""))) == 1:
    parser.error(f"mask {arguments.mask!r} leaves one side empty: mix 1 (masked) and 0 (visible)")


def observables(rows):
    """Return the nodes that a mask such as ["1111", "1000"] hides."""
    return [
        f"Y[{sample},{step}]"
        for sample, row in enumerate(rows)
        for step, masked in enumerate(row)
        if masked == "1"
    ]


# %%
# The shared variables
# --------------------
# The smallest separating sets are found by trying all sets, hence for short samples only.

RULES = {"literal": "Pruned as the paper words it", "blocking": "Pruned only where blocked"}


def in_braces(nodes):
    """Format a set in a fixed order."""
    return "{" + ", ".join(sorted(nodes, key=lambda node: (node != "system", node))) + "}"


graph = pulse_graph(2, n_steps, arguments.first_step)
masked = observables(rows)
print(f"mask {arguments.mask}, first state {arguments.first_step}")
verdicts = {}
for rule, title in RULES.items():
    shared = shared_latents(graph, masked, rule)
    verdict = "separates" if separates(graph, shared, masked) else "does not separate"
    verdicts[rule] = f"{in_braces(shared)} {verdict}"
    print(f"  {title + ':':34s}{verdicts[rule]}")
if n_steps <= 4:
    smallest = ", ".join(map(in_braces, minimum_separators(graph, masked)))
    print(f"  {'Smallest separating sets:':34s}{smallest}")

# %%
# The graph
# ---------
# The system is drawn above the states, and the states above the observables.


def place(node):
    """Return the coordinates of a node: steps go to the right, one sample after the other."""
    kind, sample, step = (graph.nodes[node][name] for name in ("kind", "sample", "step"))
    if kind == "system":
        return n_steps + 0.25, 1.0 + 0.35 * max(n_steps, 3)
    left = sample * (n_steps + 1.5)
    height = 0.0 if kind == "observable" else 1.0
    return (left - 1.0 if kind == "initial_state" else left + step), height


def draw(ax, rule):
    """Draw the graph with the variables that one rule recovers."""
    shared = shared_latents(graph, masked, rule)
    for node in graph:
        hidden, recovered = node in masked, node in shared
        nx.draw_networkx_nodes(
            graph,
            position,
            ax=ax,
            nodelist=[node],
            node_size=900,
            node_shape="s" if node.startswith("Y") else "o",
            node_color="#0072b2" if recovered else "#555555" if hidden else "white",
            edgecolors="black",
        )
        color = "white" if hidden or recovered else "black"
        nx.draw_networkx_labels(
            graph,
            position,
            {node: node.replace("initial", "initial\n")},
            ax=ax,
            font_size=7,
            font_color=color,
        )
    for of_system, color in {True: "#aaaaaa", False: "black"}.items():
        edges = [edge for edge in graph.edges if (edge[0] == "system") == of_system]
        nx.draw_networkx_edges(
            graph, position, edges, ax=ax, node_size=900, edge_color=color, arrowsize=9
        )
    ax.set_title(f"{RULES[rule]}:\n{verdicts[rule]}", fontsize=10)
    ax.margins(0.06, 0.15)
    ax.set_axis_off()


position = {node: place(node) for node in graph}
size = max(7.0, 2.0 * n_steps + 2.0), max(7.0, 1.3 * n_steps + 1.8)
figure, axes = plt.subplots(2, 1, figsize=size, layout="constrained")
for ax, rule in zip(axes, RULES, strict=True):
    draw(ax, rule)
figure.suptitle("Masked observables are dark, recovered variables blue")
output = Path("output/theory")
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "shared_latents.png", dpi=120)

# %%
# On how many masks does each set separate?
# -----------------------------------------
# All masks of two samples are tried, except those that hide nothing or everything.

print(f"\n{'first state':13s}{'steps':>5s}{'masks':>7s}{'only the system':>17s}", end="")
print("".join(f"{rule + ' fails':>16s}" for rule in RULES))
for first_step, length in product(["root", "driven"], [2, 3, 4, 5]):
    pair = pulse_graph(2, length, first_step)
    fails = dict.fromkeys(RULES, 0)
    n_masks = only_system = 0
    for bits in product("01", repeat=2 * length):
        if len(set(bits)) == 1:
            continue
        hidden = observables([bits[:length], bits[length:]])
        sets = {rule: shared_latents(pair, hidden, rule) for rule in RULES}
        n_masks += 1
        only_system += sets["literal"] == sets["blocking"] == {"system"}
        for rule, shared in sets.items():
            fails[rule] += not separates(pair, shared, hidden)
    print(f"{first_step:13s}{length:5d}{n_masks:7d}{only_system:17d}", end="")
    print("".join(f"{count:16d}" for count in fails.values()))

print(f"\npicture: {output}/shared_latents.png")
