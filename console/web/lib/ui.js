// Parts that all views use: tables, dialogs, forms, notices, errors, copied texts.

import { fill, h, svg } from "./dom.js";
import { describe } from "./errors.js";
import { date, exactDate, exactSize, size, t, when } from "./text.js";

/** A size with the exact number of bytes on hover. */
export function sizeCell(bytes) {
  return h("span", { class: "number", title: bytes === null ? undefined : exactSize(bytes) }, size(bytes));
}

/** A time: within a day relative to now. The exact time is shown on hover and focus. */
export function timeCell(text, relative = true) {
  if (!text) return h("span", { class: "muted" }, "–");
  return h("time", { datetime: text, title: exactDate(text) }, relative ? when(text) : date(text));
}

// Lines of 16 × 16, drawn in the colour of the text.
const MARKS = {
  folder: "M1.5 3.5h4l1.5 2h7.5v7.5h-13z",
  file: "M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3",
  text: "M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3M5.5 8h5M5.5 11h5",
  image: "M1.5 2.5h13v11h-13zM1.5 11l4-4 4 4M8.5 10l2-2 4 4M10.5 5.5v.01",
  video: "M1.5 3.5h9v9h-9zM10.5 7l4-2.5v7l-4-2.5",
  audio: "M5.5 12V3.5l7-1.5v8.5M5.5 12a2 1.6 0 1 1-4 0a2 1.6 0 1 1 4 0M12.5 10.5a2 1.6 0 1 1-4 0a2 1.6 0 1 1 4 0",
  archive: "M2.5 4.5h11v9.5h-11zM1.5 2h13v2.5h-13zM6 7.5h4",
};
const KINDS = [
  [/^image\//, "image"],
  [/^video\//, "video"],
  [/^audio\//, "audio"],
  [/^text\/|json|xml|javascript|pdf/, "text"],
  [/zip|tar|compressed|zstd/, "archive"],
];

/** A small picture of a kind: `folder`, or a content type. */
export function mark(kind) {
  const name = kind in MARKS ? kind : (KINDS.find(([type]) => type.test(kind))?.[1] ?? "file");
  return svg(
    "svg",
    { class: `mark ${name}`, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
    svg("path", { d: MARKS[name] }),
  );
}

export function tag(text, kind = "") {
  return h("span", { class: `tag ${kind}` }, text);
}

export function button(text, onclick, kind = "") {
  return h("button", { type: "button", class: kind, onclick }, text);
}

export function link(text, href, properties) {
  return h("a", { href, ...properties }, text);
}

const status = h("div", { class: "toasts", role: "status", "aria-live": "polite" });

/** Shows a short notice at the lower edge. `action` is `[text, task]`. */
export function notice(text, action, kind = "") {
  const box = h("div", { class: `toast ${kind}` }, h("span", null, text));
  if (action) {
    box.append(
      button(
        action[0],
        () => {
          box.remove();
          action[1]();
        },
        "link",
      ),
    );
  }
  box.append(
    h("button", { type: "button", class: "icon", "aria-label": t("Close"), onclick: () => box.remove() }, "×"),
  );
  status.append(box);
  setTimeout(() => box.remove(), action ? 15000 : 6000);
}

export function noticeError(error) {
  if (error?.name === "AbortError") return;
  const id = error.requestId ? ` (${t("request {id}", { id: error.requestId })})` : "";
  notice(`${describe(error)}${id}`, undefined, "bad");
}

/** Returns a listener that runs `task`, and `done` when it has succeeded. A failure becomes a notice. */
export function acting(task, done) {
  return async () => {
    try {
      await task();
      done();
    } catch (error) {
      noticeError(error);
    }
  };
}

/** An error in place of a part of the page. `retry` tries again. */
export function errorBox(error, retry) {
  const id = error.requestId && h("p", { class: "muted small" }, t("Request"), " ", h("code", null, error.requestId));
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", null, describe(error)),
    id,
    retry && button(t("Try again"), retry),
  );
}

export function emptyBox(text, ...actions) {
  return h("div", { class: "empty" }, h("p", null, text), actions);
}

/** Rows in place of what is being loaded. */
export function skeleton() {
  return h(
    "div",
    { class: "skeleton", "aria-hidden": "true" },
    [1, 2, 3, 4, 5, 6].map(() => h("div")),
  );
}

/** How long nothing is shown before a skeleton is, in milliseconds. */
export const SKELETON_AFTER = 150;

/** Fills `place` with what `load` returns. Shows rows of a skeleton after a moment, and errors in place. */
export async function loadInto(place, load) {
  const timer = setTimeout(() => fill(place, skeleton()), SKELETON_AFTER);
  place.setAttribute("aria-busy", "true");
  try {
    const made = await load();
    clearTimeout(timer);
    if (made !== undefined) fill(place, made);
  } catch (error) {
    clearTimeout(timer);
    if (error?.name === "AbortError") return;
    fill(
      place,
      errorBox(error, () => loadInto(place, load)),
    );
  } finally {
    place.removeAttribute("aria-busy");
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
    columns.map((column) => h("td", { class: styleOf(column) }, column.cell(row))),
  );
}

/**
 * Makes a table. Columns are `{name, cell(row), align?, from?, kind?}`; `from` is the width of the screen from which
 * the column is shown (`medium`, `wide`), `kind` a class of its cells (`quiet`, `box`).
 */
export function table(caption, columns, rows, rowProperties) {
  const heads = columns.map((column) => h("th", { scope: "col", class: styleOf(column) }, column.head ?? column.name));
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

/**
 * Opens a dialog with a form. `submit` is called with the form; the dialog closes when it has succeeded. Returns a
 * promise of what `submit` returned, or `undefined` if the dialog was cancelled. `isNote`: there is nothing to cancel.
 */
export function ask({ title, content, action, danger = false, isNote = false, submit }) {
  const before = document.activeElement;
  return new Promise((resolve) => {
    const problem = h("div", { "aria-live": "assertive" });
    const main = h("button", { type: "submit", class: danger ? "danger" : "main" }, action);
    const cancel = !isNote && button(t("Cancel"), () => dialog.close());
    let result;
    const form = h(
      "form",
      {
        method: "dialog",
        onsubmit: async (event) => {
          event.preventDefault();
          main.disabled = true;
          try {
            // An answer without a body is a success, too.
            result = (await submit(form)) ?? true;
            dialog.close();
          } catch (error) {
            fill(problem, h("p", { class: "bad" }, describe(error)));
          } finally {
            main.disabled = false;
          }
        },
      },
      h("h2", { id: "dialog-title" }, title),
      content,
      problem,
      h("div", { class: "actions" }, cancel, main),
    );
    const dialog = h(
      "dialog",
      {
        "aria-labelledby": "dialog-title",
        onclose: () => {
          dialog.remove();
          (before?.isConnected ? before : document.querySelector("main h1"))?.focus?.();
          resolve(result);
        },
      },
      form,
    );
    document.body.append(dialog);
    dialog.showModal();
    (form.querySelector("input:not([readonly]), select, textarea") ?? main).focus();
  });
}

/** Shows something in a dialog until the user has seen it. */
export function tell(title, content) {
  return ask({ title, content, action: t("Done"), isNote: true, submit: async () => true });
}

/**
 * Asks for a confirmation. With `name`, that name must be typed. `task` is done before the dialog closes, so that a
 * refusal is shown in it; `shown` is what tells how far the task is.
 */
export function confirmed({ title, text, action, name, task, shown }) {
  const input = name && h("input", { type: "text", autocomplete: "off", spellcheck: "false", required: true });
  const content = [h("p", null, text), name && field(t("Type {name} to confirm", { name }), input), shown];
  return ask({
    title,
    content,
    action,
    danger: true,
    submit: async () => {
      if (name && input.value !== name) throw new Error(t("The name does not match."));
      await task?.();
      return true;
    },
  });
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

/** A text in a field, with a button that copies it. */
export function copyField(label, text) {
  const input = h("input", {
    type: "text",
    readonly: true,
    value: text,
    class: "mono",
    onfocus: (event) => event.target.select(),
  });
  return h(
    "div",
    { class: "copy" },
    field(label, input),
    button(t("Copy"), () => copyText(text)),
  );
}

/** The commands that do the same as this view. */
export function commands(...lines) {
  return h(
    "aside",
    { class: "commands", "aria-label": t("The same on the command line") },
    lines.map((line) =>
      h(
        "div",
        null,
        h("code", null, line),
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
    ),
  );
}

/** The head of a view: its title, small facts beside it, and its actions. */
export function viewHead(title, tags = [], total = "", actions = []) {
  return [
    h(
      "header",
      { class: "title" },
      h("h1", { tabindex: "-1" }, title),
      h("div", { class: "tags" }, tags),
      h("div", { class: "total" }, total),
    ),
    actions.length > 0 && h("div", { class: "bar" }, actions),
  ];
}

let slashed = null;

/** Lets `/` go to a field as long as it is shown. */
export function onSlash(input) {
  slashed = input;
}

// What nobody handles would be seen by nobody: a button that does nothing.
addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  noticeError(event.reason);
});

addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey || !slashed?.isConnected) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
  event.preventDefault();
  slashed.focus();
});

/** Quotes an argument for a shell. */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The element in which notices appear. */
export function notices() {
  return status;
}
