// Shares and embeds: forms that create them, and the table that lists them.

import { api, bucketPath, encodeKey } from "./api.js";
import { copyField } from "./copy-field.js";
import { ask, confirmed, tell } from "./dialogs.js";
import { h } from "./dom.js";
import { place } from "./navigation.js";
import { isMember, mayWrite } from "./session.js";
import { count, DAY, date, plural, t } from "./text.js";
import {
  acting,
  actionsColumn,
  banner,
  button,
  copyText,
  field,
  link,
  noticeError,
  select,
  table,
  tag,
  timeCell,
} from "./ui.js";

function expiry() {
  const made = select(
    [
      ["", t("never")],
      ["1", t("in a day")],
      ["7", t("in a week")],
      ["30", t("in 30 days")],
      ["365", t("in a year")],
    ],
    "30",
  );
  made.name = "expires_at";
  return made;
}

const inDays = (days) => (days ? new Date(Date.now() + Number(days) * DAY).toISOString() : null);

// What a phone can read from the screen.
async function codeOf(url) {
  const { drawing } = await import("./qr.js");
  return h(
    "figure",
    { class: "qr" },
    drawing(url, t("QR code of the link")),
    h("figcaption", { class: "muted small" }, t("Scan to open the link on a phone.")),
  );
}

// A link of a loopback address opens nothing for others.
function reachNote(url) {
  const { hostname } = new URL(url, location.href);
  return (
    /^(localhost|127\.|\[::1\])/.test(hostname) &&
    banner(
      "warn",
      t(
        "This link works only on this machine: its address is {host}. Set sharing.share_base_url, so that others can open it.",
        {
          host: hostname,
        },
      ),
    )
  );
}

/** Shows the URL of a link, with a QR code. */
export async function showLink(title, url) {
  // The link is of use without its code, too.
  const code = await codeOf(url).catch(() => null);
  await tell(title, [reachNote(url), copyField(t("Link"), url), code]);
}

/** Asks for the settings of a share of each object, creates them, and shows their URLs. */
export async function createShares(bucket, keys) {
  const label = h("input", { name: "label", type: "text", maxlength: 200 });
  const password = h("input", { name: "password", type: "password", autocomplete: "new-password" });
  const expires = expiry();
  const maximum = h("input", { name: "maximum_downloads", type: "number", min: 1 });
  const made = [];
  const settings = () => ({
    label: label.value || null,
    password: password.value || null,
    expires_at: inDays(expires.value),
    maximum_downloads: maximum.value ? Number(maximum.value) : null,
  });
  await ask({
    title:
      keys.length === 1
        ? t("Share {name}", { name: keys[0] })
        : plural(keys.length, "Share {n} object", "Share {n} objects"),
    action: keys.length === 1 ? t("Create link") : plural(keys.length, "Create {n} link", "Create {n} links"),
    content: [
      field(t("Label"), label, t("For you: who got this link.")),
      field(t("Password"), password, t("Optional. Send it another way than the link.")),
      field(t("Expires"), expires),
      field(t("Downloads allowed"), maximum, t("Optional. The link stops working afterwards.")),
      isMember() && h("p", { class: "muted" }, t("It works for as long as your present policies allow it.")),
    ],
    submit: async () => {
      // After a failure, those that were made are not made again.
      for (const key of keys.slice(made.length))
        made.push(await api.post(bucketPath(bucket, "object-shares", encodeKey(key)), settings()));
    },
  });
  if (made.length === 0) return undefined;
  if (made.length === 1) {
    await showLink(t("The link is ready"), made[0].url);
  } else {
    const text = made.map(({ share, url }) => `${share.key}\n${url}`).join("\n\n");
    const area = h("textarea", { rows: 10, readonly: true });
    area.value = text;
    await tell(plural(made.length, "{n} link is ready", "{n} links are ready"), [
      reachNote(made[0].url),
      field(t("Links"), area),
      button(t("Copy all"), () => copyText(text)),
    ]);
  }
  return made;
}

/** Asks for the settings of a share, creates it, and shows its URL. */
export const createShare = (bucket, key) => createShares(bucket, [key]);

