// Overview: what needs attention, what happened lately, space, requests; and the first steps in an empty store.

import { api } from "../lib/api.js";
import { REGION } from "../lib/application.js";
import { findAttention, growthOf } from "../lib/attention.js";
import { fill, h } from "../lib/dom.js";
import { firstSteps } from "../lib/first-steps.js";
import { showHistory } from "../lib/history.js";
import { icon, stoneOf } from "../lib/icons.js";
import { place } from "../lib/navigation.js";
import { mayAdminister, mayOversee } from "../lib/session.js";
import { count, plural, size, t } from "../lib/text.js";
import {
  avatar,
  button,
  card,
  commands,
  copyText,
  link,
  loadInto,
  shortName,
  sizeCell,
  table,
  tag,
  timeCell,
  viewHead,
} from "../lib/ui.js";

const LATELY = 8;
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}/;
const SHOWN_BUCKETS = 12;
const REFRESH = 60_000;

function actionOf([text, target]) {
  return typeof target === "string" ? link(text, target, { class: "button" }) : button(text, target);
}

function attentionCard(found) {
  if (found.length === 0)
    return h("section", { class: "card calm" }, icon("done"), h("p", null, t("Nothing needs attention.")));
  return card(
    [t("Needs attention"), h("span", { class: "count", "data-count": count(found.length) })],
    null,
    h(
      "ul",
      { class: "attention" },
      found.map((one) =>
        h(
          "li",
          null,
          h("span", { class: `tile small-tile ${one.level === 0 ? "bad" : "warn"}` }, icon(one.sign)),
          h("div", null, h("b", null, one.title), " ", h("span", { class: "muted" }, one.detail)),
          one.since && h("span", { class: "muted small" }, timeCell(one.since)),
          one.action && actionOf(one.action),
        ),
      ),
    ),
  );
}

function latelyCard(events) {
  return card(
    t("Lately"),
    link(t("All activity"), place("audit")),
    h(
      "ul",
      { class: "lately" },
      events.map((event) => {
        const name = shortName(event.principal);
        return h(
          "li",
          null,
          avatar(name),
          h(
            "div",
            null,
            h("b", null, name),
            " ",
            event.operation.replaceAll("_", " "),
            event.result !== "allowed" && [" ", tag(t(event.result), "warn")],
            // An id says nothing to people.
            !ID.test(event.resource) && h("div", { class: "muted small key" }, event.resource),
          ),
          h("span", { class: "muted small" }, timeCell(event.time)),
        );
      }),
      events.length === 0 && h("li", { class: "muted" }, t("Nothing happened yet.")),
    ),
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
    h(
      "button",
      {
        type: "button",
        class: "icon",
        "aria-label": t("Copy the endpoint"),
        title: t("Copy the endpoint"),
        onclick: () => copyText(endpoint),
      },
      icon("copy"),
    ),
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

function spaceCard(usage, status, buckets, history) {
  const quotas = new Map(buckets.map((bucket) => [bucket.name, bucket]));
  const sorted = [...usage.by_bucket].sort((a, b) => b.physical_bytes - a.physical_bytes);
  const growth = growthOf(history);
  const old = usage.physical_bytes - usage.logical_bytes;
  const share = ({ bucket }) => {
    const { quota, usage: used } = quotas.get(bucket) ?? {};
    if (quota?.bytes.mode !== "limit" || quota.bytes.bytes === 0) return null;
    const percent = Math.floor((used.bytes / quota.bytes.bytes) * 100);
    if (percent < 50) return null;
    return tag(t("{percent} % of quota", { percent }), percent >= 85 ? "warn" : "", "gauge");
  };
  return card(
    t("Space"),
    [
      plural(usage.objects, "{size} in {n} object", "{size} in {n} objects", { size: size(usage.physical_bytes) }),
      old > 0 && `, ${t("{size} of it old versions and unfinished uploads", { size: size(old) })}`,
      growth > 0 && `, ${t("about {size} more each day", { size: size(growth) })}`,
    ],
    spaceBar(sorted, status),
    h(
      "p",
      { class: "muted small" },
      t("{free} of {capacity} free", { free: size(status.available_bytes), capacity: size(status.capacity_bytes) }),
    ),
    sorted.length === 0
      ? h("p", { class: "muted" }, t("No buckets yet."))
      : table(
          t("Space by bucket"),
          [
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
            { name: t("Objects"), align: "end", cell: (row) => count(row.objects) },
            { name: t("Versions"), align: "end", from: "wide", cell: (row) => count(row.versions) },
            { name: t("Current"), align: "end", from: "medium", cell: (row) => sizeCell(row.logical_bytes) },
            { name: t("Stored"), align: "end", cell: (row) => sizeCell(row.physical_bytes) },
          ],
          sorted.slice(0, SHOWN_BUCKETS),
        ),
    sorted.length > SHOWN_BUCKETS &&
      h("p", null, link(plural(sorted.length, "All {n} bucket", "All {n} buckets"), place("buckets"))),
  );
}

export async function show(view) {
  const history = h("section", { class: "history" });
  const needs = h("div");
  const lately = h("div");
  const tags = h("span", { class: "tags" });
  let leave = null;
  let timer;
  let isOver = false;
  const drawNeeds = ({ found, info }) => {
    fill(needs, attentionCard(found));
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
  const again = async () => {
    const state = document.hidden ? null : await findAttention();
    // A server that does not answer says nothing about what needs attention.
    if (state?.info) drawNeeds(state);
    if (!isOver) timer = setTimeout(again, REFRESH);
  };
  await loadInto(view, async () => {
    const [state, usage, events, accounts] = await Promise.all([
      findAttention(),
      api.get("/api/v1/storage/usage"),
      mayOversee() ? api.get("/api/v1/audit/events", { limit: LATELY }).catch(() => null) : null,
      mayAdminister() ? api.get("/api/v1/service-accounts") : null,
    ]);
    // The status says what is wrong, if the others were not answered either.
    const status = state.status ?? (await api.get("/api/v1/storage/status"));
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
    const cli = commands("cairn status", "cairn history --period hour", "cairn storage usage");
    if (isEmpty)
      return [head, state.found.length > 0 && needs, firstSteps(usage.by_bucket, accounts.service_accounts), cli];
    leave ??= showHistory(history);
    if (events) fill(lately, latelyCard(events.events));
    return [
      head,
      h(
        "div",
        { class: events ? "columns" : "columns one" },
        h("div", null, needs, spaceCard(usage, status, state.buckets, state.history)),
        events && lately,
      ),
      history,
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
