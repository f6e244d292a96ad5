// A field that searches or filters, to which the key `/` leads.

import { h } from "./dom.js";
import { icon } from "./icons.js";

// The field that is shown.
let slashed = null;

/** Makes a field that searches or filters of an input. */
export function searchField(input) {
  slashed = input;
  return h("div", { class: "filter" }, icon("search"), input, h("kbd", { "aria-hidden": "true" }, "/"));
}

addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey || !slashed?.isConnected) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
  event.preventDefault();
  slashed.focus();
});
