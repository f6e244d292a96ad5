// Settings of a bucket: versions, quota, locks, lifecycle, public access, CORS, deletion.

import { api, bucketPath } from "../lib/api.js";
import { removeBucket } from "../lib/buckets.js";
import { corsCommands, corsSection } from "../lib/cors.js";
import { fill, h } from "../lib/dom.js";
import { describe } from "../lib/errors.js";
import { bucketHead } from "../lib/heads.js";
import { defaultRetentionText, editDefaultRetention } from "../lib/locks.js";
import { draw, go, place } from "../lib/navigation.js";
import { allPublic, publicCommands, publicSection } from "../lib/public.js";
import { mayStore } from "../lib/session.js";
import { count, plural, size, t } from "../lib/text.js";
import {
  ask,
  button,
  commands,
  confirmed,
  emptyBox,
  facts,
  field,
  link,
  noticeError,
  quoted,
  table,
  tag,
  timeCell,
} from "../lib/ui.js";

const GB = 1_000_000_000;

async function setQuota(info) {
  const bytes = h("input", {
    type: "number",
    min: 0,
    step: "any",
    value: info.quota.bytes.mode === "limit" ? info.quota.bytes.bytes / GB : "",
  });
  const objects = h("input", {
    type: "number",
    min: 0,
    value: info.quota.objects.mode === "limit" ? info.quota.objects.objects : "",
  });
  const limit = (name, text, factor) =>
    text === "" ? { mode: "unlimited" } : { mode: "limit", [name]: Math.round(Number(text) * factor) };
  (await ask({
    title: t("Quota"),
    action: t("Save"),
    content: [
      field(t("Size in GB"), bytes, t("Empty: no limit.")),
      field(t("Objects"), objects, t("Empty: no limit.")),
    ],
    submit: () =>
      api.put(bucketPath(info.name, "quota"), {
        quota: { bytes: limit("bytes", bytes.value, GB), objects: limit("objects", objects.value, 1) },
      }),
  })) && draw();
}

const tagText = ({ key, value }) => `${key.replaceAll("=", "%3D")}=${value}`;

async function editRule(bucket, rule) {
  const number = (value) => h("input", { type: "number", min: 1, max: 36500, value: value ?? "" });
  const prefix = h("input", { type: "text", value: rule?.prefix ?? "", spellcheck: "false" });
  // A key may have an equals sign, but no tag has a percent sign.
  const tagLines = (rule?.tags ?? []).map(tagText).join("\n");
  const tags = h("textarea", { rows: 2, spellcheck: "false", value: tagLines });
  const tagOf = (line) => {
    const [key, ...value] = line.split("=");
    return { key: key.replaceAll("%3D", "="), value: value.join("=") };
  };
  const expiration = number(rule?.expiration);
  const old = number(rule?.noncurrent_version_expiration);
  // 0 is what a rule without it has.
  const newer = number(rule?.newer_noncurrent_versions || undefined);
  const uploads = number(rule?.abort_incomplete_multipart_upload);
  const markers = h("input", { type: "checkbox", checked: rule?.expired_delete_markers ?? false });
  const enabled = h("input", { type: "checkbox", checked: rule?.enabled ?? true });
  const value = (input) => (input.value === "" ? undefined : Number(input.value));
  const body = () => ({
    prefix: prefix.value,
    tags: tags.value
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map(tagOf),
    expiration: value(expiration),
    noncurrent_version_expiration: value(old),
    newer_noncurrent_versions: value(newer),
    expired_delete_markers: markers.checked || undefined,
    abort_incomplete_multipart_upload: value(uploads),
    enabled: enabled.checked,
  });
  const shown = h("div", { "aria-live": "polite" });
  const preview = async () => {
    fill(shown, h("p", { class: "muted" }, t("Looking…")));
    try {
      const found = await api.post(bucketPath(bucket, "lifecycle", "preview"), body());
      fill(
        shown,
        h(
          "div",
          { class: "problem plain" },
          h(
            "p",
            null,
            t(
              "Now it would remove {objects} objects ({bytes}), {versions} old versions ({oldBytes}) and {markers} delete markers.",
              {
                objects: count(found.current_objects),
                bytes: size(found.current_bytes),
                versions: count(found.noncurrent_versions),
                oldBytes: size(found.noncurrent_bytes),
                markers: count(found.delete_markers),
              },
            ),
          ),
          found.multipart_uploads > 0 &&
            h(
              "p",
              null,
              t("It would abort {uploads} unfinished uploads ({bytes}).", {
                uploads: count(found.multipart_uploads),
                bytes: size(found.multipart_bytes),
              }),
            ),
          found.sample.length > 0 &&
            h(
              "ul",
              { class: "small" },
              found.sample.slice(0, 5).map((entry) => h("li", null, entry.key)),
            ),
        ),
      );
    } catch (error) {
      fill(shown, h("p", { class: "bad" }, describe(error)));
    }
  };
  (await ask({
    title: rule ? t("Change rule") : t("Create rule"),
    action: rule ? t("Save") : t("Create rule"),
    content: [
      field(t("Prefix"), prefix, t("Empty: all objects.")),
      field(
        t("Tags"),
        tags,
        t("Only objects that have all of these tags: key=value, one in each line. Empty: with any tags."),
      ),
      field(t("Remove objects after days"), expiration),
      field(t("Remove old versions after days"), old),
      field(t("Keep this many old versions"), newer),
      field(t("Abort unfinished uploads after days"), uploads),
      h("label", { class: "check" }, markers, t("Remove delete markers without versions")),
      h("label", { class: "check" }, enabled, t("Enabled")),
      button(t("Preview"), preview),
      shown,
    ],
    submit: () =>
      rule
        ? api.put(bucketPath(bucket, "lifecycle", rule.id), body())
        : api.post(bucketPath(bucket, "lifecycle"), body()),
  })) && draw();
}

