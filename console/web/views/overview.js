// Overview: health, capacity, requests over time, and what uses the space.

import { api } from "../lib/api.js";
import { h, svg } from "../lib/dom.js";
import { showHistory } from "../lib/history.js";
import { go, place } from "../lib/navigation.js";
import { mayOversee, mayStore } from "../lib/session.js";
import { count, plural, size, t } from "../lib/text.js";
import { commands, emptyBox, link, loadInto, sizeCell, table, tag, viewHead } from "../lib/ui.js";

const WIDTH = 1000;
const HEIGHT = 260;

/** Divides a rectangle in proportion to the values: the squarest rows first. */
function squarify(items, x, y, width, height) {
  const total = items.reduce((sum, item) => sum + item.value, 0);
  if (items.length === 0 || total === 0) return [];
  if (items.length === 1) return [{ ...items[0], x, y, width, height }];
  let taken = 0;
  let number = 0;
  // About half of the area in each part keeps the rectangles near to squares.
  while (number < items.length - 1 && (number === 0 || taken + items[number].value <= total / 2))
    taken += items[number++].value;
  const part = taken / total;
  const [first, rest] = [items.slice(0, number), items.slice(number)];
  return width >= height
    ? [
        ...squarify(first, x, y, width * part, height),
        ...squarify(rest, x + width * part, y, width * (1 - part), height),
      ]
    : [
        ...squarify(first, x, y, width, height * part),
        ...squarify(rest, x, y + height * part, width, height * (1 - part)),
      ];
}

function treemap(buckets) {
  const items = buckets
    .filter((bucket) => bucket.physical_bytes > 0)
    .map((bucket) => ({ name: bucket.bucket, value: bucket.physical_bytes }))
    .sort((a, b) => b.value - a.value)
    .slice(0, 60);
  if (items.length === 0) return null;
  const rectangle = (item) =>
    svg(
      "a",
      { href: place("bucket", [item.name]), "aria-label": `${item.name} ${size(item.value)}` },
      svg("rect", { x: item.x, y: item.y, width: item.width, height: item.height, rx: 4 }),
      item.width > item.name.length * 8 &&
        item.width > 70 &&
        item.height > 36 && [
          svg("text", { x: item.x + 8, y: item.y + 18 }, item.name),
          " ",
          svg("text", { x: item.x + 8, y: item.y + 34 }, size(item.value)),
        ],
    );
  return svg(
    "svg",
    { class: "treemap", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": t("Space by bucket") },
    squarify(items, 0, 0, WIDTH, HEIGHT).map(rectangle),
  );
}

function card(name, figure, note) {
  return h(
    "div",
    { class: "card" },
    h("div", { class: "muted" }, name),
    h("div", { class: "figure" }, figure),
    note && h("div", { class: "muted small" }, note),
  );
}

export async function show(view) {
  const history = h("section");
  let leave = null;
  await loadInto(view, async () => {
    const [info, status, usage, lifecycle] = await Promise.all([
      api.get("/api/v1/system/info"),
      api.get("/api/v1/storage/status"),
      api.get("/api/v1/storage/usage"),
      api.get("/api/v1/lifecycle/status"),
    ]);
    const used = status.capacity_bytes - status.available_bytes;
    const notices = [];
    if (status.disk_state !== "ok")
      notices.push(
        status.disk_state === "low"
          ? t("Disk space is low. Delete objects or enlarge the file system before writes are refused.")
          : t("Writes are refused, because the disk is full. Delete objects or enlarge the file system."),
      );
    if (info.notices?.integrity)
      notices.push([
        t(
          "Stored data failed its check. Damaged data is not served: write these objects again from a copy, or delete them.",
        ),
        mayOversee() && [" ", link(t("Show the damaged objects"), place("audit", [], { operation: "storage.damage" }))],
      ]);
    if (lifecycle.paused) notices.push(lifecycle.reason ?? t("Lifecycle rules are paused."));
    const old = usage.physical_bytes - usage.logical_bytes;
    leave ??= showHistory(history);
    return [
      viewHead(t("Overview"), {
        tags: [
          tag(info.status === "ready" ? t("ready") : t("not ready"), info.status === "ready" ? "good" : "bad"),
          tag(t("version {version}", { version: info.version })),
        ],
      }),
      notices.map((text) => h("div", { class: "problem" }, h("p", null, text))),
      h(
        "div",
        { class: "cards" },
        card(t("Objects"), count(usage.objects), t("exact")),
        card(t("Current objects"), size(usage.logical_bytes)),
        card(
          t("Old versions and unfinished uploads"),
          size(old),
          plural(usage.versions - usage.objects, "{n} old version", "{n} old versions"),
        ),
        card(
          t("Free on the file system"),
          size(status.available_bytes),
          t("of {capacity}", { capacity: size(status.capacity_bytes) }),
        ),
      ),
      h("progress", { max: status.capacity_bytes, value: used, "aria-label": t("Space in use") }),
      history,
      h("h2", null, t("Space by bucket")),
      usage.by_bucket.length === 0
        ? emptyBox(
            t("No buckets yet."),
            mayStore() &&
              h("button", { type: "button", class: "main", onclick: () => go("buckets") }, t("Create a bucket")),
          )
        : [
            treemap(usage.by_bucket),
            h("p"),
            table(
              t("Space by bucket"),
              [
                { name: t("Bucket"), cell: (row) => link(row.bucket, place("bucket", [row.bucket])) },
                { name: t("Objects"), align: "end", cell: (row) => count(row.objects) },
                { name: t("Versions"), align: "end", from: "medium", cell: (row) => count(row.versions) },
                { name: t("Current"), align: "end", cell: (row) => sizeCell(row.logical_bytes) },
                { name: t("Stored"), align: "end", from: "medium", cell: (row) => sizeCell(row.physical_bytes) },
              ],
              [...usage.by_bucket].sort((a, b) => b.physical_bytes - a.physical_bytes),
            ),
          ],
      commands("cairn status", "cairn history --period hour", "cairn storage usage"),
    ];
  });
  return () => leave?.();
}
