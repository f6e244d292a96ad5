// The slider of an earlier moment, over a chart of changes in which large deletions are named.

import { api, bucketPath } from "./api.js";
import { fill, h, svg } from "./dom.js";
import { describe } from "./errors.js";
import { icon } from "./icons.js";
import { count, DAY, date, day, plural, t } from "./text.js";
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

function bars(steps, since, until, at) {
  const most = Math.max(1, ...steps.map((step) => step.written + step.deleted));
  // Small numbers can be seen beside large ones.
  const heightOf = (number) => (number > 0 ? Math.max(3, Math.sqrt(number / most) * HEIGHT) : 0);
  const width = WIDTH / steps.length;
  return steps.flatMap((step, index) => {
    const whole = heightOf(step.written + step.deleted);
    const deleted = step.deleted > 0 ? Math.max(3, (whole * step.deleted) / (step.written + step.deleted)) : 0;
    const begin = since + ((until - since) * index) / steps.length;
    const bar = (y, height, kind) =>
      height > 0 &&
      svg("rect", {
        x: (index * width + width * 0.15).toFixed(1),
        y: (HEIGHT - y - height).toFixed(1),
        width: (width * 0.7).toFixed(1),
        height: height.toFixed(1),
        class: `${kind} ${begin > at ? "later" : ""}`,
      });
    return [bar(0, whole - deleted, "written"), bar(whole - deleted, deleted, "deleted")].filter(Boolean);
  });
}

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
    const labels = Array.from({ length: 5 }, (_, index) => since + ((until - since) * index) / 4);
    fill(
      scale,
      labels.map((time) =>
        h(
          "span",
          null,
          Number(spans.value) === 1 ? date(new Date(time).toISOString()) : day(new Date(time).toISOString()),
        ),
      ),
    );
    try {
      const found = await api.get(bucketPath(bucket, "changes"), {
        since: new Date(since).toISOString(),
        until: new Date(until).toISOString(),
        steps: STEPS,
        prefix,
      });
      if (own !== serial) return;
      chart.replaceChildren(...bars(found.steps, since, until, at));
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
      fill(below, h("span", { class: "bad small" }, describe(error)));
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
