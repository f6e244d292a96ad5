// Uploads that were interrupted, with the buttons that continue or discard them.

import { fill, h } from "./dom.js";
import { chosen } from "./files.js";
import { count, plural, size, t } from "./text.js";
import { button, noticeProblem } from "./ui.js";
import { add, discard, ofBatch, unfinished } from "./uploads.js";

function unfinishedBox(bucket, entries, changed) {
  const mine = entries.filter((entry) => entry.bucket === bucket);
  if (mine.length === 0) return null;
  const other = () => noticeProblem(t("This is another file: size and date differ."));
  const fileRow = (entry) => {
    const input = h("input", {
      type: "file",
      class: "hidden",
      "aria-label": t("Choose {name} again", { name: entry.name }),
      onchange: () => {
        const [file] = input.files;
        if (file && file.size === entry.size && file.lastModified === entry.modified)
          add(bucket, [{ file, key: entry.key }], { id: entry.id }).then(changed);
        else other();
      },
    });
    return h(
      "li",
      null,
      h("span", null, entry.key, " ", h("span", { class: "muted" }, size(entry.size))),
      input,
      button(t("Choose the file again"), () => input.click(), "link"),
      button(t("Discard"), () => discard(entry).then(changed), "link"),
    );
  };
  // One click for all files of a folder: what has arrived is not sent again.
  const batchRow = (batch) => {
    const names = batch.keys.map((key) => key.slice(batch.prefix.length));
    const folder = names.every((name) => name.includes("/")) ? names[0].split("/")[0] : "";
    const input = h("input", {
      type: "file",
      class: "hidden",
      webkitdirectory: Boolean(folder),
      multiple: !folder,
      "aria-label": folder ? t("Choose {name} again", { name: folder }) : t("Choose the files again"),
      onchange: () => {
        const files = ofBatch(batch, chosen(input, batch.prefix));
        if (files.length > 0) add(bucket, files, { prefix: batch.prefix }).then(changed);
        else noticeProblem(t("None of these files is missing here."));
      },
    });
    const missing = t("{left} of {n} files are missing", { left: count(batch.left), n: count(batch.keys.length) });
    return h(
      "li",
      null,
      h("span", null, batch.prefix, folder && `${folder}/`, " ", h("span", { class: "muted" }, missing)),
      input,
      button(folder ? t("Choose the folder again") : t("Choose the files again"), () => input.click(), "link"),
      button(t("Discard"), () => discard(batch).then(changed), "link"),
    );
  };
  return h(
    "div",
    { class: "problem interrupted" },
    h(
      "p",
      null,
      plural(
        mine.length,
        "{n} upload was interrupted. Choose the file again to continue it.",
        "{n} uploads were interrupted. Choose the files again to continue them.",
      ),
    ),
    h(
      "ul",
      null,
      mine.map((entry) => (entry.keys ? batchRow(entry) : fileRow(entry))),
    ),
  );
}

/** Fills a place with the uploads to a bucket that were interrupted. */
export async function drawInterrupted(place, bucket) {
  const changed = () => drawInterrupted(place, bucket);
  fill(place, unfinishedBox(bucket, await unfinished(), changed));
}
