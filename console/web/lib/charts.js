// Line charts of figures over time: steps, because each figure is that of an interval. Missing intervals are gaps.

import { h, svg } from "./dom.js";
import { currentLanguage, DAY, exactDate, t } from "./text.js";

const WIDTH = 600;
const HEIGHT = 120;
// Longer axes have days in place of times, in milliseconds.
const LONG = 3 * DAY;
// An interval that begins later than this after the one before, in milliseconds, leaves a gap.
const GAP = 2000;

const format = (number, digits) =>
  new Intl.NumberFormat(currentLanguage(), { maximumSignificantDigits: digits }).format(number);

/** A number per second. */
export const perSecond = (number) => t("{n}/s", { n: format(number, 3) });

/** A duration in milliseconds or seconds. */
export function duration(seconds) {
  if (seconds === null) return "–";
  return seconds < 1 ? `${format(seconds * 1000, 3)} ms` : `${format(seconds, 3)} s`;
}

// The next 1, 2 or 5 with zeros: a scale that can be read.
function scale(largest) {
  if (!(largest > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(largest));
  return [1, 2, 5, 10].map((factor) => factor * power).find((top) => top >= largest);
}

function path(times, seconds, values, begin, end, top) {
  const x = (time) => (((Math.max(time, begin) - begin) / (end - begin)) * WIDTH).toFixed(1);
  const y = (value) => (HEIGHT - (value / top) * HEIGHT).toFixed(1);
  let drawn = "";
  let last = null;
  values.forEach((value, index) => {
    const first = times[index] - seconds[index] * 1000;
    if (value === null) {
      last = null;
      return;
    }
    drawn += last === null || first - last > GAP ? `M${x(first)} ${y(value)}` : `V${y(value)}`;
    drawn += `H${x(times[index])}`;
    last = times[index];
  });
  return drawn;
}

// The same steps, filled down to zero. Each run without gaps is a shape of its own.
function area(...of) {
  const shapes = path(...of)
    .split("M")
    .filter(Boolean);
  return shapes
    .map((shape) => {
      const last = shape.slice(shape.lastIndexOf("H") + 1);
      return `M${shape}L${last} ${HEIGHT}H${shape.split(" ")[0]}Z`;
    })
    .join("");
}

const swatch = (kind) =>
  svg(
    "svg",
    { class: "swatch", viewBox: "0 0 20 4", "aria-hidden": "true" },
    svg("path", { class: `line ${kind}`, d: "M0 2H20" }),
  );

/**
 * Makes a chart. `lines` are `{name, kind, values, isArea}` with one value or null per interval; `kind` is `first`,
 * `second`, `third` or `fourth`. `control` is shown beside the title. `text` formats a value. Returns
 * `{element, plot, showAt}`. `showAt(index)` shows the values of an interval in the legend, and returns them as a text;
 * without an index, those of the latest.
 */
export function chart({ title, lines, text, times, seconds, begin, end, control }) {
  const known = lines.map((line) => line.values.filter((value) => value !== null));
  const top = scale(Math.max(0, ...known.map((values) => values.reduce((most, value) => Math.max(most, value), 0))));
  const latest = lines.map(
    (line, index) => `${line.name} ${known[index].length > 0 ? text(known[index].at(-1)) : "–"}`,
  );
  const isLong = end - begin > LONG;
  const clock = new Intl.DateTimeFormat(
    currentLanguage(),
    isLong ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  );
  const names = latest.map((value) => h("span", null, value));
  const cursor = svg("path", { class: "cursor" });
  const plot = svg(
    "svg",
    {
      viewBox: `0 -2 ${WIDTH} ${HEIGHT + 4}`,
      preserveAspectRatio: "none",
      role: "img",
      tabindex: "0",
      "aria-label": `${title}: ${latest.join(", ")}`,
    },
    [0, 0.5, 1].map((part) => svg("path", { class: "grid", d: `M0 ${HEIGHT * part}H${WIDTH}` })),
    lines
      .filter((line) => line.isArea)
      .map((line) =>
        svg("path", { class: `area ${line.kind}`, d: area(times, seconds, line.values, begin, end, top) }),
      ),
    lines.map((line) =>
      svg("path", { class: `line ${line.kind}`, d: path(times, seconds, line.values, begin, end, top) }),
    ),
    cursor,
  );
  const showAt = (index) => {
    const shown = lines.map((line, number) => {
      if (index === undefined) return latest[number];
      const value = line.values[index];
      return `${line.name} ${value === null ? "–" : text(value)}`;
    });
    shown.forEach((value, number) => {
      names[number].textContent = value;
    });
    const x = index === undefined ? -1 : ((times[index] - begin) / (end - begin)) * WIDTH;
    cursor.setAttribute("d", x < 0 ? "" : `M${x.toFixed(1)} 0V${HEIGHT}`);
    return shown.join(", ");
  };
  const element = h(
    "figure",
    { class: "chart" },
    h(
      "figcaption",
      null,
      h("b", null, title),
      control && h("span", { class: "control" }, control),
      h(
        "span",
        { class: "legends" },
        lines.map((line, index) => h("span", { class: "legend" }, swatch(line.kind), names[index])),
      ),
    ),
    h(
      "div",
      { class: "values muted small", "aria-hidden": "true" },
      [top, top / 2, 0].map((value) => h("span", null, value === 0 ? "0" : text(value))),
    ),
    plot,
    h(
      "div",
      { class: "muted small scale", "aria-hidden": "true" },
      [0, 0.25, 0.5, 0.75].map((part) => h("span", null, clock.format(begin + (end - begin) * part))),
      h("span", null, t("now")),
    ),
  );
  return { element, plot, showAt };
}

/**
 * Shows the values of one moment in all charts of the same times: that of the pointer, or of the arrow keys, which is
 * said in `said`, too.
 */
export function followPointer(made, { times, begin, end }, said) {
  let at = times.length;
  const showAll = (index) => {
    const texts = made.map(({ showAt }) => showAt(index));
    return index === undefined ? "" : `${exactDate(new Date(times[index]).toISOString())}: ${texts.join(", ")}`;
  };
  for (const { plot } of made) {
    plot.addEventListener("pointermove", (event) => {
      const { left, width } = plot.getBoundingClientRect();
      const time = begin + ((event.clientX - left) / width) * (end - begin);
      // The interval that ends next.
      at = times.findIndex((one) => one >= time);
      showAll(at < 0 ? undefined : at);
    });
    plot.addEventListener("pointerleave", () => showAll());
    plot.addEventListener("blur", () => showAll());
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || times.length === 0) return;
      event.preventDefault();
      at = Math.max(0, Math.min(times.length - 1, at + step));
      said.textContent = showAll(at);
    });
  }
}
