// Names that exist already: which they are, names that are free, and the one question about all of them.

import { api, bucketPath } from "./api.js";
import { ask } from "./dialogs.js";
import { fill, h } from "./dom.js";
import { objectPages } from "./listing.js";
import { plural, t } from "./text.js";

const AT_ONCE = 6;
// So many keys are looked up one by one. For more, their folders are listed.
const LOOKED_UP_MAX = 100;
const PAGES_MAX = 200;
const NUMBER_MAX = 1000;

/** Returns a name with a number: `a.txt` becomes `a (2).txt`. */
export function numbered(key, number) {
  const [, stem, ending] = /^(.*?)(\.[^./]*)?$/s.exec(key);
  return `${stem} (${number})${ending ?? ""}`;
}

// The first key that begins with a key is that key, if it exists.
async function exists(bucket, key) {
  const { objects } = await api.get(bucketPath(bucket, "objects"), { prefix: key, limit: 1 });
  return objects[0]?.key === key;
}

/** Returns those of the keys that exist. Whoever writes them asks the server to check again. */
export async function takenOf(bucket, keys) {
  const taken = new Set();
  if (keys.length <= LOOKED_UP_MAX) {
    const rest = [...keys];
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (let key = rest.shift(); key !== undefined; key = rest.shift())
          if (await exists(bucket, key)) taken.add(key);
      }),
    );
    return taken;
  }
  const wanted = new Set(keys);
  const folders = new Set(keys.map((key) => key.slice(0, key.lastIndexOf("/") + 1)));
  let pages = 0;
  for (const prefix of folders) {
    for await (const { objects } of objectPages(bucket, prefix, { delimiter: "/" })) {
      for (const { key } of objects) if (wanted.has(key)) taken.add(key);
      pages += 1;
      // The server finds the others when they are written.
      if (pages >= PAGES_MAX) return taken;
    }
  }
  return taken;
}

/** Returns a free name for each key, as a map. No name is given twice, nor is one of `reserved`. */
export async function freeNames(bucket, keys, reserved = []) {
  const given = new Set(reserved);
  const names = new Map();
  for (const key of keys) {
    let number = 2;
    while (number < NUMBER_MAX && (given.has(numbered(key, number)) || (await exists(bucket, numbered(key, number)))))
      number += 1;
    given.add(numbered(key, number));
    names.set(key, numbered(key, number));
  }
  return names;
}

// The last names of some keys, for a second line.
function sample(keys) {
  const names = keys.slice(0, 2).map((key) => key.slice(key.lastIndexOf("/", key.length - 2) + 1));
  return keys.length > 2
    ? t("{names} and {n} more", { names: names.join(", "), n: keys.length - 2 })
    : names.join(", ");
}

/**
 * Asks once what happens to all names that exist. Returns `both`, `replace` or `leave`; `undefined` if nothing is to be
 * done at all. `action` returns the text of the button for the number of objects that are written.
 */
export function askCollisions({ taken, total, where, isVersioned, action }) {
  const [first] = taken;
  const options = [
    ["both", t("Keep both"), t("The new ones get a number, as in {name}", { name: numbered(sample([first]), 2) })],
    [
      "replace",
      t("Replace"),
      isVersioned
        ? t("The old content stays as an earlier version.")
        : t("The old content is lost: no versions are kept."),
    ],
    ["leave", plural(taken.length, "Leave it out", "Leave these {n} out"), t("What is in the bucket stays as it is.")],
  ];
  const inputs = options.map(([value], index) =>
    h("input", { type: "radio", name: "collision", value, checked: index === 0, onchange: () => label() }),
  );
  const chosen = () => inputs.find((input) => input.checked).value;
  const text = h("span");
  const label = () => fill(text, action(chosen() === "leave" ? total - taken.length : total));
  label();
  const others = total - taken.length;
  return ask({
    title:
      others === 0
        ? plural(total, "{n} name exists already in {where}", "{n} names exist already in {where}", { where })
        : t("{taken} of {n} names exist already in {where}", { taken: taken.length, n: total, where }),
    action: text,
    content: [
      h(
        "p",
        { class: "muted key" },
        sample(taken),
        others > 0 && [
          ". ",
          plural(others, "The other one is written in any case.", "The other {n} are written in any case."),
        ],
      ),
      h(
        "fieldset",
        { class: "choices one" },
        h("legend", { class: "hidden" }, t("What happens to them")),
        options.map(([, name, note], index) =>
          h(
            "label",
            { class: "choice" },
            inputs[index],
            h("span", null, h("b", null, name), h("span", { class: "muted small" }, note)),
          ),
        ),
      ),
    ],
    submit: async () => chosen(),
  });
}
