// Compares two versions of an object: the lines of small texts, images side by side, and what else differs.

import { api, bucketPath, encodeKey } from "./api.js";
import { h } from "./dom.js";
import { isImage, isText, preview, readText } from "./preview.js";
import { date, exactSize, plural, t } from "./text.js";
import { card } from "./ui.js";

// Lines are compared pair by pair, after those that are equal at both ends.
const PAIRS_MAX = 4_000_000;
const LINES_SHOWN_MAX = 2000;
// Equal lines around those that differ.
const AROUND = 3;

/**
 * Returns the lines of two texts as `[sign, line]`; null if there are too many to compare. Signs are ` `, `-` and `+`.
 */
export function differences(before, after) {
  const [old, fresh] = [before.split("\n"), after.split("\n")];
  let first = 0;
  while (first < Math.min(old.length, fresh.length) && old[first] === fresh[first]) first += 1;
  let [endOld, endFresh] = [old.length, fresh.length];
  while (endOld > first && endFresh > first && old[endOld - 1] === fresh[endFresh - 1]) {
    endOld -= 1;
    endFresh -= 1;
  }
  const [rows, columns] = [endOld - first, endFresh - first];
  if (rows * columns > PAIRS_MAX) return null;
  // The length of the longest common subsequence of what follows each pair of lines.
  const width = columns + 1;
  const common = new Uint32Array((rows + 1) * width);
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = columns - 1; column >= 0; column -= 1) {
      common[row * width + column] =
        old[first + row] === fresh[first + column]
          ? common[(row + 1) * width + column + 1] + 1
          : Math.max(common[(row + 1) * width + column], common[row * width + column + 1]);
    }
  }
  const lines = old.slice(0, first).map((line) => [" ", line]);
  let [row, column] = [0, 0];
  while (row < rows || column < columns) {
    const isSame = row < rows && column < columns && old[first + row] === fresh[first + column];
    if (isSame) {
      lines.push([" ", old[first + row]]);
      row += 1;
      column += 1;
    } else if (
      column === columns ||
      (row < rows && common[(row + 1) * width + column] >= common[row * width + column + 1])
    ) {
      lines.push(["-", old[first + row]]);
      row += 1;
    } else {
      lines.push(["+", fresh[first + column]]);
      column += 1;
    }
  }
  return [...lines, ...old.slice(endOld).map((line) => [" ", line])];
}

const KINDS = { "+": "more", "-": "less" };

// The lines that differ, with some around them.
function drawLines(lines) {
  const isNear = lines.map(() => false);
  lines.forEach(([sign], index) => {
    if (sign === " ") return;
    for (let near = Math.max(0, index - AROUND); near <= index + AROUND && near < lines.length; near += 1)
      isNear[near] = true;
  });
  const shown = [];
  let skipped = 0;
  const leave = () => {
    if (skipped > 0)
      shown.push(h("span", { class: "muted" }, plural(skipped, "{n} equal line", "{n} equal lines"), "\n"));
    skipped = 0;
  };
  for (const [index, [sign, line]] of lines.entries()) {
    if (!isNear[index]) {
      skipped += 1;
      continue;
    }
    leave();
    if (shown.length >= LINES_SHOWN_MAX) {
      shown.push("…");
      break;
    }
    const tag = { "+": "ins", "-": "del" }[sign] ?? "span";
    shown.push(h(tag, { class: KINDS[sign] }, `${sign} ${line}\n`));
  }
  leave();
  return h("pre", { class: "differences", tabindex: "0", "aria-label": t("Lines that differ") }, shown);
}

const flat = (record) => ({
  [t("Size")]: exactSize(record.size),
  [t("Modified")]: date(record.last_modified),
  [t("Type")]: record.content_type,
  ETag: record.etag,
  ...record.headers,
  ...Object.fromEntries(Object.entries(record.metadata).map(([name, value]) => [`x-amz-meta-${name}`, value])),
  ...Object.fromEntries(Object.entries(record.checksums ?? {}).map(([name, value]) => [name.toUpperCase(), value])),
  ...Object.fromEntries((record.tags ?? []).map((one) => [t("Tag {name}", { name: one.key }), one.value])),
});

function drawProperties(sides, names) {
  const [left, right] = sides.map(flat);
  const all = [...new Set([...Object.keys(left), ...Object.keys(right)])];
  return h(
    "div",
    { class: "table" },
    h(
      "table",
      { class: "compared" },
      h("caption", { class: "hidden" }, t("Properties of both versions")),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          [h("span", { class: "hidden" }, t("Property")), ...names].map((name) => h("th", { scope: "col" }, name)),
        ),
      ),
      h(
        "tbody",
        null,
        all.map((name) => {
          const differs = left[name] !== right[name];
          return h(
            "tr",
            { class: differs ? "differs" : undefined },
            h("th", { scope: "row" }, name, differs && h("span", { class: "hidden" }, ` (${t("differs")})`)),
            [left, right].map((side) => h("td", { class: "key" }, side[name] ?? "–")),
          );
        }),
      ),
    ),
  );
}

async function drawContent(bucket, key, sides, ids) {
  const [left, right] = sides;
  if (left.etag === right.etag && left.size === right.size) return h("p", null, t("The content is the same."));
  if (sides.every((side) => isImage(side.content_type))) {
    const shown = await Promise.all(sides.map((side, index) => preview(bucket, key, side, ids[index])));
    return h(
      "div",
      { class: "pair" },
      shown.map((image) => h("div", { class: "preview" }, image)),
    );
  }
  if (!sides.every((side) => isText(side.content_type)))
    return h("p", null, t("The content differs. Only texts and images can be compared here."));
  const texts = await Promise.all(sides.map((side, index) => readText(bucket, key, side, ids[index])));
  if (texts.some((text) => !text)) return h("p", null, t("The content differs, and cannot be shown."));
  const lines = differences(texts[0].text, texts[1].text);
  if (!lines) return h("p", null, t("The texts differ too much to be compared line by line."));
  const isCut = texts.some((text) => !text.isWhole);
  return [drawLines(lines), isCut && h("p", { class: "hint" }, t("Only the first megabyte was compared."))];
}

/** Makes the card that compares two versions. `names` are theirs, the older first. */
export async function comparisonCard(bucket, key, ids, names) {
  const read = (id) => api.get(bucketPath(bucket, "object", encodeKey(key)), { version_id: id });
  const sides = await Promise.all(ids.map(read));
  return card(
    t("{old} and {new}", { old: names[0], new: names[1] }),
    null,
    await drawContent(bucket, key, sides, ids),
    drawProperties(sides, names),
  );
}
