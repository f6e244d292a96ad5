// Space over time: layers by bucket, the limit of the disk, what the growth leads to, and the growth of each bucket.

import { h, svg } from "./dom.js";
import { stoneOf } from "./icons.js";
import { DAY, day as dayText, plural, size, t } from "./text.js";

const CHART_WIDTH = 600;
const CHART_HEIGHT = 160;
// Layers with a colour of their own. The rest is one layer.
const LAYERS_MAX = 8;
// Growth is that of so many days, and needs some of them.
const GROWTH_DAYS = 30;
const GROWTH_DAYS_MIN = 2;
// The limit is drawn when so much of it is used: otherwise the layers would be flat.
const LIMIT_SHARE = 0.12;
// What is further away says nothing.
const FULL_DAYS_MAX = 400;

// The change in a day between the first value of the last thirty days and now.
function slope(times, values, last, now) {
  const first = times.findIndex((time, index) => now - time <= GROWTH_DAYS * DAY && values[index] !== null);
  if (first < 0) return null;
  const days = (now - times[first]) / DAY;
  return days < GROWTH_DAYS_MIN ? null : (last - values[first]) / days;
}

/**
 * Joins the days that the server kept with the figures of now: `{times, lines, total, growth, limit, days}`. A line is
 * `{bucket, values, objects, growth}`, the largest first. `limit` is what Cairn could use, `days` until it is reached.
 */
export function spaceOf(kept, usage, status) {
  const now = Date.now();
  const times = kept.time.map((time) => Date.parse(time));
  const old = new Map(kept.buckets.map((line) => [line.bucket, line.physical_bytes]));
  const lines = [...usage.by_bucket]
    .sort((a, b) => b.physical_bytes - a.physical_bytes)
    .map(({ bucket, physical_bytes: bytes }) => {
      const values = old.get(bucket) ?? times.map(() => null);
      return { bucket, values: [...values, bytes], growth: slope(times, values, bytes, now) };
    });
  const totals = times.map(
    (_, index) =>
      kept.other_physical_bytes[index] + kept.buckets.reduce((sum, line) => sum + (line.physical_bytes[index] ?? 0), 0),
  );
  const total = [...totals, usage.physical_bytes];
  const growth = slope(times, totals, usage.physical_bytes, now);
  const limit = usage.physical_bytes + status.available_bytes;
  const days = growth > 0 ? Math.floor(status.available_bytes / growth) : null;
  return { times: [...times, now], lines, total, growth, limit, days: days > FULL_DAYS_MAX ? null : days };
}

/** Returns whether there is enough to draw. */
export const hasHistory = (space) => space.times.length > 2 && space.times.at(-1) - space.times[0] > DAY;

/** A change in a day as a text. */
export function growthText(bytes) {
  if (bytes === null) return "–";
  if (Math.abs(bytes) < 500) return size(0);
  return `${bytes > 0 ? "+" : "−"}${size(Math.abs(bytes))}`;
}

// Layers from the bottom: the smallest ones together, then up to the largest.
function layersOf({ lines, total }) {
  const shown = lines.filter(({ values }) => values.some((value) => value > 0)).slice(0, LAYERS_MAX);
  const rest = total.map((all, index) => {
    const own = shown.reduce((sum, { values }) => sum + (values[index] ?? 0), 0);
    return Math.max(all - own, 0);
  });
  const layers = shown.map(({ bucket, values }) => ({ kind: `stone stone-${stoneOf(bucket)}`, values })).reverse();
  if (rest.some((value) => value > 0)) layers.unshift({ kind: "stone rest", values: rest });
  return layers;
}

// The next 1, 2 or 5 with zeros, in bytes.
function steps(top) {
  const raw = top / 4;
  const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw);
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, index) => index * step);
}

const label = (text, x, y, kind = "") => {
  const made = h("span", { class: `label ${kind}` }, text);
  if (x !== null) made.style.setProperty("inset-inline-start", `${x * 100}%`);
  if (y !== null) made.style.setProperty("inset-block-end", `${y * 100}%`);
  return made;
};

