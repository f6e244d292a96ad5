// The objects of a bucket, now or at an earlier moment: folders, selection, upload, deletion with undo, restoration.

import { api, bucketPath } from "../lib/api.js";
import { ask } from "../lib/dialogs.js";
import { fill, h } from "../lib/dom.js";
import { downloadAll, saveArchives, ZIP_IN_MEMORY_MAX } from "../lib/downloads.js";
import { chosen, dropped, takeDrops } from "../lib/files.js";
import { bucketHead } from "../lib/heads.js";
import { icon, mark } from "../lib/icons.js";
import { drawInterrupted } from "../lib/interrupted.js";
import { createShares } from "../lib/links.js";
import {
  columnsButton,
  comparison,
  folderSizes,
  hiddenColumns,
  presentState,
  readAll,
  sorted,
  sortMenu,
} from "../lib/listing.js";
import { menuButton, openMenu } from "../lib/menu.js";
import { moveEntries } from "../lib/moving.js";
import { go, keptPlace, momentOf, place } from "../lib/navigation.js";
import { contentPath, crumbs } from "../lib/objects.js";
import { pages } from "../lib/pages.js";
import { chooseMoment, momentButton, pastBanner, previewRestore } from "../lib/past.js";
import { publicMark } from "../lib/public.js";
import { removeAll } from "../lib/removal.js";
import { findCommand, foundName, queryOf, searchOf, searchTools } from "../lib/search.js";
import { reveal, section } from "../lib/sections.js";
import { mayAdminister, mayStore } from "../lib/session.js";
import { count, date, day, plural, size, t } from "../lib/text.js";
import { onLongPress } from "../lib/touch.js";
import {
  bar,
  button,
  commands,
  emptyBox,
  field,
  link,
  onceAtATime,
  quoted,
  sizeCell,
  table,
  tableRow,
  tag,
  timeCell,
} from "../lib/ui.js";
import { decided } from "../lib/upload-choice.js";
import { showUploads } from "../lib/upload-sheet.js";
import { add, whenUploaded } from "../lib/uploads.js";

// A name of which a list shows two lines.
const longName = (key) => key.length > 200 && { class: "clamp", title: key };

const PAGE = 500;
const SECTION = 100;
// Browsers ask before they save many files.
const AT_ONCE_MAX = 50;

async function newFolder(bucket, prefix) {
  const name = h("input", { type: "text", required: true, autocomplete: "off" });
  await ask({
    title: t("New folder"),
    action: t("Open folder"),
    content: field(t("Name"), name, t("A folder is a prefix of keys. It exists as soon as an object is in it.")),
    submit: async () => go("bucket", [bucket], { prefix: `${prefix}${name.value.replace(/\/+$/, "")}/` }),
  });
}

