// The page of a webhook: what was lost, one row for each event with its attempts, and what can be done.

import { api } from "./api.js";
import { confirmed, tell } from "./dialogs.js";
import { fill, h } from "./dom.js";
import { describe } from "./errors.js";
import { icon, mark } from "./icons.js";
import { menuButton } from "./menu.js";
import { go, place, setPlace } from "./navigation.js";
import { pages } from "./pages.js";
import { showSecret } from "./secrets.js";
import { mayAdminister } from "./session.js";
import { clock, count, plural, t } from "./text.js";
import {
  acting,
  actionsColumn,
  banner,
  button,
  commands,
  emptyBox,
  iconButton,
  link,
  notice,
  table,
  tag,
  timeCell,
  viewHead,
} from "./ui.js";

const REFRESH = 3000;
const PAGE = 100;
const STATES = ["all", "lost", "waiting", "delivered"];
const FILTERS = { lost: { lost: true }, waiting: { status: "pending" }, delivered: { status: "succeeded" } };
const EVENTS = {
  "object.created": () => t("created"),
  "object.updated": () => t("overwritten"),
  "object.deleted": () => t("deleted"),
  "object.restored": () => t("restored"),
  "multipart.completed": () => t("upload completed"),
  "multipart.aborted": () => t("upload given up"),
  "bucket.created": () => t("bucket created"),
  "bucket.deleted": () => t("bucket deleted"),
};
const path = (hook, ...rest) => ["/api/v1/webhooks", hook.id, ...rest].join("/");

/** The word for the state of a webhook. */
export const stateWord = (state) => ({ ok: t("ok"), failing: t("failing"), paused: t("Paused") })[state] ?? state;

/** Sends the lost events of a webhook again. */
export function redeliverLost(hook, done) {
  return acting(async () => {
    const { queued } = await api.post(path(hook, "redeliver"), { since: hook.health.lost_since });
    notice(plural(queued, "{n} event is sent again.", "{n} events are sent again."));
  }, done)();
}

/** Ends the pause of a webhook. */
function resume(hook, done) {
  return acting(async () => {
    await api.post(path(hook, "resume"));
    notice(t("What waits is sent now."));
  }, done)();
}

/** Sends an event for a test, and shows each step. */
export async function testWebhook(hook) {
  const shown = h("div", null, h("p", { class: "muted", "aria-busy": "true" }, t("Sending…")));
  const run = api.post(path(hook, "test")).then(
    (result) =>
      fill(
        shown,
        h(
          "p",
          { class: result.delivered ? "" : "bad" },
          result.delivered
            ? t("The test event was delivered (HTTP {status}).", { status: result.http_status })
            : t("The test event was not delivered."),
        ),
        table(
          t("Steps"),
          [
            { name: t("Step"), cell: (step) => step.step },
            {
              name: t("Result"),
              cell: (step) => [
                step.ok ? t("done") : t("failed"),
                " ",
                h("span", { class: "muted", lang: "en" }, step.detail),
              ],
            },
            { name: "ms", align: "end", cell: (step) => step.milliseconds },
          ],
          result.steps,
        ),
      ),
    (error) => fill(shown, h("p", { class: "bad" }, describe(error))),
  );
  await Promise.all([run, tell(t("Test of {name}", { name: hook.target_url }), shown)]);
}

/** The rarer actions on a webhook. `done(isGone)` is called after each. */
export function webhookMenu(hook, done) {
  const act = (task, isGone = false) => acting(task, () => done(isGone));
  return [
    {
      text: t("New secret"),
      sign: "key",
      task: act(async () => {
        const isSure = await confirmed({
          title: t("New signing secret"),
          text: t("The old secret is valid for another day."),
          action: t("Create secret"),
        });
        if (!isSure) return;
        const { signing_secret: secret } = await api.post(path(hook, "rotate-secret"), {});
        await showSecret(t("Signing secret"), t("Secret"), secret);
      }),
    },
    {
      text: hook.enabled ? t("Turn off") : t("Turn on"),
      sign: hook.enabled ? "ban" : "done",
      task: act(() => api.put(path(hook, "status"), { enabled: !hook.enabled })),
    },
    null,
    {
      text: t("Delete"),
      sign: "trash",
      isDangerous: true,
      task: async () => {
        const isSure = await confirmed({
          title: t("Delete webhook"),
          text: t("Deliveries that wait are dropped."),
          action: t("Delete webhook"),
          task: () => api.remove(path(hook)),
        });
        if (isSure) done(true);
      },
    },
  ];
}

