// Lists of objects: other orders than that of the keys, columns that are shown, and comparison with the present.

import { api, bucketPath } from "./api.js";
import { ask } from "./dialogs.js";
import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { openMenuBelow } from "./menu.js";
import { draw } from "./navigation.js";
import { count, plural, t } from "./text.js";
import { button, notice, noticeError, SKELETON_AFTER, sizeCell, tag } from "./ui.js";

const HIDDEN_COLUMNS = "cairn-hidden-columns";
const PAGE = 1000;
// More entries of a folder are neither sorted nor compared.
const READ_MAX = 10_000;
// Keys that one request counts, within a second or two.
const COUNT_KEYS = 1_000_000;

/** Yields the pages of the objects below a prefix. `parameters` may have a delimiter. */
export async function* objectPages(bucket, prefix, parameters) {
  let token;
  do {
    const page = await api.get(bucketPath(bucket, "objects"), {
      prefix,
      limit: PAGE,
      continuation_token: token,
      ...parameters,
    });
    yield page;
    token = page.next_continuation_token;
  } while (token);
}

/** Returns the columns that are not shown. */
export function hiddenColumns() {
  try {
    return new Set(JSON.parse(localStorage.getItem(HIDDEN_COLUMNS)) ?? []);
  } catch {
    return new Set();
  }
}

// Asks which columns are shown, and draws the view again.
async function chooseColumns(columns) {
  const hidden = hiddenColumns();
  const boxes = columns.map(([id, name]) => [id, h("input", { type: "checkbox", checked: !hidden.has(id) }), name]);
  const chosenOnes = await ask({
    title: t("Columns"),
    action: t("Show"),
    content: boxes.map(([, box, name]) => h("label", { class: "check" }, box, name)),
    submit: async () => boxes.filter(([, box]) => !box.checked).map(([id]) => id),
  });
  if (!chosenOnes) return;
  try {
    localStorage.setItem(HIDDEN_COLUMNS, JSON.stringify(chosenOnes));
  } catch {
    // Without storage, all columns are shown.
  }
  draw();
}

/** The button that chooses columns. A phone shows the most important ones. */
export function columnsButton() {
  const columns = () => [
    ["type", t("Type")],
    ["modified", t("Modified")],
  ];
  return h(
    "button",
    {
      type: "button",
      class: "from-medium",
      "aria-label": t("Columns"),
      title: t("Columns"),
      onclick: () => chooseColumns(columns()),
    },
    icon("columns"),
  );
}

const ORDERS = {
  modified: (row) => row.last_modified ?? "",
  name: (row) => row.key ?? row.prefix,
  size: (row) => row.size ?? -1,
};

/** Returns rows in another order than that of the keys. Folders have no size and no time. */
export function sorted(rows, order, isDescending) {
  const value = ORDERS[order] ?? ORDERS.name;
  const compare = (a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === right) return 0;
    return left < right ? -1 : 1;
  };
  const made = rows.sort(compare);
  return isDescending ? made.reverse() : made;
}

/** Reads all entries of a folder: the server lists by key, and another order needs all. */
export async function readAll(read) {
  const rows = [];
  let next;
  do {
    const page = await read(next, PAGE);
    rows.push(...page.rows);
    next = page.next;
  } while (next && rows.length < READ_MAX);
  if (next) notice(t("Only the first {n} entries of this folder are sorted.", { n: count(rows.length) }));
  return rows;
}

/** Returns a function that says what became of a row of an earlier moment. */
export async function presentState(bucket, prefix) {
  const versions = new Map();
  const folders = new Set();
  let isCut = false;
  for await (const page of objectPages(bucket, prefix, { delimiter: "/" })) {
    for (const object of page.objects) versions.set(object.key, object.version_id);
    for (const folder of page.common_prefixes) folders.add(folder);
    isCut = Boolean(page.next_continuation_token);
    if (versions.size + folders.size >= READ_MAX) break;
  }
  return (row) => {
    if (row.prefix !== undefined) return folders.has(row.prefix) || isCut ? "" : "deleted";
    if (!versions.has(row.key)) return isCut ? "" : "deleted";
    return versions.get(row.key) === row.version_id ? "same" : "changed";
  };
}

