// The notices that need attention, from what the server tells: damage, lost events, quotas, space, refused requests.

import { api, readQuietly } from "./api.js";
import { drawAttention } from "./frame.js";
import { attention, place, setCount } from "./navigation.js";
import { mayAdminister, mayOversee, mayStore } from "./session.js";
import { count, DAY, date, HOUR, plural, size, t } from "./text.js";
import { notice, noticeError } from "./ui.js";

const QUOTA_SHARE = 0.85;
const DISK_DAYS = 60;
// Growth is that of so many days. A shorter history says nothing about the days to come.
const TREND_DAYS = 30;
const TREND_DAYS_MIN = 2;
// The longest name that the server keeps.
const SUBJECT_MAX = 200;
const CERTIFICATE_DAYS = 21;
const CERTIFICATE_DAYS_RED = 3;
// So many failed logins from one address within an hour are a series, and so many an attack.
const LOGINS_MIN = 5;
const LOGINS_RED = 50;
// A backup is late after twice the time that usually passes between two, and at least this, in milliseconds.
const BACKUP_LATE_MIN = 36 * HOUR;
// The greatest age of the only backup.
const BACKUP_ONLY_MAX = 8 * DAY;
// So many requests of one client that are refused for one reason within an hour are no accident.
const REFUSED_MIN = 20;

const RED = 0;
const AMBER = 1;

function ofServer(info) {
  if (!info) return [];
  const found = [];
  if (info.status !== "ready")
    found.push({
      level: RED,
      subject: "server",
      sign: "alert",
      entry: "storage",
      title: t("The server is not ready."),
      detail: t("Some requests are refused. The log says why."),
      action: [t("Open storage"), place("storage")],
    });
  for (const [name, text] of Object.entries(info.notices ?? {})) {
    if (name === "integrity")
      found.push({
        level: RED,
        subject: "integrity",
        sign: "damage",
        entry: "storage",
        title: t("Stored data failed its check."),
        detail: t("Damaged data is not served: write these objects again from a copy, or delete them."),
        action: mayOversee() && [t("Show the damaged objects"), place("activity", [], { show: "damage" })],
      });
    else
      found.push({
        level: AMBER,
        subject: `notice ${name}`,
        sign: "warn",
        entry: "storage",
        title: name,
        detail: text,
        lang: "en",
      });
  }
  return found;
}

function ofDisk(status, kept) {
  if (!status) return [];
  const action = [t("Open storage"), place("storage")];
  if (status.disk_state !== "ok")
    return [
      {
        level: status.disk_state === "low" ? AMBER : RED,
        subject: "disk",
        sign: "server",
        entry: "storage",
        title: status.disk_state === "low" ? t("Disk space is low.") : t("Writes are refused: the disk is full."),
        detail: t("{size} free. Delete objects or enlarge the file system.", { size: size(status.available_bytes) }),
        action,
      },
    ];
  const growth = growthOf(kept);
  if (!(growth > 0)) return [];
  const days = Math.floor(status.available_bytes / growth);
  if (days >= DISK_DAYS) return [];
  return [
    {
      level: AMBER,
      subject: "growth",
      days,
      sign: "server",
      entry: "storage",
      title: plural(days, "The disk is full in about {n} day.", "The disk is full in about {n} days."),
      detail: t("{free} free, growing by about {growth} a day", {
        free: size(status.available_bytes),
        growth: size(growth),
      }),
      action,
    },
  ];
}

// By how many bytes the stored data grows in a day, as the days that the server keeps say it.
function growthOf(kept) {
  const times = (kept?.time ?? []).map((time) => Date.parse(time));
  const first = times.findIndex((time) => Date.now() - time <= TREND_DAYS * DAY);
  const last = times.length - 1;
  if (first < 0 || times[last] - times[first] < TREND_DAYS_MIN * DAY) return null;
  const stored = (index) =>
    kept.other_physical_bytes[index] + kept.buckets.reduce((sum, line) => sum + (line.physical_bytes[index] ?? 0), 0);
  return ((stored(last) - stored(first)) / (times[last] - times[first])) * DAY;
}

function ofWebhooks(list) {
  const found = [];
  for (const { id, target_url: url, enabled, health } of list?.webhooks ?? []) {
    const open = [t("Open webhook"), place("webhooks", [id])];
    const redeliver = async () => {
      try {
        const { queued } = await api.post(`/api/v1/webhooks/${id}/redeliver`, { since: health.lost_since });
        notice(plural(queued, "{n} event is sent again.", "{n} events are sent again."));
      } catch (error) {
        noticeError(error);
      }
    };
    if (health.lost > 0)
      found.push({
        level: RED,
        subject: `lost ${id}`,
        sign: "send",
        entry: "webhooks",
        title: plural(health.lost, "{n} event was not delivered.", "{n} events were not delivered."),
        detail: url,
        since: health.lost_since,
        action: mayAdminister() && enabled ? [t("Redeliver {n}", { n: count(health.lost) }), redeliver] : open,
      });
    else if (enabled && health.state !== "ok")
      found.push({
        level: health.state === "paused" ? RED : AMBER,
        subject: `webhook ${id}`,
        sign: "send",
        entry: "webhooks",
        title: health.state === "paused" ? t("A webhook is paused.") : t("A webhook fails."),
        detail: [url, health.last_error].filter(Boolean).join(": "),
        lang: "en",
        since: health.oldest_pending_at,
        action: open,
      });
  }
  return found;
}