function ruleTable(bucket, rules) {
  const remove = async (rule) => {
    if (
      !(await confirmed({
        title: t("Delete rule"),
        text: t("Objects that the rule has not removed stay."),
        action: t("Delete rule"),
      }))
    )
      return;
    await api.remove(`/api/v1/lifecycle-rules/${rule.id}`).then(draw, noticeError);
  };
  const removesText = (rule) =>
    [
      rule.expiration && plural(rule.expiration, "objects after {n} day", "objects after {n} days"),
      rule.noncurrent_version_expiration &&
        plural(rule.noncurrent_version_expiration, "old versions after {n} day", "old versions after {n} days"),
      rule.newer_noncurrent_versions &&
        plural(rule.newer_noncurrent_versions, "all but {n} old version", "all but {n} old versions"),
      rule.expired_delete_markers && t("delete markers without versions"),
      rule.abort_incomplete_multipart_upload &&
        plural(
          rule.abort_incomplete_multipart_upload,
          "unfinished uploads after {n} day",
          "unfinished uploads after {n} days",
        ),
    ]
      .filter(Boolean)
      .join(", ");
  return table(
    t("Lifecycle rules"),
    [
      {
        name: t("Prefix"),
        cell: (rule) => [
          h("code", null, rule.prefix || t("all objects")),
          " ",
          rule.tags.map((one) => [tag(tagText(one)), " "]),
          !rule.enabled && tag(t("off"), "warn"),
        ],
      },
      { name: t("Removes"), cell: removesText },
      { name: t("Last run"), from: "medium", cell: (rule) => timeCell(rule.status.last_run_finished_at, true) },
      {
        name: t("Removed so far"),
        align: "end",
        from: "medium",
        cell: (rule) => count(rule.status.expired_objects + rule.status.noncurrent_versions_removed),
      },
      {
        name: t("Actions"),
        head: h("span", { class: "hidden" }, t("Actions")),
        align: "end",
        cell: (rule) =>
          mayStore() &&
          h(
            "div",
            { class: "row-actions" },
            button(t("Change"), () => editRule(bucket, rule), "link"),
            button(t("Delete"), () => remove(rule), "link danger"),
          ),
      },
    ],
    rules,
  );
}

