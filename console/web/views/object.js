// One object: preview, life with its versions, comparison, properties, tags, metadata, locks, copies, links.

import { api, bucketPath, encodeKey, encodeSegment } from "../lib/api.js";
import { comparisonCard } from "../lib/compare.js";
import { confirmed } from "../lib/dialogs.js";
import { fill, h } from "../lib/dom.js";
import { icon, kindOf, stoneOf } from "../lib/icons.js";
import { lifeCard, namesOf, restoreVersion, versionsOf } from "../lib/life.js";
import { createEmbed, createShare, linkTable } from "../lib/links.js";
import { editRetention, lockCommands, lockTags, toggleHold } from "../lib/locks.js";
import { menuButton } from "../lib/menu.js";
import { copyObject } from "../lib/moving.js";
import { draw, go, momentOf, place, staying } from "../lib/navigation.js";
import { contentPath, crumbs, undelete } from "../lib/objects.js";
import { preview } from "../lib/preview.js";
import { metadataCard, propertiesCard, tagsCard } from "../lib/properties.js";
import { isMember, mayStore, mayWrite } from "../lib/session.js";
import { date, size, t } from "../lib/text.js";
import {
  banner,
  button,
  commands,
  errorBox,
  facts,
  link,
  loadInto,
  notice,
  noticeError,
  quoted,
  said,
  tag,
  viewHead,
} from "../lib/ui.js";

const STATUS = { ok: () => t("intact"), corrupt: () => t("damaged"), missing: () => t("missing") };

async function verify(bucket, key, place_) {
  const check = async () => {
    const result = await api.post(`/api/v1/verify/objects/${encodeSegment(bucket)}/${encodeKey(key)}`);
    const proof = JSON.stringify(result.proof, null, 2);
    return h(
      "div",
      { class: result.status === "ok" ? "problem good" : "problem", role: "status" },
      h(
        "p",
        null,
        result.status === "ok" ? t("Every block was read from the device and matches its check.") : said(result.detail),
      ),
      facts([
        [t("Status"), STATUS[result.status]?.() ?? result.status],
        [t("Blocks"), result.blocks_checked],
      ]),
      h("details", null, h("summary", null, t("Signed proof")), h("pre", { class: "mono", tabindex: "0" }, proof)),
    );
  };
  // It reads the whole object: the user decides whether it does so again.
  await loadInto(place_, check, true);
}

