"""The hostile files, by the loader that reads them.

To add a loader, register it and its attacks in a module here, and import the module below.
"""

from tests.hostile import chains, models, pickles, recordings, records, tensors  # noqa: F401


def prepare(home, whole):
    """Make what many attacks spoil, before processes are forked; few models unless `whole`."""
    models.prepare(home / "models", models.CLASSES if whole else models.QUICK)
    chains.prepare(home)
    tensors.prepare()
