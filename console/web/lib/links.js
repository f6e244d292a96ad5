// Shares and embeds: forms that create them, and the table that lists them.

import { h } from "./dom.js";
import { api, bucketPath, encodeKey } from "./api.js";
import { count, t } from "./text.js";
import { acting, ask, button, confirmed, copyField, copyText, field, link, noticeError, select, table, tag, timeCell } from "./ui.js";
import { mayStore, place } from "../main.js";

const DAY = 86_400_000;

function expiry() {
  return select([["", t("never")], ["1", t("in a day")], ["7", t("in a week")], ["30", t("in 30 days")], ["365", t("in a year")]], "30");
}

const inDays = (days) => (days ? new Date(Date.now() + Number(days) * DAY).toISOString() : null);

async function showUrl(title, fields) {
  await ask({ title, content: fields, action: t("Done"), submit: async () => true });
}

/** Asks for the settings of a share, creates it, and shows its URL. */
export async function createShare(bucket, key) {
  const label = h("input", { type: "text", maxlength: 200 });
  const password = h("input", { type: "password", autocomplete: "new-password" });
  const expires = expiry();
  const maximum = h("input", { type: "number", min: 1 });
  const made = await ask({
    title: t("Share {name}", { name: key }), action: t("Create link"),
    content: [field(t("Label"), label, t("For you: who got this link.")), field(t("Password"), password, t("Optional. Send it another way than the link.")), field(t("Expires"), expires), field(t("Downloads allowed"), maximum, t("Optional. The link stops working afterwards."))],
    submit: () => api.post(bucketPath(bucket, "object-shares", encodeKey(key)), {
      label: label.value || null, password: password.value || null, expires_at: inDays(expires.value), maximum_downloads: maximum.value ? Number(maximum.value) : null,
    }),
  });
  if (made) await showUrl(t("The link is ready"), copyField(t("Link"), made.url));
  return made;
}

/** Asks for the settings of an embed, creates it, and shows its snippet. */
export async function createEmbed(bucket, key, contentType) {
  const origins = h("textarea", { rows: 3, required: true, placeholder: "https://www.example.com", spellcheck: "false" });
  const label = h("input", { type: "text", maxlength: 200 });
  const inline = /^(image|video|audio)\//.test(contentType) && !contentType.includes("svg");
  const disposition = select([["inline", t("show in the page")], ["attachment", t("download")]], inline ? "inline" : "attachment");
  const expires = expiry();
  const made = await ask({
    title: t("Embed {name}", { name: key }), action: t("Create embed"),
    content: [field(t("Allowed origins"), origins, t("One per line: scheme, host and port of each site that may show it.")), field(t("Label"), label), field(t("In a page"), disposition), field(t("Expires"), expires)],
    submit: () => api.post(bucketPath(bucket, "object-embeds", encodeKey(key)), {
      label: label.value, allowed_origins: origins.value.split("\n").map((line) => line.trim()).filter(Boolean), disposition: disposition.value, expires_at: inDays(expires.value),
    }),
  });
  if (made) await showUrl(t("The embed is ready"), [copyField(t("Address"), made.url), made.snippet && copyField(t("For the page"), made.snippet)]);
  return made;
}

/** The table of links. `changed` is called after a change. */
export function linkTable(rows, changed, withObject = true) {
  const path = (row, ...rest) => [`/api/v1/${row.kind}s`, row.id, ...rest].join("/");
  const act = (task) => acting(task, changed);
  const copyUrl = async (row) => {
    try {
      await copyText((await api.get(path(row, "url"))).url);
    } catch (error) {
      noticeError(error);
    }
  };
  const revoke = (row) => act(async () => {
    if (await confirmed({ title: t("Revoke link"), text: t("It stops working at once, and cannot be used again."), action: t("Revoke link") })) await api.post(path(row, "revoke"));
  });
  const remove = (row) => act(async () => {
    if (await confirmed({ title: t("Delete link"), text: t("The link and its counts will be removed."), action: t("Delete link") })) await api.remove(path(row));
  });
  return table(t("Links"), [
    { name: t("Link"), cell: (row) => [row.kind === "share" ? t("share") : t("embed"), " ", row.label && h("b", null, row.label), " ", tag(t(row.status), row.status === "active" ? "good" : "warn"), " ", row.password_protected && tag(t("password"))] },
    withObject && { name: t("Object"), cell: (row) => link(`${row.bucket}/${row.key}`, place("object", [row.bucket, row.key])) },
    { name: t("Created"), from: "medium", cell: (row) => [timeCell(row.created_at), h("div", { class: "muted small" }, row.created_by)] },
    { name: t("Expires"), from: "medium", cell: (row) => timeCell(row.expires_at) },
    { name: t("Downloads"), align: "end", from: "medium", cell: (row) => (row.maximum_downloads ? t("{n} of {maximum}", { n: count(row.access_count), maximum: count(row.maximum_downloads) }) : count(row.access_count)) },
    { name: t("Actions"), head: h("span", { class: "hidden" }, t("Actions")), align: "end", cell: (row) => mayStore() && h("div", { class: "row-actions" },
      row.status === "active" && button(t("Copy link"), () => copyUrl(row), "link"),
      row.status === "active" && button(t("Revoke"), revoke(row), "link"),
      button(t("Delete"), remove(row), "link danger")) },
  ].filter(Boolean), rows);
}
