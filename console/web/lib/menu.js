// Menus of actions: below a button, or where a row was clicked with the right button. A phone shows them as a sheet.

import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { iconButton } from "./ui.js";

let close = () => {};

// Keeps a box within the window.
function put(box, x, y) {
  const { offsetWidth: width, offsetHeight: height } = box;
  const { clientWidth } = document.documentElement;
  box.style.setProperty("left", `${Math.max(8, Math.min(x, clientWidth - width - 8))}px`);
  box.style.setProperty("top", `${Math.max(8, Math.min(y, innerHeight - height - 8))}px`);
}

/**
 * Opens a menu at a place `{x, y}`. Entries are `{text, sign, task, key, isDangerous}`, or null for a line. The focus
 * returns to `before`.
 */
export function openMenu({ x, y }, label, entries, before = document.activeElement) {
  close();
  const items = [];
  const box = h("div", { class: "menu floating", role: "menu", "aria-label": label });
  close = () => {
    removeEventListener("pointerdown", outside, true);
    removeEventListener("scroll", close, true);
    box.remove();
    close = () => {};
  };
  const outside = (event) => box.contains(event.target) || close();
  const done = () => {
    close();
    if (before?.isConnected) before.focus();
  };
  fill(
    box,
    entries
      .filter((entry) => entry !== false && entry !== undefined)
      .map((entry) => {
        if (entry === null) return h("hr");
        const item = h(
          "button",
          {
            type: "button",
            role: "menuitem",
            tabindex: "-1",
            class: entry.isDangerous ? "danger" : undefined,
            "aria-keyshortcuts": entry.key,
            onclick: () => {
              done();
              entry.task();
            },
          },
          icon(entry.sign),
          h("span", null, entry.text),
        );
        if (entry.key) item.append(h("kbd", { "aria-hidden": "true", "data-key": entry.key }));
        items.push(item);
        return item;
      }),
  );
  box.addEventListener("keydown", (event) => {
    const at = items.indexOf(document.activeElement);
    const to = {
      ArrowDown: items[(at + 1) % items.length],
      ArrowUp: items.at(at - 1),
      Home: items[0],
      End: items.at(-1),
    }[event.key];
    if (to) to.focus();
    else if (event.key === "Escape" || event.key === "Tab") done();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  document.querySelector("main").append(box);
  put(box, x, y);
  addEventListener("pointerdown", outside, true);
  addEventListener("scroll", close, true);
  items[0]?.focus({ preventScroll: true });
}

/** A button with a sign alone that opens the menu of what `entries()` returns. */
export const menuButton = (label, entries, properties) =>
  iconButton("more", label, (event) => openMenuBelow(event.currentTarget, label, entries()), {
    "aria-haspopup": "menu",
    ...properties,
  });

/** Opens a menu below a button. */
export function openMenuBelow(button, label, entries) {
  const { left, bottom } = button.getBoundingClientRect();
  openMenu({ x: left, y: bottom + 4 }, label, entries, button);
}