// Attempts of one event are one row. The latest entry of an event comes first.
function rowsOf(entries) {
  const rows = new Map();
  for (const entry of entries) {
    const row = rows.get(entry.event_id);
    if (row) row.entries.push(entry);
    else rows.set(entry.event_id, { ...entry, entries: [entry] });
  }
  return [...rows.values()];
}

function stateOf(row, hook) {
  const arrived = row.entries.find((entry) => entry.success);
  if (row.event_lost)
    return tag(plural(row.attempt, "Lost after {n} attempt", "Lost after {n} attempts"), "bad", "close");
  if (row.status === "pending") {
    if (row.attempt === 0 && hook.health.state === "paused") return tag(t("Waits until resumed"), "warn", "clock");
    return tag(row.attempt > 0 ? t("Waits for attempt {n}", { n: row.attempt + 1 }) : t("Waits"), "", "clock");
  }
  if (arrived)
    return tag(
      arrived.attempt > 1 ? t("Delivered, attempt {n}", { n: arrived.attempt }) : t("Delivered"),
      "good",
      "check",
    );
  if (row.status === "dropped") return tag(t("Dropped"), "", "close");
  return tag(t("Failed"), "bad", "close");
}

const answerOf = (entry) => entry.error ?? (entry.http_status ? `HTTP ${entry.http_status}` : "–");

// The first words of an answer say enough in a table. All of it is in the attempts.
const shortAnswer = (row) => h("bdi", { class: "clamp", title: answerOf(row) }, answerOf(row).split(": ")[0]);

function objectCell(row) {
  if (row.bucket === undefined) return h("span", { class: "muted" }, t("The event is no longer kept."));
  if (row.object === undefined)
    return h("div", { class: "name" }, icon("bucket"), link(h("bdi", null, row.bucket), place("bucket", [row.bucket])));
  const slash = row.object.lastIndexOf("/") + 1;
  return h(
    "div",
    { class: "name" },
    mark("file"),
    h(
      "span",
      { class: "clamp" },
      link(h("bdi", null, row.object.slice(slash) || row.object), place("object", [row.bucket, row.object])),
      " ",
      h("span", { class: "muted small" }, h("bdi", null, `${row.bucket}/${row.object.slice(0, slash)}`)),
    ),
  );
}

// All attempts of an event, the first one first, also those of other pages.
async function showAttempts(place_, row, hook) {
  try {
    const found = await api.get("/api/v1/webhook-deliveries", {
      webhook_id: hook.id,
      event_id: row.event_id,
      limit: 1000,
    });
    const attempts = found.deliveries.filter((entry) => entry.http_status !== null || entry.error).reverse();
    fill(
      place_,
      attempts.length === 0
        ? h("p", { class: "muted" }, t("Not tried yet."))
        : h(
            "ol",
            { class: "attempts" },
            attempts.map((entry, index) =>
              h(
                "li",
                null,
                h("span", { class: "muted" }, count(index + 1)),
                h("time", { datetime: entry.timestamp }, clock(entry.timestamp)),
                h(
                  "span",
                  { class: entry.success ? "" : "bad" },
                  h("bdi", null, answerOf(entry)),
                  entry.redelivery && [" ", h("span", { class: "muted" }, t("sent again"))],
                ),
              ),
            ),
          ),
    );
  } catch (error) {
    fill(place_, h("p", { class: "bad" }, describe(error)));
  }
}

