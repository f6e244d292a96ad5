// Lists of objects: other orders than that of the keys, columns that are shown, and comparison with the present.

import { api, bucketPath } from "./api.js";
import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { openMenuBelow } from "./menu.js";
import { draw } from "./navigation.js";
import { count, plural, t } from "./text.js";
import { ask, button, notice, noticeError, sizeCell, tag } from "./ui.js";

const HIDDEN_COLUMNS = "cairn-hidden-columns";
const PAGE = 1000;
// More entries of a folder are neither sorted nor compared.
const READ_MAX = 10_000;

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

/** Returns a function that makes the cell with the size of a folder. All folders of a level are counted at once. */
export function folderSizes(bucket, prefix, place) {
  const sizes = new Map();
  const contentOf = (folder) => {
    const known = sizes.get(folder);
    if (!known)
      return h(
        "button",
        {
          type: "button",
          class: "link",
          "aria-label": t("Show size of {name}", { name: folder }),
          onclick: measure,
        },
        t("Show size"),
      );
    const objects = plural(known.objects, "{n} object", "{n} objects");
    return [sizeCell(known.bytes), h("div", { class: "muted small" }, objects)];
  };
  async function measure(event) {
    const { folder } = event.target.closest("[data-folder]").dataset;
    try {
      const found = await api.get(bucketPath(bucket, "folder-usage"), { prefix });
      for (const one of found.folders) sizes.set(one.prefix, one);
      for (const cell of place.querySelectorAll("[data-folder]")) {
        fill(cell, contentOf(cell.dataset.folder));
        if (cell.dataset.folder === folder) cell.closest("tr").querySelector("a").focus();
      }
      if (!found.complete) notice(t("The folder is too large: not everything was counted."));
    } catch (error) {
      noticeError(error);
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
