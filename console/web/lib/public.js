// Public access: the rules of a bucket, what they make readable, and a table of rules.

import { api, bucketPath } from "./api.js";
import { ask, confirmed } from "./dialogs.js";
import { fill, h } from "./dom.js";
import { draw, place } from "./navigation.js";
import { section } from "./sections.js";
import { mayStore } from "./session.js";
import { t } from "./text.js";
import { actionsColumn, button, emptyBox, field, link, quoted, table, tableRow, tag, timeCell } from "./ui.js";

const SECTION = 100;
const SAMPLE = 5;

/** Reads all that is public, or what is in one bucket: `{enabled, rules}`. */
export async function allPublic(bucket) {
  const { enabled, rules } = await api.get("/api/v1/public-access");
  return { enabled, rules: bucket === undefined ? rules : rules.filter((rule) => rule.bucket === bucket) };
}

// The rules of a bucket can only be replaced together: they are read just before, so that little can come between.
async function change(bucket, task) {
  const path = bucketPath(bucket, "public-access");
  const access = await api.get(path);
  await api.put(path, task(access));
}

const without = (rules, prefix) => rules.filter((rule) => rule.prefix !== prefix);

// One sentence for each thing that will be so.
function meaning({ bucket, prefix, list }) {
  const read = prefix
    ? t("Everybody can read every object of {bucket} whose key begins with “{prefix}”, without an account.", {
        bucket,
        prefix,
      })
    : t("Everybody can read every object of {bucket}, without an account.", { bucket });
  const listed = list
    ? t("Everybody can list the keys of these objects, too.")
    : t("Nobody can list their keys that way, but who knows or guesses a key reads the object.");
  return [read, listed, t("This includes objects that are stored later. Old versions stay private.")].join(" ");
}

async function sample(bucket, prefix) {
  const { objects, next_continuation_token: more } = await api.get(bucketPath(bucket, "objects"), {
    prefix,
    limit: SAMPLE,
  });
  if (objects.length === 0) return h("p", { class: "muted" }, t("No object is affected at the moment."));
  const keys = objects.map(({ key }) => h("li", null, h("code", null, key)));
  return [
    h("p", null, more ? t("Among the objects of this moment:") : t("The objects of this moment:")),
    h("ul", { class: "small" }, keys, more && h("li", null, "…")),
  ];
}

async function addRule(bucket) {
  const prefix = h("input", {
    name: "prefix",
    type: "text",
    spellcheck: "false",
    autocomplete: "off",
    oninput: () => tell(),
  });
  const list = h("input", { type: "checkbox", onchange: () => tell() });
  const shown = h("p", { class: "problem plain", "aria-live": "polite" });
  const rule = () => ({ bucket, prefix: prefix.value, list: list.checked });
  const tell = () => fill(shown, meaning(rule()));
  tell();
  const chosen = await ask({
    title: t("Make objects public"),
    action: t("Continue"),
    content: [
      field(
        t("Prefix"),
        prefix,
        t("Empty: all objects. Without / at the end it covers longer names, too: a covers ab and a/b."),
      ),
      h("label", { class: "check" }, list, t("Let everybody list the keys")),
      shown,
    ],
    submit: async () => ({ ...rule(), shown: await sample(bucket, prefix.value) }),
  });
  if (!chosen) return false;
  return confirmed({
    title: t("Make these objects public?"),
    text: meaning(chosen),
    shown: chosen.shown,
    action: t("Make public"),
    // Everything at once is the costliest mistake.
    name: chosen.prefix === "" ? bucket : undefined,
    task: () =>
      change(bucket, ({ rules, blocked }) => ({
        rules: [...without(rules, chosen.prefix), { prefix: chosen.prefix, read: true, list: chosen.list }],
        blocked,
      })),
  });
}

function removeRule({ bucket, prefix }) {
  return confirmed({
    title: t("Make private"),
    text: prefix
      ? t("Objects of {bucket} whose keys begin with “{prefix}” are refused to strangers at once.", { bucket, prefix })
      : t("Objects of {bucket} are refused to strangers at once.", { bucket }),
    action: t("Make private"),
    task: () => change(bucket, ({ rules, blocked }) => ({ rules: without(rules, prefix), blocked })),
  });
}

