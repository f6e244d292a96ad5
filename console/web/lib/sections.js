// Long tables: rows far from the screen are replaced by space of the same height, so that a list of any length stays quick.

import { h, fill } from "./dom.js";

const MARGIN = "1500px";
const sections = new WeakMap();

const watch = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const own = sections.get(target);
    if (isIntersecting === own.isDrawn || !target.isConnected) continue;
    if (isIntersecting) {
      fill(target, own.draw());
    } else {
      // The focus must not get lost.
      if (target.contains(document.activeElement)) continue;
      const space = h("td", { colspan: 99 });
      space.style.padding = "0";
      space.style.height = `${target.offsetHeight}px`;
      fill(target, h("tr", { "aria-hidden": "true" }, space));
    }
    own.isDrawn = isIntersecting;
  }
}, { rootMargin: MARGIN });

/** Makes a section of a table. `draw()` returns its rows, each time that they come near the screen. */
export function section(draw) {
  const made = h("tbody", null, draw());
  sections.set(made, { draw, isDrawn: true });
  watch.observe(made);
  return made;
}
