// Lists that come page by page: the next one is read when the user asks for it, or scrolls to the end.

import { fill, h } from "./dom.js";
import { t } from "./text.js";
import { button, errorBox, SKELETON_AFTER, skeleton, succeeded } from "./ui.js";

/**
 * Shows pages below each other. `load(cursor)` returns `{rows, next}`; `draw(rows)` returns the element for all rows so
 * far, and `grow(element, rows)` adds the rows of a further page to it. Without `grow`, everything is drawn again.
 * Returns an object with `reload()` and `rows`.
 */
export function pages(place, { load, draw, grow, empty, automatic = false }) {
  const list = h("div");
  const foot = h("div", { class: "pager" });
  fill(place, list, foot);
  const state = { rows: [], reload, redraw };
  let next;
  let watch;
  let serial = 0;

  function redraw() {
    fill(list, state.rows.length === 0 && next === null ? empty() : draw(state.rows));
  }

  async function more() {
    const own = serial;
    fill(foot, h("span", { class: "muted" }, t("Loading…")));
    const timer = setTimeout(
      () => own === serial && list.childElementCount === 0 && fill(list, skeleton()),
      SKELETON_AFTER,
    );
    try {
      const page = await load(next);
      if (own !== serial) return;
      succeeded(more);
      state.rows.push(...page.rows);
      const isFirst = next === undefined;
      next = page.next ?? null;
      if (isFirst || !grow) redraw();
      else grow(list.firstElementChild, page.rows);
      fill(foot, next !== null && button(t("Show more"), more));
      watch?.disconnect();
      if (next !== null && automatic) {
        const reached = (entries) => {
          if (!entries.some((entry) => entry.isIntersecting)) return;
          watch.disconnect();
          more();
        };
        watch = new IntersectionObserver(reached, { rootMargin: "600px" });
        watch.observe(foot);
      }
    } catch (error) {
      if (error.name === "AbortError" || own !== serial) return;
      if (list.querySelector(".skeleton")) fill(list);
      fill(foot, errorBox(error, more, more));
    } finally {
      clearTimeout(timer);
    }
  }

  async function reload() {
    serial += 1;
    state.rows = [];
    next = undefined;
    await more();
  }
  state.stop = () => {
    serial += 1;
    watch?.disconnect();
  };
  state.ready = reload();
  return state;
}