/** Asks for the settings of an embed, creates it, and shows its snippet. */
export async function createEmbed(bucket, key, contentType) {
  const origins = h("textarea", {
    name: "allowed_origins",
    rows: 3,
    required: true,
    placeholder: "https://www.example.com",
    spellcheck: "false",
  });
  const label = h("input", { name: "label", type: "text", maxlength: 200 });
  const inline = /^(image|video|audio)\//.test(contentType) && !contentType.includes("svg");
  const disposition = select(
    [
      ["inline", t("show in the page")],
      ["attachment", t("download")],
    ],
    inline ? "inline" : "attachment",
  );
  const expires = expiry();
  const made = await ask({
    title: t("Embed {name}", { name: key }),
    action: t("Create embed"),
    content: [
      field(t("Allowed origins"), origins, t("One per line: scheme, host and port of each site that may show it.")),
      field(t("Label"), label),
      field(t("In a page"), disposition),
      field(t("Expires"), expires),
    ],
    submit: () =>
      api.post(bucketPath(bucket, "object-embeds", encodeKey(key)), {
        label: label.value,
        allowed_origins: origins.value
          .split("\n")
          .map((line) => line.trim())
          .filter(Boolean),
        disposition: disposition.value,
        expires_at: inDays(expires.value),
      }),
  });
  if (made)
    await tell(t("The embed is ready"), [
      copyField(t("Address"), made.url),
      made.snippet && copyField(t("For the page"), made.snippet),
    ]);
  return made;
}

// What a line of a list says of a link.
function factsOf(row) {
  const opened = plural(row.access_count, "opened {n} time", "opened {n} times");
  const until = row.expires_at ? t("until {date}", { date: date(row.expires_at) }) : t("without an end");
  return [row.kind === "share" ? t("share") : t("embed"), until, opened].join(", ");
}

/** The table of links. `changed` is called after a change. */
export function linkTable(rows, changed, withObject = true) {
  const path = (row, ...rest) => [`/api/v1/${row.kind}s`, row.id, ...rest].join("/");
  const act = (task) => acting(task, changed);
  const copyUrl = async (row) => {
    try {
      const { url } = await api.get(path(row, "url"));
      await copyText(url);
      if (row.kind === "share") await showLink(t("Copied."), url);
    } catch (error) {
      noticeError(error);
    }
  };
  const revoke = (row) =>
    act(async () => {
      if (
        await confirmed({
          title: t("Revoke link"),
          text: t("It stops working at once, and cannot be used again."),
          action: t("Revoke link"),
        })
      )
        await api.post(path(row, "revoke"));
    });
  const remove = (row) =>
    act(async () => {
      if (
        await confirmed({
          title: t("Delete link"),
          text: t("The link and its counts will be removed."),
          action: t("Delete link"),
        })
      )
        await api.remove(path(row));
    });
  return table(
    t("Links"),
    [
      {
        name: t("Link"),
        kind: "wide",
        cell: (row) => [
          row.label
            ? h("b", null, row.label)
            : h("span", { class: "muted" }, row.kind === "share" ? t("share") : t("embed")),
          " ",
          tag(t(row.status), row.status === "active" ? "good" : "warn"),
          " ",
          row.password_protected && tag(t("password")),
          !withObject && h("div", { class: "muted small" }, factsOf(row)),
        ],
      },
      withObject && {
        name: t("Object"),
        kind: "wide",
        cell: (row) =>
          link(`${row.bucket}/${row.key}`, place("object", [row.bucket, row.key]), {
            class: "clamp",
            title: row.key,
          }),
      },
      withObject && {
        name: t("Created"),
        from: "wide",
        cell: (row) => [timeCell(row.created_at), h("div", { class: "muted small" }, row.created_by)],
      },
      withObject && { name: t("Expires"), from: "medium", cell: (row) => timeCell(row.expires_at) },
      withObject && {
        name: t("Downloads"),
        align: "end",
        from: "medium",
        cell: (row) =>
          row.maximum_downloads
            ? t("{n} of {maximum}", { n: count(row.access_count), maximum: count(row.maximum_downloads) })
            : count(row.access_count),
      },
      actionsColumn(
        (row) =>
          mayWrite() && [
            row.status === "active" && button(t("Copy link"), () => copyUrl(row), "link"),
            row.status === "active" && button(t("Revoke"), revoke(row), "link"),
            button(t("Delete"), remove(row), "link danger"),
          ],
      ),
    ].filter(Boolean),
    rows,
  );
}
