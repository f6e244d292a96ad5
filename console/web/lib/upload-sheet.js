// The sheet of uploads at the foot of the page: progress, failures, and buttons for them.

import { api, bucketPath } from "./api.js";
import { askCollisions, freeNames } from "./collisions.js";
import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { count, plural, size, t } from "./text.js";
import { button, iconButton, noticeError, notices } from "./ui.js";
import {
  active,
  again,
  cancel,
  clear,
  failed,
  queue,
  rename,
  replace,
  secondsLeft,
  tally,
  watchUploads,
} from "./uploads.js";

const FAILED_SHOWN_MAX = 20;

let sheet = null;
let parts;
let isFolded = false;

function timeLeft() {
  const seconds = secondsLeft();
  if (seconds === null) return "";
  if (seconds < 60) return t("{n} s left", { n: Math.ceil(seconds) });
  if (seconds < 5400) return t("{n} min left", { n: Math.ceil(seconds / 60) });
  return t("{n} h left", { n: Math.round(seconds / 3600) });
}

function titleText(open) {
  if (open > 0) return plural(open, "Uploading {n} file", "Uploading {n} files");
  if (tally.failed > 0) return plural(tally.failed, "{n} upload failed", "{n} uploads failed");
  return plural(tally.done, "{n} file uploaded", "{n} files uploaded");
}

function makeSheet() {
  parts = {
    title: h("b"),
    figures: h("span", { class: "muted number" }),
    announcement: h("span", { class: "hidden", role: "status" }),
    bar: h("progress"),
    list: h("ul"),
    foot: h("footer"),
    fold: h("button", {
      type: "button",
      class: "icon",
      onclick: () => {
        isFolded = !isFolded;
        drawSheet();
      },
    }),
    close: iconButton("close", t("Close"), () => {
      failed.clear();
      clear([]);
      drawSheet();
    }),
    taken: h("div", { class: "taken", hidden: true }),
    waiting: h("span"),
    cancelAll: button(
      t("Cancel all"),
      () => {
        for (const item of [...queue]) if (["waiting", "active"].includes(item.state)) cancel(item);
      },
      "link small",
    ),
    retryAll: button(
      t("Try all again"),
      () => {
        for (const item of [...failed]) again(item);
      },
      "link small",
    ),
    hint: h("p", null, t("You can go on working here. If this page is closed, choose the same files again.")),
  };
  fill(parts.foot, h("div", null, parts.waiting, parts.retryAll, parts.cancelAll), parts.hint);
  sheet = h(
    "section",
    { class: "sheet", "aria-label": t("Uploads") },
    h(
      "header",
      null,
      h("div", null, parts.title, parts.figures, parts.fold, parts.close),
      parts.bar,
      parts.taken,
      parts.announcement,
    ),
    parts.list,
    parts.foot,
  );
}

// A row is made once and changed in place, so that the focus stays.
function rowOf(item) {
  item.row ??= {
    figures: h("span", { class: "muted small number" }),
    bar: h("progress", { max: item.file.size || 1, "aria-label": item.key }),
    note: h("p"),
    retry: button(t("Try again"), () => (item.isTaken ? replace(item) : again(item)), "link small"),
    stop: iconButton("close", t("Cancel {name}", { name: item.key }), () => cancel(item)),
  };
  const { figures, bar, note, retry, stop } = item.row;
  item.row.whole ??= h(
    "li",
    null,
    h("span", { title: item.key }, item.key),
    figures,
    h("span", null, retry, stop),
    bar,
    note,
  );
  figures.textContent = t("{sent} of {size}", { sent: size(item.sent), size: size(item.file.size) });
  bar.value = item.sent;
  bar.className = item.error ? "bad" : "";
  note.hidden = !(item.error || item.note);
  note.className = item.error ? "bad small" : "muted small";
  note.textContent = item.error || item.note;
  retry.hidden = !item.error;
  retry.textContent = item.isTaken ? t("Replace") : t("Try again");
  return item.row.whole;
}

