"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType

_PACKAGE = str(Path(__file__).parent / "_")[:-1]  # ends with the separator of folders
# Libraries whose frames lie between the user's line and the package: pipelines, searches, panels,
# callbacks, optimizers.
_BETWEEN = {"joblib", "skbase", "sklearn", "skorch", "sktime", "torch"}


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that belongs neither to the package nor to scikit-learn.

    The line may lie any number of calls up: a pipeline, a search or a wrapper of a method adds
    frames, so that no fixed `stacklevel` points at the user's line. Where every line belongs to a
    library, the outermost one is taken.
    """
    frame, stacklevel = sys._getframe(1), 2
    while frame.f_back is not None and _is_library(frame):
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(message, category, stacklevel=stacklevel)


def _is_library(frame: FrameType) -> bool:
    """Whether a frame runs code of the package or of a library between it and the user."""
    # The package is known by its folder, since an example in a docstring has the name of its
    # module; the others by name, since importing them only for their folders would be slow.
    if frame.f_code.co_filename.startswith(_PACKAGE):
        return True
    return frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN
