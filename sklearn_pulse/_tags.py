"""Tags of estimators on windows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

from sklearn.utils import Tags

AnyTags = TypeVar("AnyTags", bound=Tags)


def of_windows(tags: AnyTags, *, allow_nan: bool = True) -> AnyTags:
    """Set the tags of a transformer that takes windows and returns float32.

    Parameters
    ----------
    tags : Tags
        Tags of scikit-learn; they are changed in place.
    allow_nan : bool, default=True
        Whether a window may have missing time steps.

    Returns
    -------
    Tags
        The same tags.
    """
    tags.input_tags.two_d_array = True
    tags.input_tags.three_d_array = True
    tags.input_tags.allow_nan = allow_nan
    if tags.transformer_tags is not None:
        tags.transformer_tags.preserves_dtype = ["float32"]
    return tags


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