function setBlocked(bucket, blocked, rules) {
  const readable = rules.map(({ prefix, list }) => h("li", null, meaning({ bucket, prefix, list })));
  return confirmed({
    title: blocked ? t("Block public access") : t("Unblock public access"),
    text: blocked
      ? t("The rules of {bucket} stay, but none has an effect: strangers are refused at once.", { bucket })
      : t("The rules of {bucket} have an effect again.", { bucket }),
    shown: !blocked && h("ul", { class: "small" }, readable),
    action: blocked ? t("Block public access") : t("Unblock public access"),
    task: () => change(bucket, (access) => ({ ...access, blocked })),
  });
}

// A dialog that was cancelled has changed nothing.
const redrawing = (task) => async () => {
  if (await task()) draw();
};

/** Makes the table of rules. `isForAll`: with the bucket of each. */
export function publicTable(rules, isForAll) {
  const columns = [
    isForAll && {
      name: t("Bucket"),
      cell: ({ bucket }) => link(bucket, place("bucket-access", [bucket])),
    },
    {
      name: t("Prefix"),
      cell: ({ prefix, effective }) => [
        h("code", null, prefix || t("all objects")),
        " ",
        effective ? tag(t("public"), "warn") : tag(t("no effect")),
      ],
    },
    { name: t("Everybody may"), cell: ({ list }) => (list ? t("read and list") : t("read")) },
    { name: t("Since"), kind: "quiet", from: "medium", cell: ({ created_at: since }) => timeCell(since) },
    { name: t("By"), kind: "quiet", from: "medium", cell: ({ created_by: principal }) => principal },
    actionsColumn(
      (rule) =>
        mayStore() &&
        button(
          t("Make private"),
          redrawing(() => removeRule(rule)),
          "link danger",
        ),
    ),
  ].filter(Boolean);
  const shown = table(t("Public access"), columns, []);
  const whole = shown.querySelector("table");
  for (let first = 0; first < rules.length; first += SECTION) {
    const part = rules.slice(first, first + SECTION);
    whole.append(section(() => part.map((rule) => tableRow(columns, rule)), first === 0 ? undefined : part.length));
  }
  return shown;
}

/** Says that the server's configuration overrides all rules, if it does. */
export function disabledNote(enabled) {
  return (
    !enabled &&
    h(
      "p",
      { class: "problem plain" },
      t("Public access is turned off by the configuration of the server."),
      " ",
      t("Rules have no effect, and can only be removed."),
    )
  );
}

/** Returns the section of a bucket's settings. `found` is what `allPublic` returned for it. */
export function publicSection(bucket, { enabled, rules }, blocked) {
  return [
    h("h2", null, t("Public access"), " ", blocked && tag(t("blocked"), "warn")),
    disabledNote(enabled),
    blocked && h("p", null, t("Public access to this bucket is blocked: no rule has an effect.")),
    rules.length > 0
      ? publicTable(rules, false)
      : emptyBox(t("Nothing is public: every request needs an account or a link.")),
    mayStore() &&
      h(
        "p",
        { class: "row" },
        enabled &&
          button(
            t("Make objects public"),
            redrawing(() => addRule(bucket)),
          ),
        button(
          blocked ? t("Unblock public access") : t("Block public access"),
          redrawing(() => setBlocked(bucket, !blocked, rules)),
        ),
      ),
  ];
}

/** Returns the commands that do the same. */
export function publicCommands(bucket, rules) {
  const set = ({ prefix, list }) => {
    const options = list ? " --list" : "";
    return `cairn public set ${quoted(bucket)} ${quoted(prefix)}${options}`;
  };
  return rules.length > 0 ? rules.slice(0, 1).map(set) : [`cairn public list ${quoted(bucket)}`];
}

/** Returns a mark for a list of objects, if all or some of them are public. */
export async function publicMark(bucket, prefix) {
  const { rules } = await api.get(bucketPath(bucket, "public-access"));
  const isAbout = (rule) => prefix.startsWith(rule.prefix) || rule.prefix.startsWith(prefix);
  if (!rules.some(isAbout)) return null;
  const effective = (await allPublic(bucket)).rules.filter((rule) => rule.effective && isAbout(rule));
  if (effective.length === 0) return null;
  const isWhole = effective.some((rule) => prefix.startsWith(rule.prefix));
  return tag(isWhole ? t("public") : t("partly public"), "warn");
}
