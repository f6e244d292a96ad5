// Parts that all views use: tables, dialogs, forms, notices, errors, copied texts.

import { fill, h, svg } from "./dom.js";
import { describe } from "./errors.js";
import { icon, stoneOf } from "./icons.js";
import { currentLanguage, date, exactDate, exactSize, size, t, when } from "./text.js";

/** A size with the exact number of bytes on hover. */
export function sizeCell(bytes) {
  return h("span", { class: "number", title: bytes === null ? undefined : exactSize(bytes) }, size(bytes));
}

/** A time: within a day relative to now. The exact time is shown on hover and focus. */
export function timeCell(text, relative = true) {
  if (!text) return h("span", { class: "muted" }, "–");
  return h("time", { datetime: text, title: exactDate(text) }, relative ? when(text) : date(text));
}

// The sign of a tag: colour alone says nothing.
const SIGNS = { good: "done", warn: "warn", bad: "alert", past: "past" };

/** A word with a sign. `sign` is an icon; kinds have signs of their own. */
export function tag(text, kind = "", sign = SIGNS[kind]) {
  return h("span", { class: `tag ${kind}` }, sign && icon(sign), text);
}

/** Returns a listener that ignores calls while its task is under way: two clicks are not two changes. */
export function onceAtATime(task) {
  let isRunning = false;
  return async (...values) => {
    if (isRunning) return;
    isRunning = true;
    try {
      await task(...values);
    } finally {
      isRunning = false;
    }
  };
}

export function button(text, onclick, kind = "") {
  return h("button", { type: "button", class: kind, onclick: onceAtATime(onclick) }, text);
}

/** A button with a sign alone: its name is a tooltip, too. */
export function iconButton(sign, label, onclick, properties) {
  return h(
    "button",
    {
      type: "button",
      class: "icon",
      "aria-label": label,
      title: label,
      onclick: onclick && onceAtATime(onclick),
      ...properties,
    },
    icon(sign),
  );
}

export function link(text, href, properties) {
  return h("a", { href, ...properties }, text);
}

const status = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
const failures = h("div", { class: "failures" });
// Toasts, and below them the sheet of uploads.
const corner = h("div", { class: "corner" }, status);
const TOASTS_MAX = 3;
const SHOWN = 6000;
const SHOWN_WITH_ACTION = 15000;

const closer = (box) => iconButton("close", t("Close"), () => box.remove());

/** Says what happened, at the lower right. `action` is `[text, task]`. It waits while it has pointer or focus. */
export function notice(text, action) {
  const box = h("div", { class: "toast" }, icon("done"), h("span", null, text));
  if (action) {
    box.append(
      button(
        action[0],
        () => {
          box.remove();
          action[1]();
        },
        "quiet",
      ),
    );
  }
  box.append(closer(box));
  let timer;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => box.remove(), action ? SHOWN_WITH_ACTION : SHOWN);
  };
  for (const name of ["pointerenter", "focusin"]) box.addEventListener(name, () => clearTimeout(timer));
  for (const name of ["pointerleave", "focusout"]) box.addEventListener(name, wait);
  if (status.childElementCount === TOASTS_MAX) status.firstElementChild.remove();
  status.append(box);
  wait();
}

/** Says what went wrong, above the view. It stays until it is closed, or another view is shown. */
export function noticeProblem(text) {
  const box = h("div", { class: "problem", role: "alert" }, icon("alert"), h("p", null, text));
  box.append(closer(box));
  failures.append(box);
}

export function noticeError(error) {
  if (error?.name === "AbortError") return;
  const id = error.requestId ? ` (${t("request {id}", { id: error.requestId })})` : "";
  noticeProblem(`${describe(error)}${id}`);
}

/** A banner for the page: one sentence and at most one action. Kinds are `good`, `warn`, `bad` and `past`. */
export function banner(kind, text, ...actions) {
  return h(
    "div",
    { class: `problem ${kind}` },
    icon(SIGNS[kind] ?? "alert"),
    h("p", null, text),
    h("div", { class: "row" }, actions),
  );
}

/** Returns a listener that runs `task`, and `done` when it has succeeded. A failure becomes a notice. */
export function acting(task, done) {
  return async () => {
    try {
      await task();
      await done();
    } catch (error) {
      noticeError(error);
    }
  };
}

// The waits before something that was only read is tried again by itself, in seconds.
const RETRIES = [2, 8, 30];
// The number of times that something was tried by itself.
const tries = new WeakMap();

/** Returns whether another try may help: the server is away or busy, or failed. */
const mayPass = (error) => error?.status === 0 || error?.status === 429 || error?.status >= 500;

/** Forgets failures of a task that has succeeded, so that the next ones are tried again, too. */
export const succeeded = (task) => tries.delete(task);