export async function show(view, { parts: [bucket], parameters }) {
  const prefix = parameters.get("prefix") ?? "";
  const at = momentOf(parameters);
  const order = parameters.get("sort") ?? "name";
  const isDescending = parameters.get("order") === "desc";
  const isPast = at !== undefined;
  const search = searchOf(parameters);
  const mayChange = mayStore() && !isPast;
  const [info, others] = await Promise.all([
    api.get(bucketPath(bucket)),
    mayChange ? api.get("/api/v1/buckets").then(({ buckets }) => buckets.map(({ name }) => name)) : [],
  ]);
  const isVersioned = info.versioning === "Enabled";
  const hasPast = info.versioning !== "Unversioned";
  const interrupted = h("div");
  const preview = h("div", { class: "restore-place" });
  const listPlace = h("div");
  // Selected rows by an id that tells an object from a folder of the same name.
  const selected = new Map();
  const selection = h("div", { class: "selection", role: "group", "aria-label": t("Selection") });
  const idOf = (row) => (row.key === undefined ? `f${row.prefix}` : `o${row.key}`);
  const chosenKeys = () => [...selected.values()].filter((row) => row.key !== undefined).map((row) => row.key);
  const chosenFolders = () => [...selected.values()].filter((row) => row.key === undefined).map((row) => row.prefix);

  const fileInput = (label, isFolder) => {
    const input = h("input", {
      type: "file",
      multiple: !isFolder,
      webkitdirectory: isFolder,
      class: "hidden",
      tabindex: "-1",
      "aria-label": label,
      onchange: () => {
        upload(chosen(input, prefix));
        input.value = "";
      },
    });
    return input;
  };
  const files = fileInput(t("Files to upload"), false);
  const folder = fileInput(t("Folder to upload"), true);

  async function upload(list) {
    if (list.length === 0) return;
    const wanted = await decided(bucket, prefix, list, isVersioned);
    if (!wanted?.length) return;
    await add(bucket, wanted, { prefix });
    await drawInterrupted(interrupted, bucket);
  }
  const remove = onceAtATime((keys, prefixes) => removeAll(bucket, { keys, prefixes }, isVersioned));
  const move = (keys, prefixes) =>
    moveEntries(bucket, [bucket, ...others.filter((name) => name !== bucket)], search ? "" : prefix, {
      keys,
      prefixes,
    });
  const share = (keys) => createShares(bucket, keys).then((made) => made && markShared());

  function setSelected(row, isSelected) {
    if (isSelected) selected.set(idOf(row), row);
    else selected.delete(idOf(row));
  }

  // Whether objects were uploaded while some were selected. The list is left alone until none is.
  let isStale = false;

  // Changes the boxes in place: to draw thousands of rows again would take long.
  function showSelection() {
    for (const box of listPlace.querySelectorAll("tbody input[type=checkbox]")) {
      box.checked = selected.has(box.dataset.id);
      box.closest("tr").setAttribute("aria-selected", String(box.checked));
    }
    const all = listPlace.querySelector("thead input");
    if (all) {
      all.checked = selected.size > 0 && selected.size === list.rows.length;
      all.indeterminate = selected.size > 0 && !all.checked;
    }
    drawSelection();
    if (!isStale || selected.size > 0) return;
    isStale = false;
    list.reload();
  }

  function selectShown(isSelected) {
    for (const row of list.rows) setSelected(row, isSelected);
    showSelection();
  }

  function drawSelection() {
    const keys = chosenKeys();
    const folders = chosenFolders();
    const bytes = [...selected.values()].reduce((sum, row) => sum + (row.size ?? 0), 0);
    fill(
      selection,
      selected.size > 0 && [
        h("b", null, plural(selected.size, "{n} selected", "{n} selected")),
        h(
          "span",
          { class: "muted" },
          folders.length === 0
            ? size(bytes)
            : plural(folders.length, "{n} folder with all in it", "{n} folders with all in them"),
        ),
        folders.length === 0 &&
          keys.length <= AT_ONCE_MAX && [
            button([icon("download"), t("Download")], () => downloadAll(bucket, keys)),
            button([icon("link"), t("Share")], () => share(keys)),
          ],
        (folders.length > 0 ? keys.length === 0 : keys.length > 1 && bytes <= ZIP_IN_MEMORY_MAX) &&
          button([icon("archive"), "ZIP"], () => saveArchives(bucket, keys, folders, at)),
        button([icon("arrow"), t("Move")], () => move(keys, folders)),
        folders.length === 1 &&
          keys.length === 0 &&
          hasPast &&
          button([icon("past"), t("Restore to a moment")], () => chooseMoment(bucket, folders[0])),
        button([icon("trash"), t("Delete")], () => remove(keys, folders), "danger"),
        button([icon("close"), t("Clear")], () => selectShown(false)),
      ],
    );
    selection.hidden = selected.size === 0;
    listPlace.classList.toggle("selecting", selected.size > 0);
  }

  // The list does not know links, so they are marked when they have been read: those of the latest thousand.
  const shared = new Set();
  async function markShared() {
    try {
      for (const { key } of (await api.get("/api/v1/shares", { bucket, status: "active", limit: 1000 })).shares)
        shared.add(key);
      for (const place of listPlace.querySelectorAll("[data-key]"))
        fill(place, shared.has(place.dataset.key) && tag(t("shared"), "good", "link"));
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
        icon("lock"),
        t("locked until {date}", { date: day(row.retention.retain_until) }),
      ),
    row.legal_hold && tag(t("legal hold"), "warn", "lock"),
    !isPast && h("span", { "data-key": row.key }, shared.has(row.key) && tag(t("shared"), "good", "link")),
  ];

  const nameOf = (row) => (search ? row.key : (row.key ?? row.prefix).slice(prefix.length));
  const hrefOf = (row) =>
    row.key === undefined
      ? place("bucket", [bucket], { prefix: row.prefix, at })
      : place("object", [bucket, row.key], { at });
  const nameCell = (row) =>
    row.key === undefined
      ? h("div", { class: "name" }, mark("folder"), link(nameOf(row), hrefOf(row), { class: "folder" }))
      : h(
          "div",
          { class: "name" },
          mark(row.content_type),
          h(
            "span",
            null,
            link(search ? foundName(row.key, search.q) : nameOf(row) || "∅", hrefOf(row), longName(row.key)),
            tagsOf(row),
            search && h("div", { class: "muted small key" }, row.key.slice(0, row.key.lastIndexOf("/") + 1)),
          ),
        );

  // What can be done with a row, for its button and the right mouse button.
  const actionsOf = (row) => {
    const select = {
      text: selected.has(idOf(row)) ? t("Take off the selection") : t("Select"),
      sign: "check",
      task: () => {
        setSelected(row, !selected.has(idOf(row)));
        showSelection();
      },
    };
    const open = {
      text: t("Open"),
      sign: row.key === undefined ? "folder" : "file",
      key: "Enter",
      task: () => {
        location.hash = hrefOf(row);
      },
    };
    if (row.key === undefined)
      return [
        open,
        select,
        { text: t("Download as ZIP"), sign: "archive", task: () => saveArchives(bucket, [], [row.prefix], at) },
        { text: t("Move or rename"), sign: "arrow", key: "F2", task: () => move([], [row.prefix]) },
        hasPast && {
          text: t("Restore to a moment"),
          sign: "past",
          task: () => chooseMoment(bucket, row.prefix),
        },
        null,
        {
          text: t("Delete folder"),
          sign: "trash",
          key: t("Del"),
          isDangerous: true,
          task: () => remove([], [row.prefix]),
        },
      ];
    return [
      open,
      select,
      { text: t("Download"), sign: "download", task: () => downloadAll(bucket, [row.key]) },
      { text: t("Share"), sign: "link", task: () => share([row.key]) },
      { text: t("Move or rename"), sign: "arrow", key: "F2", task: () => move([row.key], []) },
      null,
      { text: t("Delete"), sign: "trash", key: t("Del"), isDangerous: true, task: () => remove([row.key], []) },
    ];
  };

  let lastBox = null;
  const check = (row) =>
    mayChange &&
    h("input", {
      type: "checkbox",
      checked: selected.has(idOf(row)),
      "data-id": idOf(row),
      "aria-label": t("Select {name}", { name: row.key ?? row.prefix }),
      onclick: (event) => {
        const { checked } = event.target;
        setSelected(row, checked);
        // With Shift, all rows between have the same state.
        if (event.shiftKey && lastBox) {
          const [from, to] = [list.rows.indexOf(lastBox), list.rows.indexOf(row)].sort((a, b) => a - b);
          for (const between of list.rows.slice(Math.max(from, 0), to + 1)) setSelected(between, checked);
        }
        lastBox = row;
        showSelection();
      },
    });
  const checkAll =
    mayChange &&
    h("input", {
      type: "checkbox",
      "aria-label": t("Select all shown"),
      onchange: (event) => selectShown(event.target.checked),
    });
  const sorter = (id, name) => {
    const isCurrent = order === id;
    const turned = isCurrent && !isDescending;
    const made = button([name, isCurrent && icon(isDescending ? "down" : "up")], () =>
      go("bucket", [bucket], { prefix, at, sort: id === "name" && !turned ? "" : id, order: turned ? "desc" : "" }),
    );
    return made;
  };
  const sortOf = (id) => (order === id ? { "aria-sort": isDescending ? "descending" : "ascending" } : {});
  const ofObject = (show) => (row) => (row.key === undefined ? "" : show(row));
  const folderSize = folderSizes(bucket, prefix, listPlace);
  const hidden = hiddenColumns();
  const isShown = (id) => !hidden.has(id);
  let stateOf = () => "";
  const columns = [
    {
      name: t("Selection"),
      kind: "box",
      head: checkAll || h("span", { class: "hidden" }, t("Selection")),
      cell: check,
    },
    { name: t("Name"), head: sorter("name", t("Name")), headProperties: sortOf("name"), cell: nameCell },
    {
      name: t("Size"),
      head: sorter("size", isPast ? t("Size then") : t("Size")),
      headProperties: sortOf("size"),
      from: isPast && !search ? "medium" : undefined,
      align: "end",
      cell: (row) => {
        if (row.key !== undefined) return sizeCell(row.size);
        return isPast ? "–" : folderSize(row.prefix);
      },
    },
    isShown("type") && {
      name: t("Type"),
      kind: "quiet",
      from: "wide",
      cell: (row) =>
        h("span", { class: "type", title: row.content_type }, row.key === undefined ? t("Folder") : row.content_type),
    },
    isShown("modified") && {
      name: t("Modified"),
      head: sorter("modified", t("Modified")),
      headProperties: sortOf("modified"),
      kind: "quiet",
      from: "medium",
      cell: ofObject((row) => timeCell(row.last_modified)),
    },
    isPast &&
      !search && { name: t("Compared with now"), kind: "compared-with", cell: (row) => comparison(stateOf(row)) },
    mayChange && {
      name: t("Actions"),
      head: h("span", { class: "hidden" }, t("Actions")),
      kind: "tools",
      align: "end",
      cell: (row) => [
        row.key !== undefined &&
          link(icon("download"), contentPath(bucket, row.key), {
            class: "from-medium",
            download: "",
            "aria-label": t("Download {name}", { name: row.key }),
            title: t("Download"),
          }),
        menuButton(t("Actions for {name}", { name: row.key ?? row.prefix }), () => actionsOf(row)),
      ],
    },
  ].filter(Boolean);

  const marked = (row) => ({
    "aria-rowindex": row.index,
    "aria-selected": selected.has(idOf(row)) ? "true" : undefined,
    "data-row": row.index,
  });
  const grown = (element, rows) => {
    const whole = element.querySelector("table");
    // What is far from the screen is not drawn at first: the layout of a table takes time for each row.
    for (let first = 0; first < rows.length; first += SECTION) {
      const part = rows.slice(first, first + SECTION);
      const made = section(() => part.map((row) => tableRow(columns, row, marked)), first && part.length);
      made.dataset.first = part[0].index;
      whole.append(made);
    }
    // Heads count as a row. Rows that are not drawn are counted, too.
    whole.setAttribute("aria-rowcount", list.rows.length + 1);
    return element;
  };

  const openTag = h("span");
  const head = bucketHead(info, "bucket", {
    tags: openTag,
    actions: mayChange && [
      mayAdminister() &&
        link([icon("plug"), t("Connect")], place("connect", [], { bucket }), { class: "button from-medium" }),
      button([icon("folder"), t("Upload folder")], () => folder.click()),
      button([icon("upload"), t("Upload files")], () => files.click(), "main"),
      files,
      folder,
    ],
  });
  const tools = bar(
    searchTools(bucket, prefix, at, search),
    h(
      "span",
      { class: "end" },
      hasPast && !isPast && momentButton(bucket, prefix),
      sortMenu(order, isDescending, (id, to) =>
        go("bucket", [bucket], { ...Object.fromEntries(parameters), sort: id, order: to }),
      ),
      columnsButton(),
      mayChange && button([icon("folder-plus"), t("New folder")], () => newFolder(bucket, prefix)),
    ),
  );
  tools.classList.add("list-tools");
  const where = quoted(`${bucket}/${prefix}`);
  const restoring = `cairn bucket restore ${quoted(bucket)} --at ${at}`;
  const cli = [search ? findCommand(bucket, search, at) : `cairn object ls ${where}${isPast ? ` --at ${at}` : ""}`];
  if (isPast) cli.push(`${restoring}${prefix ? ` --prefix ${quoted(prefix)}` : ""} --dry-run`);
  else cli.push(`aws s3 ls ${quoted(`s3://${bucket}/${prefix}`)} --endpoint-url $AWS_ENDPOINT_URL`);
  const total = h("span", { class: "muted small" });
  const drawTotal = ({ usage }) => {
    if (!isPast && !search)
      total.textContent = t("{objects} objects · {size} in the bucket", {
        objects: count(usage.objects),
        size: size(usage.bytes),
      });
  };
  drawTotal(info);
  let examined = 0;
  let found = 0;
  drawSelection();
  fill(
    view,
    head,
    isPast && pastBanner(bucket, prefix, at, preview),
    (!isPast || search) && tools,
    interrupted,
    h("div", { class: "path" }, h("nav", { "aria-label": t("Folders") }, crumbs(bucket, prefix, undefined, at)), total),
    h(
      "div",
      { class: isPast ? "columns" : "" },
      h("div", { class: "objects" }, selection, listPlace),
      isPast && preview,
    ),
    commands(...cli),
  );

  const read = async (cursor, limit = PAGE) => {
    if (search) {
      const page = await api.get(bucketPath(bucket, "find"), {
        ...queryOf(search),
        limit,
        continuation_token: cursor,
        at,
      });
      if (cursor === undefined) examined = found = 0;
      examined += page.examined;
      found += page.objects.length;
      total.textContent = t("{found} found among {examined} keys", { found: count(found), examined: count(examined) });
      return { rows: page.objects, next: page.next_continuation_token };
    }
    const page = await api.get(bucketPath(bucket, "objects"), {
      prefix,
      delimiter: "/",
      limit,
      continuation_token: cursor,
      at,
    });
    return {
      rows: [...page.common_prefixes.map((found) => ({ prefix: found })), ...page.objects],
      next: page.next_continuation_token,
    };
  };
  const numbered = (rows, before) => rows.map((row, index) => ({ ...row, index: before + index }));
  const list = pages(listPlace, {
    automatic: true,
    load: async (cursor) => {
      if (isPast && !search && cursor === undefined) stateOf = await presentState(bucket, prefix);
      if (order !== "name" || isDescending)
        return { rows: numbered(sorted(await readAll(read), order, isDescending), 2), next: null };
      const page = await read(cursor);
      return { rows: numbered(page.rows, list.rows.length + 2), next: page.next };
    },
    draw: (rows) => grown(table(t("Objects in {name}", { name: `${bucket}/${prefix}` }), columns, []), [...rows]),
    grow: grown,
    empty: () => {
      if (search)
        return emptyBox(
          t("No object is like this."),
          link(t("Show all objects"), place("bucket", [bucket], { at }), { class: "button" }),
        );
      if (isPast) return emptyBox(t("There was nothing here at that moment."));
      return emptyBox(
        prefix ? t("Nothing begins with this prefix.") : t("No objects yet. Drop files here or upload."),
        mayStore() && button([icon("upload"), t("Upload files")], () => files.click(), "main"),
      );
    },
  });

  takeDrops(
    view,
    t("Drop to upload to {name}", { name: `${bucket}/${prefix}` }),
    () => mayChange,
    (transfer) => dropped(transfer, prefix).then(upload),
  );
  const rowOf = (element) => {
    const index = element.closest("tbody tr[data-row]")?.dataset.row;
    return index === undefined ? undefined : list.rows[Number(index) - 2];
  };
  listPlace.addEventListener("contextmenu", (event) => {
    const row = mayChange && rowOf(event.target);
    // Links keep the browser's own menu for new tabs when Shift is held.
    if (!row || event.shiftKey) return;
    event.preventDefault();
    const { left, bottom } = event.target.getBoundingClientRect();
    const point = event.clientX > 0 ? { x: event.clientX, y: event.clientY } : { x: left, y: bottom };
    openMenu(point, t("Actions for {name}", { name: nameOf(row) }), actionsOf(row));
  });
  onLongPress(listPlace, {
    rowOf: (element) => mayChange && rowOf(element),
    toggle: (row) => {
      setSelected(row, !selected.has(idOf(row)));
      showSelection();
    },
    isSelecting: () => selected.size > 0,
  });
  const keys = (event) => {
    if (
      event.ctrlKey ||
      event.altKey ||
      event.metaKey ||
      event.target.closest("input:not([type=checkbox]), textarea, select, dialog, [role=menu]")
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
    else if (event.key === "F2" && row && mayChange) {
      const entry = rowOf(row);
      move(entry.key === undefined ? [] : [entry.key], entry.key === undefined ? [entry.prefix] : []);
    } else if (event.key === "Delete" && row && selected.size > 0 && mayChange) remove(chosenKeys(), chosenFolders());
    else if (event.key === "Escape" && selected.size > 0) selectShown(false);
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", keys);
  let timer;
  const ended = whenUploaded((target, key) => {
    if (target !== bucket || !key.startsWith(prefix) || isPast) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      isStale = selected.size > 0;
      if (!isStale) list.reload();
      // Figures follow what was done here.
      api.get(bucketPath(bucket)).then(drawTotal, () => {});
    }, 500);
  });
  showUploads();
  await Promise.all([list.ready, isPast || drawInterrupted(interrupted, bucket)]);
  reveal(listPlace, keptPlace()?.row);
  if (isPast && parameters.get("restore")) previewRestore(preview, bucket, at, prefix);
  if (!isPast) markShared();
  // The objects are there without this mark, too.
  publicMark(bucket, prefix).then(
    (made) => fill(openTag, made),
    () => {},
  );
  return () => {
    list.stop();
    removeEventListener("keydown", keys);
    clearTimeout(timer);
    ended();
  };
}
