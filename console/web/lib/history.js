// Requests and latency over the last hour, day or month: charts, and the same figures as a table.

import { api } from "./api.js";
import { chart, duration, followPointer, perSecond } from "./charts.js";
import { fill, h } from "./dom.js";
import { exactDate, size, t } from "./text.js";
import { errorBox, select, succeeded, table } from "./ui.js";

const REFRESH_BY_PERIOD = { hour: 10_000, day: 60_000, month: 600_000 };
const PERIODS = Object.keys(REFRESH_BY_PERIOD);

// Sums lists, and divides by the lengths of the intervals.
const rates = (seconds, ...lists) =>
  seconds.map((length, index) => lists.reduce((sum, list) => sum + list[index], 0) / length);

function figures(found) {
  const {
    seconds,
    storage,
    planes: { data },
  } = found;
  return {
    times: found.time.map((time) => Date.parse(time)),
    seconds,
    reads: rates(seconds, data.reads, data.lists),
    writes: rates(seconds, data.writes),
    errors: rates(seconds, data.client_errors, data.server_errors),
    received: rates(seconds, data.bytes_in),
    sent: rates(seconds, data.bytes_out),
    p50: data.latency_p50,
    p99: data.latency_p99,
    stored: storage.physical_bytes,
    current: storage.logical_bytes,
  };
}

function charts(found, said, period) {
  const { times, seconds, ...of } = figures(found);
  const end = Math.max(Date.now(), times.at(-1) ?? 0);
  const shared = { times, seconds, begin: end - found.period_seconds * 1000, end };
  const line = (name, kind, values, isArea) => ({ name, kind, values, isArea });
  const made = [
    chart({
      ...shared,
      title: t("Requests"),
      text: perSecond,
      control: period,
      lines: [
        line(t("Reads"), "first", of.reads, true),
        line(t("Writes"), "second", of.writes),
        line(t("Errors"), "third", of.errors),
      ],
    }),
    chart({
      ...shared,
      title: t("Latency"),
      text: duration,
      lines: [line("p50", "blue", of.p50), line("p99", "fourth", of.p99, true)],
    }),
  ];
  followPointer(made, shared, said);
  return made.map(({ element }) => element);
}

function rowsOf(found) {
  const { times, ...of } = figures(found);
  return times
    .map((_, index) => ({
      time: found.time[index],
      ...Object.fromEntries(Object.entries(of).map(([name, list]) => [name, list[index]])),
    }))
    .reverse();
}

function figureTable(found) {
  return table(
    t("Figures over time"),
    [
      { name: t("Until"), cell: (row) => h("time", { datetime: row.time }, exactDate(row.time)) },
      { name: t("Reads"), align: "end", cell: (row) => perSecond(row.reads) },
      { name: t("Writes"), align: "end", cell: (row) => perSecond(row.writes) },
      { name: t("Errors"), align: "end", cell: (row) => perSecond(row.errors) },
      { name: "p50", align: "end", cell: (row) => duration(row.p50) },
      { name: "p99", align: "end", cell: (row) => duration(row.p99) },
      { name: t("Received"), align: "end", cell: (row) => `${size(row.received)}/s` },
      { name: t("Sent"), align: "end", cell: (row) => `${size(row.sent)}/s` },
      { name: t("Stored"), align: "end", cell: (row) => size(row.stored) },
      { name: t("Current"), align: "end", cell: (row) => size(row.current) },
    ],
    rowsOf(found),
  );
}

/**
 * Shows the history in `place` and keeps it up to date. `chosen` is the period, `onChoose` is told of another one.
 * Returns a function that ends that.
 */
export function showHistory(place, chosen, onChoose) {
  const period = select(
    [
      ["hour", t("Last hour")],
      ["day", t("Last day")],
      ["month", t("Last 30 days")],
    ],
    PERIODS.includes(chosen) ? chosen : "hour",
  );
  period.setAttribute("aria-label", t("Period"));
  const drawn = h("div", { class: "charts", "aria-busy": "true" });
  const rows = h("div");
  const said = h("p", { class: "hidden", role: "status" });
  let found = null;
  const details = h(
    "details",
    { ontoggle: () => fill(rows, details.open && found && figureTable(found)) },
    h("summary", null, t("Figures as a table")),
    rows,
  );
  fill(place, drawn, said, details);
  let timer;
  let isOver = false;
  const load = async () => {
    clearTimeout(timer);
    const wanted = period.value;
    try {
      const answer =
        document.hidden && found ? found : await api.get("/api/v1/system/metrics/history", { period: wanted });
      if (isOver || wanted !== period.value) return;
      succeeded(load);
      const isOther = found?.period !== answer.period;
      found = answer;
      if (!drawn.querySelector("svg:hover, svg:focus, select:focus") || isOther)
        fill(drawn, charts(found, said, period));
      // A table that somebody reads does not change.
      if (details.open && isOther) fill(rows, figureTable(found));
      timer = setTimeout(load, REFRESH_BY_PERIOD[wanted]);
    } catch (error) {
      if (!isOver && wanted === period.value) fill(drawn, errorBox(error, load, load));
    } finally {
      if (wanted === period.value) drawn.removeAttribute("aria-busy");
    }
  };
  period.addEventListener("change", () => {
    onChoose(period.value);
    load();
  });
  load();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
