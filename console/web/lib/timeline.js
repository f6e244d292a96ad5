// The slider of an earlier moment, over a chart of changes in which large deletions are named.

import { api, bucketPath } from "./api.js";
import { changeBars, changeScale } from "./change-bars.js";
import { fill, h, svg } from "./dom.js";
import { describe } from "./errors.js";
import { icon } from "./icons.js";
import { count, DAY, date, plural, t } from "./text.js";
import { select, shortName } from "./ui.js";

const MINUTE = 60_000;
const STEPS = 84;
const WIDTH = 840;
const HEIGHT = 48;
const NAMED_MAX = 4;
const SPANS = () => [
  ["1", t("1 day")],
  ["7", t("7 days")],
  ["30", t("30 days")],
  ["90", t("90 days")],
];

// The shortest span that shows a moment with some time before it.
const spanOf = (at) => [1, 7, 30].find((days) => Date.now() - at < days * DAY * 0.9) ?? 90;

function actorOf(deletion) {
  if (deletion.rule_id) return t("a lifecycle rule");
  return deletion.principal ? shortName(deletion.principal) : t("somebody");
}

// The largest deletions: each leads to the moment before it.
function named(deletions, to) {
  return deletions.slice(0, NAMED_MAX).map((deletion) =>
    h(
      "button",
      {
        type: "button",
        class: "link danger small",
        title: t("Show the moment before"),
        onclick: () => to(new Date(deletion.time).getTime() - 1),
      },
      icon("trash"),
      plural(deletion.objects, "{date}: {who} deleted {n} object", "{date}: {who} deleted {n} objects", {
        date: date(deletion.time),
        who: actorOf(deletion),
        n: `${deletion.complete ? "" : "≥ "}${count(deletion.objects)}`,
      }),
    ),
  );
}

/** Makes the slider. `go(time)` shows a moment, in milliseconds. */
export function timeline(bucket, prefix, at, go) {
  const chart = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": t("Changes over time"),
  });
  const spans = select(SPANS(), String(spanOf(at)));
  spans.setAttribute("aria-label", t("Time that is shown"));
  const slider = h("input", { type: "range", step: MINUTE, "aria-label": t("Moment") });
  const shown = h("output", { class: "small" });
  const scale = h("div", { class: "scale muted small", "aria-hidden": "true" });
  const below = h("div", { class: "row named" });
  let serial = 0;
  const say = () => {
    const text = date(new Date(Number(slider.value)).toISOString());
    shown.textContent = text;
    slider.setAttribute("aria-valuetext", text);
  };
  async function show() {
    serial += 1;
    const own = serial;
    const until = Date.now();
    const since = until - Number(spans.value) * DAY;
    Object.assign(slider, { min: String(since), max: String(until), value: String(at) });
    say();
    fill(scale, changeScale(since, until));
    chart.replaceChildren();
    below.setAttribute("aria-busy", "true");
    try {
      const found = await api.get(bucketPath(bucket, "changes"), {
        since: new Date(since).toISOString(),
        until: new Date(until).toISOString(),
        steps: STEPS,
        prefix,
      });
      if (own !== serial) return;
      const layersOf = (step) => {
        const later = Date.parse(step.since) > at ? "later" : "";
        return [
          [`written ${later}`, step.written],
          [`deleted ${later}`, step.deleted],
        ];
      };
      chart.replaceChildren(...changeBars(found.steps, WIDTH, HEIGHT, layersOf));
      const changes = found.steps.reduce((sum, step) => sum + step.written + step.deleted, 0);
      chart.setAttribute("aria-label", plural(changes, "{n} change", "{n} changes"));
      const isCut = found.steps.some((step) => !step.complete);
      fill(
        below,
        changes === 0 && h("span", { class: "muted small" }, t("No events of this time are kept, or nothing changed.")),
        isCut && h("span", { class: "muted small" }, t("There were more changes than are counted here.")),
        named(found.deletions, go),
      );
    } catch (error) {
      // A moment can be chosen without the chart, too.
      if (own === serial) fill(below, h("span", { class: "bad small" }, describe(error)));
    } finally {
      if (own === serial) below.removeAttribute("aria-busy");
    }
  }
  slider.addEventListener("input", say);
  slider.addEventListener("change", () => go(Math.min(Number(slider.value), Date.now())));
  spans.addEventListener("change", show);
  show();
  return h(
    "section",
    { class: "timeline", "aria-label": t("Moment") },
    h("div", { class: "row" }, shown, h("span", { class: "end" }, spans)),
    h("div", { class: "track" }, chart, slider),
    scale,
    below,
  );
}
