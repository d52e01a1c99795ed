"""What an estimator says of itself, beyond scikit-learn's tags."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sklearn.utils import Tags


@dataclass(slots=True)
class WindowTags(Tags):
    """scikit-learn's tags, and those of estimators on windows.

    Parameters
    ----------
    variable_length : bool, default=True
        Whether windows may be of another length at prediction than at `fit`.
    """

    variable_length: bool = True

    @classmethod
    def of(cls, tags: Tags, *, variable_length: bool) -> WindowTags:
        """Return `tags`, extended."""
        known = {field.name: getattr(tags, field.name) for field in fields(Tags)}
        return cls(**known, variable_length=variable_length)
