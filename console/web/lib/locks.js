// Object lock: default retention of a bucket, retention and legal hold of a version.

import { api, bucketPath, encodeKey, withQuery } from "./api.js";
import { ask, confirmed, wrong } from "./dialogs.js";
import { h } from "./dom.js";
import { DAY, date, exactDate, plural, t } from "./text.js";
import { field, quoted, select } from "./ui.js";

const GOVERNANCE = "GOVERNANCE";
const COMPLIANCE = "COMPLIANCE";

/** Returns whether a retention has not ended. */
const isActive = (retention) => Boolean(retention) && new Date(retention.retain_until) > Date.now();

/** Returns whether a version is protected from deletion. */
export const isLocked = (version) => version.legal_hold || isActive(version.retention);

/** Returns the tags that say how a version is locked. */
export function lockTags(version) {
  const { retention } = version;
  return [
    isActive(retention) &&
      h(
        "span",
        { class: "tag warn", title: `${retention.mode}, ${exactDate(retention.retain_until)}` },
        retention.mode === COMPLIANCE
          ? t("locked until {date}, compliance", { date: date(retention.retain_until) })
          : t("locked until {date}", { date: date(retention.retain_until) }),
      ),
    version.legal_hold && h("span", { class: "tag warn" }, t("legal hold")),
  ];
}

const periodText = (retention) =>
  retention.days ? plural(retention.days, "{n} day", "{n} days") : plural(retention.years, "{n} year", "{n} years");

/** Describes a default retention. */
export const defaultRetentionText = (retention) =>
  retention
    ? t("{mode} for {period}", { mode: retention.mode, period: periodText(retention) })
    : t("no default retention");

const modes = () => [
  ["", t("none")],
  [GOVERNANCE, t("GOVERNANCE: administrators can shorten it")],
  [COMPLIANCE, t("COMPLIANCE: nobody can shorten it")],
];

/** Asks for the default retention of a bucket. Returns whether it was changed. */
export async function editDefaultRetention(bucket, present) {
  const mode = select(modes(), present?.mode ?? "");
  const number = h("input", { type: "number", min: 1, max: 36500, value: present?.days ?? present?.years ?? 30 });
  const unit = select(
    [
      ["days", t("days")],
      ["years", t("years of 365 days")],
    ],
    present?.years ? "years" : "days",
  );
  const chosen = await ask({
    title: t("Default retention"),
    action: t("Continue"),
    content: [
      h("p", null, t("For versions that are written from now on without a retention of their own.")),
      field(t("Mode"), mode),
      field(t("How long"), number),
      field(t("Unit"), unit),
    ],
    submit: async () => {
      if (mode.value && !number.reportValidity()) throw wrong(number, t("Enter how long versions are kept."));
      return { retention: mode.value ? { mode: mode.value, [unit.value]: Number(number.value) } : null };
    },
  });
  if (!chosen) return false;
  const text =
    chosen.retention?.mode === COMPLIANCE
      ? t(
          "Nobody can delete later versions before {period} have passed, not even administrators or root. COMPLIANCE cannot be undone for them.",
          { period: periodText(chosen.retention) },
        )
      : t("Versions that exist keep their retention. New ones get: {retention}.", {
          retention: defaultRetentionText(chosen.retention),
        });
  return confirmedChange(t("Default retention"), text, t("Set default retention"), () =>
    api.put(bucketPath(bucket, "object-lock"), { default_retention: chosen.retention }),
  );
}

// Asks, and shows an error of the change in the same dialog.
function confirmedChange(title, text, action, change) {
  return ask({
    title,
    content: h("p", null, text),
    action,
    danger: true,
    submit: async () => (await change()) ?? true,
  });
}

const pathOf = (route, bucket, key, version) =>
  withQuery(bucketPath(bucket, route, encodeKey(key)), { version_id: version });

// The value of a `datetime-local` input.
function local(time) {
  const two = (number) => String(number).padStart(2, "0");
  const day = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join("-");
  return `${day}T${two(time.getHours())}:${two(time.getMinutes())}`;
}

// What a retention means for its version, before it is set.
function consequence(retention) {
  if (!retention) return t("The version can be deleted afterwards.");
  const end = date(retention.retain_until);
  if (retention.mode === COMPLIANCE)
    return t(
      "Nobody can delete this version or shorten its retention before {date}, not even administrators or root. COMPLIANCE cannot be undone.",
      { date: end },
    );
  return t("The version cannot be deleted before {date}, unless governance is bypassed.", { date: end });
}

/** Asks for the retention of a version. Returns whether it was changed. */
export async function editRetention(bucket, key, version) {
  const present = isActive(version.retention) ? version.retention : null;
  const isFinal = present?.mode === COMPLIANCE;
  const mode = select(isFinal ? modes().slice(2) : modes(), present?.mode ?? GOVERNANCE);
  const start = present ? new Date(present.retain_until) : new Date(Date.now() + 30 * DAY);
  const until = h("input", { type: "datetime-local", value: local(start) });
  const bypass = h("input", { type: "checkbox" });
  const chosen = await ask({
    title: t("Retention of a version"),
    action: t("Continue"),
    content: [
      h(
        "p",
        { class: "muted" },
        version.version_id && h("code", null, version.version_id),
        " ",
        present && t("{mode} until {date}", { mode: present.mode, date: date(present.retain_until) }),
      ),
      isFinal && h("p", null, t("It can only be extended.")),
      field(t("Mode"), mode),
      field(t("Retain until"), until, t("In the time zone of this browser.")),
      present &&
        !isFinal &&
        h("label", { class: "check" }, bypass, t("Bypass governance: allow it to be shortened, changed or removed")),
    ],
    submit: async () => {
      if (!mode.value) return { retention: null };
      const time = new Date(until.value);
      if (Number.isNaN(time.getTime())) throw wrong(until, t("Enter the end of the retention."));
      return { retention: { mode: mode.value, retain_until: time.toISOString() } };
    },
  });
  if (!chosen) return false;
  const body = { retention: chosen.retention, bypass_governance: bypass.checked };
  const text = consequence(chosen.retention);
  const action = chosen.retention
    ? t("Lock until {date}", { date: date(chosen.retention.retain_until) })
    : t("Remove retention");
  return confirmedChange(t("Retention of a version"), text, action, () =>
    api.put(pathOf("object-retention", bucket, key, version.version_id), body),
  );
}

/** Puts a legal hold on a version or takes it off, after a confirmation. Returns whether it was changed. */
export async function toggleHold(bucket, key, version) {
  const on = !version.legal_hold;
  const text = on
    ? t("The version cannot be deleted until the hold is taken off.")
    : t("The version can be deleted if no retention protects it.");
  const title = on ? t("Put on legal hold") : t("Take off legal hold");
  if (!(await confirmed({ title, text, action: title }))) return false;
  await api.put(pathOf("object-legal-hold", bucket, key, version.version_id), { legal_hold: on });
  return true;
}

/** Returns the commands that lock a version. */
export function lockCommands(bucket, key, cairnPlace) {
  const aws = `--bucket ${quoted(bucket)} --key ${quoted(key)}`;
  return [
    `cairn object retention ${cairnPlace} --mode governance --until 30d`,
    `cairn object legal-hold ${cairnPlace} on`,
    `aws s3api put-object-legal-hold ${aws} --legal-hold Status=ON --endpoint-url $AWS_ENDPOINT_URL`,
  ];
}
