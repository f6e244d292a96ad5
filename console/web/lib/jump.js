// Search or jump: a dialog that leads to views and buckets by a part of their names; and the list of keys.

import { api } from "./api.js";
import { tell } from "./dialogs.js";
import { fill, h } from "./dom.js";
import { describe } from "./errors.js";
import { icon, stoneOf } from "./icons.js";
import { place } from "./navigation.js";
import { t } from "./text.js";
import { table } from "./ui.js";

const SHOWN_MAX = 8;

// The text with the part that was typed in bold.
function marked(text, typed) {
  const begin = text.toLowerCase().indexOf(typed);
  if (typed === "" || begin < 0) return text;
  const end = begin + typed.length;
  return [text.slice(0, begin), h("b", null, text.slice(begin, end)), text.slice(end)];
}

/** Opens the dialog. `views` are the views that the role may open, as `[text, URL, icon]`. */
export function openJump(views) {
  const before = document.activeElement;
  const entries = views.map(([text, href, sign]) => ({ text, href, sign, kind: t("View") }));
  const input = h("input", {
    type: "text",
    role: "combobox",
    "aria-label": t("Search or jump to"),
    "aria-expanded": "true",
    "aria-controls": "jump-list",
    "aria-autocomplete": "list",
    placeholder: t("Name of a bucket or a view"),
    autocomplete: "off",
    spellcheck: "false",
  });
  const list = h("ul", { role: "listbox", id: "jump-list", "aria-label": t("Found") });
  let shown = [];
  let chosen = 0;
  let areRead = false;
  let bucketsNote = t("Loading…");
  const open = (entry) => {
    dialog.close();
    location.hash = entry.href;
  };
  const drawList = () => {
    const typed = input.value.trim().toLowerCase();
    const found = entries.filter(({ text }) => text.toLowerCase().includes(typed));
    // What begins with the text comes first.
    found.sort((a, b) => b.text.toLowerCase().startsWith(typed) - a.text.toLowerCase().startsWith(typed));
    shown = found.slice(0, SHOWN_MAX);
    chosen = Math.min(chosen, Math.max(shown.length - 1, 0));
    fill(
      list,
      shown.map((entry, index) =>
        h(
          "li",
          {
            role: "option",
            id: `jump-${index}`,
            "aria-selected": String(index === chosen),
            onclick: () => open(entry),
          },
          h("span", { class: `tile small-tile stone-${entry.stone ?? 7}` }, icon(entry.sign)),
          h("span", { class: "key" }, marked(entry.text, typed)),
          h("span", { class: "muted small" }, entry.kind),
        ),
      ),
      (areRead ? shown.length === 0 : typed !== "") &&
        h(
          "li",
          { role: "option", "aria-disabled": "true", class: "muted" },
          areRead ? t("Nothing found.") : bucketsNote,
        ),
    );
    if (shown.length > 0) input.setAttribute("aria-activedescendant", `jump-${chosen}`);
    else input.removeAttribute("aria-activedescendant");
  };
  input.addEventListener("input", () => {
    chosen = 0;
    drawList();
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown.length > 0) {
      chosen = (chosen + step + shown.length) % shown.length;
      drawList();
    } else if (event.key === "Enter" && shown.length > 0) open(shown[chosen]);
    else return;
    event.preventDefault();
  });
  const dialog = h(
    "dialog",
    {
      class: "jump-dialog",
      "aria-label": t("Search or jump to"),
      onclick: (event) => event.target === dialog && dialog.close(),
      onclose: () => {
        dialog.remove();
        if (before?.isConnected) before.focus();
      },
    },
    h("div", { class: "jump-field" }, icon("search"), input, h("kbd", { "aria-hidden": "true" }, "Esc")),
    list,
  );
  document.body.append(dialog);
  dialog.showModal();
  input.focus();
  drawList();
  api.get("/api/v1/buckets").then(
    ({ buckets }) => {
      for (const { name } of buckets)
        entries.push({
          text: name,
          href: place("bucket", [name]),
          sign: "bucket",
          kind: t("Bucket"),
          stone: stoneOf(name),
        });
      areRead = true;
      if (dialog.isConnected) drawList();
    },
    (error) => {
      bucketsNote = describe(error);
      if (dialog.isConnected) drawList();
    },
  );
}

/** Lists the keys. */
export function showKeys() {
  const keys = [
    ["Ctrl K", t("Search or jump to")],
    ["/", t("Search in this view")],
    ["g o · g b · g a", t("Overview, Buckets, Activity")],
    ["↑ ↓", t("Move between rows")],
    [t("Space bar"), t("Select; with Shift, all rows between")],
    ["Enter", t("Open")],
    [t("Del"), t("Delete what is selected")],
    ["Esc", t("Close")],
  ];
  return tell(
    t("Keys"),
    table(
      t("Keys"),
      [
        { name: t("Keys"), cell: ([key]) => h("kbd", null, key) },
        { name: t("What it does"), cell: ([, text]) => text },
      ],
      keys,
    ),
  );
}
