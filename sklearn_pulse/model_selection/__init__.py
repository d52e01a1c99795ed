"""Label masking and splitters for few labels and honest folds, beyond those of scikit-learn."""

from ._group_holdout import GroupHoldout
from ._label_fraction_split import LabelFractionSplit
from ._labeled_test_split import LabeledTestSplit
from ._mask_labels import mask_labels

__all__ = ["GroupHoldout", "LabelFractionSplit", "LabeledTestSplit", "mask_labels"]
