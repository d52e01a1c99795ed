"""Who may import whom, at module level."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_pulse

ROOT = Path(sklearn_pulse.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

TRAINING = {
    "_net",
    "_objective",
    "_validation",
    "_parameters",
    "_progress",
    "_batches",
    "_checkpoint",
    "_device",
    "_embedding",
    "_tags",
    "_training",
    "networks",
}
ANY_METHOD = TRAINING | {"_base", "functional", "sampling", "_version"}
ALLOWED = {
    "__init__": {"_finetune", "_oracle", "_pulse", "_version", "baselines"},
    "_version": set(),
    "networks": set(),
    "functional": set(),
    "sampling": set(),
    "_objective": {"functional"},
    "_validation": set(),
    "_parameters": set(),
    "_plateau": set(),
    "_progress": set(),
    "_tags": set(),
    "_net": set(),
    "_checkpoint": set(),
    "_persistence": {"_version"},
    "_device": set(),
    "_unlabeled": set(),
    "windows": set(),
    "datasets": {"windows"},
    "presets": set(),
    "evaluation": {"_unlabeled"},
    "model_selection": {"_parameters", "_unlabeled"},
    "_batches": {"_net", "_validation"},
    "_training": {"_net", "_parameters"},
    "_embedding": TRAINING - {"_embedding", "_training", "_checkpoint", "networks"},
    "_base": TRAINING | {"_persistence"},
    "_labels": set(),
    "_labeled_batches": {"_batches", "_net", "_validation"},
    "_classification": {"_objective", "networks"},
    "_classifier": TRAINING | {"_classification", "_labeled_batches", "_labels"},
    "_finetune": TRAINING
    | {"_base", "_classification", "_classifier", "_labeled_batches", "_labels", "evaluation"},
    "_candidates": {"_batches", "_net", "_validation"},
    "_representation": {"_objective", "_parameters", "functional", "networks"},
    "_retrieval": {"_objective", "_representation", "functional", "networks", "sampling"},
    "_cross_reconstruction": {"_objective", "functional", "networks", "sampling"},
    "_pulse": ANY_METHOD | {"_cross_reconstruction"},
    "_pair_batches": {"_batches", "_candidates", "_net", "_validation"},
    "_pair_reconstruction": {"_cross_reconstruction", "functional", "sampling"},
    "_oracle": ANY_METHOD
    | {"_candidates", "_labels", "_pair_batches", "_pair_reconstruction", "_pulse"},
    "augmentations": {"functional"},
    "baselines": ANY_METHOD
    | {"_candidates", "_plateau", "_representation", "_retrieval", "augmentations", "windows"}
    | {"_classification", "_classifier", "_labeled_batches"},
    "interop": {"_pulse"},
    "panel": {"_embedding", "_progress", "_pulse", "baselines", "windows"},
    "theory": {"_parameters"},
    "benchmark": {
        "__init__",
        "_base",
        "_finetune",
        "_parameters",
        "_version",
        "baselines",
        "datasets",
        "evaluation",
        "model_selection",
        "plotting",
        "presets",
        "windows",
    },
    "plotting": {
        "_batches",
        "_parameters",
        "_unlabeled",
        "_validation",
        "evaluation",
        "model_selection",
    },
}
NO_TORCH = {
    "_parameters",
    "_unlabeled",
    "windows",
    "datasets",
    "evaluation",
    "model_selection",
    "presets",
    "theory",
}
NO_SKLEARN = {"networks", "functional", "sampling", "augmentations"}
HEAVY = tuple(
    "sktime matplotlib wfdb mne pooch requests torchsde networkx dask rich tqdm pandas".split()
)


def room(path):
    """First part of a module's name inside the package."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path):
    """Absolute names of what a module imports when it is loaded."""
    package = ["sklearn_pulse", *path.relative_to(ROOT).parts[:-1]]
    names = set()
    todo = list(ast.parse(path.read_text()).body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue  # runs later, where it is used
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
    return names


def rooms_imported(path):
    rooms = set()
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "sklearn_pulse" and len(parts) > 1:
            if (ROOT / parts[1]).is_dir() or (ROOT / f"{parts[1]}.py").is_file():
                rooms.add(parts[1])
    return rooms - {room(path)}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_are_allowed(path):
    assert rooms_imported(path) <= ALLOWED[room(path)]
    outside = {name.split(".")[0] for name in imports(path)}
    # its classes inherit from sktime's, and nobody imports it unasked
    assert not outside & set(HEAVY) - ({"sktime"} if room(path) == "panel" else set())
    if room(path) in NO_TORCH:
        assert not outside & {"torch", "skorch"}
    if room(path) in NO_SKLEARN:
        assert "sklearn" not in outside
    if room(path) == "_net":
        assert not outside & {"sklearn", "numpy", "scipy"}


def test_baselines_do_not_import_each_other():
    files = [path for path in (ROOT / "baselines").glob("_*.py") if path.name != "__init__.py"]
    for path in files:
        others = {f"sklearn_pulse.baselines.{other.stem}" for other in files if other != path}
        assert not imports(path) & others


def test_the_rule_sees_imports(tmp_path):
    assert rooms_imported(ROOT / "_batches.py") == {"_net", "_validation"}
    assert "networks" in rooms_imported(ROOT / "baselines" / "_random_encoder.py")


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import sklearn_pulse", "sktime matplotlib wfdb networkx dask"),
        ("import sklearn_pulse.plotting", "matplotlib"),
        ("import sklearn_pulse.theory", "networkx"),
    ],
)
def test_the_import_stays_light(statement, absent):
    code = f"{statement}; import sys; print([m for m in {absent.split()!r} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_everything_public_is_listed():
    for name in sklearn_pulse.__all__:
        assert hasattr(sklearn_pulse, name)
