// One object: preview, metadata, versions, locks, copies, links, verification.

import { api, bucketPath, encodeKey, encodeSegment, withQuery } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { icon, kindOf, stoneOf } from "../lib/icons.js";
import { lifeCard } from "../lib/life.js";
import { createEmbed, createShare, linkTable } from "../lib/links.js";
import { editRetention, isLocked, lockCommands, lockTags, toggleHold } from "../lib/locks.js";
import { draw, go, place } from "../lib/navigation.js";
import { contentPath, crumbs, undelete } from "../lib/objects.js";
import { mayStore } from "../lib/session.js";
import { date, exactSize, size, t } from "../lib/text.js";
import {
  ask,
  banner,
  bar,
  button,
  card,
  commands,
  confirmed,
  emptyBox,
  errorBox,
  facts,
  field,
  link,
  loadInto,
  notice,
  noticeError,
  quoted,
  sizeCell,
  table,
  tag,
  timeCell,
  viewHead,
} from "../lib/ui.js";

const IMAGES = /^image\/(avif|bmp|gif|jpeg|png|vnd\.microsoft\.icon|webp|x-icon)\b/;
const TEXTS = /^(text\/|application\/(json|xml|yaml|toml|javascript|sql|x-sh)|.*\+(json|xml|yaml)\b)/;

