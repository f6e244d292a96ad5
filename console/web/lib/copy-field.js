// A text in a field, with a button that copies it.

import { h } from "./dom.js";
import { t } from "./text.js";
import { button, copyText, field } from "./ui.js";

/** Makes the field and its button. */
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
