// The objects of a bucket: prefixes, pages, selection, upload, deletion with undo.

import { api, bucketPath, encodeKey } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { chosen, dropped } from "../lib/files.js";
import { bucketHead } from "../lib/heads.js";
import { icon, mark } from "../lib/icons.js";
import { createShares } from "../lib/links.js";
import { draw, go, place } from "../lib/navigation.js";
import { contentPath, crumbs, undelete } from "../lib/objects.js";
import { pages } from "../lib/pages.js";
import { publicMark } from "../lib/public.js";
import { section } from "../lib/sections.js";
import { mayStore } from "../lib/session.js";
import { count, date, day, plural, size, t } from "../lib/text.js";
import {
  ask,
  bar,
  button,
  commands,
  confirmed,
  emptyBox,
  field,
  link,
  notice,
  noticeError,
  noticeProblem,
  quoted,
  searchField,
  sizeCell,
  table,
  tableRow,
  tag,
  timeCell,
} from "../lib/ui.js";
import { showUploads } from "../lib/upload-sheet.js";
import { add, discard, ofBatch, unfinished, whenUploaded } from "../lib/uploads.js";

const PAGE = 500;
const SECTION = 100;
// Browsers ask before they save many files.
const AT_ONCE_MAX = 50;
const BETWEEN_DOWNLOADS = 300;

async function removeAll(bucket, keys, isVersioned) {
  const text = isVersioned
    ? t("Old versions are kept, so this can be undone.")
    : t("The bucket keeps no versions: this cannot be undone.");
  const title = plural(keys.length, "Delete {n} object", "Delete {n} objects");
  if (!isVersioned && !(await confirmed({ title, text, action: title }))) return;
  const removed = [];
  let failure = null;
  const rest = [...keys];
  await Promise.all(
    Array.from({ length: 6 }, async () => {
      for (let key = rest.shift(); key !== undefined && !failure; key = rest.shift()) {
        try {
          await api.remove(bucketPath(bucket, "object", encodeKey(key)));
          removed.push(key);
        } catch (error) {
          if (error.status !== 404) failure = error;
        }
      }
    }),
  );
  if (failure) noticeError(failure);
  const undo = async () => {
    for (const key of removed) await undelete(bucket, key).catch(noticeError);
    draw();
  };
  notice(
    plural(removed.length, "{n} object deleted.", "{n} objects deleted."),
    isVersioned && removed.length > 0 ? [t("Undo"), undo] : undefined,
  );
  draw();
}

async function downloadAll(bucket, keys) {
  for (const key of keys) {
    link("", contentPath(bucket, key), { download: "" }).click();
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_DOWNLOADS));
  }
}

async function newFolder(bucket, prefix) {
  const name = h("input", { type: "text", required: true, autocomplete: "off" });
  await ask({
    title: t("New folder"),
    action: t("Open folder"),
    content: field(t("Name"), name, t("A folder is a prefix of keys. It exists as soon as an object is in it.")),
    submit: async () => go("bucket", [bucket], { prefix: `${prefix}${name.value.replace(/\/+$/, "")}/` }),
  });
}

