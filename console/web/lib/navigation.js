// Navigation: URLs of views, drawing the current one again, places to come back to, counts beside entries of the rail.

import { forgetUnsaved, isUnsaved } from "./forms.js";
import { t } from "./text.js";

/** Returns the URL of a view. Parts are encoded, so that any key can be in it. */
export function place(view, parts = [], parameters = {}) {
  const query = new URLSearchParams(
    Object.entries(parameters).filter(([, value]) => value !== undefined && value !== ""),
  ).toString();
  return `#/${[view, ...parts.map(encodeURIComponent)].join("/")}${query ? `?${query}` : ""}`;
}

/** Goes to a view. */
export function go(...where) {
  location.hash = place(...where);
}

/** Returns the moment that a URL names, if it is one. */
export function momentOf(parameters) {
  const at = parameters.get("at");
  return Number.isNaN(Date.parse(at)) ? undefined : at;
}

/** Changes the URL of the view that is shown. */
export const setPlace = (url) => history.replaceState(history.state, "", url);

let isAsking = false;

/** Asks whether unsaved input may be lost, if there is any. */
export async function mayLeave() {
  if (!isUnsaved()) return true;
  // Another step back while the question is open changes nothing.
  if (isAsking) return false;
  isAsking = true;
  const { confirmed } = await import("./dialogs.js");
  const isSure = await confirmed({
    title: t("Leave without saving?"),
    text: t("What you have entered here is lost."),
    action: t("Leave"),
  });
  isAsking = false;
  if (isSure) forgetUnsaved();
  return isSure;
}

// Each entry of the browser's history has a number, so that it is known how far another one is away.
let entryNumber = history.state?.entry ?? 0;
history.replaceState({ entry: entryNumber }, "");
// By number of an entry: where it was when it was left.
const leftPlaces = new Map();
let isReturning = false;
let kept;
const ADJUSTED_FRAMES = 20;

function rememberPlace(url) {
  const rows = [...document.querySelectorAll("main tr[data-row]")];
  const focused = document.activeElement?.closest("main tr[data-row]");
  const row = focused ?? rows.find((one) => one.getBoundingClientRect().top >= 0);
  leftPlaces.set(entryNumber, {
    url,
    y: scrollY,
    rows: Number(document.querySelector("main [data-rows]")?.dataset.rows ?? 0),
    row: row?.dataset.row,
    top: row?.getBoundingClientRect().top,
    isFocused: Boolean(focused),
  });
}

/**
 * Takes note that the browser went to another entry, from a URL. Returns whether it may be shown: not before unsaved
 * input is saved or given up.
 */
export async function arrive(from) {
  const isBack = isReturning && history.state?.entry === entryNumber;
  isReturning = false;
  if (isBack) return false;
  const isNew = history.state?.entry === undefined;
  if (isNew) history.replaceState({ entry: entryNumber + 1 }, "");
  const far = history.state.entry - entryNumber;
  if (far !== 0 && isUnsaved()) {
    isReturning = true;
    history.go(-far);
    if (await mayLeave()) history.go(far);
    return false;
  }
  // Cancel, as if it were chosen: the dialog is about the view that is left.
  for (const dialog of document.querySelectorAll("dialog[open]:not(.note)")) dialog.close();
  if (far !== 0) rememberPlace(from);
  // A link of an object to the list that it was opened from leads back, too.
  const before = isNew && from.includes("#/object/") && leftPlaces.get(entryNumber - 1);
  entryNumber += far;
  kept = isNew ? before?.url === location.href && before : far !== 0 && leftPlaces.get(entryNumber);
  return true;
}

/** Returns where the view that is about to be drawn was when it was left; undefined if it is a new one. */
export const keptPlace = () => kept || undefined;

/** Goes to where the view was when it was left. */
export function showKeptPlace() {
  if (!kept) return;
  const { y, row, top, isFocused } = kept;
  kept = undefined;
  scrollTo(0, y);
  const line = row && document.querySelector(`main tr[data-row="${row}"]`);
  if (!line) return;
  // Rows have their heights only when they are near the screen.
  const adjust = (left) => {
    scrollBy(0, line.getBoundingClientRect().top - top);
    if (left > 0 && line.isConnected) requestAnimationFrame(() => adjust(left - 1));
  };
  adjust(ADJUSTED_FRAMES);
  if (isFocused) line.querySelector("a[href]")?.focus({ preventScroll: true });
}

let drawTask = async () => {};

/** Sets what draws the view of the URL. */
export function drawWith(task) {
  drawTask = task;
}

/** Draws the view of the URL again, unless that would lose what the user has entered meanwhile. */
export async function draw() {
  if (!isUnsaved()) await drawTask();
}

/** Returns a function that tells whether the URL is still the one of this moment. */
export function staying() {
  const here = location.hash;
  return () => location.hash === here;
}

/** Counts by entry of the rail, as the views have seen them last. */
export const counts = new Map();

/** The notices that need attention, by entry of the rail: `{kind, text}`; the kind is `warn` or `bad`. */
export const attention = new Map();

/** Sets the count beside an entry of the rail. */
export function setCount(name, number) {
  if (number === undefined) counts.delete(name);
  else counts.set(name, number);
  const entry = document.querySelector(`.rail [data-view="${name}"]`);
  if (entry && number !== undefined) entry.dataset.count = number;
  else if (entry) delete entry.dataset.count;
}
