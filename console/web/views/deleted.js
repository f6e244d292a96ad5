// The deleted objects of a bucket that can come back: one row for each act, with its objects.

import { api, bucketPath } from "../lib/api.js";
import { confirmed } from "../lib/dialogs.js";
import { fill, h } from "../lib/dom.js";
import { bucketHead } from "../lib/heads.js";
import { icon, mark } from "../lib/icons.js";
import { draw } from "../lib/navigation.js";
import { commonFolder } from "../lib/objects.js";
import { noticeBack, undeleteKeys } from "../lib/removal.js";
import { searchField } from "../lib/search-field.js";
import { mayStore } from "../lib/session.js";
import { count, DAY, day, plural, size, t } from "../lib/text.js";
import {
  actionsColumn,
  avatar,
  bar,
  button,
  commands,
  emptyBox,
  errorBox,
  loadInto,
  noticeError,
  quoted,
  shortName,
  sizeCell,
  table,
  tableRow,
  timeCell,
} from "../lib/ui.js";

const PAGE = 1000;
// So many are read at once. More follow when the user asks.
const READ_AT_ONCE = 5000;
// Deletions of the same person that follow each other so quickly are one act. Who it was may not be known yet.
const ACT_GAP = 60_000;
const SHOWN_MAX = 200;

// Puts objects that were deleted together into one act. The newest comes first.
function actsOf(objects) {
  const acts = [];
  for (const object of [...objects].sort((a, b) => b.deleted_at.localeCompare(a.deleted_at))) {
    const last = acts.at(-1);
    const gap = last && Date.parse(last.since) - Date.parse(object.deleted_at);
    const isSame = last && (last.by === object.deleted_by || !last.by || !object.deleted_by);
    if (isSame && gap <= ACT_GAP) {
      last.objects.push(object);
      last.since = object.deleted_at;
      last.by ??= object.deleted_by;
    } else acts.push({ by: object.deleted_by, at: object.deleted_at, since: object.deleted_at, objects: [object] });
  }
  for (const act of acts) {
    act.objects.sort((a, b) => (a.key < b.key ? -1 : 1));
    act.folder = act.objects.length > 1 ? commonFolder(act.objects.map(({ key }) => key)) : "";
    act.bytes = act.objects.reduce((sum, object) => sum + object.size, 0);
  }
  return acts;
}

// For how many days old versions of a key are kept, if a rule removes them.
function daysKept(rules, key) {
  const days = rules
    .filter((rule) => rule.enabled && rule.noncurrent_version_expiration && rule.tags.length === 0)
    .filter((rule) => key.startsWith(rule.prefix))
    .map((rule) => rule.noncurrent_version_expiration);
  return days.length > 0 ? Math.min(...days) : null;
}

function personCell(principal) {
  if (!principal) return h("span", { class: "muted" }, "–");
  const name = shortName(principal);
  return h("span", { class: "person", title: principal }, avatar(name), name);
}

async function enableVersions(bucket) {
  const isDone = await confirmed({
    title: t("Versions"),
    text: t("From now on, old versions of objects are kept until they are deleted."),
    action: t("Keep old versions"),
    danger: false,
    task: () => api.put(bucketPath(bucket, "versioning"), { versioning: "Enabled" }),
  });
  if (isDone) draw();
}

