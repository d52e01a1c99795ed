"""Probes, clusterings and scores that tell how much a representation is worth."""

from ._clustering import CLUSTERING_SCORERS, clustering_scores, make_cluster_probe
from ._drift import drift_scores, embedding_drift, score_drift
from ._labeled_subset import LabeledSubsetClassifier
from ._probe import make_linear_probe
from ._reconstruction import RECONSTRUCTION_SCORERS, reconstruction_scores
from ._scorers import PROBE_SCORERS, macro_auprc, macro_auroc, probe_scores

__all__ = [
    "CLUSTERING_SCORERS",
    "LabeledSubsetClassifier",
    "PROBE_SCORERS",
    "RECONSTRUCTION_SCORERS",
    "clustering_scores",
    "drift_scores",
    "embedding_drift",
    "macro_auprc",
    "macro_auroc",
    "make_cluster_probe",
    "make_linear_probe",
    "probe_scores",
    "reconstruction_scores",
    "score_drift",
]
