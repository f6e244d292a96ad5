// The life of an object: what happened to it, the latest first, with its versions as stones.

import { api, bucketPath, encodeKey, encodeSegment, withQuery } from "./api.js";
import { ask, confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { editRetention, isLocked, lockTags, toggleHold } from "./locks.js";
import { menuButton } from "./menu.js";
import { draw, go, place, staying } from "./navigation.js";
import { contentPath, undelete } from "./objects.js";
import { isMember, mayStore, mayWrite } from "./session.js";
import { date, plural, size, t } from "./text.js";
import { button, card, field, link, notice, noticeError, select, shortName, tag, timeCell, withTool } from "./ui.js";

const KINDS = {
  written: [() => t("Written"), "plus"],
  overwritten: [() => t("Overwritten"), "layers"],
  deleted: [() => t("Deleted"), "trash"],
  restored: [() => t("Restored"), "undo"],
  expired: [() => t("Removed by a rule"), "clock"],
  shared: [() => t("Shared"), "link"],
  embedded: [() => t("Embedded"), "code"],
};
// What writes a version.
const WRITES = new Set(["written", "overwritten", "restored"]);
const PAGES_MAX = 10;

/** Returns the versions of an object, the newest first. */
export async function versionsOf(bucket, key) {
  const found = [];
  let markers = {};
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer = await api.get(bucketPath(bucket, "object-versions"), { prefix: key, limit: 1000, ...markers });
    found.push(...answer.versions.filter((version) => version.key === key));
    if (!answer.next_key_marker || answer.next_key_marker !== key) break;
    markers = { key_marker: answer.next_key_marker, version_id_marker: answer.next_version_id_marker };
  }
  return found;
}

/** Returns a function that names a version by its number, the oldest first. */
export function namesOf(versions) {
  const ids = versions.filter((version) => !version.is_delete_marker).map((version) => version.version_id);
  return (id) => {
    const index = ids.indexOf(id);
    return index < 0 ? (id ?? "") : t("Version {n}", { n: ids.length - index });
  };
}

/** Makes a version the current one again. */
export async function restoreVersion(bucket, key, version) {
  const isHere = staying();
  try {
    await api.post(`/api/v1/restore/${encodeSegment(bucket)}/${encodeKey(key)}`, { version_id: version });
    notice(t("The version is current again."));
    const to = place("object", [bucket, key]);
    if (location.hash === to) draw();
    else if (isHere()) location.hash = to;
  } catch (error) {
    noticeError(error);
  }
}

const removeById = (bucket, key, id) =>
  api.remove(withQuery(bucketPath(bucket, "object-versions", encodeKey(key)), { version_id: id }));

async function removeVersion(bucket, key, version) {
  const text = t("This version will be deleted permanently. It cannot be undone.");
  if (!(await confirmed({ title: t("Delete version"), text, action: t("Delete version") }))) return;
  try {
    await removeById(bucket, key, version.version_id);
    draw();
  } catch (error) {
    noticeError(error);
  }
}

/** Asks which versions are compared. */
async function chooseTwo(bucket, key, versions, nameOf) {
  const shown = versions.filter((version) => !version.is_delete_marker);
  const options = shown.map(({ version_id, last_modified }) => [
    version_id,
    `${nameOf(version_id)}, ${date(last_modified)}`,
  ]);
  const older = select(options, shown[1].version_id);
  const newer = select(options, shown[0].version_id);
  await ask({
    title: t("Compare two versions"),
    action: t("Compare"),
    content: [field(t("Older version"), older), field(t("Newer version"), newer)],
    submit: async () => {
      if (older.value === newer.value) throw new Error(t("Choose two different versions."));
      go("object", [bucket, key], { compare: older.value, with: newer.value });
    },
  });
}

// Joins what happened with the versions that are there. A version whose event is not known has a row, too.
function rowsOf(entries, versions) {
  const nameOf = (id, isMarker) => `${id ?? "null"} ${isMarker}`;
  const left = new Map(versions.map((version) => [nameOf(version.version_id, version.is_delete_marker), version]));
  const rows = entries.map((entry) => ({ ...entry }));
  const known = new Set(left.keys());
  const join = (row) => {
    const isDeletion = row.kind === "deleted" || row.kind === "expired";
    if (!WRITES.has(row.kind) && !isDeletion) return;
    const name = nameOf(row.version_id, isDeletion);
    row.version = left.get(name);
    // The version of an undone deletion is that of an earlier row.
    row.isKept = known.has(name);
    left.delete(name);
  };
  // A version belongs to what wrote it first. Of null versions, only the last one is there.
  for (const row of rows) if ((row.version_id ?? "null") === "null") join(row);
  for (const row of [...rows].reverse()) if ((row.version_id ?? "null") !== "null") join(row);
  for (const version of left.values())
    rows.push({
      time: version.last_modified,
      kind: version.is_delete_marker ? "deleted" : "written",
      version_id: version.version_id,
      size: version.is_delete_marker ? null : version.size,
      version,
    });
  return rows.sort((a, b) => new Date(b.time) - new Date(a.time));
}