async function showDeleted(place, bucket, rules) {
  const objects = [];
  const selected = new Set();
  const open = new Set();
  let next;
  const selection = h("div", { class: "selection", role: "group", "aria-label": t("Selection") });
  const list = h("div");
  const foot = h("div", { class: "pager" });
  const total = h("span", { class: "muted small", role: "status" });
  const filter = h("input", {
    type: "search",
    placeholder: t("Search what was deleted"),
    "aria-label": t("Search what was deleted"),
  });

  async function read() {
    const end = objects.length + READ_AT_ONCE;
    do {
      const page = await api.get(bucketPath(bucket, "deleted-objects"), { limit: PAGE, continuation_token: next });
      objects.push(...page.objects);
      next = page.next_continuation_token;
    } while (next && objects.length < end);
  }

  async function more() {
    fill(foot, h("span", { class: "muted", "aria-busy": "true" }, t("Loading…")));
    await read().then(
      () => drawList(),
      (error) => fill(foot, errorBox(error, more)),
    );
  }

  async function restore(keys) {
    try {
      noticeBack(await undeleteKeys(bucket, keys));
      draw();
    } catch (error) {
      noticeError(error);
    }
  }

  function drawSelection() {
    const chosen = objects.filter(({ key }) => selected.has(key));
    const bytes = chosen.reduce((sum, object) => sum + object.size, 0);
    fill(
      selection,
      h("b", null, plural(chosen.length, "{n} selected", "{n} selected")),
      h("span", { class: "muted" }, t("{size} to the same place", { size: size(bytes) })),
      button(
        [icon("undo"), plural(chosen.length, "Restore {n} object", "Restore {n} objects")],
        () => restore(chosen.map(({ key }) => key)),
        "main",
      ),
    );
    selection.hidden = chosen.length === 0;
  }

  function box(keys, label) {
    const number = keys.filter((key) => selected.has(key)).length;
    return (
      mayStore() &&
      h("input", {
        type: "checkbox",
        checked: number === keys.length,
        indeterminate: number > 0 && number < keys.length,
        "aria-label": label,
        onchange: (event) => {
          for (const key of keys) event.target.checked ? selected.add(key) : selected.delete(key);
          drawList(label);
        },
      })
    );
  }

  const keptUntil = (object) => {
    const days = daysKept(rules, object.key);
    return days === null
      ? h("span", { class: "muted" }, t("no end"))
      : day(new Date(Date.parse(object.deleted_at) + days * DAY).toISOString());
  };

  const columns = [
    {
      name: t("Selection"),
      kind: "box",
      head: h("span", { class: "hidden" }, t("Selection")),
      cell: (act) => box(act.keys, t("Select {name}", { name: act.name })),
    },
    {
      name: t("Name"),
      cell: (act) =>
        h(
          "div",
          { class: act.isInner ? "name inner" : "name" },
          act.isInner || act.objects.length === 1
            ? mark(/\.(png|jpe?g|gif|webp)$/i.test(act.name) ? "image/*" : "")
            : h(
                "button",
                {
                  type: "button",
                  class: "icon",
                  "aria-expanded": String(open.has(act.id)),
                  "aria-label": t("Objects of {name}", { name: act.name }),
                  onclick: () => {
                    if (!open.delete(act.id)) open.add(act.id);
                    drawList(t("Objects of {name}", { name: act.name }));
                  },
                },
                icon("right"),
                mark("folder"),
              ),
          h("span", { class: "key" }, act.name),
        ),
    },
    {
      name: t("Contains"),
      align: "end",
      kind: "quiet",
      from: "wide",
      cell: (act) => !act.isInner && act.keys.length > 1 && plural(act.keys.length, "{n} object", "{n} objects"),
    },
    { name: t("Size"), align: "end", cell: (act) => sizeCell(act.bytes) },
    { name: t("Deleted by"), from: "medium", cell: (act) => !act.isInner && personCell(act.by) },
    { name: t("Deleted"), kind: "quiet", cell: (act) => !act.isInner && timeCell(act.at) },
    { name: t("Kept until"), kind: "quiet", from: "medium", cell: (act) => !act.isInner && keptUntil(act.objects[0]) },
    mayStore() &&
      actionsColumn(
        (act) =>
          !act.isInner && [
            h(
              "button",
              {
                type: "button",
                class: "link",
                "aria-label": t("Restore {name}", { name: act.name }),
                onclick: () => restore(act.keys),
              },
              t("Restore"),
            ),
          ],
      ),
  ].filter(Boolean);

  // Draws the list again. The focus stays on the control with this name.
  function drawList(focused) {
    const wanted = filter.value.trim().toLowerCase();
    const found = objects.filter(({ key }) => key.toLowerCase().includes(wanted));
    const acts = actsOf(found);
    const bytes = found.reduce((sum, object) => sum + object.size, 0);
    total.textContent = [plural(found.length, "{n} object", "{n} objects"), size(bytes)].join(", ");
    drawSelection();
    if (acts.length === 0) {
      fill(list, emptyBox(wanted ? t("Nothing that was deleted has this in its name.") : t("Nothing was deleted.")));
    } else {
      const made = table(t("Deleted objects"), columns, []);
      const body = made.querySelector("tbody");
      for (const act of acts) {
        const keys = act.objects.map(({ key }) => key);
        const name = keys.length === 1 ? keys[0] : act.folder || t("{n} objects", { n: count(keys.length) });
        const id = `${act.at} ${keys[0]}`;
        const row = { ...act, id, keys, name };
        const chosen = () => ({ "aria-selected": keys.some((key) => selected.has(key)) ? "true" : undefined });
        body.append(tableRow(columns, row, chosen));
        if (!open.has(id) || keys.length === 1) continue;
        for (const object of act.objects.slice(0, SHOWN_MAX)) {
          const inner = { ...row, isInner: true, keys: [object.key], name: object.key, bytes: object.size };
          inner.objects = [object];
          const isChosen = () => ({ "aria-selected": selected.has(object.key) ? "true" : undefined });
          body.append(tableRow(columns, inner, isChosen));
        }
        if (keys.length > SHOWN_MAX)
          body.append(
            h(
              "tr",
              null,
              h("td", { colspan: columns.length, class: "muted" }, t("The first {n} are shown.", { n: SHOWN_MAX })),
            ),
          );
      }
      fill(list, made);
    }
    fill(foot, next && button(t("Show more"), more));
    if (focused) [...list.querySelectorAll("[aria-label]")].find((one) => one.ariaLabel === focused)?.focus();
  }
  await read();
  filter.addEventListener("input", () => drawList());
  fill(place, bar(searchField(filter), h("span", { class: "end" }, total)), selection, h("div", null, list), foot);
  drawList();
}

export async function show(view, { parts: [bucket] }) {
  const [info, { rules }] = await Promise.all([api.get(bucketPath(bucket)), api.get(bucketPath(bucket, "lifecycle"))]);
  const place = h("div");
  fill(
    view,
    bucketHead(info, "deleted"),
    place,
    commands(`cairn object undelete --recursive ${quoted(bucket)}`, `cairn bucket protect ${quoted(bucket)} --days 30`),
  );
  if (info.versioning === "Unversioned") {
    fill(
      place,
      emptyBox(
        t("This bucket keeps no versions: what is deleted or replaced is gone."),
        mayStore() && button([icon("layers"), t("Keep old versions")], () => enableVersions(bucket), "main"),
      ),
    );
    return;
  }
  await loadInto(place, async () => {
    const made = h("div");
    await showDeleted(made, bucket, rules);
    return made;
  });
}
