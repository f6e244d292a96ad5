// The activity, the newest first: storage events and the audit trail as one list, read backwards page by page.

import { api } from "./api.js";
import { mayOversee } from "./session.js";

const PAGE = 100;
// Rows that are added when more are asked for.
const ROWS = 50;
// Pages that one step reads at most: a search for what is rare goes on when the user asks.
const READS_MAX = 12;
// After so many milliseconds, a step begins no further read.
const SEARCH_MAX = 2500;
// Rows that a view holds at most.
const ROWS_MAX = 3000;
// Changes of one lifecycle rule within so many characters of their time are one row: an hour.
const HOUR_LENGTH = 13;

// The time within which changes become one row, in milliseconds, and the most changes of a row.
const TOGETHER = 30_000;
const TOGETHER_MAX = 1000;

const RIGHTS = [
  "create_service_account",
  "delete_service_account",
  "set_service_account_status",
  "create_credential",
  "create_temporary_credential",
  "delete_credential",
  "set_credential_status",
  "create_policy",
  "replace_policy",
  "delete_policy",
  "attach_policy",
  "detach_policy",
  "create_management_token",
  "delete_management_token",
];
const SHARING = [
  "create_share",
  "update_share",
  "delete_share",
  "get_share_url",
  "revoke_share",
  "create_embed",
  "update_embed",
  "delete_embed",
  "get_embed_url",
  "revoke_embed",
  "set_public_access",
];
const SETTINGS = [
  "create_bucket",
  "set_versioning",
  "set_quota",
  "set_cors",
  "delete_cors",
  "set_public_access",
  "set_object_lock",
  "create_lifecycle_rule",
  "replace_lifecycle_rule",
  "delete_lifecycle_rule",
  "resume_lifecycle",
  "create_webhook",
  "update_webhook",
  "delete_webhook",
  "set_webhook_status",
  "rotate_webhook_secret",
  "CreateBucket",
  "PutBucketVersioning",
  "PutBucketCors",
  "DeleteBucketCors",
  "PutBucketLifecycleConfiguration",
  "DeleteBucketLifecycle",
  "PutObjectLockConfiguration",
  "service.start",
  "service.stop",
];
const DAMAGE = [
  "storage.damage",
  "storage.read_failed",
  "storage.volume_read_only",
  "storage.changes_stopped",
  "storage.changes_resumed",
  "audit.damaged",
  "repair_storage",
  "compact_storage",
  "upgrade_storage",
  "restore_bucket",
  "begin_backup",
  "end_backup",
];

/** The kinds that can be shown: the types of events and the operations of the audit trail that belong to it. */
export const SHOWS = {
  all: { events: {}, audit: {} },
  deletions: { events: { type: ["object.deleted", "bucket.deleted"] } },
  refused: { audit: { result: "denied" } },
  "sign-ins": { audit: { operation: ["begin_console_session", "end_session_by_id"] } },
  sharing: { audit: { operation: SHARING } },
  rights: { audit: { operation: RIGHTS } },
  settings: { audit: { operation: SETTINGS }, events: { type: ["bucket.created", "bucket.deleted"] } },
  damage: { audit: { operation: DAMAGE } },
};

// One of the two lists. `read` returns a page after a cursor.
function source(kind, read) {
  const own = { kind, items: [], isOver: false, reached: null };
  let cursor = {};
  own.more = async () => {
    const page = await read(cursor);
    own.items.push(...page.events);
    own.isOver = page.next_id === null;
    own.reached = page.next_time;
    cursor = { time: page.next_time, id: page.next_id };
  };
  return own;
}

function sourcesOf({ show, text, ...filters }, signal) {
  const wanted = SHOWS[show] ?? SHOWS.all;
  const shared = { limit: PAGE, contains: text, ...filters };
  const made = [];
  if (wanted.events)
    made.push(
      source("event", ({ time, id }) =>
        api.get(
          "/api/v1/events",
          { order: "desc", ...shared, ...wanted.events, before_time: time, before_id: id },
          { signal },
        ),
      ),
    );
  if (wanted.audit && mayOversee())
    made.push(
      source("audit", ({ time, id }) =>
        api.get("/api/v1/audit/events", { ...shared, ...wanted.audit, after_time: time, after_id: id }, { signal }),
      ),
    );
  return made;
}

