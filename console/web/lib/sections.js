// Long tables: space of the same height replaces rows far from the screen, so that any list stays quick.

import { fill, h } from "./dom.js";

const MARGIN = "1500px";
const sections = new WeakMap();

const ROW_PIXELS = 37;

function space(pixels) {
  const cell = h("td", { colspan: 99 });
  cell.style.padding = "0";
  cell.style.height = `${pixels}px`;
  return h("tr", { "aria-hidden": "true" }, cell);
}

const watch = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      const own = sections.get(target);
      if (isIntersecting === own.isDrawn || !target.isConnected) continue;
      if (isIntersecting) {
        fill(target, own.draw());
      } else {
        // The focus must not get lost.
        if (target.contains(document.activeElement)) continue;
        fill(target, space(target.offsetHeight));
      }
      own.isDrawn = isIntersecting;
    }
  },
  { rootMargin: MARGIN },
);

/** Draws the section of a list that has the row with a number. */
export function reveal(list, row) {
  const made = [...list.querySelectorAll("tbody[data-first]")].findLast((one) => Number(one.dataset.first) <= row);
  const own = sections.get(made);
  if (!own || own.isDrawn) return;
  fill(made, own.draw());
  own.isDrawn = true;
}

/**
 * Makes a section of a table. `draw()` returns its rows, each time that they come near the screen. With the number of
 * `rows`, it begins as space, of which the height is estimated.
 */
export function section(draw, rows) {
  const made = h("tbody", null, rows ? space(rows * ROW_PIXELS) : draw());
  sections.set(made, { draw, isDrawn: !rows });
  watch.observe(made);
  return made;
}