/** Shows what became of a row. */
export function comparison(state) {
  return {
    changed: () => tag(t("Changed since"), "past", "layers"),
    deleted: () => tag(t("Deleted since"), "bad", "trash"),
    same: () => h("span", { class: "muted" }, t("The same")),
  }[state]?.();
}

/**
 * Returns a function that makes the cell with the size of a folder. All folders of a level are counted at once; those
 * that the answers leave out, one by one.
 */
export function folderSizes(bucket, prefix, place) {
  const sizes = new Map();
  const objectsOf = ({ objects }) => plural(objects, "{n} object", "{n} objects");
  let running = null;
  let isCounted = false;
  const contentOf = (folder) => {
    if (running?.folder === folder) return running.content;
    const known = sizes.get(folder);
    if (known) return [sizeCell(known.bytes), h("div", { class: "muted small" }, objectsOf(known))];
    if (running) return "…";
    const label = t("Show size of {name}", { name: folder });
    return h("button", { type: "button", class: "link", "aria-label": label, onclick: measure }, t("Show size"));
  };
  function show() {
    for (const cell of place.querySelectorAll("[data-folder]")) {
      const { folder } = cell.dataset;
      if (running?.folder === folder && cell.contains(running.content[0])) continue;
      const isFocused = cell.contains(document.activeElement);
      fill(cell, contentOf(folder));
      if (isFocused) (cell.querySelector("button") ?? cell.closest("tr").querySelector("a")).focus();
    }
  }
  // Counts page by page. Returns the whole; `take` gets each folder when it is complete.
  async function countAll(below, signal, soFar, take) {
    const all = { prefix: below, objects: 0, bytes: 0 };
    let open;
    let token;
    do {
      const query = { prefix: below, max_keys: COUNT_KEYS, continuation_token: token };
      const page = await api.get(bucketPath(bucket, "folder-usage"), query, { signal });
      if (!place.isConnected) throw new DOMException("", "AbortError");
      all.objects += page.objects;
      all.bytes += page.bytes;
      for (const one of page.folders) {
        if (open?.prefix === one.prefix) {
          one.objects += open.objects;
          one.bytes += open.bytes;
        } else if (open) take(open);
        open = one;
      }
      token = page.next_continuation_token;
      soFar.textContent = objectsOf(all);
      if (token) show();
    } while (token);
    if (open) take(open);
    return all;
  }
  async function measure(event) {
    if (running) return;
    const { folder } = event.target.closest("[data-folder]").dataset;
    const stop = new AbortController();
    const soFar = h("div", { class: "muted small" });
    running = { folder, content: [button(t("Cancel"), () => stop.abort(), "link"), soFar] };
    const timer = setTimeout(show, SKELETON_AFTER);
    const keep = (one) => sizes.size < READ_MAX && sizes.set(one.prefix, one);
    try {
      if (!isCounted) await countAll(prefix, stop.signal, soFar, keep);
      isCounted = true;
      if (!sizes.has(folder)) sizes.set(folder, await countAll(folder, stop.signal, soFar, () => {}));
    } catch (error) {
      if (error.name !== "AbortError") noticeError(error);
    } finally {
      clearTimeout(timer);
      running = null;
      show();
    }
  }
  return (folder) => h("span", { "data-folder": folder }, contentOf(folder));
}

/** The button that sorts a list on a phone, which has no heads of columns. `to(id, direction)` goes there. */
export function sortMenu(order, isDescending, to) {
  const entry = ([id, name]) => {
    const isTurned = order === id && !isDescending;
    return { text: name, sign: isTurned ? "down" : "up", task: () => to(id, isTurned ? "desc" : "") };
  };
  const orders = [
    ["name", t("Name")],
    ["size", t("Size")],
    ["modified", t("Modified")],
  ];
  const made = button(
    [icon("updown"), t("Sort")],
    () => openMenuBelow(made, t("Sort"), orders.map(entry)),
    "on-phones",
  );
  return made;
}
