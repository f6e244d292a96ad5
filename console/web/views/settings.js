// Settings of a bucket: versions, quota, locks, CORS, deletion.

import { api, bucketPath } from "../lib/api.js";
import { removeBucket } from "../lib/buckets.js";
import { corsCommands, corsSection } from "../lib/cors.js";
import { ask, confirmed } from "../lib/dialogs.js";
import { fill, h } from "../lib/dom.js";
import { bucketHead } from "../lib/heads.js";
import { defaultRetentionText, editDefaultRetention } from "../lib/locks.js";
import { draw, go } from "../lib/navigation.js";
import { quotaInput } from "../lib/quota.js";
import { mayStore } from "../lib/session.js";
import { count, plural, size, t } from "../lib/text.js";
import { button, commands, facts, field, noticeError, quoted, timeCell } from "../lib/ui.js";

async function setQuota(info) {
  const bytes = quotaInput(info.quota.bytes.mode === "limit" ? info.quota.bytes.bytes : null);
  const objects = h("input", {
    name: "objects",
    type: "number",
    min: 0,
    value: info.quota.objects.mode === "limit" ? info.quota.objects.objects : "",
  });
  const limit = (name, number) => (number === null ? { mode: "unlimited" } : { mode: "limit", [name]: number });
  (await ask({
    title: t("Quota"),
    action: t("Save"),
    content: [bytes.element, field(t("Objects"), objects, t("Empty: no limit."))],
    submit: () =>
      api.put(bucketPath(info.name, "quota"), {
        quota: {
          bytes: limit("bytes", bytes.bytes()),
          objects: limit("objects", objects.value === "" ? null : Number(objects.value)),
        },
      }),
  })) && draw();
}

export async function show(view, { parts: [bucket] }) {
  const [info, contents, { rules: cors }, lock] = await Promise.all([
    api.get(bucketPath(bucket)),
    ...["contents", "cors", "object-lock"].map((part) => api.get(bucketPath(bucket, part))),
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
        danger: versioning !== "Enabled",
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
          [...new Set([limit(info.quota.bytes, size), limit(info.quota.objects, objectsText)])].join(", "),
          mayStore() && button(t("Change quota"), () => setQuota(info)),
        ),
      ],
    ]),
    corsSection(bucket, cors),
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
      ...corsCommands(bucket, cors),
      ...(lock.object_lock ? [`cairn bucket object-lock ${quoted(bucket)} --mode governance --days 30`] : []),
    ),
  );
}