const takenOnes = () => [...failed].filter((item) => item.isTaken);

// Names that appeared while the files were sent: asked for once, too.
async function decide() {
  const items = takenOnes();
  if (items.length === 0) return;
  const { bucket } = items[0];
  const mine = items.filter((item) => item.bucket === bucket);
  const { versioning } = await api.get(bucketPath(bucket));
  const keys = mine.map((item) => item.key);
  const choice = await askCollisions({
    taken: keys,
    total: keys.length,
    where: bucket,
    isVersioned: versioning === "Enabled",
    action: (number) => (number > 0 ? plural(number, "Upload {n} file", "Upload {n} files") : t("Leave out")),
  });
  if (!choice) return;
  const names = choice === "both" ? await freeNames(bucket, keys) : null;
  for (const item of mine) {
    if (choice === "both") await rename(item, names.get(item.key));
    else if (choice === "replace") await replace(item);
    else cancel(item);
  }
}

function drawTaken(place) {
  const { length } = takenOnes();
  place.hidden = length === 0;
  if (place.dataset.shown === String(length)) return;
  place.dataset.shown = length;
  fill(
    place,
    icon("warn"),
    h("span", null, plural(length, "{n} name exists already", "{n} names exist already")),
    button(t("Decide"), () => decide().catch(noticeError), "link small"),
  );
}

function drawSheet() {
  document.documentElement.classList.toggle("has-sheet", queue.length > 0);
  if (queue.length === 0) return sheet?.remove();
  if (!sheet) makeSheet();
  if (!sheet.isConnected) notices().append(sheet);
  const open = tally.active + tally.waiting;
  const { title, figures, announcement, bar, list, foot, fold, close, waiting, cancelAll, retryAll, hint } = parts;
  drawTaken(parts.taken);
  title.textContent = titleText(open);
  const percent = `${Math.floor((tally.sent / (tally.bytes || 1)) * 100)} %`;
  figures.textContent = open > 0 ? [percent, timeLeft()].filter(Boolean).join(" · ") : "";
  const end = open > 0 ? "" : title.textContent;
  if (announcement.textContent !== end) announcement.textContent = end;
  bar.max = tally.bytes || 1;
  bar.value = tally.sent;
  bar.setAttribute("aria-label", title.textContent);
  bar.hidden = open === 0;
  fill(fold, icon(isFolded ? "up" : "down"));
  fold.setAttribute("aria-expanded", String(!isFolded));
  fold.setAttribute("aria-label", isFolded ? t("Show uploads") : t("Hide uploads"));
  fold.hidden = open + failed.size === 0;
  close.hidden = open > 0;
  const rows = [...[...failed].slice(0, FAILED_SHOWN_MAX), ...active].map(rowOf);
  // A click on what moves would hit something else, so rows are only moved when there are others.
  if (rows.length !== list.children.length || rows.some((row, index) => row !== list.children[index])) {
    const focused = document.activeElement;
    list.replaceChildren(...rows);
    if (sheet.contains(focused)) focused.focus();
  }
  list.hidden = isFolded || rows.length === 0;
  foot.hidden = isFolded || (open < 2 && failed.size < 2);
  const counts = [
    tally.waiting > 0 && t("{n} waiting", { n: count(tally.waiting) }),
    tally.done > 0 && t("{n} uploaded", { n: count(tally.done) }),
    failed.size > 0 && t("{n} failed", { n: count(failed.size) }),
  ];
  waiting.textContent = counts.filter(Boolean).join(" · ");
  cancelAll.hidden = open < 2;
  retryAll.hidden = failed.size < 2;
  hint.hidden = open === 0;
}

/** Shows the sheet while there are uploads. */
export function showUploads() {
  const unfold = () => {
    isFolded = false;
  };
  watchUploads(unfold, drawSheet);
}
