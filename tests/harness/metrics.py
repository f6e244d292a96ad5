"""Parser and linter of the Prometheus exposition, with the rules of `promtool check metrics`."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import requests
from prometheus_client.parser import text_string_to_metric_families

from .server import Cairn
from .wait import until

SCRAPE_TOKEN = "scrape-token-of-16-bytes"
TIMEOUT = 60
Labels = frozenset[tuple[str, str]]
# Units that promlint refuses, with their abbreviations: the base units are seconds and bytes.
FOREIGN_UNITS = re.compile(
    r"_(milli|micro|nano|kilo|mega|giga|kibi|mebi|gibi)?(minutes|hours|days|weeks|bits)(_|$)"
    r"|_(milli|micro|nano|kilo|mega|giga|kibi|mebi|gibi)(seconds|bytes)(_|$)"
    r"|_(s|ms|us|ns|sec|b|kb|mb|gb|tb|pb|m|h|d)(_|$)"
)
HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")


@dataclass(frozen=True)
class Histogram:
    """A histogram: cumulative counts by bound, sum and count."""

    buckets: dict[float, float]
    sum: float
    count: float


class Scrape:
    """All values of one scrape."""

    def __init__(self, text: str):
        self.text = text
        self.families = {}
        self.values: dict[tuple[str, Labels], float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.values[sample.name, frozenset(sample.labels.items())] = sample.value
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                self.families[name] = kind

    def sum(self, name: str, **labels: str) -> float:
        """Returns the sum of all samples of this name that have these labels."""
        wanted = set(labels.items())
        return sum(value for (own, its), value in self.values.items() if own == name and wanted <= its)

    def histogram(self, name: str, **labels: str) -> Histogram:
        """Returns the sum of all histograms of this name that have these labels."""
        wanted, buckets = set(labels.items()), {}
        for (own, its), value in self.values.items():
            if own == f"{name}_bucket" and wanted <= its:
                bound = float(dict(its)["le"])
                buckets[bound] = buckets.get(bound, 0) + value
        return Histogram(buckets, self.sum(f"{name}_sum", **labels), self.sum(f"{name}_count", **labels))

    def labels_of(self, name: str) -> set[str]:
        """Returns the label names of a family's samples, without `le`."""
        names = {name, *(name + suffix for suffix in HISTOGRAM_SUFFIXES if self.families[name] == "histogram")}
        return {label for own, its in self.values if own in names for label, _ in its} - {"le"}


def scrape(store: Cairn, authority: Path | None = None) -> Scrape:
    """Requests /metrics. With TLS, the given file contains the trusted authority."""
    headers = {"Authorization": f"Bearer {SCRAPE_TOKEN}"}
    response = requests.get(store.management + "/metrics", headers=headers, timeout=TIMEOUT, verify=str(authority) if authority else None)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Scrape(response.text)


def once(store: Cairn, holds: Callable[[Scrape], bool]) -> Scrape:
    """Returns the first scrape that meets the condition.

    A request is counted after its response was written to the socket, and the client may read it slightly earlier.
    """
    return until(lambda: (seen := scrape(store)) and holds(seen) and seen, lambda: scrape(store).text)


def family_of(sample: str, families: dict[str, str]) -> str | None:
    """Returns the name of the family that a sample belongs to."""
    if sample in families and families[sample] != "histogram":
        return sample
    bases = [sample.removesuffix(suffix) for suffix in HISTOGRAM_SUFFIXES if sample.endswith(suffix)]
    return next((base for base in bases if families.get(base) == "histogram"), None)


def structure_faults(text: str) -> list[str]:
    """Checks that each family is contiguous (HELP, TYPE, samples) and that no family or sample is repeated."""
    faults, helps, families, seen, current = [], {}, {}, set(), None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, told = line.split(" ", 3)
            if name in helps or not told.strip():
                faults.append(f"{name}: HELP twice, or empty")
            helps[name] = told
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            if name in families or list(helps)[-1:] != [name]:
                faults.append(f"{name}: TYPE twice, or not behind its HELP")
            families[name] = kind
            current = name
        elif line:
            series = line.rsplit(" ", 1)[0]
            if family_of(series.split("{")[0], families) != current or current is None:
                faults.append(f"{series}: outside its family")
            if series in seen:
                faults.append(f"{series}: twice")
            seen.add(series)
    if not text.endswith("\n"):
        faults.append("the last line does not end")
    return faults + [f"{name}: no TYPE" for name in helps if name not in families]


def name_faults(scrape: Scrape) -> list[str]:
    """Applies promtool's naming rules: `_total` only on counters, base units, no type in the name, snake case."""
    faults = []
    for name, kind in scrape.families.items():
        if (kind == "counter") != name.endswith("_total"):
            faults.append(f"{name}: _total is for counters, and for each of them")
        if kind not in ("counter", "gauge", "histogram") or kind in name.split("_"):
            faults.append(f"{name}: of type {kind}, or its type is in its name")
        if kind != "histogram" and (name.endswith(HISTOGRAM_SUFFIXES) or scrape.labels_of(name) & {"le", "quantile"}):
            faults.append(f"{name}: looks like part of a histogram")
        if FOREIGN_UNITS.search(name):
            faults.append(f"{name}: not a base unit")
        for word in (name, *scrape.labels_of(name)):
            if not re.fullmatch(r"[a-z][a-z0-9_]*", word) or word.startswith("__"):
                faults.append(f"{name}: {word} is not in snake case")
    return faults


def histogram_faults(scrape: Scrape) -> list[str]:
    """Checks that the buckets of each histogram are cumulative and end with `+Inf`, which equals the count."""
    faults, series = [], {}
    for (name, labels), value in scrape.values.items():
        base = family_of(name, scrape.families)
        if base and scrape.families[base] == "histogram":
            told = dict(labels)
            bound = told.pop("le", None)
            series.setdefault((base, frozenset(told.items())), {})[name.removeprefix(base), bound] = value
    for (name, labels), values in series.items():
        buckets = sorted((float(bound), value) for (part, bound), value in values.items() if part == "_bucket")
        counts = [value for _, value in buckets]
        whole = buckets and math.isinf(buckets[-1][0]) and ("_sum", None) in values
        if not whole or counts != sorted(counts) or counts[-1] != values.get(("_count", None)):
            faults.append(f"{name}{dict(labels)}: not a whole histogram")
    return faults


def faults(scrape: Scrape) -> list[str]:
    """Returns all mistakes that `promtool check metrics` would report, and more."""
    return structure_faults(scrape.text) + name_faults(scrape) + histogram_faults(scrape)


PROMQL_WORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan", "start", "end", "atan2"}


def promql_names(expression: str) -> set[str]:
    """Returns the metric names in a PromQL expression."""
    text = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', "", expression)
    text = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", text)
    text = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*(\([^)]*\))?", " ", text)
    words = re.findall(r"(?<![\w.$])([a-zA-Z_:][\w:]*)\s*(\()?", text)
    return {word for word, call in words if not call and word.lower() not in PROMQL_WORDS}


def promql_labels(expression: str) -> set[str]:
    """Returns the label names that a PromQL expression matches or groups by."""
    matched = re.findall(r"[{,]\s*(\w+)\s*(?:=~|!~|!=|=)", expression)
    grouped = re.findall(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)", expression)
    return set(matched) | {label.strip() for group in grouped for label in group.split(",") if label.strip()}
