// Searching a whole bucket: the field, filters as chips, and how both become a request. All of it is in the URL.

import { ask, wrong } from "./dialogs.js";
import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { go } from "./navigation.js";
import { quotaInput } from "./quota.js";
import { searchField } from "./search-field.js";
import { day, size, t } from "./text.js";
import { button, field, iconButton, quoted, select } from "./ui.js";

const KINDS = () => [
  ["", t("any type")],
  ["image/*", t("Images")],
  ["video/*", t("Videos")],
  ["audio/*", t("Audio")],
  ["text/*", t("Texts")],
  ["application/pdf", "PDF"],
];
const FILTERS = ["type", "min", "since", "tag"];

/** Returns the conditions of the URL; `null` if nothing is searched. */
export function searchOf(parameters) {
  const found = Object.fromEntries(
    ["q", ...FILTERS].map((name) => [name, parameters.get(name) ?? ""]).filter(([, value]) => value !== ""),
  );
  return Object.keys(found).length > 0 ? found : null;
}

// A text with * or ? is a pattern. Without a slash it may match in any folder.
function keyCondition(text) {
  if (!text) return {};
  if (!/[*?]/.test(text)) return { contains: text };
  return { glob: text.includes("/") ? text : `**${text.replace(/^\*+/, "")}` };
}

/** Returns the parameters of the request. */
export function queryOf({ q, type, min, since, tag }) {
  const made = {
    ...keyCondition(q),
    content_type: type,
    min_bytes: min,
    modified_since: since && new Date(since).toISOString(),
  };
  if (tag) {
    const [name, ...value] = tag.split("=");
    made[`tag.${name}`] = value.join("=");
  }
  return made;
}

/** Returns the command that searches the same. A pattern is a part of the place. */
export function findCommand(bucket, search, at) {
  const { contains, glob, content_type: type, min_bytes: least, modified_since: since } = queryOf(search);
  const options = [
    ["--contains", contains],
    ["--content-type", type],
    ["--min-bytes", least],
    ["--modified-since", since],
    ["--tag", search.tag],
    ["--at", at],
  ];
  const given = options.filter(([, value]) => value).map(([name, value]) => `${name} ${quoted(value)}`);
  return ["cairn object find", quoted(glob ? `${bucket}/${glob}` : bucket), ...given].join(" ");
}

async function askFilters(search) {
  const type = select(KINDS(), search.type ?? "");
  const least = quotaInput(search.min ? Number(search.min) : null, t("At least this large"), "");
  const since = h("input", { type: "date", value: search.since ?? "" });
  const tag = h("input", {
    type: "text",
    value: search.tag ?? "",
    placeholder: "project=regatta",
    spellcheck: "false",
  });
  return ask({
    title: t("Filter"),
    action: t("Show"),
    content: [
      field(t("Type"), type),
      least.element,
      field(t("Modified since"), since),
      field(t("Tag"), tag, t("name=value")),
    ],
    submit: async () => {
      if (tag.value && !tag.value.includes("=")) throw wrong(tag, t("A tag is written as name=value."));
      return { type: type.value, min: least.bytes() ?? "", since: since.value, tag: tag.value };
    },
  });
}

/** Makes the field and the filters. `open(parameters)` shows what was asked for. */
export function searchTools(bucket, prefix, at, search) {
  const present = search ?? {};
  const open = (changed) => go("bucket", [bucket], { at, ...present, ...changed });
  const label = t("Search all of {name}", { name: bucket });
  const input = h("input", { type: "search", placeholder: label, "aria-label": label, value: present.q ?? "" });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const text = input.value.trim();
    // What ends with a slash is a folder.
    if (text.endsWith("/")) go("bucket", [bucket], { prefix: prefix + text, at });
    else if (text || search) open({ q: text });
  });
  const texts = {
    min: (value) => t("at least {size}", { size: size(Number(value)) }),
    since: (value) => t("since {date}", { date: day(value) }),
    type: (value) => KINDS().find(([kind]) => kind === value)?.[1] ?? value,
    tag: (value) => value,
  };
  const chips = FILTERS.filter((name) => present[name]).map((name) =>
    h(
      "span",
      { class: "chip" },
      texts[name](present[name]),
      iconButton("close", t("Remove {name}", { name: texts[name](present[name]) }), () => open({ [name]: "" })),
    ),
  );
  const filter = button([icon("filter"), t("Filter")], async () => {
    const chosen = await askFilters(present);
    if (chosen) open({ ...chosen, q: input.value.trim() });
  });
  return [searchField(input), filter, chips];
}

/** Shows a key with what was searched for marked, and its folder below. */
export function foundName(key, text) {
  const slash = key.lastIndexOf("/") + 1;
  const name = key.slice(slash) || "∅";
  const begin = text && !/[*?]/.test(text) ? name.indexOf(text) : -1;
  return fill(
    h("span", null),
    begin < 0 ? name : [name.slice(0, begin), h("mark", null, text), name.slice(begin + text.length)],
  );
}