function deliveryTable(entries, hook, opened, again) {
  const rows = rowsOf(entries);
  const opener = (row) => {
    const toggle = iconButton("right", t("Attempts"), undefined, { "aria-expanded": "false" });
    const set = (isOpen) => {
      toggle.setAttribute("aria-expanded", String(isOpen));
      const line = toggle.closest("tr");
      if (!isOpen) return line.nextElementSibling.remove();
      const inside = h("td", { colspan: line.cells.length }, h("p", { class: "muted", "aria-busy": "true" }, "…"));
      line.after(h("tr", { class: "inside" }, inside));
      return showAttempts(inside, row, hook);
    };
    toggle.addEventListener("click", () => {
      const isOpen = toggle.getAttribute("aria-expanded") !== "true";
      if (isOpen) opened.add(row.event_id);
      else opened.delete(row.event_id);
      set(isOpen);
    });
    if (opened.has(row.event_id)) queueMicrotask(() => set(true));
    return toggle;
  };
  const made = table(
    t("Deliveries"),
    [
      { name: "", head: h("span", { class: "hidden" }, t("Attempts")), kind: "box", cell: opener },
      { name: t("Object"), kind: "wide", cell: objectCell },
      { name: t("Event"), from: "medium", cell: (row) => EVENTS[row.event_type]?.() ?? row.event_type },
      { name: t("When"), from: "medium", cell: (row) => timeCell(row.timestamp, true) },
      { name: t("State"), cell: (row) => stateOf(row, hook) },
      { name: t("Attempts"), align: "end", from: "wide", cell: (row) => count(row.attempt) },
      { name: t("Last answer"), from: "wide", cell: shortAnswer },
      actionsColumn(
        (row) =>
          mayAdminister() &&
          hook.enabled &&
          row.status !== "pending" &&
          row.bucket !== undefined &&
          button(t("Redeliver"), () => again(row)),
      ),
    ],
    rows,
  );
  made.classList.add("deliveries");
  return made;
}

function bannerOf(hook, done) {
  const { lost, lost_since: since, last_error: error, pending, state } = hook.health;
  const may = mayAdminister() && hook.enabled;
  const resumes = may && state === "paused" && button(t("Resume"), () => resume(hook, done));
  if (lost > 0)
    return banner(
      "lost",
      [
        h("b", null, plural(lost, "{n} event was not delivered.", "{n} events were not delivered.")),
        " ",
        t("The oldest one is of"),
        " ",
        timeCell(since, false),
        ". ",
        error && [t("The last error:"), " ", h("bdi", null, error), ". "],
        h("span", { class: "muted" }, t("As long as events are kept, they can be sent again.")),
      ],
      resumes,
      may &&
        h(
          "button",
          { type: "button", class: "main", onclick: () => redeliverLost(hook, done) },
          icon("retry"),
          plural(lost, "Redeliver {n} lost", "Redeliver {n} lost"),
        ),
    );
  if (state !== "paused") return null;
  const text = plural(pending, "The receiver is away: {n} event waits.", "The receiver is away: {n} events wait.");
  return banner("warn", [h("b", null, text), " ", h("bdi", null, error ?? "")], resumes);
}

const hostOf = (url) => {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
};

function headOf(hook, done) {
  const more = menuButton(t("More actions"), () => webhookMenu(hook, done), { class: "icon edge" });
  const { state } = hook.health;
  const kind = { ok: "good", failing: "warn", paused: "bad" }[state];
  return viewHead(hostOf(hook.target_url), {
    path: link(t("Webhooks"), place("webhooks")),
    sign: "send",
    stone: 6,
    tags: [
      hook.enabled ? tag(stateWord(state), kind) : tag(t("off"), "warn"),
      hook.bucket_filter && tag(hook.bucket_filter, "", "bucket"),
      hook.object_prefix_filter && tag(hook.object_prefix_filter, "", "folder"),
      tag(hook.event_types.map((type) => EVENTS[type]?.() ?? type).join(", "), "", "pulse"),
      h("code", { class: "muted" }, hook.target_url),
    ],
    actions: mayAdminister() && [button([icon("send"), t("Send a test")], () => testWebhook(hook)), more],
  });
}

