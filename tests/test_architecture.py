"""Who may import whom, at module level."""

import ast
import functools
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_pulse

ROOT = Path(sklearn_pulse.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

# Rooms that a room may import from, beside itself. A file named here is a room of its own, so that
# the torch-free leaves of `_data` can be read by the rooms that load no torch. METHOD is what any
# method may use; the other rows list what is used.
METHOD = {
    "_commit",
    "_share",
    "_data",
    "_data._validation",
    "_data._windows",
    "_data._labels",
    "_parameters",
    "_signals",
    "_tags",
    "_threads",
    "_training",
    "_typing",
    "_warnings",
    "base",
    "functional",
    "networks",
    "objectives",
    "sampling",
}
ALLOWED = {
    "__init__": {"_version"},
    # 1. the ground
    "_version": set(),
    "_warnings": set(),
    "_blas": set(),
    "_commit": set(),
    "_docstrings": set(),
    "_extras": set(),
    "_parameters": set(),
    "_groups": set(),
    "_moments": set(),
    "_progress": set(),
    "_seeds": set(),
    "_threads": {"_blas"},
    "_share": set(),
    "_shipped": set(),
    "_signals": {"_parameters"},
    "_pickles": set(),
    "_pipelines": set(),
    "_tags": set(),
    "_typing": set(),
    "functional": set(),
    "sampling": set(),
    "_products": set(),
    "networks": {"_products", "_threads", "sampling"},
    "_inputs": {"_groups", "_parameters", "_warnings"},
    "windows": {
        "_commit",
        "_groups",
        "_inputs",
        "_parameters",
        "_seeds",
        "_signals",
        "_tags",
        "_typing",
        "_warnings",
    },
    "presets": {"_parameters"},
    "_data._labels": {"_groups", "_inputs", "_parameters"},
    "_data._windows": {"_groups", "_inputs", "windows"},
    "_data._amplitude": {"_data._windows", "_warnings"},
    "_data._precision": {"_data._windows", "_warnings"},
    "_data._validation": {
        "_data._amplitude",
        "_data._precision",
        "_data._windows",
        "_inputs",
        "_signals",
        "windows",
    },
    "theory": {"_extras", "_parameters"},
    "augmentations": set(),
    # 2. parts
    "_export": {"_extras"},
    "_tensor_files": {"_pickles"},
    "_training": {"_share", "_threads", "_warnings"},
    "_data": {"_data._windows", "_moments", "_training", "_warnings"},
    "objectives": {"_share", "functional", "networks", "sampling"},
    "features": {
        "_commit",
        "_data",
        "_docstrings",
        "_data._validation",
        "_data._windows",
        "_inputs",
        "_parameters",
        "_persistence",
        "_products",
        "_signals",
        "_tags",
        "_threads",
        "_training",
        "_typing",
    },
    "_closed_form": {
        "_blas",
        "_data._windows",
        "_groups",
        "_parameters",
        "_persistence",
        "_products",
        "_progress",
        "_threads",
        "_training",
        "_version",
        "features",
        "preprocessing",
    },
    "_persistence": {
        "_extras",
        "_parameters",
        "_shipped",
        "_signals",
        "_training",
        "_version",
        "_warnings",
    },
    "preprocessing": {
        "_commit",
        "_docstrings",
        "_groups",
        "_inputs",
        "_moments",
        "_parameters",
        "_signals",
        "_tags",
        "_typing",
        "windows",
    },
    "datasets": {
        "_extras",
        "_inputs",
        "_seeds",
        "_parameters",
        "_pickles",
        "_progress",
        "_tensor_files",
        "_warnings",
        "windows",
    },
    "evaluation": {
        "_blas",
        "_data._labels",
        "_groups",
        "_inputs",
        "_parameters",
        "_pipelines",
        "_warnings",
        "model_selection",
    },
    "inspection": {"_groups", "_inputs", "_parameters", "windows"},
    "model_selection": {"_data._labels", "_groups", "_parameters", "_seeds"},
    # 3. what a method is built on
    "base": METHOD - {"_typing", "base", "functional", "sampling"}
    | {"_docstrings", "_export", "_groups", "_persistence", "_pipelines", "_seeds"},
    # 4. the estimators
    "_pulse": METHOD | {"_export", "_seeds"},
    "_oracle": METHOD,
    "_finetune": {"_data", "_data._labels", "_persistence", "_typing", "base", "evaluation"},
    "_finetune_regressor": {"_typing", "base"},
    "_cross_prediction": {
        "_closed_form",
        "_seeds",
        "_threads",
        "_commit",
        "_docstrings",
        "_data._validation",
        "_data._windows",
        "_parameters",
        "_persistence",
        "_training",
        "_typing",
        "_warnings",
        "features",
        "preprocessing",
    },
    "baselines": METHOD | {"_extras", "_moments", "_seeds", "augmentations", "features", "windows"},
    # 5. on top
    "_chain": {
        "_export",
        "_parameters",
        "_persistence",
        "_training",
        "_version",
        "_warnings",
        "preprocessing",
    },
    "corpus": {
        "_cross_prediction",
        "_data._precision",
        "_data._windows",
        "_extras",
        "_groups",
        "_inputs",
        "_parameters",
        "_pipelines",
        "_progress",
        "_typing",
        "preprocessing",
        "windows",
    },
    "interop": {"_inputs", "_persistence", "_pulse", "_signals", "_tensor_files", "networks"},
    "pretrained": {"_parameters", "_persistence", "_shipped"},
    "panel": {
        "_extras",
        "_commit",
        "_docstrings",
        "_inputs",
        "_pulse",
        "_training",
        "_typing",
        "base",
        "baselines",
        "features",
    },
    "plotting": {
        "_data._labels",
        "_data._validation",
        "_data._windows",
        "_extras",
        "_groups",
        "_inputs",
        "_parameters",
        "evaluation",
    },
    "benchmark": {
        "_seeds",
        "_extras",
        "__init__",
        "_closed_form",
        "_data._precision",
        "_data._windows",
        "_finetune",
        "_groups",
        "_inputs",
        "_parameters",
        "_progress",
        "_threads",
        "_training",
        "_version",
        "_warnings",
        "base",
        "baselines",
        "datasets",
        "evaluation",
        "features",
        "model_selection",
        "plotting",
        "presets",
        "windows",
    },
}
NO_TORCH = {
    "_blas",
    "_commit",
    "_extras",
    "_groups",
    "_moments",
    "_parameters",
    "_pickles",
    "_pipelines",
    "_progress",
    "_seeds",
    "_shipped",
    "_signals",
    "_tags",
    "_tensor_files",
    "_typing",
    "_warnings",
    "_inputs",
    "_data._labels",
    "_data._precision",
    "_data._validation",
    "_data._windows",
    "windows",
    "preprocessing",
    "datasets",
    "evaluation",
    "inspection",
    "model_selection",
    "presets",
    "theory",
}
NO_SKLEARN = {"networks", "functional", "sampling", "augmentations"}
HEAVY = tuple(
    (
        "aeon sktime matplotlib wfdb mne pooch requests torchsde networkx dask distributed zarr"
        " rich tqdm pandas"
    ).split()
)

# Names of other packages that are private there.
PRIVATE = {
    "sklearn.metrics._scorer._BaseScorer",
    "sklearn.utils._safe_indexing",
    "sklearn.utils.validation._check_method_params",
    "sklearn.utils.validation._check_sample_weight",
    "sklearn.utils.validation._num_samples",
    "torch._dynamo.lookup_backend",
    "torch._foreach_copy_",
    "torch.ops.mkldnn._convolution_pointwise",
    "torch.ops.mkldnn._linear_pointwise",
    "torch.ops.mkldnn._is_mkldnn_bf16_supported",
    "torch.storage._load_from_bytes",
    "torch.utils._python_dispatch.TorchDispatchMode",
}


def room(path):
    """Room of a module: its folder, or its file where ALLOWED names it."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts) if ".".join(parts) in ALLOWED else parts[0]


@functools.cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports(path, later=False):
    """Absolute names of what a module imports when it is loaded, or also `later`, in functions."""
    package = ["sklearn_pulse", *path.relative_to(ROOT).parts[:-1]]
    names = set()
    todo = list(parsed(path).body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not later:
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue  # never runs
        todo.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names if node.level)
    return frozenset(names)


def module_of(name):
    """File of the package that defines `name`, None for what lies outside the package."""
    parts = name.split(".")
    if parts[0] != "sklearn_pulse":
        return None
    for n in range(len(parts), 1, -1):
        path = ROOT.joinpath(*parts[1:n])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
    return ROOT / "__init__.py"


def rooms_imported(path, later=False):
    """Rooms that a module imports from; a name counts where it is defined."""
    names = imports(path, later)
    # `from a import b` lists `a` and `a.b`; only the longer name says which module is meant.
    names = {name for name in names if not any(other.startswith(f"{name}.") for other in names)}
    return {room(module) for module in map(module_of, names) if module} - {room(path)}


def test_imports_are_allowed():
    wrong = []
    for path in MODULES:
        here = room(path)
        outside = {name.split(".")[0] for name in imports(path)}
        forbidden = set(HEAVY) - ({"sktime"} if here == "panel" else set())
        forbidden |= {"torch", "skorch"} if here in NO_TORCH else set()
        forbidden |= {"sklearn"} if here in NO_SKLEARN else set()
        if here == "_training" and path.stem in ("_net", "_iterator", "_callbacks"):
            forbidden |= {"sklearn", "numpy", "scipy"}
        found = sorted(rooms_imported(path) - ALLOWED[here]) + sorted(outside & forbidden)
        wrong += [f"{path.relative_to(ROOT)} imports {name}" for name in found]
    assert not wrong


def test_every_allowed_import_is_used():
    used = {here: set() for here in ALLOWED}
    for path in MODULES:
        used[room(path)] |= rooms_imported(path)
    methods = [here for here, others in ALLOWED.items() if others >= METHOD]
    assert METHOD == set().union(*(used[here] for here in [*methods, "base"])) & METHOD
    spare = {here: others - used[here] for here, others in ALLOWED.items()}
    for here in methods:
        spare[here] -= METHOD
    assert not any(spare.values()), spare


def test_there_is_no_circle_between_rooms():
    used = {here: set() for here in ALLOWED}
    for path in MODULES:
        used[room(path)] |= rooms_imported(path, later=True)
    left = dict(used)
    while left:
        free = [here for here, others in left.items() if not others & left.keys()]
        assert free, f"these rooms import each other in a circle: {sorted(left)}"
        for here in free:
            del left[here]


def private_names(path):
    """Dotted names of other packages with a part that begins with an underscore."""
    names = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and not node.level:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            names.add(ast.unparse(node))
    private = {name for name in names if re.match(r"(skorch|sklearn|torch)\b.*\._[A-Za-z]", name)}
    return {name for name in private if not any(other.startswith(f"{name}.") for other in private)}


def test_private_names_of_other_packages_are_few():
    """A new one must be in the oldest admitted version as well, which `make test-lowest` tells."""
    assert set().union(*map(private_names, MODULES)) == PRIVATE


def test_methods_do_not_import_each_other():
    estimators = [*(ROOT / "baselines").glob("_[a-z]*.py")]
    names = ("_pulse", "_oracle", "_finetune", "_finetune_regressor", "_cross_prediction")
    estimators += [ROOT / f"{name}.py" for name in names]
    for path in estimators:
        modules = {module_of(name) for name in imports(path)}
        assert not modules & (set(estimators) - {path}), path


def test_the_rule_sees_imports():
    assert rooms_imported(ROOT / "_data" / "_batches.py") == {"_data._windows", "_training"}
    assert "networks" in rooms_imported(ROOT / "baselines" / "_random_encoder.py")
    assert rooms_imported(ROOT / "baselines" / "_patchtst.py") == {
        "_typing",
        "base",
        "networks",
        "objectives",
        "sampling",
    }
    assert "_data._labels" in rooms_imported(ROOT / "evaluation" / "_labeled_subset.py")


# In this order a fresh interpreter runs them: first what may load least.
LIGHT = [
    ("import sklearn_pulse", "torch skorch sktime matplotlib wfdb networkx dask"),
    *((f"import sklearn_pulse.{name}", "torch skorch") for name in sorted(NO_TORCH)),
    ("import sklearn_pulse.theory", "networkx"),
    ("import sklearn_pulse.plotting", "matplotlib"),
    ("import sklearn_pulse.corpus", "dask distributed zarr"),
    ("from sklearn_pulse import *", "sktime matplotlib wfdb networkx dask"),
]
WITH_SKTIME = [("import sklearn_pulse.panel", "matplotlib wfdb networkx dask")]


def test_imports_stay_light():
    """Also sktime is imported by its module alone."""
    with_sktime = WITH_SKTIME if importlib.util.find_spec("sktime") else []
    code = (
        "import sys\n"
        f"for statement, absent in {[*LIGHT, *with_sktime]}:\n"
        "    exec(statement)\n"
        "    print(statement, [name for name in absent.split() if name in sys.modules])\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]  # sktime warns
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == [f"{statement} []" for statement, _ in [*LIGHT, *with_sktime]]


def test_everything_public_is_listed():
    for name in sklearn_pulse.__all__:
        assert hasattr(sklearn_pulse, name)
        assert name in dir(sklearn_pulse)
    with pytest.raises(AttributeError, match="no attribute 'PulseTransformr'"):
        _ = sklearn_pulse.PulseTransformr


@pytest.mark.xdist_group("kept")
def test_groups_of_tests_stay_together(request):
    """pytest 9.2 ignores the groups of xdist 3.8: what a group shares is then made twice."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("the tests are not spread over processes by groups")
    assert request.node.nodeid.endswith("@kept")