async function preview(bucket, key, record, version) {
  const content = contentPath(bucket, key, version);
  const type = record.content_type;
  if (/^video\//.test(type)) return h("video", { controls: true, preload: "metadata", src: content });
  if (/^audio\//.test(type)) return h("audio", { controls: true, preload: "metadata", src: content });
  const path = withQuery(bucketPath(bucket, "object-preview", encodeKey(key)), { version_id: version });
  if (IMAGES.test(type)) return h("img", { src: path, alt: t("Preview of {name}", { name: key }) });
  if (!TEXTS.test(type)) return null;
  const response = await fetch(path, { credentials: "same-origin" });
  if (!response.ok) return null;
  const text = await response.text();
  let shown = text;
  if (type.includes("json")) {
    try {
      shown = JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      // Only the beginning of a long text is sent.
    }
  }
  return h("pre", { tabindex: "0", "aria-label": t("Preview of {name}", { name: key }) }, shown);
}

async function copy(bucket, key, move) {
  const to = h("input", { type: "text", required: true, value: bucket, spellcheck: "false" });
  const name = h("input", { type: "text", required: true, value: key, spellcheck: "false" });
  const overwrite = h("input", { type: "checkbox" });
  const choice = h("label", { class: "check", hidden: true }, overwrite, t("Replace the object that is there"));
  // The answer is about one destination.
  for (const input of [to, name]) {
    input.addEventListener("input", () => {
      overwrite.checked = false;
      choice.hidden = true;
    });
  }
  const copyTo = async () => {
    try {
      await api.post(bucketPath(bucket, move ? "object-move" : "object-copy", encodeKey(key)), {
        destination_bucket: to.value,
        destination_key: name.value,
        if_absent: !overwrite.checked,
      });
    } catch (error) {
      if (error.code !== "OBJECT_ALREADY_EXISTS") throw error;
      choice.hidden = false;
      throw new Error(t("The destination already has an object. Choose another name, or replace it."));
    }
  };
  const done = await ask({
    title: move ? t("Move object") : t("Copy object"),
    action: move ? t("Move") : t("Copy"),
    content: [field(t("Bucket"), to), field(t("Key"), name), choice],
    submit: async () => {
      if (to.value === bucket && name.value === key) throw new Error(t("Choose another name or bucket."));
      await copyTo();
      return true;
    },
  });
  if (done) go("object", [to.value, name.value]);
}

async function verify(bucket, key, place_) {
  await loadInto(place_, async () => {
    const result = await api.post(`/api/v1/verify/objects/${encodeSegment(bucket)}/${encodeKey(key)}`);
    const proof = JSON.stringify(result.proof, null, 2);
    return h(
      "div",
      { class: result.status === "ok" ? "problem good" : "problem", role: "status" },
      h(
        "p",
        null,
        result.status === "ok" ? t("Every block was read from the device and matches its check.") : result.detail,
      ),
      facts([
        [t("Status"), result.status],
        [t("Blocks"), result.blocks_checked],
      ]),
      h("details", null, h("summary", null, t("Signed proof")), h("pre", { class: "mono", tabindex: "0" }, proof)),
    );
  });
}

async function versionsOf(bucket, key) {
  const found = [];
  let markers = {};
  for (let page = 0; page < 10; page += 1) {
    const answer = await api.get(bucketPath(bucket, "object-versions"), { prefix: key, limit: 1000, ...markers });
    found.push(...answer.versions.filter((version) => version.key === key));
    if (!answer.next_key_marker || answer.next_key_marker !== key) break;
    markers = { key_marker: answer.next_key_marker, version_id_marker: answer.next_version_id_marker };
  }
  return found;
}

const lockActions = (bucket, key, version, kind) => [
  button(t("Retention"), async () => (await editRetention(bucket, key, version)) && draw(), kind),
  button(
    version.legal_hold ? t("Take off hold") : t("Put on hold"),
    () => toggleHold(bucket, key, version).then((changed) => changed && draw(), noticeError),
    kind,
  ),
];

function versionTable(bucket, key, versions, isVersioned, hasLock) {
  const restore = async (version) => {
    try {
      await api.post(`/api/v1/restore/${encodeSegment(bucket)}/${encodeKey(key)}`, { version_id: version.version_id });
      notice(t("The version is current again."));
      draw();
    } catch (error) {
      noticeError(error);
    }
  };
  const remove = async (version) => {
    const text = t("This version will be deleted permanently. It cannot be undone.");
    if (!(await confirmed({ title: t("Delete version"), text, action: t("Delete version") }))) return;
    try {
      await api.remove(
        withQuery(bucketPath(bucket, "object-versions", encodeKey(key)), { version_id: version.version_id }),
      );
      draw();
    } catch (error) {
      noticeError(error);
    }
  };
  return table(
    t("Versions"),
    [
      {
        name: t("Version"),
        cell: (row) => [
          h("code", null, row.version_id),
          " ",
          row.is_latest && tag(t("current"), "good"),
          " ",
          row.is_delete_marker && tag(t("delete marker"), "warn"),
          " ",
          lockTags(row),
        ],
      },
      { name: t("Modified"), cell: (row) => timeCell(row.last_modified) },
      {
        name: t("Size"),
        align: "end",
        from: "medium",
        cell: (row) => (row.is_delete_marker ? "–" : sizeCell(row.size)),
      },
      {
        name: t("Actions"),
        head: h("span", { class: "hidden" }, t("Actions")),
        align: "end",
        cell: (row) =>
          mayStore() &&
          h(
            "div",
            { class: "row-actions" },
            !row.is_delete_marker && link(t("Download"), contentPath(bucket, key, row.version_id), { download: "" }),
            row.is_delete_marker &&
              row.is_latest &&
              button(
                t("Undelete"),
                async () => {
                  await undelete(bucket, key).catch(noticeError);
                  draw();
                },
                "link",
              ),
            isVersioned && !row.is_latest && !row.is_delete_marker && button(t("Restore"), () => restore(row), "link"),
            hasLock && !row.is_delete_marker && lockActions(bucket, key, row, "link"),
            !isLocked(row) && button(t("Delete"), () => remove(row), "link danger"),
          ),
      },
    ],
    versions,
  );
}

export async function show(view, { parts: [bucket, key], parameters }) {
  const at = parameters.get("at") ?? undefined;
  const mayChange = mayStore() && !at;
  const slash = key.lastIndexOf("/") + 1;
  const [info, versions] = await Promise.all([api.get(bucketPath(bucket)), versionsOf(bucket, key)]);
  const isVersioned = info.versioning !== "Unversioned";
  let record = null;
  try {
    record = await api.get(bucketPath(bucket, "object", encodeKey(key)), { at });
  } catch (error) {
    if (error.status !== 404 || versions.length === 0) throw error;
  }
  // What was current at an earlier moment is an old version now.
  const then = at && record?.version_id;
  const checked = h("div");
  const shown = h("div");
  const life = h("div");
  const linksPlace = h("div");
  const remove = async () => {
    if (
      !isVersioned &&
      !(await confirmed({
        title: t("Delete object"),
        text: t("The bucket keeps no versions: this cannot be undone."),
        action: t("Delete object"),
      }))
    )
      return;
    try {
      await api.remove(bucketPath(bucket, "object", encodeKey(key)));
      notice(
        t("Deleted."),
        isVersioned
          ? [
              t("Undo"),
              async () => {
                await undelete(bucket, key).catch(noticeError);
                draw();
              },
            ]
          : undefined,
      );
      if (isVersioned) draw();
      else go("bucket", [bucket], { prefix: key.slice(0, slash) });
    } catch (error) {
      noticeError(error);
    }
  };
  const actions =
    record && mayChange
      ? [
          button(t("Embed"), async () => (await createEmbed(bucket, key, record.content_type)) && drawLinks()),
          button(t("Copy"), () => copy(bucket, key, false)),
          button(t("Verify"), () => verify(bucket, key, checked)),
          info.object_lock && lockActions(bucket, key, record),
          h("span", { class: "end" }, button([icon("trash"), t("Delete")], remove, "danger")),
        ]
      : [];
  const drawLinks = () =>
    loadInto(linksPlace, async () => {
      const [{ shares }, { embeds }] = await Promise.all([
        api.get(bucketPath(bucket, "object-shares", encodeKey(key))),
        api.get(bucketPath(bucket, "object-embeds", encodeKey(key))),
      ]);
      if (shares.length + embeds.length === 0) return emptyBox(t("This object is not shared."));
      return linkTable(
        [...shares.map((row) => ({ ...row, kind: "share" })), ...embeds.map((row) => ({ ...row, kind: "embed" }))],
        drawLinks,
        false,
      );
    });
  // In a place of the command line, these characters are patterns.
  const cli = quoted(`${bucket}/${key.replace(/[*?[\\]/g, "\\$&")}`);
  fill(
    view,
    viewHead(key.slice(slash) || "∅", {
      path: [link(t("Buckets"), place("buckets")), " / ", crumbs(bucket, key.slice(0, slash), undefined, at)],
      sign: record ? kindOf(record.content_type) : "file",
      stone: stoneOf(bucket),
      tags: [
        !record && tag(t("deleted"), "warn"),
        record?.encrypted && tag(t("encrypted"), "", "key"),
        record && lockTags(record),
      ],
      note: record ? size(record.size) : "",
      actions: record &&
        mayStore() && [
          !at && button([icon("link"), t("Share")], async () => (await createShare(bucket, key)) && drawLinks()),
          !at && button([icon("arrow"), t("Move")], () => copy(bucket, key, true)),
          link([icon("download"), t("Download")], contentPath(bucket, key, then), {
            class: "button main",
            download: "",
          }),
        ],
    }),
    at &&
      banner(
        "past",
        [
          h("b", null, t("{name} as it was on {date}.", { name: key.slice(slash), date: date(at) })),
          " ",
          t("Read-only."),
        ],
        link(t("Back to now"), place("object", [bucket, key]), { class: "button" }),
      ),
    actions.length > 0 && bar(actions),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        null,
        h("div", null, checked, shown),
        !at &&
          (isVersioned || versions.length > 1) &&
          card(t("Versions"), null, versionTable(bucket, key, versions, isVersioned, info.object_lock)),
        life,
        !at && card(t("Links"), null, linksPlace),
      ),
      record &&
        h(
          "div",
          null,
          card(
            t("Properties"),
            null,
            facts([
              [
                t("Size"),
                [
                  sizeCell(record.size),
                  " ",
                  record.size > 999 && h("span", { class: "muted small" }, exactSize(record.size)),
                ],
              ],
              [t("Type"), record.content_type],
              [t("Modified"), timeCell(record.last_modified)],
              ["ETag", h("code", null, record.etag)],
              [t("Version"), record.version_id && h("code", null, record.version_id)],
              [t("Parts"), record.parts?.length],
              ...Object.entries(record.checksums ?? {}).map(([name, value]) => [name, h("code", null, value)]),
              ...Object.entries(record.headers ?? {}).map(([name, value]) => [name, value]),
              ...Object.entries(record.metadata ?? {}).map(([name, value]) => [`x-amz-meta-${name}`, value]),
            ]),
          ),
        ),
    ),
    commands(
      `cairn object stat ${cli}`,
      `cairn object history ${cli}`,
      `cairn object get ${cli} .`,
      `aws s3 cp ${quoted(`s3://${bucket}/${key}`)} . --endpoint-url $AWS_ENDPOINT_URL`,
      ...(info.object_lock ? lockCommands(bucket, key, cli) : []),
    ),
  );
  if (!at) {
    drawLinks();
    // Other parts of the page say what is wrong.
    lifeCard(bucket, key).then(
      (made) => fill(life, made),
      () => {},
    );
  }
  if (record && mayStore()) {
    try {
      const made = await preview(bucket, key, record, then);
      if (made) fill(shown, h("div", { class: "preview" }, made));
    } catch (error) {
      fill(shown, errorBox(error));
    }
  }
}
