// The details of an object: properties, tags that are changed in place, and headers and metadata that are written anew.

import { api, bucketPath, encodeKey, withQuery } from "./api.js";
import { refuse, wrong } from "./dialogs.js";
import { fill, h } from "./dom.js";
import { describe } from "./errors.js";
import { forgetUnsaved, guardFields } from "./forms.js";
import { icon } from "./icons.js";
import { draw } from "./navigation.js";
import { exactSize, plural, t } from "./text.js";
import {
  button,
  card,
  copyText,
  facts,
  field,
  iconButton,
  notice,
  noticeError,
  sizeCell,
  timeCell,
  withTool,
} from "./ui.js";

const TAGS_MAX = 10;
const HEADERS = ["cache-control", "content-disposition", "content-encoding", "content-language", "expires"];

const copier = (text, name) =>
  h(
    "button",
    { type: "button", class: "icon tight", "aria-label": name, title: name, onclick: () => copyText(text) },
    icon("copy"),
  );

/** The card with what the server knows of an object. */
export function propertiesCard(bucket, key, record) {
  const address = `s3://${bucket}/${key}`;
  return card(
    t("Properties"),
    null,
    facts([
      [
        t("Size"),
        [sizeCell(record.size), " ", record.size > 999 && h("span", { class: "muted small" }, exactSize(record.size))],
      ],
      [t("Type"), record.content_type],
      [t("Modified"), timeCell(record.last_modified)],
      [t("Key"), [h("code", null, key), copier(key, t("Copy key"))]],
      ["ETag", h("code", null, record.etag)],
      [t("Version"), record.version_id && h("code", null, record.version_id)],
      [t("Parts"), record.parts?.length],
      ...Object.entries(record.checksums ?? {}).map(([name, value]) => [name.toUpperCase(), h("code", null, value)]),
      [t("Address"), [h("code", null, address), copier(address, t("Copy address"))]],
    ]),
  );
}

/** The card with the tags of a version. Each change is made at once. */
export function tagsCard(bucket, key, record, mayChange) {
  const place = h("div");
  let tags = record.tags ?? [];
  const path = withQuery(bucketPath(bucket, "object-tags", encodeKey(key)), { version_id: record.version_id });
  // One change after the other: each is one of all tags.
  let last = Promise.resolve();
  const change = (changed) => {
    const made = last.then(async () => {
      const all = changed(tags);
      await api.put(path, { tags: all });
      tags = all;
      show();
    });
    last = made.catch(() => {});
    return made;
  };
  const without = (name) => (all) => all.filter((one) => one.key !== name);
  const withTag = (added) => (all) => [...without(added.key)(all), added];
  const remove = async (gone) => {
    try {
      await change(without(gone.key));
      const undo = () => change(withTag(gone)).catch(noticeError);
      notice(t("Tag {name} removed.", { name: gone.key }), [t("Undo"), undo]);
    } catch (error) {
      noticeError(error);
    }
  };
  function form() {
    const name = h("input", { type: "text", required: true, maxlength: 128, autocomplete: "off", spellcheck: "false" });
    const value = h("input", { type: "text", maxlength: 256, autocomplete: "off", spellcheck: "false" });
    const problem = h("div", { role: "alert" });
    const made = h(
      "form",
      {
        class: "inline-form",
        onsubmit: async (event) => {
          event.preventDefault();
          try {
            await change(withTag({ key: name.value, value: value.value }));
          } catch (error) {
            fill(problem, h("p", { class: "bad small" }, describe(error)));
          }
        },
      },
      h("div", { class: "pair" }, field(t("Name"), name), field(t("Value"), value)),
      problem,
      h(
        "div",
        { class: "row" },
        h("button", { type: "submit", class: "main" }, t("Add tag")),
        button(t("Cancel"), show, "quiet"),
      ),
    );
    fill(place, chips(), made);
    name.focus();
  }
  const chips = () =>
    h(
      "div",
      { class: "chips" },
      tags.map((one) =>
        h(
          "span",
          { class: mayChange ? "chip" : "chip fixed" },
          h("span", null, one.value ? `${one.key} = ${one.value}` : one.key),
          mayChange && iconButton("close", t("Remove tag {name}", { name: one.key }), () => remove(one)),
        ),
      ),
    );
  const head = h("span");
  function show() {
    fill(head, mayChange && tags.length < TAGS_MAX && button([icon("plus"), t("Add tag")], form, "link"));
    fill(place, tags.length > 0 ? chips() : h("p", { class: "muted none" }, t("No tags.")));
  }
  show();
  return withTool(card(t("Tags"), null, place), head);
}

// What a change of the metadata does to the bucket.
function consequence(isVersioned, number) {
  if (!isVersioned) return t("Saving replaces the object with the same content: this bucket keeps no versions.");
  return t("Saving writes version {new} with the same content. Version {old} stays.", {
    new: number + 1,
    old: number,
  });
}

