// Navigation: URLs of views, drawing the current one again, and counts beside the entries of the rail.

/** Returns the URL of a view. Parts are encoded, so that any key can be in it. */
export function place(view, parts = [], parameters = {}) {
  const query = new URLSearchParams(
    Object.entries(parameters).filter(([, value]) => value !== undefined && value !== ""),
  ).toString();
  return `#/${[view, ...parts.map(encodeURIComponent)].join("/")}${query ? `?${query}` : ""}`;
}

/** Goes to a view. */
export function go(...where) {
  location.hash = place(...where);
}

/** Returns the moment that a URL names, if it is one. */
export function momentOf(parameters) {
  const at = parameters.get("at");
  return Number.isNaN(Date.parse(at)) ? undefined : at;
}

let drawTask = async () => {};

/** Sets what draws the view of the URL. */
export function drawWith(task) {
  drawTask = task;
}

/** Draws the view of the URL. */
export function draw() {
  return drawTask();
}

/** Counts by entry of the rail, as the views have seen them last. */
export const counts = new Map();

/** What needs attention, by entry of the rail: `{kind, text}`; the kind is `warn` or `bad`. */
export const attention = new Map();

/** Sets the count beside an entry of the rail. */
export function setCount(name, number) {
  if (number === undefined) counts.delete(name);
  else counts.set(name, number);
  const entry = document.querySelector(`.rail [data-view="${name}"]`);
  if (entry && number !== undefined) entry.dataset.count = number;
  else if (entry) delete entry.dataset.count;
}