function actionsOf({ bucket, key, info, nameOf, latest }, version) {
  const isVersioned = info.versioning !== "Unversioned";
  const id = version.version_id;
  const name = version.is_delete_marker ? t("delete marker") : nameOf(id);
  const may = mayWrite();
  const mayLock = mayStore() && info.object_lock && !version.is_delete_marker;
  const current = latest && !latest.is_delete_marker ? latest : undefined;
  const more = [
    !version.is_delete_marker &&
      current &&
      id !== current.version_id && {
        text: t("Compare with the current version"),
        sign: "layers",
        task: () => go("object", [bucket, key], { compare: id, with: current.version_id }),
      },
    mayLock && {
      text: t("Retention"),
      sign: "lock",
      task: async () => (await editRetention(bucket, key, version)) && draw(),
    },
    mayLock && {
      text: version.legal_hold ? t("Take off hold") : t("Put on hold"),
      sign: "lock",
      task: () => toggleHold(bucket, key, version).then((changed) => changed && draw(), noticeError),
    },
    may &&
      isVersioned &&
      !isLocked(version) && {
        text: t("Delete version"),
        sign: "trash",
        isDangerous: true,
        task: () => removeVersion(bucket, key, version),
      },
  ].filter(Boolean);
  return h(
    "div",
    { class: "life-actions" },
    may &&
      !version.is_delete_marker && [
        link(icon("eye"), place("object", [bucket, key], version.is_latest ? {} : { version: id }), {
          class: "icon-link",
          "aria-label": t("View {name}", { name }),
          title: t("View"),
        }),
        link(icon("download"), contentPath(bucket, key, id), {
          class: "icon-link",
          download: "",
          "aria-label": t("Download {name}", { name }),
          title: t("Download"),
        }),
      ],
    may &&
      isVersioned &&
      !version.is_latest &&
      !version.is_delete_marker &&
      button([icon("undo"), t("Restore")], () => restoreVersion(bucket, key, id), "row-button"),
    may &&
      version.is_delete_marker &&
      version.is_latest &&
      button(
        [icon("undo"), t("Undelete")],
        async () => {
          await (isMember() ? removeById(bucket, key, id) : undelete(bucket, key)).catch(noticeError);
          draw();
        },
        "row-button",
      ),
    more.length > 0 && menuButton(t("Actions for {name}", { name }), () => more),
  );
}

const isNull = (row) => (row.version_id ?? "null") === "null";

function drawRow(context, row) {
  const { nameOf } = context;
  const { version } = row;
  const [kindName, sign] = KINDS[row.kind] ?? [() => row.kind, "more"];
  const isStone = WRITES.has(row.kind) && (Boolean(version) || !row.isKept || isNull(row));
  const by = [row.principal && shortName(row.principal), row.source_ip, row.rule_id].filter(Boolean).join(", ");
  const isGone = isStone && !version;
  const stone = isGone ? "stone-of gone" : `stone-of${version?.is_latest ? " current" : ""}`;
  const title = isStone && version ? nameOf(version.version_id) : kindName();
  const note = isStone && version ? [kindName(), by && `: ${by}`] : by;
  return h(
    "li",
    { class: row.kind },
    isStone
      ? h("span", { class: stone, "aria-hidden": "true" })
      : h("span", { class: "sign", "aria-hidden": "true" }, icon(sign)),
    h(
      "div",
      null,
      h(
        "div",
        { class: "life-title" },
        h("b", null, title),
        version?.is_latest && !version.is_delete_marker && tag(t("current"), "good"),
        version?.is_delete_marker && tag(t("delete marker"), "warn"),
        version && lockTags(version),
        isGone && tag(t("no longer kept")),
      ),
      h("div", { class: "muted small key" }, note),
      row.version_id && h("code", { class: "muted" }, row.version_id),
    ),
    h(
      "div",
      { class: "muted small end when" },
      timeCell(row.time),
      row.size !== null && row.size !== undefined && h("div", null, size(row.size)),
    ),
    version && actionsOf(context, version),
  );
}

/** Returns a card with what happened to an object, as far as it is known, and its versions. */
export async function lifeCard(bucket, key, info, versions) {
  let found = { entries: [], complete: false };
  try {
    if (!isMember()) found = await api.get(bucketPath(bucket, "object-history", encodeKey(key)));
  } catch {
    // Versions can be restored also if it is not known who wrote them.
  }
  const rows = rowsOf(found.entries, versions);
  const nameOf = namesOf(versions);
  const context = { bucket, key, info, nameOf, latest: versions.find((version) => version.is_latest) };
  const kept = versions.filter((version) => !version.is_delete_marker);
  const made = card(
    t("Life of this object"),
    found.complete ? plural(rows.length, "{n} entry", "{n} entries") : !isMember() && t("the latest"),
    h(
      "ol",
      { class: "life" },
      rows.map((row) => drawRow(context, row)),
    ),
  );
  if (kept.length < 2) return made;
  const compare = button(
    [icon("layers"), t("Compare two versions")],
    () => chooseTwo(bucket, key, versions, nameOf),
    "row-button",
  );
  return withTool(made, compare);
}
