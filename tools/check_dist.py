"""Contents of the built sdist and wheel, and imports from the installed wheel.

    python tools/check_dist.py dist            # contents
    python tools/check_dist.py --installed     # in an environment with the wheel alone

The first form fails if a module of the package is missing in either file, or if tests are in it.
The second imports every module that needs no extra, from the installed package rather than the
checkout.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FORBIDDEN = ("tests/", "/tests/", ".npz", ".npy", "output/")
# Extras that a module needs at import; all other modules import theirs where they use them.
NEEDS_EXTRAS = {"sklearn_pulse.panel": "sktime"}


def package_files() -> set[str]:
    """Return the files that the package must hold, relative to the root."""
    folder = ROOT / "sklearn_pulse"
    kinds = "*.py", "py.typed", "*.csv", "README.md", "config.json", "*.safetensors"
    return {str(path.relative_to(ROOT)) for kind in kinds for path in folder.rglob(kind)}


def check_contents(folder: Path) -> None:
    """Fail if a file is missing, or if one is there that users do not need."""
    found = [sorted(folder.glob(kind)) for kind in ("*.tar.gz", "*.whl")]
    if any(len(files) != 1 for files in found):
        names = [file.name for files in found for file in files]
        sys.exit(f"{folder} must hold one sdist and one wheel, got {names}: run make dist")
    (sdist,), (wheel,) = found
    with tarfile.open(sdist) as archive:
        in_sdist = {name.split("/", 1)[-1] for name in archive.getnames()}
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    for path, names in ((sdist, in_sdist), (wheel, in_wheel)):
        missing = sorted(package_files() - names)
        forbidden = sorted(name for name in names if any(part in name for part in FORBIDDEN))
        if missing or forbidden:
            sys.exit(f"{path.name}: missing {missing}, not for users {forbidden}")
        print(f"{path.name}: {len(names)} entries, {path.stat().st_size / 1e6:.1f} MB")


def check_imports() -> None:
    """Import every module without extras, from the installed package."""
    package = importlib.import_module("sklearn_pulse")
    if Path(package.__file__ or "").is_relative_to(ROOT / "sklearn_pulse"):
        sys.exit("sklearn_pulse comes from the checkout: run this outside of it")
    n_modules = 0
    for module in pkgutil.walk_packages(package.__path__, "sklearn_pulse.", onerror=_ignore_extra):
        if module.name.endswith("__main__") or module.name.startswith(tuple(NEEDS_EXTRAS)):
            continue
        importlib.import_module(module.name)
        n_modules += 1
    print(f"{n_modules} modules imported without extras")


def _ignore_extra(name: str) -> None:
    """Raise unless the package that cannot be imported needs an extra."""
    if not name.startswith(tuple(NEEDS_EXTRAS)):
        raise ImportError(f"{name} cannot be imported without extras")


def main() -> None:
    """Check what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="folder of the sdist and the wheel")
    parser.add_argument("--installed", action="store_true")
    arguments = parser.parse_args()
    if arguments.folder is None and not arguments.installed:
        parser.error("nothing to check: pass the folder of the sdist and the wheel, or --installed")
    if arguments.folder is not None:
        check_contents(arguments.folder)
    if arguments.installed:
        check_imports()


if __name__ == "__main__":
    main()
