#!/usr/bin/env python3
"""Draws the plots of docs/benchmarks.md: SVG bars of medians, with whiskers from the lowest to the highest round.

    plot.py [FOLDER]    # default docs/benchmarks: draws each plot of PLOTS whose CSV file is there

The CSV files are those that results.py writes. Needs nothing but Python.
"""

import math
import re
import statistics
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from results import grouped, number, read_csv  # noqa: E402  (the path comes first)

WIDTH, LEFT, RIGHT = 760, 190, 150
TOP, ROW, GAP, BOTTOM = 64, 22, 30, 40
BAR = 14
# Above this ratio of the highest to the lowest median the short bars could not be read on a linear axis.
LINEAR_MAX = 30
# A picture in a page follows the theme of the reader's system. It has its own background, so that it can be read whatever the
# page's is. The colours keep 3:1 to the background and are told apart by people who see no red or green; each bar is also named.
STYLE = """
  svg { font: 13px system-ui, sans-serif; }
  .ground { fill: #ffffff; } text { fill: #1f2328; } .quiet { fill: #59636e; } .grid { stroke: #d1d9e0; }
  .whisker { stroke: #1f2328; stroke-width: 1.5; } .title { font-size: 16px; font-weight: 600; } .work { font-weight: 600; }
  .c0 { fill: #0072b2; } .c1 { fill: #b8620a; } .c2 { fill: #00825c; } .c3 { fill: #a8508a; } .c4 { fill: #6e7781; } .c5 { fill: #8a7400; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; } text { fill: #f0f6fc; } .quiet { fill: #9198a1; } .grid { stroke: #3d444d; } .whisker { stroke: #f0f6fc; }
    .c0 { fill: #3b93d0; } .c1 { fill: #e69f00; } .c2 { fill: #1fa97f; } .c3 { fill: #cc79a7; } .c4 { fill: #8b949e; } .c5 { fill: #b8a000; }
  }
"""
COLOURS = 6


@dataclass(frozen=True)
class Plot:
    """One picture: a measure of some works in a CSV file."""

    name: str
    source: str
    measure: str
    title: str
    unit: str
    works: str = "."


PLOTS = [
    Plot("compare-small", "compare.csv", "requests_per_second", "Small objects and lists", "requests a second", "^(get|put)-(4|64)KiB|^list"),
    Plot("compare-large", "compare.csv", "mib_per_second", "Objects of 16 MiB", "MiB a second", "16MiB"),
    Plot("compare-p99", "compare.csv", "p99_ms", "Small objects: 99th percentile at full load", "milliseconds", "^(get|put)-(4|64)KiB"),
    Plot("tail-p99", "tail-latency.csv", "p99_ms", "99th percentile at half of the peak rate", "milliseconds"),
    Plot("tail-p99-9", "tail-latency.csv", "p99_9_ms", "99.9th percentile at half of the peak rate", "milliseconds"),
    Plot("scale-rate", "scale.csv", "requests_per_second", "Rates as the store grows", "requests a second", "^(get|put|list)"),
    Plot("scale-start", "scale.csv", "ready_ms", "Time from a start until the store is ready", "milliseconds", "^start"),
    Plot("scale-disk", "scale.csv", "metadata_mib", "Metadata as the store grows", "MiB", "^disk"),
]


def axis(lowest: float, highest: float) -> tuple[bool, list[float]]:
    """Returns whether the axis is logarithmic, and its ticks; the bars begin at the first and end before the last."""
    if lowest > 0 and highest / lowest > LINEAR_MAX:
        first, last = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
        # A bar of no length would be a missing one.
        first -= 10.0**first == lowest
        return True, [10.0**power for power in range(first, max(last, first + 1) + 1)]
    highest = highest or 1.0
    step = 10.0 ** math.floor(math.log10(highest))
    step = next(step * factor for factor in (0.2, 0.5, 1, 2) if math.ceil(highest / (step * factor)) <= 6)
    return False, [step * tick for tick in range(math.ceil(highest / step - 1e-9) + 1)]


def draw(plot: Plot, works: dict[str, dict[str, list[float]]]) -> str:
    """Returns the SVG of the rounds of each work and server."""
    medians = [statistics.median(values) for servers in works.values() for values in servers.values()]
    lowest = min(min(values) for servers in works.values() for values in servers.values())
    highest = max(max(values) for servers in works.values() for values in servers.values())
    logarithmic, ticks = axis(min(lowest, *medians), highest)
    names = list(dict.fromkeys(server for servers in works.values() for server in servers))

    def x(value: float) -> float:
        if logarithmic:
            share = math.log10(max(value, ticks[0]) / ticks[0]) / math.log10(ticks[-1] / ticks[0])
        else:
            share = value / ticks[-1]
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    body, described, y = [], [], float(TOP)
    for work, servers in works.items():
        body.append(f'<text class="work" x="16" y="{y + 10:g}">{escape(work)}</text>')
        y += 18
        for server, values in servers.items():
            low, middle, high = min(values), statistics.median(values), max(values)
            label = f"{number(middle)} ({number(low)} to {number(high)})"
            described.append(f"{work}, {server}: {label}")
            centre = y + ROW / 2
            body += [
                f'<text x="{LEFT - 8}" y="{centre + 4:g}" text-anchor="end">{escape(server)}</text>',
                f'<rect class="c{names.index(server) % COLOURS}" x="{LEFT}" y="{centre - BAR / 2:g}" width="{x(middle) - LEFT:.1f}" height="{BAR}"/>',
                f'<path class="whisker" d="M{x(low)} {centre:g}H{x(high)}M{x(low)} {centre - 4:g}v8M{x(high)} {centre - 4:g}v8"/>',
                f'<text class="quiet" x="{max(x(high), x(middle)) + 8:g}" y="{centre + 4:g}">{number(middle)}</text>',
            ]
            y += ROW
        y += GAP - 18
    grid = []
    for tick in ticks:
        grid.append(f'<path class="grid" d="M{x(tick)} {TOP - 6}V{y:g}"/>')
        grid.append(f'<text class="quiet" x="{x(tick)}" y="{y + 16:g}" text-anchor="middle">{number(tick)}</text>')
    height = round(y + BOTTOM)
    kind = f"{plot.unit}, {'logarithmic' if logarithmic else 'linear'} axis; bar: median, whisker: lowest to highest round"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        'aria-labelledby="title description">',
        f'<title id="title">{escape(plot.title)}</title>',
        f'<desc id="description">{escape(f"{plot.unit}: median (lowest to highest round). " + "; ".join(described))}.</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
        f'<text class="title" x="16" y="26">{escape(plot.title)}</text>',
        f'<text class="quiet" x="16" y="46">{escape(kind)}</text>',
        *grid, *body, "</svg>\n",
    ])


def drawn(folder: Path) -> dict[str, str]:
    """Returns the name and the content of each picture that the CSV files in the folder give."""
    pictures = {}
    for plot in PLOTS:
        source = folder / plot.source
        if not source.exists():
            continue
        works = {work: servers for work, servers in grouped(read_csv(source), plot.measure).items() if re.search(plot.works, work)}
        if works:
            pictures[f"{plot.name}.svg"] = draw(plot, works)
    return pictures


def main() -> int:
    """Draws what can be drawn, and says what."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2] / "docs/benchmarks"
    pictures = drawn(folder)
    for name, content in pictures.items():
        (folder / name).write_text(content)
        print(folder / name)
    return 0 if pictures else 1


if __name__ == "__main__":
    sys.exit(main())