export async function show(view, { parts: [bucket, key], parameters }) {
  const at = momentOf(parameters);
  // An old version is shown like an earlier moment: it can be read, and restored.
  const shownVersion = parameters.get("version") ?? undefined;
  const compared = [parameters.get("compare"), parameters.get("with")];
  const isPast = Boolean(at || shownVersion);
  const mayChange = mayWrite() && !isPast;
  // Without a role, only some requests are open: policies decide.
  const hasRole = !isMember();
  const unless = (value) => (error) => {
    if (hasRole) throw error;
    return value;
  };
  const slash = key.lastIndexOf("/") + 1;
  const [info, versions] = await Promise.all([
    api.get(bucketPath(bucket)).catch(unless({ versioning: "Unversioned" })),
    versionsOf(bucket, key).catch(unless([])),
  ]);
  const isVersioned = info.versioning !== "Unversioned";
  let record = null;
  try {
    record = await api.get(bucketPath(bucket, "object", encodeKey(key)), { at, version_id: shownVersion });
  } catch (error) {
    if (error.status !== 404 || versions.length === 0 || shownVersion) throw error;
  }
  // What was current at an earlier moment is an old version now.
  const then = isPast ? record?.version_id : undefined;
  const nameOf = namesOf(versions);
  const number = versions.filter((version) => !version.is_delete_marker).length;
  const checked = h("div");
  const shown = h("div");
  const life = h("div");
  const comparing = h("div");
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
    const isHere = staying();
    try {
      await api.remove(bucketPath(bucket, "object", encodeKey(key)));
      notice(
        t("Deleted."),
        isVersioned && hasRole
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
      else if (isHere()) go("bucket", [bucket], { prefix: key.slice(0, slash) });
    } catch (error) {
      noticeError(error);
    }
  };
  // What is done less often than the three buttons beside it.
  const mayLock = mayStore() && info.object_lock;
  const more = () => [
    mayStore() && {
      text: t("Embed"),
      sign: "code",
      task: async () => (await createEmbed(bucket, key, record.content_type)) && drawLinks(),
    },
    { text: t("Copy"), sign: "copy", task: () => copyObject(bucket, key, false) },
    mayStore() && { text: t("Verify"), sign: "done", task: () => verify(bucket, key, checked) },
    mayLock && {
      text: t("Retention"),
      sign: "lock",
      task: async () => (await editRetention(bucket, key, record)) && draw(),
    },
    mayLock && {
      text: record.legal_hold ? t("Take off hold") : t("Put on hold"),
      sign: "lock",
      task: () => toggleHold(bucket, key, record).then((changed) => changed && draw(), noticeError),
    },
    null,
    { text: t("Delete"), sign: "trash", isDangerous: true, task: remove },
  ];
  const moreButton = () => menuButton(t("More actions"), more, { class: "only-icon" });
  const drawLinks = () =>
    loadInto(linksPlace, async () => {
      const [{ shares }, { embeds }] = await Promise.all([
        api.get(bucketPath(bucket, "object-shares", encodeKey(key))),
        hasRole ? api.get(bucketPath(bucket, "object-embeds", encodeKey(key))) : { embeds: [] },
      ]);
      if (shares.length + embeds.length === 0)
        return h(
          "p",
          { class: "muted none" },
          hasRole ? t("This object is not shared.") : t("You have not shared this object."),
        );
      return linkTable(
        [...shares.map((row) => ({ ...row, kind: "share" })), ...embeds.map((row) => ({ ...row, kind: "embed" }))],
        drawLinks,
        false,
      );
    });
  // In a place of the command line, these characters are patterns.
  const cli = quoted(`${bucket}/${key.replace(/[*?[\\]/g, "\\$&")}`);
  const pastBanner = () =>
    banner(
      "past",
      [
        h(
          "b",
          null,
          at
            ? t("{name} as it was on {date}.", { name: key.slice(slash), date: date(at) })
            : t("{version} of {name}, from {date}.", {
                version: nameOf(shownVersion),
                name: key.slice(slash),
                date: date(record.last_modified),
              }),
        ),
        " ",
        t("Read-only."),
      ],
      link(t("Back to now"), place("object", [bucket, key]), { class: "button" }),
      shownVersion &&
        isVersioned &&
        mayWrite() &&
        button([icon("undo"), t("Restore this version")], () => restoreVersion(bucket, key, shownVersion), "past"),
    );
  fill(
    view,
    viewHead(key.slice(slash) || "∅", {
      path: [link(t("Buckets"), place("buckets")), " / ", crumbs(bucket, key.slice(0, slash), undefined, at)],
      sign: record ? kindOf(record.content_type) : "file",
      stone: stoneOf(bucket),
      tags: [
        !record && tag(t("deleted"), "warn"),
        record &&
          number > 1 &&
          tag(t("{version} of {n}", { version: nameOf(record.version_id), n: number }), "", "layers"),
        record?.encrypted && tag(t("encrypted"), "", "key"),
        record && lockTags(record),
      ],
      note: record ? size(record.size) : "",
      actions: record &&
        mayWrite() && [
          !isPast && button([icon("link"), t("Share")], async () => (await createShare(bucket, key)) && drawLinks()),
          !isPast && button([icon("arrow"), t("Move")], () => copyObject(bucket, key, true)),
          link([icon("download"), t("Download")], contentPath(bucket, key, then), {
            class: "button main",
            download: "",
          }),
          mayChange && moreButton(),
        ],
    }),
    isPast && pastBanner(),
    h(
      "div",
      { class: "columns object" },
      h("div", null, h("div", null, checked, shown), comparing, life),
      record &&
        h(
          "div",
          null,
          propertiesCard(bucket, key, record),
          tagsCard(bucket, key, record, mayChange),
          metadataCard({
            bucket,
            key,
            record,
            isVersioned: info.versioning === "Enabled",
            number,
            mayChange: mayChange && hasRole,
          }),
          !isPast && h("section", { class: "card narrow" }, h("header", null, h("h2", null, t("Links"))), linksPlace),
        ),
    ),
    hasRole &&
      commands(
        `cairn object stat ${cli}`,
        `cairn object history ${cli}`,
        `cairn object get ${cli} .`,
        `aws s3 cp ${quoted(`s3://${bucket}/${key}`)} . --endpoint-url $AWS_ENDPOINT_URL`,
        ...(info.object_lock ? lockCommands(bucket, key, cli) : []),
      ),
  );
  if (!isPast && record) drawLinks();
  if (!at && versions.length > 0) fill(life, await lifeCard(bucket, key, info, versions));
  if (compared.every(Boolean))
    await loadInto(comparing, () => comparisonCard(bucket, key, compared, compared.map(nameOf)));
  if (record && mayWrite()) {
    try {
      const made = await preview(bucket, key, record, then);
      if (made) fill(shown, h("div", { class: "preview" }, made));
    } catch (error) {
      fill(shown, errorBox(error));
    }
  }
}
