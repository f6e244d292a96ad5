// Storage events, the latest first, and new ones as they happen.

import { api } from "./api.js";
import { fill, h } from "./dom.js";
import { place } from "./navigation.js";
import { t } from "./text.js";
import { bar, emptyBox, errorBox, link, sizeCell, table, timeCell } from "./ui.js";

const SHOWN_MAX = 500;
const HOUR = 3_600_000;

/** Shows the events of the last hour in `place`, and new ones as they come. Returns a function that ends that. */
export function showEvents(place_, only) {
  const bucket = h("input", {
    type: "search",
    class: "filter",
    placeholder: t("Bucket"),
    "aria-label": t("Bucket"),
    value: only,
  });
  const prefix = h("input", {
    type: "search",
    class: "filter",
    placeholder: t("Key begins with"),
    "aria-label": t("Key begins with"),
  });
  const list = h("div");
  fill(place_, bar(!only && bucket, prefix), list);
  let stop = new AbortController();

  function drawRows(rows) {
    fill(
      list,
      rows.length === 0
        ? emptyBox(t("No events in the last hour. New ones appear here."))
        : table(
            t("Events"),
            [
              { name: t("Time"), cell: (row) => timeCell(row.time, false) },
              { name: t("Event"), cell: (row) => h("code", null, row.type) },
              {
                name: t("Object"),
                cell: (row) =>
                  row.object
                    ? link(`${row.bucket}/${row.object}`, place("object", [row.bucket, row.object]))
                    : link(row.bucket, place("bucket", [row.bucket])),
              },
              {
                name: t("Size"),
                align: "end",
                from: "medium",
                cell: (row) => (row.size === null || row.size === undefined ? "–" : sizeCell(row.size)),
              },
              { name: t("By"), from: "medium", cell: (row) => row.metadata.reason ?? row.metadata.principal ?? "" },
            ],
            rows,
          ),
    );
  }

  async function follow() {
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    const rows = [];
    let cursor = { since: new Date(Date.now() - HOUR).toISOString() };
    let isFirst = true;
    try {
      while (!signal.aborted) {
        const page = await api.get(
          "/api/v1/events",
          { bucket: bucket.value.trim(), prefix: prefix.value, limit: 200, wait_seconds: isFirst ? 0 : 20, ...cursor },
          { signal },
        );
        rows.unshift(...page.events.reverse());
        rows.length = Math.min(rows.length, SHOWN_MAX);
        if (page.events.length > 0 || isFirst) drawRows(rows);
        if (page.next_id) cursor = { after_time: page.next_time, after_id: page.next_id };
        else if (rows.length > 0) cursor = { after_time: rows[0].time, after_id: rows[0].id };
        if (!page.next_id) isFirst = false;
        // A hidden page asks for nothing.
        if (document.hidden)
          await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
      }
    } catch (error) {
      if (error.name !== "AbortError") fill(list, errorBox(error, follow));
    }
  }
  bucket.addEventListener("change", follow);
  prefix.addEventListener("change", follow);
  follow();
  return () => stop.abort();
}
