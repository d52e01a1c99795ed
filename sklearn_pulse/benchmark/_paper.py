"""Tables of the paper, as printed (in percent)."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

ABLATIONS = {
    "pulse-no-time-varying": "w/o TV-Params",
    "pulse-shared-encoder": "Shared f_sys and f_init",
    "pulse-direct-reconstruction": "Direct Recon. (w/o Random Crop)",
    "pulse-random-pairs": "Cross-Recon. w Random Pairs",
}
ORACLES = {
    "oracle-positive": "PULSE-Oracle-Positive",
    "oracle-negative": "PULSE-Oracle-Negative",
}
# Names of our metrics, and those of the paper.
_METRICS = {"accuracy": "Accuracy", "auroc": "AUROC", "auprc": "AUPRC"}
_TRANSFER_METRICS = {"accuracy": "ACC", "auroc": "AUROC"}


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of one table, ``<name>.csv``, as dictionaries of text."""
    path = resources.files(__package__) / "paper_tables" / f"{name}.csv"
    with path.open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def title(method: str) -> str | None:
    """Return the name of a method in the paper; None if the paper does not have the method."""
    names = {row["method"] for row in table("linear_probe_cv")}
    names |= {row["method"] for row in table("semi_supervised")}
    special = ABLATIONS | ORACLES
    return special.get(method) or {name.casefold(): name for name in names}.get(method.casefold())


def value(protocol: str, dataset: str, method: str, metric: str) -> float | None:
    """Return a value that the paper reports, between 0 and 1; None if it reports none.

    `dataset` is the title of a data set or of a transfer.
    """
    wanted, name, column = _address(protocol, dataset, title(method), metric)
    for row in table(name) if name else ():
        if all(row[key] == text for key, text in wanted.items()):
            return float(row[column]) / 100
    return None


def _address(
    protocol: str, dataset: str, method: str | None, metric: str
) -> tuple[dict[str, str | None], str, str]:
    """Return the required entries of the row, the name of the table, and the value's column."""
    where = {"dataset": dataset, "method": method}
    if protocol == "linear-probe" and metric in _METRICS:
        return where | {"metric": _METRICS[metric]}, "linear_probe", "value"
    if protocol == "cross-validation" and metric in _METRICS:
        return where | {"metric": _METRICS[metric]}, "linear_probe_cv", "mean"
    if protocol == "cross-validation" and metric.startswith("accuracy "):
        percent = metric.removeprefix("accuracy ").removesuffix(" %")
        return where | {"label_percent": percent}, "semi_supervised_cv", "accuracy_mean"
    if protocol == "label-efficiency" and metric.startswith("accuracy "):
        percent = metric.removeprefix("accuracy ").removesuffix(" %")
        return where | {"label_percent": percent}, "semi_supervised", "accuracy"
    if protocol == "synthetic" and dataset == "mean over systems":
        wanted = {"noise_sigma": metric.removeprefix("noise "), "method": method}
        return wanted, "table_analysis", "accuracy"
    if protocol == "transfer" and metric in _TRANSFER_METRICS:
        wanted = {"scenario": dataset, "method": method, "metric": _TRANSFER_METRICS[metric]}
        return wanted, "transfer", "value"
    if protocol == "ablation" and metric == "accuracy":
        return {"dataset": dataset, "variant": method}, "ablation", "accuracy_implied"
    return {}, "", ""
