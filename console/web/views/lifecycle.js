// Lifecycle rules of a bucket: what they remove, and what they would remove now.

import { api, bucketPath } from "../lib/api.js";
import { ask, confirmed } from "../lib/dialogs.js";
import { fill, h } from "../lib/dom.js";
import { describe } from "../lib/errors.js";
import { bucketHead } from "../lib/heads.js";
import { icon } from "../lib/icons.js";
import { draw } from "../lib/navigation.js";
import { mayStore } from "../lib/session.js";
import { count, plural, size, t } from "../lib/text.js";
import {
  actionsColumn,
  button,
  commands,
  emptyBox,
  field,
  noticeError,
  quoted,
  table,
  tag,
  timeCell,
} from "../lib/ui.js";

const tagText = ({ key, value }) => `${key.replaceAll("=", "%3D")}=${value}`;

async function editRule(bucket, rule) {
  const number = (name, value) => h("input", { name, type: "number", min: 1, max: 36500, value: value ?? "" });
  const prefix = h("input", { name: "prefix", type: "text", value: rule?.prefix ?? "", spellcheck: "false" });
  // A key may have an equals sign, but no tag has a percent sign.
  const tagLines = (rule?.tags ?? []).map(tagText).join("\n");
  const tags = h("textarea", { name: "tags", rows: 2, spellcheck: "false", value: tagLines });
  const tagOf = (line) => {
    const [key, ...value] = line.split("=");
    return { key: key.replaceAll("%3D", "="), value: value.join("=") };
  };
  const expiration = number("expiration", rule?.expiration);
  const old = number("noncurrent_version_expiration", rule?.noncurrent_version_expiration);
  // 0 is what a rule without it has.
  const newer = number("newer_noncurrent_versions", rule?.newer_noncurrent_versions || undefined);
  const uploads = number("abort_incomplete_multipart_upload", rule?.abort_incomplete_multipart_upload);
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
  // What is shown is about the fields as they are.
  let serial = 0;
  // The serial of the preview that is under way.
  let looking;
  const forget = () => {
    serial += 1;
    fill(shown);
  };
  for (const input of [prefix, tags, expiration, old, newer, uploads, markers, enabled])
    input.addEventListener("input", forget);
  const preview = async () => {
    if (looking === serial) return;
    forget();
    const own = serial;
    looking = own;
    fill(shown, h("p", { class: "muted", "aria-busy": "true" }, t("Looking…")));
    try {
      const found = await api.post(bucketPath(bucket, "lifecycle", "preview"), body());
      if (own !== serial) return;
      fill(
        shown,
        h(
          "div",
          { class: "problem plain" },
          h(
            "p",
            null,
            t("Now it would remove {objects} ({bytes}), {versions} ({oldBytes}) and {markers}.", {
              objects: plural(found.current_objects, "{n} object", "{n} objects"),
              bytes: size(found.current_bytes),
              versions: plural(found.noncurrent_versions, "{n} old version", "{n} old versions"),
              oldBytes: size(found.noncurrent_bytes),
              markers: plural(found.delete_markers, "{n} delete marker", "{n} delete markers"),
            }),
          ),
          found.multipart_uploads > 0 &&
            h(
              "p",
              null,
              t("It would abort {uploads} ({bytes}).", {
                uploads: plural(found.multipart_uploads, "{n} unfinished upload", "{n} unfinished uploads"),
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
      if (own === serial) fill(shown, h("p", { class: "bad" }, describe(error)));
    } finally {
      if (looking === own) looking = undefined;
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
      field(t("Remove objects after (days)"), expiration),
      field(t("Remove old versions after (days)"), old),
      field(t("Keep this many old versions"), newer),
      field(t("Abort unfinished uploads after (days)"), uploads),
      h("label", { class: "check" }, markers, t("Remove delete markers without versions")),
      h("label", { class: "check" }, enabled, t("Enabled")),
      // Not once at a time, as `button`: fields that have changed meanwhile are looked at, too.
      h("button", { type: "button", onclick: preview }, t("Preview")),
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
          rule.tags.map((one) => [h("code", { class: "tag" }, tagText(one)), " "]),
          !rule.enabled && tag(t("off"), "warn"),
        ],
      },
      { name: t("Removes"), kind: "wide", cell: removesText },
      { name: t("Last run"), from: "medium", cell: (rule) => timeCell(rule.status.last_run_finished_at, true) },
      {
        name: t("Removed so far"),
        align: "end",
        from: "medium",
        cell: (rule) => count(rule.status.expired_objects + rule.status.noncurrent_versions_removed),
      },
      actionsColumn(
        (rule) =>
          mayStore() && [
            button(t("Change"), () => editRule(bucket, rule), "link"),
            button(t("Delete"), () => remove(rule), "link danger"),
          ],
      ),
    ],
    rules,
  );
}

export async function show(view, { parts: [bucket] }) {
  const [info, { rules }] = await Promise.all([api.get(bucketPath(bucket)), api.get(bucketPath(bucket, "lifecycle"))]);
  const create = button([icon("plus"), t("Create rule")], () => editRule(bucket, null), "main");
  fill(
    view,
    bucketHead(info, "lifecycle", { actions: mayStore() && rules.length > 0 && create }),
    rules.length > 0
      ? ruleTable(bucket, rules)
      : emptyBox(t("No rules. Objects stay until they are deleted."), mayStore() && create),
    commands(`cairn lifecycle list ${quoted(bucket)}`),
  );
}
