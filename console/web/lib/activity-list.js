// The list of what happened: days, sentences, an action for each row, and what is known of an opened one.

import { activityFeed } from "./activity.js";
import { mainEvents, nameOf, sentence } from "./activity-words.js";
import { api, bucketPath, encodeKey } from "./api.js";
import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { place } from "./navigation.js";
import { noticeBack, undeleteKeys } from "./removal.js";
import { mayOversee, mayStore } from "./session.js";
import { clock, count, date, plural, size, t, weekday } from "./text.js";
import {
  avatar,
  button,
  copyText,
  emptyBox,
  errorBox,
  iconButton,
  link,
  noticeError,
  SKELETON_AFTER,
  skeleton,
  tag,
  timeCell,
} from "./ui.js";

const AROUND = 5 * 60_000;
const LIVE = 4000;
// A look that is repeated must not search through everything each time.
const LIVE_READS = 2;
const RESTORED_MAX = 1000;

/** Reads the names behind ids, and those of buckets. What the role may not read has no name. */
export async function readNames() {
  const read = (path) => api.get(path).catch(() => ({}));
  const none = Promise.resolve({});
  const [accounts, policies, webhooks, buckets] = await Promise.all([
    mayOversee() ? read("/api/v1/service-accounts") : none,
    mayOversee() ? read("/api/v1/policies") : none,
    read("/api/v1/webhooks"),
    read("/api/v1/buckets"),
  ]);
  const names = { ids: new Map(), known: new Map(), buckets: new Set() };
  for (const { id, name } of accounts.service_accounts ?? []) {
    names.ids.set(name, id);
    names.known.set(id, [name, place("account", [id])]);
  }
  for (const { id, name } of policies.policies ?? []) names.known.set(id, [name, place("policy", [id])]);
  for (const { id, target_url: url } of webhooks.webhooks ?? []) names.known.set(id, [url, place("webhooks", [id])]);
  for (const { name } of buckets.buckets ?? []) names.buckets.add(name);
  return names;
}

const isDenied = (row) => row.audit?.result === "denied";
const isFailed = (row) => row.audit?.result === "failed";

// The keys that a delete marker hides since this row.
function hidden(row) {
  const events = mainEvents(row).filter(({ type, metadata }) => type === "object.deleted" && metadata.delete_marker);
  return [...new Set(events.map((event) => event.object))].slice(0, RESTORED_MAX);
}

async function restore(row, press) {
  press.disabled = true;
  try {
    noticeBack(await undeleteKeys(row.events[0].bucket, hidden(row)));
  } catch (error) {
    noticeError(error);
  }
  press.disabled = false;
}

function actionOf(row) {
  const id = row.audit?.request_id;
  if (isDenied(row) && id && /^[A-Z]/.test(row.audit.operation ?? ""))
    return link(t("Explain"), place("refused", [id]), { class: "button" });
  if (!mayStore() || hidden(row).length === 0) return null;
  const press = button(t("Restore"), () => restore(row, press));
  return press;
}

function tagOf(row) {
  if (isDenied(row))
    return [
      tag(t("Refused"), "bad", "ban"),
      row.number > 1 &&
        h(
          "span",
          { class: "muted small" },
          t("{n} times since {time}", { n: count(row.number), time: clock(row.since) }),
        ),
    ];
  return isFailed(row) ? tag(t("Failed"), "warn", "alert") : null;
}

function signOf(row) {
  const rule = row.events[0]?.metadata.rule_id;
  if (rule) return h("span", { class: "avatar plain", "aria-hidden": "true" }, icon("clock"));
  return avatar(nameOf(row.principal));
}

const entryText = {
  written: () => t("written"),
  overwritten: () => t("overwritten"),
  deleted: () => t("deleted"),
  restored: () => t("restored"),
  expired: () => t("removed by a rule"),
  shared: () => t("shared"),
  embedded: () => t("embedded"),
};

function entryLine(entry) {
  if (!entry) return h("span", { class: "muted" }, t("nothing that is kept"));
  return [
    timeCell(entry.time, false),
    ", ",
    entryText[entry.kind]?.() ?? entry.kind,
    entry.principal && [" ", t("by {name}", { name: nameOf(entry.principal) })],
  ];
}

