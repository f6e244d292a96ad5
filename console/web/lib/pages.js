// Lists that come page by page: the next one is read when the user asks for it, or scrolls to the end.

import { fill, h } from "./dom.js";
import { keptPlace } from "./navigation.js";
import { t } from "./text.js";
import { button, errorBox, SKELETON_AFTER, skeleton, succeeded } from "./ui.js";

// Rows that are read again when the user comes back; more take long.
const BACK_MAX = 20_000;

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
  let isDrawn = false;
  let watch;
  // Back from another view, as many rows are read as there were.
  let wanted = Math.min(keptPlace()?.rows ?? 0, BACK_MAX);
  let serial = 0;

  function redraw() {
    fill(list, state.rows.length === 0 && next === null ? empty() : draw(state.rows));
  }

  async function more() {
    const own = serial;
    fill(foot, h("span", { class: "muted" }, t("Loading…")));
    const timer = setTimeout(() => own === serial && !isDrawn && fill(list, skeleton()), SKELETON_AFTER);
    try {
      const first = state.rows.length;
      do {
        const page = await load(next);
        if (own !== serial) return;
        state.rows.push(...page.rows);
        next = page.next ?? null;
      } while (next !== null && state.rows.length < wanted);
      wanted = 0;
      succeeded(more);
      list.dataset.rows = state.rows.length;
      if (isDrawn && grow) grow(list.firstElementChild, state.rows.slice(first));
      else redraw();
      isDrawn = true;
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
      if (!isDrawn) fill(list);
      fill(foot, errorBox(error, more, more));
    } finally {
      clearTimeout(timer);
    }
  }

  async function reload() {
    serial += 1;
    state.rows = [];
    next = undefined;
    isDrawn = false;
    await more();
  }
  state.stop = () => {
    serial += 1;
    watch?.disconnect();
  };
  state.ready = reload();
  return state;
}