function figuresOf({ health, created_at: created }) {
  return [
    [t("Waiting"), count(health.pending)],
    [t("Lost"), health.lost > 0 ? h("span", { class: "bad" }, count(health.lost)) : count(0)],
    [t("Failures in a row"), count(health.consecutive_failures)],
    [t("Last success"), timeCell(health.last_success_at)],
    [t("Created"), timeCell(created)],
  ].map(([name, value]) => h("div", null, h("span", { class: "muted small" }, name), h("b", null, value)));
}

/** Shows the page of a webhook. Returns a function that ends its timers. */
export async function showWebhook(view, id, parameters) {
  let hook = await api.get(`/api/v1/webhooks/${encodeURIComponent(id)}`);
  let state = STATES.includes(parameters.get("state")) ? parameters.get("state") : "all";
  const opened = new Set();
  let head = h("header");
  const news = h("div");
  const side = h("div", { class: "figures card" });
  const filters = h("div", { class: "show", role: "group", "aria-label": t("Show") });
  const box = h("div");
  let timer;
  let isOver = false;

  const changed = (isGone) => {
    if (isGone === true) return go("webhooks");
    read().then(() => list.reload());
  };
  function drawState() {
    const made = headOf(hook, changed);
    head.replaceWith(made);
    head = made;
    fill(news, bannerOf(hook, changed));
    fill(side, figuresOf(hook));
    const words = { all: t("All"), lost: t("Lost"), waiting: t("Waiting"), delivered: t("Delivered") };
    const numbers = { lost: hook.health.lost, waiting: hook.health.pending };
    fill(
      filters,
      STATES.map((name) =>
        h(
          "button",
          {
            type: "button",
            class: "quiet",
            "aria-pressed": String(name === state),
            onclick: (event) => {
              state = name;
              setPlace(place("webhooks", [id], { state: name === "all" ? "" : name }));
              for (const one of filters.children) one.setAttribute("aria-pressed", String(one === event.currentTarget));
              list.reload();
            },
          },
          words[name],
          numbers[name] > 0 && [" ", h("span", { class: "muted" }, count(numbers[name]))],
        ),
      ),
    );
  }
  async function read() {
    const before = JSON.stringify([hook.health, hook.enabled]);
    hook = await api.get(`/api/v1/webhooks/${encodeURIComponent(id)}`);
    const isNew = JSON.stringify([hook.health, hook.enabled]) !== before;
    if (isNew && !isOver) drawState();
    return isNew;
  }
  const again = (row) =>
    acting(async () => {
      await api.post(`/api/v1/webhook-deliveries/${row.id}/redeliver`);
      notice(t("The event is sent again."));
    }, changed)();
  drawState();
  fill(
    view,
    head,
    news,
    side,
    filters,
    box,
    commands(`cairn webhook deliveries --webhook ${id}`, `cairn webhook show ${id}`),
  );
  const list = pages(box, {
    load: async (cursor) => {
      const page = await api.get("/api/v1/webhook-deliveries", {
        webhook_id: id,
        limit: PAGE,
        details: true,
        ...FILTERS[state],
        ...cursor,
      });
      return {
        rows: page.deliveries,
        next: page.next_id ? { after_time: page.next_time, after_id: page.next_id } : null,
      };
    },
    draw: (entries) => deliveryTable(entries, hook, opened, again),
    empty: () => emptyBox(state === "all" ? t("No deliveries yet.") : t("Nothing matches.")),
  });
  const look = async () => {
    try {
      const isIdle = !document.hidden && opened.size === 0 && scrollY < 400 && !view.contains(document.activeElement);
      if (!document.hidden && (await read()) && isIdle) await list.reload();
    } catch {
      // The next look may succeed.
    }
    if (!isOver) timer = setTimeout(look, REFRESH);
  };
  await list.ready;
  timer = setTimeout(look, REFRESH);
  return () => {
    isOver = true;
    clearTimeout(timer);
    list.stop();
  };
}
