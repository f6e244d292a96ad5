// Activity: what happened to objects, settings and rights, the newest first, with filters that are in the URL.

import { activityChart } from "../lib/activity-chart.js";
import { activityList, readNames } from "../lib/activity-list.js";
import { debounce, fill, h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { place, setPlace } from "../lib/navigation.js";
import { searchField } from "../lib/search-field.js";
import { mayOversee } from "../lib/session.js";
import { count, DAY, plural, t } from "../lib/text.js";
import { bar, button, commands, field, quoted, select, viewHead } from "../lib/ui.js";

const NAMES = ["show", "text", "range", "since", "until", "principal", "bucket", "open", "live"];

function shows() {
  const all = [
    ["all", t("Everything")],
    ["deletions", t("Deletions")],
  ];
  if (!mayOversee()) return all;
  return [
    ...all,
    ["refused", t("Refused")],
    ["sign-ins", t("Sign-ins")],
    ["sharing", t("Sharing")],
    ["rights", t("Rights and keys")],
    ["settings", t("Settings")],
    ["damage", t("Damage and repair")],
  ];
}

// The times of a preset, as the clock of the user has its days.
function timesOf({ range, since, until }) {
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  const at = (milliseconds) => new Date(milliseconds).toISOString();
  const found = {
    today: () => ({ since: at(midnight) }),
    yesterday: () => ({ since: at(new Date(midnight).setDate(midnight.getDate() - 1)), until: at(midnight) }),
    "7d": () => ({ since: at(Date.now() - 7 * DAY) }),
    "30d": () => ({ since: at(Date.now() - 30 * DAY) }),
  }[range];
  return found ? found() : { since, until };
}

// A time as a field of the browser has it.
function local(text) {
  const time = new Date(text);
  if (!text || Number.isNaN(time.getTime())) return "";
  return new Date(time - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const isTime = (text) => text && !Number.isNaN(Date.parse(text));

function readState(parameters) {
  const state = Object.fromEntries(NAMES.map((name) => [name, parameters.get(name) ?? ""]));
  if (!shows().some(([name]) => name === state.show)) state.show = "all";
  for (const name of ["since", "until"]) if (!isTime(state[name])) state[name] = "";
  if (state.since || state.until) state.range = "own";
  return state;
}

// A field that suggests what is known, once that was read.
function suggesting(name, label, value, reading) {
  const list = h("datalist", { id: `known-${name}` });
  reading.then((options) =>
    fill(
      list,
      options.map((option) => h("option", { value: option })),
    ),
  );
  const input = h("input", {
    type: "search",
    class: "filter",
    name,
    list: list.id,
    placeholder: label,
    "aria-label": label,
    spellcheck: "false",
    autocomplete: "off",
    value,
  });
  return [input, list];
}

function rangeControl(state, changed) {
  const range = select(
    [
      ["", t("Any time")],
      ["today", t("Today")],
      ["yesterday", t("Yesterday")],
      ["7d", t("Last 7 days")],
      ["30d", t("Last 30 days")],
      ["own", t("From … to …")],
    ],
    state.range,
  );
  range.setAttribute("aria-label", t("Time"));
  const moment = (name) => {
    const input = h("input", { type: "datetime-local", value: local(state[name]) });
    input.addEventListener("change", () => {
      state[name] = input.value ? new Date(input.value).toISOString() : "";
      changed();
    });
    return input;
  };
  const own = h("div", { class: "moments" });
  const drawOwn = () =>
    fill(own, state.range === "own" && [field(t("From"), moment("since")), field(t("To"), moment("until"))]);
  range.addEventListener("change", () => {
    state.range = range.value;
    if (state.range !== "own") state.since = state.until = "";
    drawOwn();
    changed();
  });
  drawOwn();
  const choose = (since, until) => {
    Object.assign(state, { range: "own", since, until });
    range.value = "own";
    drawOwn();
    changed();
  };
  return { range, own, choose };
}

export async function show(view, { parameters }) {
  const state = readState(parameters);
  const reading = readNames();
  const text = h("input", {
    type: "search",
    value: state.text,
    maxlength: "256",
    spellcheck: "false",
    placeholder: t("Name, key, address or request id"),
    "aria-label": t("Text anywhere"),
  });
  const people = reading.then(({ ids }) => ["root", "system", ...[...ids.keys()].map((name) => `account:${name}`)]);
  const buckets = reading.then((names) => [...names.buckets]);
  const [principal, knownPeople] = suggesting("principal", t("Anybody"), state.principal, people);
  const [bucket, knownBuckets] = suggesting("bucket", t("All buckets"), state.bucket, buckets);
  const total = h("span", { class: "muted small", role: "status" });
  const chips = h("div", { class: "show", role: "group", "aria-label": t("Show") });
  const live = button([icon("pulse"), t("Follow live")], () => {
    state.live = state.live ? "" : "1";
    live.setAttribute("aria-pressed", String(Boolean(state.live)));
    list.follow(Boolean(state.live));
    remember();
  });
  live.setAttribute("aria-pressed", String(Boolean(state.live)));
  const box = h("div");

  function remember() {
    const shown = { ...state, show: state.show === "all" ? "" : state.show };
    if (state.range === "own") shown.range = "";
    setPlace(place("activity", [], shown));
  }
  // Events are counted after they are shown: that takes longer.
  async function draw() {
    await list.reload();
    chart.show({ ...timesOf(state), bucket: state.bucket });
  }
  const changed = () => {
    state.open = "";
    remember();
    draw();
  };
  const list = activityList(
    box,
    () => ({
      show: state.show,
      text: state.text,
      principal: state.principal,
      bucket: state.bucket,
      ...timesOf(state),
    }),
    {
      reading,
      opened: state.open,
      onOpen: (key) => {
        state.open = key;
        remember();
      },
      onCount: (number, isOver) =>
        fill(total, isOver ? plural(number, "{n} found", "{n} found") : t("the newest {n}", { n: count(number) })),
    },
  );
  // On a phone, a list takes the place of the chips.
  const shown = select(shows(), state.show);
  shown.className = "on-phones";
  shown.setAttribute("aria-label", t("Show"));
  const showOnly = (name) => {
    state.show = shown.value = name;
    for (const one of chips.children) one.setAttribute("aria-pressed", String(one.dataset.show === name));
    changed();
  };
  shown.addEventListener("change", () => showOnly(shown.value));
  const drawChips = () =>
    fill(
      chips,
      shows().map(([name, label]) =>
        h(
          "button",
          {
            type: "button",
            class: "quiet",
            "aria-pressed": String(name === state.show),
            onclick: () => showOnly(name),
            "data-show": name,
          },
          label,
        ),
      ),
    );
  drawChips();
  const [typed, forgetTyped] = debounce(250, () => {
    Object.assign(state, {
      text: text.value.trim(),
      principal: principal.value.trim(),
      bucket: bucket.value.trim(),
    });
    changed();
  });
  for (const input of [text, principal, bucket]) input.addEventListener("input", typed);
  const { range, own, choose } = rangeControl(state, changed);
  const chart = activityChart(choose);
  fill(
    view,
    viewHead(t("Activity"), {
      note: t("What happened to objects, settings and rights."),
      actions: [live],
    }),
    bar(
      searchField(text),
      range,
      principal,
      knownPeople,
      bucket,
      knownBuckets,
      shown,
      h("div", { class: "end" }, total),
    ),
    own,
    chips,
    chart.element,
    box,
    commands(
      `cairn event list --since 1d${state.text ? ` --contains ${quoted(state.text)}` : ""}`,
      ...(mayOversee() ? [`cairn audit list --since 1d${state.text ? ` --contains ${quoted(state.text)}` : ""}`] : []),
    ),
  );
  await draw();
  list.follow(Boolean(state.live));
  return () => {
    forgetTyped();
    list.stop();
  };
}