// Returns the events of the object before and after a row.
async function neighbours(row, places) {
  const [{ bucket, object, version_id: version, time }] = mainEvents(row);
  try {
    const { entries } = await api.get(bucketPath(bucket, "object-history", encodeKey(object)));
    let at = entries.findIndex(
      (entry) => entry.version_id === version && entry.time.slice(0, 19) === time.slice(0, 19),
    );
    if (at < 0) at = entries.findIndex((entry) => entry.time <= time);
    fill(places.before, entryLine(at < 0 ? undefined : entries[at + 1]));
    fill(places.after, entryLine(at > 0 ? entries[at - 1] : undefined));
    const address = (at < 0 ? null : entries[at]?.source_ip) ?? row.audit?.source_ip;
    if (address) fill(places.from, address);
  } catch (error) {
    const text = error.status === 404 ? t("The bucket is gone.") : t("It could not be read.");
    for (const name of ["before", "after"]) fill(places[name], h("span", { class: "muted" }, text));
  }
}

function objectsOf(row) {
  const events = mainEvents(row).filter((event) => event.object !== undefined);
  if (events.length < 2) return null;
  const list = h("ul", { class: "objects" });
  const shown = events.slice(0, 100);
  fill(
    list,
    shown.map((event) =>
      h("li", null, link(h("bdi", null, event.object), place("object", [event.bucket, event.object]))),
    ),
    events.length > shown.length && h("li", { class: "muted" }, t("and more")),
  );
  return h("details", null, h("summary", null, plural(events.length, "{n} object", "{n} objects")), list);
}

function details(row) {
  const events = mainEvents(row);
  const [event] = events;
  const { audit } = row;
  const isOne = events.length === 1 && event.object !== undefined;
  const places = { from: h("span"), before: h("span", null, "…"), after: h("span", null, "…") };
  fill(places.from, audit?.source_ip ?? h("span", { class: "muted" }, t("not recorded")));
  if (isOne) neighbours(row, places);
  const ids = new Set([audit?.request_id, ...row.events.map(({ metadata }) => metadata.request_id)].filter(Boolean));
  const [id] = ids.size === 1 ? ids : [];
  const time = Date.parse(row.time);
  const around = {
    since: new Date(time - AROUND).toISOString(),
    until: new Date(time + AROUND).toISOString(),
  };
  const fact = (name, value) => value && h("div", null, h("dt", null, name), h("dd", null, value));
  const role = audit?.role ? audit.role.replaceAll("_", " ") : null;
  const facts = [
    fact(t("Who"), [h("bdi", null, row.principal ?? t("nobody was authenticated")), role && `, ${role}`]),
    fact(t("From"), places.from),
    fact(t("Request"), ids.size > 1 && plural(ids.size, "{n} request", "{n} requests")),
    fact(t("Request"), id && [h("code", null, id), iconButton("copy", t("Copy the request id"), () => copyText(id))]),
    fact(t("Operation"), h("code", null, audit?.operation ?? [...new Set(events.map(({ type }) => type))].join(", "))),
    fact(t("Time"), timeCell(row.time, false)),
    isOne && event.version_id && fact(t("Version"), h("code", null, event.version_id)),
    isOne && event.size > 0 && fact(t("Size"), size(event.size)),
    fact(t("Objects"), objectsOf(row)),
    isOne && fact(t("Before"), places.before),
    isOne && fact(t("Then"), places.after),
    fact(t("Detail"), audit?.detail && h("bdi", { lang: "en" }, audit.detail)),
    fact(t("Around it"), link(t("5 minutes before and after"), place("activity", [], around))),
  ];
  return h("dl", { class: "act-facts" }, facts);
}

function item(row, names, opened, onOpen) {
  const body = h("div", { class: "act-body" });
  const toggle = iconButton("right", t("Details"), undefined, { "aria-expanded": "false" });
  const set = (isOpen) => {
    toggle.setAttribute("aria-expanded", String(isOpen));
    fill(body, isOpen && details(row));
    made.classList.toggle("open", isOpen);
  };
  const from = row.audit?.source_ip ?? "";
  const made = h(
    "li",
    { class: "act" },
    h(
      "div",
      { class: "act-line" },
      h("time", { datetime: row.time, title: date(row.time) }, clock(row.time)),
      signOf(row),
      h("div", { class: "act-text" }, h("span", null, sentence(row, names)), tagOf(row)),
      h("span", { class: "act-from muted small" }, from),
      h("span", { class: "act-action" }, actionOf(row)),
      toggle,
    ),
    body,
  );
  toggle.addEventListener("click", () => {
    const isOpen = toggle.getAttribute("aria-expanded") !== "true";
    set(isOpen);
    onOpen(isOpen ? row.key : "");
  });
  // A click beside what can be clicked opens the row as well.
  made.firstElementChild.addEventListener("click", (event) => {
    if (!event.target.closest("a, button") && !getSelection().toString()) toggle.click();
  });
  if (row.key === opened) set(true);
  return made;
}

