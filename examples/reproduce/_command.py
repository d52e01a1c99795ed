"""How the scripts of this folder end."""

from __future__ import annotations

import sys
from collections.abc import Callable


def exit_status(main: Callable[[], int | None]) -> int:
    """Run a script; missing data end it with their message and status 2, as other commands do."""
    try:
        return main() or 0
    except (ImportError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