// What belongs together has the same key: the changes of one request, and those of a rule within an hour.
function keyOf(kind, item) {
  if (kind === "audit") return item.request_id ?? item.id;
  const { request_id: request, rule_id: rule } = item.metadata;
  return request ?? (rule ? `${item.bucket} ${rule} ${item.time.slice(0, HOUR_LENGTH)}` : item.id);
}

// The same request, refused again: a client that repeats it is one row.
const isRepeated = (row, { result, principal, operation, resource, source_ip: address }) =>
  result === "denied" &&
  row?.audit?.result === "denied" &&
  row.events.length === 0 &&
  row.principal === principal &&
  row.audit.operation === operation &&
  row.audit.resource === resource &&
  row.audit.source_ip === address;

// Changes of the same kind that one person makes one after the other are one row.
function isMore(row, { type, bucket, object, time, metadata }) {
  const newer = row?.events.at(-1);
  return (
    newer !== undefined &&
    !row.audit &&
    object !== undefined &&
    newer.object !== undefined &&
    newer.type === type &&
    newer.bucket === bucket &&
    metadata.request_id !== undefined &&
    newer.metadata.principal === metadata.principal &&
    newer.metadata.rule_id === metadata.rule_id &&
    row.events.length < TOGETHER_MAX &&
    Date.parse(newer.time) - Date.parse(time) <= TOGETHER
  );
}

/**
 * Begins to read what happened, with `{show, text, since, until, principal, bucket}`. Returns `{rows, changed, more(),
 * isOver, isFull, searchedTo}`: `more` adds older rows, and ends early when little matches; `changed` are the rows
 * that it made or changed. A row is `{key, time, since, principal, audit, events, number, mayGrow}`; `number` is how
 * often it was refused. One step reads `readsMax` pages at most.
 */
export function activityFeed(filters, signal, readsMax = READS_MAX) {
  const sources = sourcesOf(filters, signal);
  const known = new Map();
  const feed = { rows: [], changed: new Set(), more, isOver: false, isFull: false, searchedTo: null };

  function add(kind, item) {
    let key = keyOf(kind, item);
    let row = known.get(key);
    const last = feed.rows.at(-1);
    if (!row && kind === "audit" && isRepeated(last, item)) {
      feed.changed.add(last);
      last.number += 1;
      last.since = item.time;
      return;
    }
    // A request has one record. Further ones stand for themselves.
    if (row && kind === "audit" && row.audit) {
      key = item.id;
      row = undefined;
    }
    if (!row && kind === "event" && isMore(last, item)) {
      row = last;
      known.set(key, row);
    }
    if (!row) {
      row = { key, time: item.time, since: item.time, number: 1, principal: null, audit: null, events: [] };
      known.set(key, row);
      feed.rows.push(row);
    }
    if (kind === "audit") row.audit = item;
    else row.events.push(item);
    row.since = item.time;
    feed.changed.add(row);
    row.principal ??= kind === "audit" ? item.principal : (item.metadata.principal ?? null);
  }

  async function more() {
    const before = feed.rows.length;
    const end = before + ROWS;
    feed.changed.clear();
    let reads = 0;
    const begun = performance.now();
    while (feed.rows.length < end) {
      const empty = sources.filter((one) => one.items.length === 0 && !one.isOver);
      if (empty.length > 0) {
        // What was found is shown first: thousands of changes may be one row.
        if (reads > 0 && feed.rows.length > before) break;
        if (reads === readsMax || performance.now() - begun > SEARCH_MAX) break;
        reads += 1;
        await Promise.all(empty.map((one) => one.more()));
        continue;
      }
      const heads = sources.filter((one) => one.items.length > 0);
      if (heads.length === 0) {
        feed.isOver = true;
        break;
      }
      const latest = heads.reduce((best, one) => (one.items[0].time > best.items[0].time ? one : best));
      add(latest.kind, latest.items.shift());
    }
    feed.isFull = feed.rows.length >= ROWS_MAX;
    // Nothing was found: how far the search came.
    const isEarly = !feed.isOver && feed.rows.length === before;
    const reached = sources.filter((one) => !one.isOver).map((one) => one.reached);
    feed.searchedTo = isEarly ? (reached.sort().at(-1) ?? null) : null;
    const open = feed.rows.filter((row) => row.mayGrow);
    for (const row of open) {
      row.mayGrow = false;
      feed.changed.add(row);
    }
    // The oldest row may have begun in a page that was not read.
    const last = feed.rows.at(-1);
    if (last && !feed.isOver) last.mayGrow = last.events.length > 1;
  }
  return feed;
}