function unfinishedBox(bucket, entries, changed) {
  const mine = entries.filter((entry) => entry.bucket === bucket);
  if (mine.length === 0) return null;
  const other = () => noticeProblem(t("This is another file: size and date differ."));
  const fileRow = (entry) => {
    const input = h("input", {
      type: "file",
      class: "hidden",
      "aria-label": t("Choose {name} again", { name: entry.name }),
      onchange: () => {
        const [file] = input.files;
        if (file && file.size === entry.size && file.lastModified === entry.modified)
          add(bucket, [{ file, key: entry.key }], { id: entry.id }).then(changed);
        else other();
      },
    });
    return h(
      "li",
      null,
      h("span", null, entry.key, " ", h("span", { class: "muted" }, size(entry.size))),
      input,
      button(t("Choose the file again"), () => input.click(), "link"),
      button(t("Discard"), () => discard(entry).then(changed), "link"),
    );
  };
  // One click for all files of a folder: what has arrived is not sent again.
  const batchRow = (batch) => {
    const names = batch.keys.map((key) => key.slice(batch.prefix.length));
    const folder = names.every((name) => name.includes("/")) ? names[0].split("/")[0] : "";
    const input = h("input", {
      type: "file",
      class: "hidden",
      webkitdirectory: Boolean(folder),
      multiple: !folder,
      "aria-label": folder ? t("Choose {name} again", { name: folder }) : t("Choose the files again"),
      onchange: () => {
        const files = ofBatch(batch, chosen(input, batch.prefix));
        if (files.length > 0) add(bucket, files, { prefix: batch.prefix }).then(changed);
        else noticeProblem(t("None of these files is missing here."));
      },
    });
    const missing = t("{left} of {n} files are missing", { left: count(batch.left), n: count(batch.keys.length) });
    return h(
      "li",
      null,
      h("span", null, batch.prefix, folder && `${folder}/`, " ", h("span", { class: "muted" }, missing)),
      input,
      button(folder ? t("Choose the folder again") : t("Choose the files again"), () => input.click(), "link"),
      button(t("Discard"), () => discard(batch).then(changed), "link"),
    );
  };
  return h(
    "div",
    { class: "problem interrupted" },
    h(
      "p",
      null,
      plural(
        mine.length,
        "{n} upload was interrupted. Choose the file again to continue it.",
        "{n} uploads were interrupted. Choose the files again to continue them.",
      ),
    ),
    h(
      "ul",
      null,
      mine.map((entry) => (entry.keys ? batchRow(entry) : fileRow(entry))),
    ),
  );
}

