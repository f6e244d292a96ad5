// Quotas as people type them: a number and a unit.

import { h } from "./dom.js";
import { t } from "./text.js";
import { field, select } from "./ui.js";

const UNITS = [
  ["1", "B"],
  ["1000", "kB"],
  ["1000000", "MB"],
  ["1000000000", "GB"],
  ["1000000000000", "TB"],
];

/** Makes the fields for a number of bytes; `null` is none. Returns `{element, bytes}`. */
export function quotaInput(present, label = t("Size limit"), hint = t("Empty: no limit.")) {
  // The largest unit in which the limit has no more than three decimal places.
  const unit = UNITS.findLast(([bytes]) => present >= bytes && Number.isInteger((present / bytes) * 1000)) ?? UNITS[3];
  const number = h("input", {
    name: "bytes",
    type: "number",
    min: 0,
    step: "any",
    value: present === null ? "" : present / Number(unit[0]),
  });
  const units = select(UNITS, unit[0]);
  units.setAttribute("aria-label", t("Unit"));
  const made = field(label, number, hint);
  number.after(units);
  made.classList.add("with-unit");
  return {
    element: made,
    bytes: () => (number.value === "" ? null : Math.round(Number(number.value) * Number(units.value))),
  };
}