// Counts down, and tries again if the box is still shown.
function trying(box, place, retry, task) {
  const number = tries.get(task) ?? 0;
  if (number >= RETRIES.length) return;
  let left = RETRIES[number];
  const tick = () => {
    // Something else is shown meanwhile.
    if (left < RETRIES[number] && !box.isConnected) return;
    if (left <= 0) {
      tries.set(task, number + 1);
      retry();
      return;
    }
    place.textContent = t("It is tried again in {n} s.", { n: left });
    left -= 1;
    setTimeout(tick, 1000);
  };
  tick();
}

/**
 * An error in place of a part of the page. `retry` tries again. With `task`, what failed was only read: it is tried
 * again by itself after 2, 8 and 30 s, counted for this task.
 */
export function errorBox(error, retry, task) {
  const soon = h("p", { class: "muted small" });
  const made = errorParts(error, retry, soon);
  if (task && retry && mayPass(error)) trying(made, soon, retry, task);
  return made;
}

function errorParts(error, retry, soon) {
  const id = error.requestId && h("p", { class: "muted small" }, t("Request"), " ", h("code", null, error.requestId));
  return h(
    "div",
    { class: "problem", role: "alert" },
    icon("alert"),
    h("div", null, h("p", null, describe(error)), soon, id),
    retry && h("div", { class: "row" }, button([icon("retry"), t("Try again")], retry)),
  );
}

/** A text of the server, which is English: marked as such for screen readers, and named in other languages. */
export function said(text) {
  if (!text) return "";
  const quoted = h("span", { lang: "en" }, text);
  return currentLanguage() === "en" ? quoted : [t("The server says:"), " ", quoted];
}

/** The content in place of a list without entries: a sentence, and the action that fills it. */
export function emptyBox(text, ...actions) {
  const stones = svg(
    "svg",
    { class: "stones", viewBox: "0 0 80 60", "aria-hidden": "true" },
    [13, 23, 34].map((rx, index) => svg("ellipse", { cx: 40, cy: 10 + index * 18.5, rx, ry: 8 })),
  );
  return h("div", { class: "empty" }, stones, h("p", null, text), h("div", { class: "row" }, actions));
}

/** Rows in place of what is being loaded. */
export function skeleton() {
  return h(
    "div",
    { class: "skeleton", "aria-hidden": "true" },
    [1, 2, 3, 4, 5, 6].map(() => h("div")),
  );
}

/** The time before a skeleton is shown, in milliseconds. */
export const SKELETON_AFTER = 150;

// The latest task that fills a place: the answer of an earlier one comes too late.
const latest = new WeakMap();

/**
 * Fills `place` with what `load` returns; with nothing, it stays as it is. Shows rows of a skeleton in an empty place
 * after a moment, and errors in place. What is only read is tried again by itself; `isOnce` if the user decides.
 */
export async function loadInto(place, load, isOnce = false) {
  const own = {};
  latest.set(place, own);
  const isLatest = () => latest.get(place) === own;
  const timer = setTimeout(
    () => isLatest() && place.childElementCount === 0 && fill(place, skeleton()),
    SKELETON_AFTER,
  );
  place.setAttribute("aria-busy", "true");
  try {
    const made = await load();
    if (!isLatest()) return;
    succeeded(load);
    if (made !== undefined) fill(place, made);
  } catch (error) {
    if (error?.name === "AbortError" || !isLatest()) return;
    fill(
      place,
      errorBox(error, () => loadInto(place, load, isOnce), isOnce ? undefined : load),
    );
  } finally {
    clearTimeout(timer);
    if (isLatest()) place.removeAttribute("aria-busy");
  }
}

function styleOf(column) {
  return (
    [column.align === "end" ? "end" : "", column.from ? `from-${column.from}` : "", column.kind ?? ""]
      .join(" ")
      .trim() || undefined
  );
}

/** Makes a row of a table. */
export function tableRow(columns, row, rowProperties) {
  return h(
    "tr",
    rowProperties?.(row),
    columns.map((column) => h("td", { class: styleOf(column), "data-label": column.label }, column.cell(row))),
  );
}

/**
 * Makes a table. Columns are `{name, cell(row), align?, from?, kind?}`; `from` is the width of the screen from which
 * the column is shown (`medium`, `wide`), `kind` a class of its cells (`quiet`, `box`). `head` replaces the name, and
 * `label` follows the figure on a phone.
 */
export function table(caption, columns, rows, rowProperties) {
  const heads = columns.map((column) =>
    h("th", { scope: "col", class: styleOf(column), ...column.headProperties }, column.head ?? column.name),
  );
  const body = rows.map((row) => tableRow(columns, row, rowProperties));
  return h(
    "div",
    { class: "table" },
    h(
      "table",
      null,
      h("caption", { class: "hidden" }, caption),
      h("thead", null, h("tr", null, heads)),
      h("tbody", null, body),
    ),
  );
}