// What was entered is saved, or given up.
function drawAnew() {
  forgetUnsaved();
  return draw();
}

function metadataForm({ bucket, key, record, isVersioned, number }, show) {
  const type = h("input", {
    name: "content_type",
    type: "text",
    value: record.content_type,
    spellcheck: "false",
    maxlength: 255,
  });
  const headers = HEADERS.map((name) => [
    name,
    h("input", { name, type: "text", value: record.headers?.[name] ?? "", spellcheck: "false" }),
  ]);
  const list = h("div", { class: "entries" });
  const add = (name = "", value = "") => {
    const input = (text, label) =>
      h("input", { type: "text", class: "mono", value: text, "aria-label": label, spellcheck: "false" });
    const row = h(
      "div",
      { class: "entry" },
      input(name, t("Name of metadata")),
      input(value, t("Value of metadata")),
      iconButton("close", t("Remove metadata {name}", { name }), () => row.remove()),
    );
    list.append(row);
    return row;
  };
  for (const [name, value] of Object.entries(record.metadata ?? {})) add(name, value);
  const body = () => {
    const metadata = {};
    for (const row of list.children) {
      const [name, value] = [...row.querySelectorAll("input")].map((input) => input.value.trim());
      if (!name && !value) continue;
      if (!name) throw wrong(row.querySelector("input"), t("Each value needs a name."));
      if (name.toLowerCase() in metadata)
        throw wrong(row.querySelector("input"), t("The name {name} occurs twice.", { name }));
      metadata[name.toLowerCase()] = value;
    }
    return {
      content_type: type.value.trim() || null,
      headers: Object.fromEntries(
        headers.map(([name, input]) => [name, input.value.trim()]).filter(([, text]) => text),
      ),
      metadata,
      if_match: record.etag,
      if_last_modified: record.last_modified,
    };
  };
  const problem = h("div", { role: "alert" });
  const save = h(
    "button",
    { type: "submit", class: "main" },
    isVersioned ? t("Save as version {n}", { n: number + 1 }) : t("Save and replace"),
  );
  const form = h(
    "form",
    {
      class: "inline-form",
      onsubmit: async (event) => {
        event.preventDefault();
        save.disabled = true;
        try {
          await api.put(bucketPath(bucket, "object-metadata", encodeKey(key)), body());
          notice(isVersioned ? t("Saved as version {n}.", { n: number + 1 }) : t("Saved."));
          drawAnew();
        } catch (error) {
          // The server names the metadata that it refuses.
          if (error.message.startsWith("metadata:"))
            error.field = [...list.querySelectorAll("input")].find(
              ({ value }) => value && error.message.includes(value.trim().toLowerCase()),
            );
          if (error.status === 412)
            fill(
              problem,
              h(
                "p",
                { class: "bad small" },
                t("Somebody has written this object since this page was loaded. Nothing was changed."),
              ),
              button(t("Load again"), drawAnew),
            );
          else refuse(form, problem, error);
          save.disabled = false;
        }
      },
    },
    field(t("Content type"), type),
    h(
      "details",
      { open: headers.some(([, input]) => input.value) },
      h("summary", null, t("Cache and other headers")),
      headers.map(([name, input]) => field(name, input)),
    ),
    h("h3", null, t("Metadata")),
    list,
    button([icon("plus"), t("Add metadata")], () => add().querySelector("input").focus(), "link"),
    h("p", { class: "hint" }, consequence(isVersioned, number)),
    problem,
    h("div", { class: "row" }, save, button(t("Discard"), show, "quiet")),
  );
  return { form, first: type };
}

/**
 * The card with content type, headers and metadata. A change copies the object onto itself, in the server, if nobody
 * has written it meanwhile. `number` is that of the current version.
 */
export function metadataCard(context) {
  const { record, mayChange } = context;
  const place = h("div");
  const head = h("span");
  const entries = [
    ...Object.entries(record.headers ?? {}),
    ...Object.entries(record.metadata ?? {}).map(([name, value]) => [`x-amz-meta-${name}`, value]),
  ];
  function edit() {
    const { form, first } = metadataForm(context, show);
    fill(head);
    fill(place, form);
    guardFields(form);
    first.focus();
  }
  function show() {
    fill(head, mayChange && button([icon("edit"), t("Edit")], edit, "link"));
    fill(
      place,
      facts([[t("Content type"), record.content_type], ...entries]),
      entries.length === 0 && h("p", { class: "muted none" }, t("No other headers and no metadata.")),
    );
  }
  show();
  const note = entries.length > 0 && plural(entries.length, "{n} entry", "{n} entries");
  return withTool(card(t("Metadata"), note, place), head);
}