function ofQuotas(list) {
  const found = [];
  for (const { name, quota, usage } of list?.buckets ?? []) {
    for (const [kind, show] of [
      ["bytes", size],
      ["objects", count],
    ]) {
      if (quota[kind].mode !== "limit") continue;
      const limit = quota[kind][kind];
      const share = limit > 0 ? usage[kind] / limit : 1;
      if (share < QUOTA_SHARE) continue;
      found.push({
        level: share >= 1 ? RED : AMBER,
        subject: `quota ${kind} ${name}`,
        sign: "gauge",
        entry: "buckets",
        title: t("{name} has used {percent} % of its quota.", { name, percent: Math.floor(share * 100) }),
        detail:
          kind === "bytes"
            ? t("{used} of {limit}", { used: show(usage[kind]), limit: show(limit) })
            : t("{used} of {limit} objects", { used: show(usage[kind]), limit: show(limit) }),
        action: [mayStore() ? t("Raise quota") : t("Open settings"), place("settings", [name])],
      });
    }
  }
  return found;
}

function ofRefused(list) {
  const groups = new Map();
  for (const row of list?.refused_requests ?? []) {
    if (Date.now() - Date.parse(row.time) > HOUR) continue;
    const who = row.principal ?? row.client;
    const key = `${who} ${row.code} ${row.operation} ${row.bucket}`;
    const group = groups.get(key) ?? { who, row, number: 0 };
    group.number += 1;
    group.since = row.time;
    groups.set(key, group);
  }
  return [...groups.values()]
    .filter(({ number }) => number >= REFUSED_MIN)
    .map(({ who, row, number, since }) => ({
      level: AMBER,
      subject: `refused ${who} ${row.code}`,
      sign: "ban",
      entry: "refused",
      title: plural(
        number,
        "{n} request of {who} was refused in the last hour.",
        "{n} requests of {who} were refused in the last hour.",
        { who },
      ),
      detail: row.advice ?? row.code,
      lang: "en",
      since,
      action: [t("Explain"), place("refused", [row.request_id])],
    }));
}

// What the role may not see.
const NOT_ASKED = {};

// What could not be read is not fine.
function ofMissing(answers) {
  if (answers.every((answer) => answer !== null)) return [];
  return [
    {
      level: AMBER,
      subject: "missing",
      sign: "alert",
      entry: "storage",
      title: t("Not everything could be checked."),
      detail: "",
    },
  ];
}

function ofLifecycle(status) {
  if (!status?.paused) return [];
  const resume = async () => {
    try {
      await api.post("/api/v1/lifecycle/resume");
      notice(t("Lifecycle rules go on."));
    } catch (error) {
      noticeError(error);
    }
  };
  return [
    {
      level: AMBER,
      subject: "lifecycle",
      sign: "clock",
      entry: "storage",
      title: t("Lifecycle rules are paused."),
      detail: status.reason ?? "",
      lang: "en",
      action: mayStore() && [t("Resume"), resume],
    },
  ];
}

function ofCertificates(attention) {
  return (attention?.certificates ?? [])
    .map(({ plane, expires_at: expires }) => ({
      plane,
      expires,
      days: Math.floor((Date.parse(expires) - Date.now()) / DAY),
    }))
    .filter(({ days }) => days < CERTIFICATE_DAYS)
    .map(({ plane, expires, days }) => ({
      level: days < CERTIFICATE_DAYS_RED ? RED : AMBER,
      subject: `certificate ${plane}`,
      days: Math.max(days, 0),
      sign: "shield",
      entry: "storage",
      title:
        days < 0
          ? t("A certificate has expired.")
          : plural(days, "A certificate expires in {n} day.", "A certificate expires in {n} days."),
      detail: t("{plane}, on {date}. New files are read by themselves.", {
        plane: PLANES[plane]?.() ?? plane,
        date: date(expires),
      }),
    }));
}

const PLANES = { data: () => t("S3"), management: () => t("Management API"), console: () => t("Console") };