function dayOf(title) {
  return h("section", { class: "card acts", "data-day": title }, h("header", null, h("h2", null, title)), h("ol"));
}

/**
 * Shows what happened in `box`. `filters()` returns `{show, text, since, until, principal, bucket}`. `reading` is the
 * promise of the names, which are read at the same time. `onCount` is told how many rows are shown, `onOpen` the key of
 * the row that was opened last. Returns `{reload, follow(isLive), stop}`.
 */
export function activityList(box, filters, { reading, opened = "", onOpen = () => {}, onCount = () => {} }) {
  const list = h("div", { class: "days" });
  const foot = h("div", { class: "pager" });
  fill(box, list, foot);
  let stop = new AbortController();
  let feed = null;
  let watch = null;
  let live = null;
  let shown = [];
  let names = null;

  const choose = (key) => {
    opened = key;
    onOpen(key);
  };

  // Adds the rows that are new. Those that were drawn stay, unless they have grown.
  function drawRows(isAnew) {
    if (isAnew) {
      fill(list);
      shown = [];
    }
    shown.forEach((made, index) => {
      if (!feed.changed.has(feed.rows[index])) return;
      shown[index] = item(feed.rows[index], names, opened, choose);
      made.replaceWith(shown[index]);
    });
    for (const row of feed.rows.slice(shown.length)) {
      const title = weekday(row.time);
      if (list.lastElementChild?.dataset.day !== title) list.append(dayOf(title));
      const made = item(row, names, opened, choose);
      list.lastElementChild.lastElementChild.append(made);
      shown.push(made);
    }
    onCount(feed.rows.length, feed.isOver);
  }

  function drawFoot() {
    watch?.disconnect();
    if (feed.rows.length === 0 && feed.isOver) return fill(foot, emptyBox(t("Nothing matches.")));
    if (feed.isOver) return fill(foot);
    if (feed.isFull)
      return fill(foot, h("p", { class: "muted" }, t("These are very many. Choose a shorter time to see older ones.")));
    const found = feed.searchedTo;
    if (found) {
      const text = t("Searched back to {date}.", { date: date(found) });
      return fill(foot, h("span", { class: "muted" }, text), button(t("Search on"), more));
    }
    fill(foot, button(t("Show more"), more));
    watch = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        watch.disconnect();
        more();
      },
      { rootMargin: "600px" },
    );
    watch.observe(foot);
  }

  async function more() {
    const own = feed;
    const isFirst = feed.rows.length === 0;
    fill(foot, h("span", { class: "muted" }, t("Loading…")));
    const timer = setTimeout(() => own === feed && feed.rows.length === 0 && fill(list, skeleton()), SKELETON_AFTER);
    try {
      [names] = await Promise.all([reading, own.more()]);
      if (own !== feed) return;
      drawRows(isFirst);
      drawFoot();
    } catch (error) {
      if (error.name === "AbortError" || own !== feed) return;
      if (feed.rows.length === 0) fill(list);
      fill(foot, errorBox(error, more));
    } finally {
      clearTimeout(timer);
    }
  }

  async function reload() {
    stop.abort();
    stop = new AbortController();
    watch?.disconnect();
    feed = activityFeed(filters(), stop.signal);
    await more();
  }

  // Looks for something new, and leaves the list alone while somebody reads it.
  async function look() {
    const isBusy = document.hidden || opened || scrollY > 400 || list.matches(":focus-within");
    const newest = isBusy ? null : activityFeed(filters(), stop.signal, LIVE_READS);
    try {
      await newest?.more();
      names ??= await reading;
      if (newest?.rows.length > 0 && newest.rows[0].key !== feed.rows[0]?.key) {
        feed = newest;
        drawRows(true);
        drawFoot();
      }
    } catch {
      // The next look may succeed. One that a change of the filters has ended is followed by another one.
    }
    if (live !== null) live = setTimeout(look, LIVE);
  }

  return {
    reload,
    follow(isLive) {
      clearTimeout(live);
      live = isLive ? setTimeout(look, LIVE) : null;
    },
    stop() {
      stop.abort();
      clearTimeout(live);
      live = null;
      watch?.disconnect();
    },
  };
}
