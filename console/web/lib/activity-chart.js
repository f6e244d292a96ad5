// The chart above the activity: a bar for the changes of each interval. A time is chosen by dragging.

import { api, bucketPath } from "./api.js";
import { changeBars, changeScale } from "./change-bars.js";
import { fill, h, svg } from "./dom.js";
import { count, DAY, HOUR, lengthOfTime, plural, t } from "./text.js";

const WIDTH = 960;
const HEIGHT = 56;
// The days that can be shown, with the hours of a bar and their name.
const SPANS = [
  { days: 1, hours: 0.5, name: () => lengthOfTime(30, "minute") },
  { days: 2, hours: 1, name: () => lengthOfTime(1, "hour") },
  { days: 7, hours: 2, name: () => lengthOfTime(2, "hour") },
  { days: 30, hours: 12, name: () => lengthOfTime(12, "hour") },
  { days: 90, hours: 24, name: () => lengthOfTime(1, "day") },
];
// A shorter drag is a click: it chooses the interval below it.
const DRAG_MIN = 4;

// The shortest span that contains a time. Without one, a week.
function spanOf(since) {
  if (!since) return SPANS[2];
  return SPANS.find(({ days }) => Date.now() - Date.parse(since) <= days * DAY + HOUR) ?? SPANS.at(-1);
}

const layersOf = (step) => [
  ["written", step.written],
  ["deleted", step.deleted - step.deleted_by_rules],
  ["expired", step.deleted_by_rules],
];

const legend = (kind, text) => h("span", { class: "legend" }, h("i", { class: kind, "aria-hidden": "true" }), text);

/**
 * Makes the chart. `show({since, until, bucket})` draws it with a time marked. `onChoose(since, until)` gets
 * the times that a user chooses.
 */
export function activityChart(onChoose) {
  const chosen = svg("rect", { class: "chosen", y: 0, height: HEIGHT, width: 0 });
  const bars = svg("g");
  const plot = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": t("Changes over time"),
    },
    chosen,
    bars,
  );
  const note = h("span", { class: "muted small" });
  const scale = h("div", { class: "scale muted small", "aria-hidden": "true" });
  const element = h(
    "section",
    { class: "activity-chart", "aria-label": t("Changes over time") },
    h(
      "div",
      { class: "row" },
      note,
      h(
        "span",
        { class: "legends muted small" },
        legend("written", t("written")),
        legend("deleted", t("deleted by people and applications")),
        legend("expired", t("removed by rules")),
      ),
    ),
    plot,
    scale,
  );
  let drawn = null;
  let serial = 0;

  // Marks a time, in milliseconds.
  function mark(from, to) {
    const xOf = (time) => ((Math.min(Math.max(time, drawn.since), drawn.until) - drawn.since) / drawn.length) * WIDTH;
    chosen.setAttribute("x", xOf(from).toFixed(1));
    chosen.setAttribute("width", (xOf(to) - xOf(from)).toFixed(1));
  }

  async function show({ since, until, bucket }) {
    serial += 1;
    const own = serial;
    const { days, hours, name } = spanOf(since || until);
    const isDrawn = !element.hidden && drawn?.days === days && drawn.bucket === bucket;
    // An earlier call may still be loading.
    element.removeAttribute("aria-busy");
    if (!isDrawn) {
      // The intervals begin with an hour of the clock.
      const end = Math.ceil(Date.now() / (hours * HOUR)) * hours * HOUR;
      const length = days * DAY;
      const times = { since: new Date(end - length).toISOString(), until: new Date(end).toISOString() };
      const path = bucket ? bucketPath(bucket, "changes") : "/api/v1/events/changes";
      element.setAttribute("aria-busy", "true");
      const found = await api.get(path, { ...times, steps: (days * 24) / hours }).catch(() => null);
      if (own !== serial) return;
      element.removeAttribute("aria-busy");
      // A time can be chosen without the chart, too. A name that is not yet typed to its end is no bucket.
      element.hidden = !found;
      if (!found) return;
      drawn = { days, hours, bucket, since: end - length, until: end, length };
      bars.replaceChildren(...changeBars(found.steps, WIDTH, HEIGHT, layersOf));
      const changes = found.steps.reduce((sum, step) => sum + step.written + step.deleted, 0);
      const isCut = found.steps.some((step) => !step.complete);
      plot.setAttribute(
        "aria-label",
        plural(changes, "{n} change", "{n} changes", { n: (isCut ? "≥ " : "") + count(changes) }),
      );
      note.textContent = t("Each bar is {duration}. Drag to choose a time.", { duration: name() });
      fill(scale, changeScale(drawn.since, drawn.until));
    }
    if (since || until) mark(since ? Date.parse(since) : drawn.since, until ? Date.parse(until) : drawn.until);
    else chosen.setAttribute("width", 0);
  }

  plot.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !drawn) return;
    event.preventDefault();
    plot.setPointerCapture(event.pointerId);
    const box = plot.getBoundingClientRect();
    const timeOf = (x) => drawn.since + Math.min(Math.max((x - box.left) / box.width, 0), 1) * drawn.length;
    const times = (x) => {
      const two = [timeOf(event.clientX), timeOf(x)].sort((a, b) => a - b);
      if (Math.abs(x - event.clientX) >= DRAG_MIN) return two;
      const begin = drawn.since + Math.floor((two[0] - drawn.since) / (drawn.hours * HOUR)) * drawn.hours * HOUR;
      return [begin, begin + drawn.hours * HOUR];
    };
    const move = ({ clientX }) => mark(...times(clientX));
    const end = ({ type, clientX }) => {
      for (const name of ["pointermove", "pointerup", "pointercancel"])
        plot.removeEventListener(name, name === "pointermove" ? move : end);
      if (type === "pointerup") onChoose(...times(clientX).map((time) => new Date(time).toISOString()));
    };
    plot.addEventListener("pointermove", move);
    plot.addEventListener("pointerup", end);
    plot.addEventListener("pointercancel", end);
  });
  return { element, show };
}