export async function show(view, { parts: [bucket], parameters }) {
  const prefix = parameters.get("prefix") ?? "";
  const info = await api.get(bucketPath(bucket));
  const isVersioned = info.versioning === "Enabled";
  const interrupted = h("div");
  const drawInterrupted = async () => fill(interrupted, unfinishedBox(bucket, await unfinished(), drawInterrupted));
  const selected = new Set();
  const selection = h("div", { class: "selection", role: "group", "aria-label": t("Selection") });

  const files = h("input", {
    type: "file",
    multiple: true,
    class: "hidden",
    tabindex: "-1",
    "aria-label": t("Files to upload"),
    onchange: () => {
      upload(chosen(files, prefix));
      files.value = "";
    },
  });
  const folder = h("input", {
    type: "file",
    webkitdirectory: true,
    class: "hidden",
    tabindex: "-1",
    "aria-label": t("Folder to upload"),
    onchange: () => {
      upload(chosen(folder, prefix));
      folder.value = "";
    },
  });

  async function upload(list) {
    if (list.length === 0) return;
    await add(bucket, list, { ifAbsent: !overwrite.checked, prefix });
    await drawInterrupted();
  }
  const overwrite = h("input", { type: "checkbox" });
  const filter = h("input", {
    type: "search",
    placeholder: t("Jump to a prefix"),
    "aria-label": t("Jump to a prefix"),
    value: "",
  });
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && filter.value) go("bucket", [bucket], { prefix: prefix + filter.value });
  });

  // Changes the boxes in place: to draw thousands of rows again would take long.
  function selectShown(isSelected) {
    for (const row of list.rows)
      if (row.key !== undefined) isSelected ? selected.add(row.key) : selected.delete(row.key);
    for (const box of listPlace.querySelectorAll("tbody input[type=checkbox]")) {
      box.checked = isSelected;
      box.closest("tr").setAttribute("aria-selected", String(isSelected));
    }
    const all = listPlace.querySelector("thead input");
    if (all) all.checked = isSelected;
    drawSelection();
  }

  function drawSelection() {
    const keys = [...selected];
    fill(
      selection,
      keys.length > 0 && [
        h("span", { class: "muted" }, plural(keys.length, "{n} selected", "{n} selected")),
        keys.length <= AT_ONCE_MAX && [
          button(t("Download"), () => downloadAll(bucket, keys)),
          button(t("Share"), () => createShares(bucket, keys).then((made) => made && markShared())),
        ],
        button(t("Delete"), () => removeAll(bucket, keys, isVersioned), "danger"),
        button(t("Clear"), () => selectShown(false), "quiet"),
      ],
    );
    selection.hidden = keys.length === 0;
  }

  // The list does not know links, so they are marked when they have been read: those of the latest thousand.
  const shared = new Set();
  async function markShared() {
    try {
      for (const { key } of (await api.get("/api/v1/shares", { bucket, status: "active", limit: 1000 })).shares)
        shared.add(key);
      for (const place of listPlace.querySelectorAll("[data-key]"))
        fill(place, shared.has(place.dataset.key) && tag(t("shared")));
    } catch {
      // The objects are there without marks, too.
    }
  }

  const tagsOf = (row) => [
    row.retention &&
      new Date(row.retention.retain_until) > Date.now() &&
      h(
        "span",
        { class: "tag", title: date(row.retention.retain_until) },
        t("locked until {date}", { date: day(row.retention.retain_until) }),
      ),
    row.legal_hold && tag(t("legal hold"), "warn"),
    h("span", { "data-key": row.key }, shared.has(row.key) && tag(t("shared"))),
  ];

  function rowOf(row) {
    if (row.prefix !== undefined) {
      const name = row.prefix.slice(prefix.length);
      return {
        ...row,
        name,
        cell: () =>
          h(
            "div",
            { class: "name" },
            mark("folder"),
            link(name, place("bucket", [bucket], { prefix: row.prefix }), { class: "folder" }),
          ),
      };
    }
    const name = row.key.slice(prefix.length);
    return {
      ...row,
      name,
      cell: () =>
        h(
          "div",
          { class: "name" },
          mark(row.content_type),
          h("span", null, link(name || "∅", place("object", [bucket, row.key])), tagsOf(row)),
        ),
    };
  }

  const check = (row) =>
    row.key !== undefined &&
    mayStore() &&
    h("input", {
      type: "checkbox",
      checked: selected.has(row.key),
      "aria-label": t("Select {name}", { name: row.key }),
      onchange: (event) => {
        if (event.target.checked) selected.add(row.key);
        else selected.delete(row.key);
        event.target.closest("tr").setAttribute("aria-selected", String(event.target.checked));
        drawSelection();
      },
    });
  const checkAll =
    mayStore() &&
    h("input", {
      type: "checkbox",
      "aria-label": t("Select all shown"),
      onchange: (event) => selectShown(event.target.checked),
    });
  const columns = [
    {
      name: t("Selection"),
      kind: "box",
      head: checkAll || h("span", { class: "hidden" }, t("Selection")),
      cell: check,
    },
    { name: t("Name"), cell: (row) => row.cell() },
    { name: t("Size"), align: "end", cell: (row) => (row.key === undefined ? "–" : sizeCell(row.size)) },
    {
      name: t("Modified"),
      kind: "quiet",
      from: "medium",
      cell: (row) => (row.key === undefined ? "" : timeCell(row.last_modified)),
    },
    {
      name: t("Type"),
      kind: "quiet",
      from: "wide",
      cell: (row) => (row.key === undefined ? t("prefix") : row.content_type),
    },
    {
      name: t("Download"),
      kind: "box",
      head: h("span", { class: "hidden" }, t("Download")),
      align: "end",
      from: "medium",
      cell: (row) =>
        row.key !== undefined &&
        mayStore() &&
        link(icon("download"), contentPath(bucket, row.key), {
          download: "",
          "aria-label": t("Download {name}", { name: row.key }),
          title: t("Download"),
        }),
    },
  ];

  const grown = (element, rows) => {
    const whole = element.querySelector("table");
    // What is far from the screen is not drawn at first: the layout of a table takes time for each row.
    for (let first = 0; first < rows.length; first += SECTION) {
      const part = rows.slice(first, first + SECTION);
      whole.append(
        section(() => part.map((row) => tableRow(columns, row, marked)), first === 0 ? undefined : part.length),
      );
    }
    // Heads count as a row. Rows that are not drawn are counted, too.
    whole.setAttribute("aria-rowcount", list.rows.length + 1);
    return element;
  };
  const marked = (row) => ({
    "aria-rowindex": row.index,
    "aria-selected": row.key !== undefined && selected.has(row.key) ? "true" : undefined,
  });

  const listPlace = h("div");
  const openTag = h("span");
  const head = bucketHead(info, "bucket", {
    tags: openTag,
    actions: mayStore() && [
      button([icon("folder"), t("Upload folder")], () => folder.click()),
      button([icon("upload"), t("Upload files")], () => files.click(), "main"),
      files,
      folder,
    ],
  });
  const tools = bar(
    searchField(filter),
    h(
      "span",
      { class: "end" },
      mayStore() && h("label", { class: "check" }, overwrite, t("Replace existing objects")),
      mayStore() && button([icon("folder-plus"), t("New folder")], () => newFolder(bucket, prefix)),
    ),
  );
  const cli = [
    `cairn object ls ${quoted(`${bucket}/${prefix}`)}`,
    `aws s3 ls ${quoted(`s3://${bucket}/${prefix}`)} --endpoint-url $AWS_ENDPOINT_URL`,
  ];
  const total = t("{objects} objects · {size}, exact", {
    objects: count(info.usage.objects),
    size: size(info.usage.bytes),
  });
  drawSelection();
  fill(
    view,
    head,
    tools,
    interrupted,
    h(
      "div",
      { class: "path" },
      h("nav", { "aria-label": t("Folders") }, crumbs(bucket, prefix)),
      h("span", { class: "muted small" }, total),
    ),
    selection,
    listPlace,
    commands(...cli),
  );

  const list = pages(listPlace, {
    automatic: true,
    load: async (cursor) => {
      const page = await api.get(bucketPath(bucket, "objects"), {
        prefix,
        delimiter: "/",
        limit: PAGE,
        continuation_token: cursor,
      });
      const rows = [...page.common_prefixes.map((found) => ({ prefix: found })), ...page.objects];
      const before = list.rows.length + 2;
      return {
        rows: rows.map((row, index) => ({ ...rowOf(row), index: before + index })),
        next: page.next_continuation_token,
      };
    },
    draw: (rows) => grown(table(t("Objects in {name}", { name: `${bucket}/${prefix}` }), columns, []), [...rows]),
    grow: grown,
    empty: () =>
      emptyBox(
        prefix ? t("Nothing begins with this prefix.") : t("No objects yet. Drop files here or upload."),
        mayStore() && button(t("Upload files"), () => files.click(), "main"),
      ),
  });

  // The whole view takes drops.
  view.dataset.drop = t("Drop to upload to {name}", { name: `${bucket}/${prefix}` });
  const over = (event) => {
    if (!mayStore() || ![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    view.classList.add("drop");
  };
  view.addEventListener("dragover", over);
  view.addEventListener("dragleave", (event) => event.target === view && view.classList.remove("drop"));
  view.addEventListener("drop", async (event) => {
    if (!mayStore()) return;
    event.preventDefault();
    view.classList.remove("drop");
    upload(await dropped(event.dataTransfer, prefix));
  });
  const keys = (event) => {
    if (
      event.ctrlKey ||
      event.altKey ||
      event.metaKey ||
      event.target.closest("input:not([type=checkbox]), textarea, select, dialog")
    )
      return;
    const row = event.target.closest("tbody tr");
    const to =
      row &&
      {
        ArrowDown: row.nextElementSibling ?? row.parentElement.nextElementSibling?.firstElementChild,
        ArrowUp: row.previousElementSibling ?? row.parentElement.previousElementSibling?.lastElementChild,
      }[event.key];
    if (to) (to.querySelector("input") ?? to.querySelector("a"))?.focus();
    else if (row && event.key === "Enter" && event.target.matches("input")) row.querySelector("a").click();
    else if (event.key === "Delete" && row && selected.size > 0 && mayStore())
      removeAll(bucket, [...selected], isVersioned);
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", keys);
  let timer;
  whenUploaded((where, key) => {
    if (where !== bucket || !key.startsWith(prefix)) return;
    clearTimeout(timer);
    timer = setTimeout(() => selected.size === 0 && list.reload(), 500);
  });
  showUploads();
  await Promise.all([list.ready, drawInterrupted()]);
  markShared();
  // The objects are there without this mark, too.
  publicMark(bucket, prefix).then(
    (made) => fill(openTag, made),
    () => {},
  );
  return () => {
    list.stop();
    removeEventListener("keydown", keys);
    clearTimeout(timer);
    whenUploaded(() => {});
  };
}