export async function show(view, { parts: [bucket] }) {
  const [info, open, { rules }, contents, { rules: cors }, lock, { blocked }] = await Promise.all([
    api.get(bucketPath(bucket)),
    allPublic(bucket),
    ...["lifecycle", "contents", "cors", "object-lock", "public-access"].map((part) =>
      api.get(bucketPath(bucket, part)),
    ),
  ]);
  const setVersioning = async (versioning) => {
    const text =
      versioning === "Enabled"
        ? t("From now on, old versions of objects are kept until they are deleted.")
        : t("Old versions stay. New objects replace each other.");
    if (
      await confirmed({
        title: t("Versions"),
        text,
        action: versioning === "Enabled" ? t("Keep old versions") : t("Suspend versions"),
      })
    ) {
      await api.put(bucketPath(bucket, "versioning"), { versioning }).then(draw, noticeError);
    }
  };
  const versionButton =
    info.versioning === "Enabled"
      ? !info.object_lock && button(t("Suspend versions"), () => setVersioning("Suspended"))
      : button(t("Keep old versions"), () => setVersioning("Enabled"));
  const limit = (quota, show) => (quota.mode === "limit" ? show(quota.bytes ?? quota.objects) : t("no limit"));
  const objectsText = (number) => plural(number, "{n} object", "{n} objects");
  fill(
    view,
    bucketHead(info, "settings"),
    facts([
      [t("Created"), timeCell(info.created_at)],
      [t("Objects"), `${count(info.usage.objects)} · ${size(info.usage.bytes)}`],
      [t("All versions"), `${count(contents.versions)} · ${size(contents.version_bytes)}`],
      [t("Unfinished uploads"), `${count(contents.multipart_uploads)} · ${size(contents.multipart_bytes)}`],
      [
        t("Versions"),
        h(
          "span",
          { class: "row" },
          t({ Enabled: "kept", Suspended: "suspended", Unversioned: "not kept" }[info.versioning]),
          mayStore() && versionButton,
        ),
      ],
      [
        t("Object lock"),
        lock.object_lock
          ? h(
              "span",
              { class: "row" },
              `${t("on")}, ${defaultRetentionText(lock.default_retention)}`,
              mayStore() &&
                button(
                  t("Change default retention"),
                  async () => (await editDefaultRetention(bucket, lock.default_retention)) && draw(),
                ),
            )
          : t("off; it can only be turned on when a bucket is created"),
      ],
      [
        t("Quota"),
        h(
          "span",
          { class: "row" },
          [limit(info.quota.bytes, size), limit(info.quota.objects, objectsText)].join(", "),
          mayStore() && button(t("Change quota"), () => setQuota(info)),
        ),
      ],
    ]),
    h("h2", null, t("Lifecycle rules")),
    rules.length > 0 ? ruleTable(bucket, rules) : emptyBox(t("No rules. Objects stay until they are deleted.")),
    mayStore() &&
      h(
        "p",
        null,
        button(t("Create rule"), () => editRule(bucket, null)),
      ),
    publicSection(bucket, open, blocked),
    corsSection(bucket, cors),
    h("h2", null, t("Events")),
    h("p", null, link(t("Events of this bucket"), place("events", [], { bucket }))),
    mayStore() && [
      h("h2", null, t("Delete")),
      button(
        t("Delete bucket"),
        async () => {
          try {
            if (await removeBucket(bucket)) go("buckets");
          } catch (error) {
            noticeError(error);
          }
        },
        "danger",
      ),
    ],
    commands(
      `cairn bucket show ${quoted(bucket)}`,
      `cairn lifecycle list ${quoted(bucket)}`,
      ...publicCommands(bucket, open.rules),
      ...corsCommands(bucket, cors),
      ...(lock.object_lock ? [`cairn bucket object-lock ${quoted(bucket)} --mode governance --days 30`] : []),
    ),
  );
}
