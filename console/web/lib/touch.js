// Touch: a long press on a row begins a selection, and taps go on with it.

const PRESS = 500;
// A finger moves a little while it presses, in pixels.
const SLIP = 10;

/**
 * Watches the rows of a list. `rowOf(element)` finds the row of an element; `toggle(row)` selects it or not, and
 * `isSelecting()` says whether a tap does the same.
 */
export function onLongPress(place, { rowOf, toggle, isSelecting }) {
  let timer;
  let start;
  let isPressed = false;
  const stop = () => clearTimeout(timer);
  place.addEventListener("pointerdown", (event) => {
    isPressed = false;
    stop();
    const row = event.pointerType === "touch" && !event.target.closest("button, input") && rowOf(event.target);
    if (!row) return;
    start = event;
    timer = setTimeout(() => {
      isPressed = true;
      navigator.vibrate?.(10);
      toggle(row);
    }, PRESS);
  });
  place.addEventListener("pointermove", (event) => {
    if (start && Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) > SLIP) stop();
  });
  for (const name of ["pointerup", "pointercancel"]) place.addEventListener(name, stop);
  // The browser's own menu for links would cover the selection.
  place.addEventListener(
    "contextmenu",
    (event) => {
      if (event.pointerType !== "touch") return;
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );
  place.addEventListener(
    "click",
    (event) => {
      const isTap = event.pointerType === "touch" && isSelecting() && !event.target.closest("button, input");
      if (!isPressed && !isTap) return;
      event.preventDefault();
      event.stopPropagation();
      const row = rowOf(event.target);
      if (!isPressed && row) toggle(row);
      isPressed = false;
    },
    true,
  );
}
