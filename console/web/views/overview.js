// Overview: what needs attention, what happened lately, space, requests; and the first steps in an empty store.

import { api, getTogether, REGION } from "../lib/api.js";
import { dismiss, findAttention } from "../lib/attention.js";
import { fill, h } from "../lib/dom.js";
import { showHistory } from "../lib/history.js";
import { icon, stoneOf } from "../lib/icons.js";
import { place, setPlace } from "../lib/navigation.js";
import { mayAdminister, mayStore } from "../lib/session.js";
import { growthText, hasHistory, spaceChart, spaceOf, sparkline } from "../lib/space.js";
import { clock, count, plural, size, t } from "../lib/text.js";
import {
  button,
  card,
  commands,
  copyText,
  iconButton,
  link,
  loadInto,
  notice,
  noticeError,
  sizeCell,
  table,
  tag,
  timeCell,
  viewHead,
} from "../lib/ui.js";

const SHOWN_BUCKETS = 12;
const REFRESH = 60_000;

function actionOf([text, target], again) {
  if (typeof target === "string") return link(text, target, { class: "button" });
  return button(text, async () => {
    await target();
    again();
  });
}

async function hide(one, isHidden, again) {
  try {
    await dismiss(one, isHidden);
    if (isHidden) notice(t("Dismissed for a day, for everybody."), [t("Undo"), () => hide(one, false, again)]);
    again();
  } catch (error) {
    noticeError(error);
  }
}

function attentionRow(one, again) {
  return h(
    "li",
    null,
    h("span", { class: `tile small-tile ${one.level === 0 ? "bad" : "warn"}` }, icon(one.sign)),
    h("div", null, h("b", null, one.title), " ", h("span", { class: "muted", lang: one.lang }, one.detail)),
    one.since && h("span", { class: "muted small" }, timeCell(one.since)),
    one.action && actionOf(one.action, again),
    mayStore() && iconButton("close", t("Dismiss for a day"), () => hide(one, true, again)),
  );
}

// What somebody has dismissed is not gone: it says who, and until when.
function dismissedPart(dismissed, again) {
  if (dismissed.length === 0) return null;
  return h(
    "details",
    { class: "dismissed" },
    h("summary", null, plural(dismissed.length, "{n} dismissed", "{n} dismissed")),
    h(
      "ul",
      null,
      dismissed.map((one) =>
        h(
          "li",
          null,
          h(
            "span",
            null,
            one.title,
            " ",
            h(
              "span",
              { class: "muted small" },
              t("by {name}, until", { name: one.by }),
              " ",
              timeCell(one.until, false),
            ),
          ),
          mayStore() && button(t("Show again"), () => hide(one, false, again), "link"),
        ),
      ),
    ),
  );
}

function attentionCard({ found, dismissed }, again) {
  if (found.length === 0)
    return h(
      "section",
      { class: "card calm" },
      icon("done"),
      h("div", null, h("p", null, t("Nothing needs attention.")), dismissedPart(dismissed, again)),
    );
  return card(
    [t("Needs attention"), h("span", { class: "count", "data-count": count(found.length) })],
    t("checked at {time}", { time: clock(new Date().toISOString()) }),
    h(
      "ul",
      { class: "attention" },
      found.map((one) => attentionRow(one, again)),
    ),
    dismissedPart(dismissed, again),
  );
}

function endpointBox(endpoint) {
  return h(
    "div",
    { class: "endpoint" },
    h("span", { class: "muted small" }, t("Endpoint")),
    h("code", null, endpoint),
    h("span", { class: "muted small" }, t("Region")),
    h("code", null, REGION),
    iconButton("copy", t("Copy the endpoint"), () => copyText(endpoint)),
  );
}

// One bar with a part for each bucket, in its colour. The table below says the same.
function spaceBar(buckets, status) {
  const whole = Math.max(status.capacity_bytes, 1);
  const part = (bytes, name) => {
    const made = h("i", { class: name === undefined ? "others" : `stone stone-${stoneOf(name)}` });
    made.style.setProperty("inline-size", `${(bytes / whole) * 100}%`);
    return made;
  };
  const own = buckets.reduce((sum, bucket) => sum + bucket.physical_bytes, 0);
  const others = Math.max(status.capacity_bytes - status.available_bytes - own, 0);
  return h(
    "div",
    { class: "parts tall", "aria-hidden": "true" },
    buckets.map((bucket) => part(bucket.physical_bytes, bucket.bucket)),
    part(others),
  );
}

// Days and figures until the disk is full, if it grows.
function outlook({ growth, days }) {
  return [
    growth > 0 && `, ${t("about {size} more each day", { size: size(growth) })}`,
    days !== null && `, ${plural(days, "full in about {n} day", "full in about {n} days")}`,
  ];
}

