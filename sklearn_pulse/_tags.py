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
    uses_recordings : bool, default=False
        Whether training reads which recording a window comes from.

    Examples
    --------
    >>> from sklearn.utils import get_tags
    >>> from sklearn_pulse.baselines import PatchTSTTransformer
    >>> get_tags(PatchTSTTransformer()).variable_length
    False
    """

    variable_length: bool = True
    uses_recordings: bool = False

    @classmethod
    def of(cls, tags: Tags, *, variable_length: bool, uses_recordings: bool = False) -> WindowTags:
        """Extend scikit-learn's tags.

        Parameters
        ----------
        tags : Tags
            Tags of scikit-learn.
        variable_length : bool
            Whether windows may be of another length at prediction than at `fit`.
        uses_recordings : bool, default=False
            Whether training reads which recording a window comes from.

        Returns
        -------
        WindowTags
            The same tags, `variable_length` and `uses_recordings`.
        """
        known = {field.name: getattr(tags, field.name) for field in fields(Tags)}
        return cls(**known, variable_length=variable_length, uses_recordings=uses_recordings)