function ofLogins(page) {
  const groups = new Map();
  for (const { source_ip: address, time } of page?.events ?? []) {
    const group = groups.get(address) ?? { number: 0 };
    groups.set(address, { number: group.number + 1, since: time });
  }
  return [...groups]
    .filter(([, { number }]) => number >= LOGINS_MIN)
    .map(([address, { number, since }]) => ({
      level: number >= LOGINS_RED ? RED : AMBER,
      subject: `logins ${address}`,
      sign: "key",
      entry: "activity",
      title: plural(number, "{n} failed sign-in", "{n} failed sign-ins"),
      detail: t("from {address} within an hour", { address }),
      since,
      action: [t("Show"), place("activity", [], { show: "sign-ins", text: address })],
    }));
}

function ofBackups(attention) {
  const times = (attention?.backups ?? []).map((time) => Date.parse(time));
  if (times.length === 0) return [];
  const gaps = times.slice(1).map((time, index) => time - times[index]);
  const usual = gaps.sort((a, b) => a - b)[Math.floor(gaps.length / 2)];
  const late = usual === undefined ? BACKUP_ONLY_MAX : Math.max(usual * 2, BACKUP_LATE_MIN);
  const age = Date.now() - times.at(-1);
  if (age <= late) return [];
  const days = Math.floor(age / DAY);
  return [
    {
      level: age > late * 2 ? RED : AMBER,
      subject: "backup",
      sign: "archive",
      entry: "backups",
      action: mayStore() ? [t("Backups"), place("backups")] : undefined,
      title: plural(days, "The last backup is {n} day old.", "The last backup is {n} days old."),
      detail: usual === undefined ? "" : t("Usually there is one every {time}.", { time: spanText(usual) }),
      since: new Date(times.at(-1)).toISOString(),
    },
  ];
}

function spanText(milliseconds) {
  const hours = Math.max(Math.round(milliseconds / HOUR), 1);
  return hours < 48 ? plural(hours, "{n} hour", "{n} hours") : plural(Math.round(hours / 24), "{n} day", "{n} days");
}

// A thing that has become worse is shown again.
const nameOf = ({ level, subject }) =>
  `${level === RED ? "red" : "amber"} ${subject}`.replace(/[^ -~]/g, "?").slice(0, SUBJECT_MAX);

/** Hides something for a day, for everybody, or shows it again. */
export const dismiss = (one, isHidden = true) =>
  api.post("/api/v1/attention/dismissals", { subject: nameOf(one), seconds: isHidden ? DAY / 1000 : 0 });

/**
 * Reads what needs attention, the most urgent first: `{level, sign, title, detail, since, action}`. The action is a
 * text with a URL or a task. `dismissed` is what somebody has hidden for a day, with `by` and `until`.
 */
export async function findAttention() {
  const since = new Date(Date.now() - HOUR).toISOString();
  const logins = { operation: "begin_console_session", result: "denied", since, limit: 100 };
  // A source that the server does not answer must not hide the others.
  const [info, status, kept, webhooks, buckets, refused, lifecycle, known, failed] = await Promise.all([
    readQuietly("/api/v1/system/info"),
    readQuietly("/api/v1/storage/status"),
    readQuietly("/api/v1/storage/history"),
    readQuietly("/api/v1/webhooks"),
    readQuietly("/api/v1/buckets"),
    mayOversee() ? readQuietly("/api/v1/refused-requests", { limit: 1000 }) : NOT_ASKED,
    readQuietly("/api/v1/lifecycle/status"),
    readQuietly("/api/v1/attention"),
    mayOversee() ? readQuietly("/api/v1/audit/events", logins) : NOT_ASKED,
  ]);
  const all = [
    ...ofServer(info),
    ...ofWebhooks(webhooks),
    ...ofDisk(status, kept),
    ...ofQuotas(buckets),
    ...ofRefused(refused),
    ...ofLifecycle(lifecycle),
    ...ofCertificates(known),
    ...ofLogins(failed),
    ...ofBackups(known),
    ...ofMissing([info, status, kept, webhooks, buckets, refused, lifecycle, known, failed]),
  ].sort((a, b) => a.level - b.level || (a.days ?? DISK_DAYS) - (b.days ?? DISK_DAYS));
  const hidden = new Map((known?.dismissed ?? []).map((one) => [one.subject, one]));
  const found = all.filter((one) => !hidden.has(nameOf(one)));
  const dismissed = all
    .filter((one) => hidden.has(nameOf(one)))
    .map((one) => ({ ...one, ...hidden.get(nameOf(one)), subject: one.subject }));
  markEntries(found);
  return { found, dismissed, info, status, kept, buckets: buckets?.buckets ?? [] };
}

// Marks the entries of the rail.
function markEntries(found) {
  attention.clear();
  for (const { entry, level, title } of found) {
    if (!attention.has(entry) && entry !== "buckets")
      attention.set(entry, { kind: level === RED ? "bad" : "warn", text: title });
  }
  if (found.length > 0)
    attention.set("overview", {
      kind: found[0].level === RED ? "bad" : "warn",
      text: plural(found.length, "{n} thing needs attention", "{n} things need attention"),
    });
  setCount("overview", found.length > 0 ? count(found.length) : undefined);
  drawAttention();
}