function spaceCard(usage, status, buckets, kept) {
  const quotas = new Map(buckets.map((bucket) => [bucket.name, bucket]));
  const space = spaceOf(kept, usage, status);
  const lines = new Map(space.lines.map((line) => [line.bucket, line]));
  const sorted = [...usage.by_bucket].sort((a, b) => b.physical_bytes - a.physical_bytes);
  const old = usage.physical_bytes - usage.logical_bytes;
  const isDrawn = hasHistory(space);
  const share = ({ bucket }) => {
    const { quota, usage: used } = quotas.get(bucket) ?? {};
    if (quota?.bytes.mode !== "limit" || quota.bytes.bytes === 0) return null;
    const percent = Math.floor((used.bytes / quota.bytes.bytes) * 100);
    if (percent < 50) return null;
    return tag(t("{percent} % of quota", { percent }), percent >= 85 ? "warn" : "", "gauge");
  };
  const columns = [
    {
      name: t("Bucket"),
      cell: (row) =>
        h(
          "div",
          { class: "name" },
          h("span", { class: `swatch-stone stone-${stoneOf(row.bucket)}`, "aria-hidden": "true" }),
          h("span", null, link(row.bucket, place("bucket", [row.bucket])), share(row)),
        ),
    },
    { name: t("Objects"), align: "end", from: "medium", cell: (row) => count(row.objects) },
    { name: t("Current"), align: "end", from: "wide", cell: (row) => sizeCell(row.logical_bytes) },
    { name: t("Stored"), align: "end", cell: (row) => h("b", null, sizeCell(row.physical_bytes)) },
  ];
  if (isDrawn)
    columns.push(
      { name: t("Each day"), align: "end", cell: (row) => growthText(lines.get(row.bucket)?.growth ?? null) },
      {
        name: t("30 days"),
        from: "medium",
        align: "end",
        cell: (row) => sparkline(lines.get(row.bucket), space.times),
      },
    );
  return card(
    t("Space"),
    [
      plural(usage.objects, "{size} in {n} object", "{size} in {n} objects", { size: size(usage.physical_bytes) }),
      old > 0 && `, ${t("{size} of it old versions and unfinished uploads", { size: size(old) })}`,
      outlook(space),
    ],
    isDrawn ? spaceChart(space) : spaceBar(sorted, status),
    h(
      "p",
      { class: "muted small" },
      t("{free} of {capacity} free", { free: size(status.available_bytes), capacity: size(status.capacity_bytes) }),
    ),
    sorted.length === 0
      ? h("p", { class: "muted" }, t("No buckets yet."))
      : table(t("Space by bucket"), columns, sorted.slice(0, SHOWN_BUCKETS)),
    sorted.length > SHOWN_BUCKETS &&
      h("p", null, link(plural(sorted.length, "All {n} bucket", "All {n} buckets"), place("buckets"))),
  );
}

export async function show(view, { parameters }) {
  const history = h("section", { class: "history" });
  const needs = h("div");
  const lately = h("div", { class: "lately-place" });
  const tags = h("span", { class: "tags" });
  let leave = null;
  let timer;
  let isOver = false;
  const drawNeeds = (state) => {
    const { found, info } = state;
    fill(needs, attentionCard(state, look));
    fill(
      tags,
      info && tag(info.status === "ready" ? t("ready") : t("not ready"), info.status === "ready" ? "good" : "bad"),
      found.length > 0 &&
        tag(
          plural(found.length, "{n} thing needs attention", "{n} things need attention"),
          found[0].level ? "warn" : "bad",
        ),
      info && tag(t("version {version}", { version: info.version })),
    );
  };
  const look = async () => {
    const state = await findAttention();
    // A server that does not answer says nothing about what needs attention.
    if (state.info && !isOver) drawNeeds(state);
  };
  const again = async () => {
    if (!document.hidden) await look();
    if (!isOver) timer = setTimeout(again, REFRESH);
  };
  const onPeriod = (period) => setPlace(place("overview", [], { period: period === "hour" ? "" : period }));
  await loadInto(view, async () => {
    const [state, usage] = await Promise.all([findAttention(), getTogether("/api/v1/storage/usage")]);
    // The status says what is wrong, if the others were not answered either.
    const status = state.status ?? (await api.get("/api/v1/storage/status"));
    const kept = state.kept ?? (await api.get("/api/v1/storage/history"));
    const info = state.info ?? (await api.get("/api/v1/system/info"));
    drawNeeds(state);
    const isEmpty = mayAdminister() && usage.objects === 0 && usage.by_bucket.length <= 1;
    const head = viewHead(isEmpty ? t("Welcome to Cairn") : t("Overview"), {
      tags,
      actions: [
        endpointBox(info.s3_endpoint),
        mayAdminister() &&
          !isEmpty &&
          link([icon("plug"), t("Connect an application")], place("connect"), { class: "button main" }),
      ],
    });
    const cli = commands("cairn status", "cairn history --period day", "cairn storage usage");
    if (isEmpty) {
      const [accounts, { firstSteps }] = await Promise.all([
        api.get("/api/v1/service-accounts"),
        import("../lib/first-steps.js"),
      ]);
      return [head, state.found.length > 0 && needs, firstSteps(usage.by_bucket, accounts.service_accounts), cli];
    }
    leave ??= showHistory(history, parameters.get("period"), onPeriod);
    // After the first view: sentences need more words than all else here.
    import("../lib/lately.js").then(({ showLately }) => isOver || showLately(lately));
    return [
      head,
      h("div", { class: "columns" }, h("div", null, needs), lately),
      h("div", { class: "columns even" }, spaceCard(usage, status, state.buckets, kept), history),
      cli,
    ];
  });
  timer = setTimeout(again, REFRESH);
  return () => {
    isOver = true;
    clearTimeout(timer);
    leave?.();
  };
}
