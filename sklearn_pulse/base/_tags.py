"""Tags of estimators on windows."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sklearn.utils import Tags


@dataclass(slots=True)
class WindowTags(Tags):
    """Tags of scikit-learn and of estimators on windows.

    Parameters
    ----------
    variable_length : bool, default=True
        Whether windows may be of another length at prediction than at `fit`.
    """

    variable_length: bool = True

    @classmethod
    def of(cls, tags: Tags, *, variable_length: bool) -> WindowTags:
        """Extend scikit-learn's tags.

        Parameters
        ----------
        tags : Tags
            Tags of scikit-learn.
        variable_length : bool
            Whether windows may be of another length at prediction than at `fit`.

        Returns
        -------
        WindowTags
            The same tags, and `variable_length`.
        """
        known = {field.name: getattr(tags, field.name) for field in fields(Tags)}
        return cls(**known, variable_length=variable_length)