/** The column of what can be done with a row: one element, or a list. Its head is for screen readers. */
export function actionsColumn(actions) {
  const name = t("Actions");
  const cell = (row) => {
    const found = actions(row);
    return Array.isArray(found) ? h("div", { class: "row-actions" }, found) : found;
  };
  return { name, head: h("span", { class: "hidden" }, name), align: "end", cell };
}

/** A list of names and values. */
export function facts(entries) {
  const shown = entries.filter((entry) => entry && entry[1] !== undefined && entry[1] !== null && entry[1] !== "");
  return h(
    "dl",
    { class: "facts" },
    shown.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]),
  );
}

let fields = 0;

/** A labelled input. `input` gets an id. */
export function field(label, input, hint) {
  fields += 1;
  const id = `field-${fields}`;
  input.id = id;
  const note = hint && h("p", { class: "hint", id: `${id}-hint` }, hint);
  if (note) input.setAttribute("aria-describedby", `${id}-hint`);
  return h("div", { class: "field" }, h("label", { for: id }, label), input, note);
}

export function select(options, value) {
  return h(
    "select",
    null,
    options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)),
  );
}

/** Copies a text, also where the clipboard needs a secure context. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { readonly: true, class: "hidden" });
    area.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  notice(t("Copied."));
}

const commandRows = (lines) =>
  lines.map((line) =>
    h(
      "div",
      null,
      // No break at the dashes of an option.
      h(
        "code",
        null,
        line.split(" ").map((word, index) => [index > 0 && " ", h("span", null, word)]),
      ),
      h(
        "button",
        {
          type: "button",
          class: "link small",
          "aria-label": t("Copy command"),
          title: line,
          onclick: () => copyText(line),
        },
        t("Copy"),
      ),
    ),
  );

/** The commands that do the same as this view. */
export function commands(...lines) {
  return h("aside", { class: "commands", "aria-label": t("The same on the command line") }, commandRows(lines));
}

/** Commands to paste, within a card. */
export function commandBlock(...lines) {
  return h("div", { class: "command-block" }, h("div", { class: "commands" }, commandRows(lines)));
}

/** Links between parts of a view: `[text, URL, isCurrent, count]`. */
function tabsOf(entries) {
  return h(
    "nav",
    { class: "tabs", "aria-label": t("Parts of this page") },
    entries
      .filter(Boolean)
      .map(([text, href, isCurrent, number]) =>
        link(text, href, { "aria-current": isCurrent ? "page" : undefined, "data-count": number || undefined }),
      ),
  );
}

/**
 * The head of a view: where it is, its title and tags, small facts, at most three actions with the main one last, and
 * tabs. `stone` is the colour of the tile with the icon `sign`.
 */
export function viewHead(title, { path, sign, stone, tags, note, actions, tabs } = {}) {
  return h(
    "header",
    { class: tabs ? "head with-tabs" : "head" },
    h(
      "div",
      { class: "head-row" },
      sign && h("span", { class: `tile stone-${stone ?? 1}` }, icon(sign)),
      h(
        "div",
        { class: "head-title" },
        path && h("nav", { class: "path", "aria-label": t("Path") }, path),
        h("h1", { tabindex: "-1" }, title),
      ),
      h("div", { class: "tags" }, tags, note && h("span", { class: "muted note" }, note)),
      h("div", { class: "head-actions" }, actions),
    ),
    tabs && tabsOf(tabs),
  );
}

/** The sign of a person or an application: a letter in the colour of the name. */
export const avatar = (name) =>
  h("span", { class: `avatar stone-${stoneOf(name)}`, "aria-hidden": "true" }, name.slice(0, 1).toUpperCase());

/** A principal without its kind. */
export const shortName = (principal) => principal.replace(/^[^:]*:/, "");

/** A row of filters and smaller actions between the head of a view and its content. */
export function bar(...children) {
  return h("div", { class: "bar" }, children);
}

/** A card with a heading. */
export function card(title, note, ...children) {
  return h(
    "section",
    { class: "card" },
    h("header", null, h("h2", null, title), note && h("div", { class: "muted small" }, note)),
    children,
  );
}

/** Puts what acts on a card at the end of its heading. */
export function withTool(made, tool) {
  made.firstElementChild.append(h("div", { class: "card-tool" }, tool));
  return made;
}

// What nobody handles would be seen by nobody: a button that does nothing.
addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  noticeError(event.reason);
});

/** Quotes an argument for a shell. */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The element in which toasts appear, and the sheet of uploads below them. */
export function notices() {
  return corner;
}

/** The element above the view in which problems appear. */
export function problems() {
  return failures;
}