/** Draws the layers, the limit and what the growth leads to. */
export function spaceChart(space) {
  const { times, total, limit, growth, days } = space;
  const begin = times[0];
  const now = times.at(-1);
  const isLimitShown = total.at(-1) > limit * LIMIT_SHARE;
  // What comes has at most as much room as what was.
  const future = growth > 0 && days !== null && isLimitShown ? Math.min(days * DAY, now - begin) : 0;
  const end = now + future;
  const most = Math.max(...total, total.at(-1) + (growth ?? 0) * (future / DAY));
  const top = isLimitShown ? Math.max(limit, most) * 1.06 : Math.max(most * 1.25, 1);
  const x = (time) => (((time - begin) / (end - begin)) * CHART_WIDTH).toFixed(1);
  const y = (value) => (CHART_HEIGHT - (value / top) * CHART_HEIGHT).toFixed(1);
  const layers = layersOf(space);
  const below = times.map(() => 0);
  const drawn = layers.map(({ kind, values }) => {
    const bottom = times.map((time, index) => `${x(time)} ${y(below[index])}`).reverse();
    values.forEach((value, index) => {
      below[index] += value ?? 0;
    });
    const edge = times.map((time, index) => `${x(time)} ${y(below[index])}`);
    return svg("path", { class: kind, d: `M${edge.join("L")}L${bottom.join("L")}Z` });
  });
  const target = total.at(-1) + (growth ?? 0) * (future / DAY);
  const hatch = svg(
    "pattern",
    { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("path", { class: "hatch", d: "M0 0V6" }),
  );
  const parts = [
    steps(top).map((value) => svg("path", { class: "grid", d: `M0 ${y(value)}H${CHART_WIDTH}` })),
    drawn,
    future > 0 && [
      svg("path", {
        class: "future",
        d: `M${x(now)} ${y(total.at(-1))}L${x(end)} ${y(target)}V${CHART_HEIGHT}H${x(now)}Z`,
      }),
      svg("path", { class: "trend", d: `M${x(now)} ${y(total.at(-1))}L${x(end)} ${y(target)}` }),
      svg("path", { class: "today", d: `M${x(now)} 0V${CHART_HEIGHT}` }),
    ],
    isLimitShown && svg("path", { class: "limit", d: `M0 ${y(limit)}H${CHART_WIDTH}` }),
  ];
  const said = [
    t("Space: {size}", { size: size(total.at(-1)) }),
    growth > 0 && t("about {size} more each day", { size: size(growth) }),
    days !== null && plural(days, "full in about {n} day", "full in about {n} days"),
  ];
  const short = (time) => dayText(new Date(time).toISOString()).replace(/,? ?\d{4}$/, "");
  const at = (time) => (time - begin) / (end - begin);
  const nowAt = at(now);
  return h(
    "div",
    { class: "space-chart" },
    h(
      "div",
      { class: "values", "aria-hidden": "true" },
      steps(top)
        .filter((value) => !isLimitShown || Math.abs(value - limit) > top * 0.09)
        .map((value) => label(size(value), null, value / top)),
      isLimitShown && label(size(limit), null, limit / top, "bad"),
    ),
    svg(
      "svg",
      {
        viewBox: `0 0 ${CHART_WIDTH} ${CHART_HEIGHT}`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": said.filter(Boolean).join(", "),
      },
      svg("defs", null, hatch),
      parts,
    ),
    h(
      "div",
      { class: "times", "aria-hidden": "true" },
      label(short(begin), 0, null, "first"),
      nowAt > 0.45 && label(short((begin + now) / 2), nowAt / 2, null),
      label(t("today"), nowAt, null, future > 0 ? "strong" : "last"),
      future > 0 && label(short(end), 1, null, "last"),
    ),
  );
}

/** A small line of a bucket over the last thirty days. */
export function sparkline({ bucket, values }, times) {
  const first = times.findIndex((time) => times.at(-1) - time <= GROWTH_DAYS * DAY);
  const own = values.slice(first).map((value) => value ?? 0);
  const begin = times[first];
  const span = Math.max(times.at(-1) - begin, 1);
  const most = Math.max(...own, 1);
  const points = own.map((value, index) => {
    const x = ((times[first + index] - begin) / span) * 72;
    return `${x.toFixed(1)} ${(19 - (value / most) * 17).toFixed(1)}`;
  });
  const line = `M${points.join("L")}`;
  return svg(
    "svg",
    {
      class: `sparkline stone-${stoneOf(bucket)}`,
      viewBox: "0 0 72 20",
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    svg("path", { class: "area", d: `${line}V20H0Z` }),
    svg("path", { class: "edge", d: line }),
  );
}
