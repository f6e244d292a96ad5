// Copies, moves and renames objects and folders. Nothing is replaced without a question.

import { api, bucketPath, encodeKey } from "./api.js";
import { numbered } from "./collisions.js";
import { ask, wrong } from "./dialogs.js";
import { h } from "./dom.js";
import { objectPages } from "./listing.js";
import { draw, go } from "./navigation.js";
import { count, plural, t } from "./text.js";
import { field, notice, noticeError, select } from "./ui.js";

const AT_ONCE = 4;

async function moveOne(bucket, { from, to, target }, ifAbsent) {
  await api.post(bucketPath(bucket, "object-move", encodeKey(from)), {
    destination_bucket: target,
    destination_key: to,
    if_absent: ifAbsent,
  });
}

// Moves all, a few at a time. Returns those whose names are taken. Objects that were deleted meanwhile are left out,
// which is said. The first other failure ends it.
async function moveAll(bucket, moves, ifAbsent, moved) {
  const taken = [];
  const rest = [...moves];
  let failure = null;
  let gone = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let move = rest.shift(); move && !failure; move = rest.shift()) {
        try {
          await moveOne(bucket, move, ifAbsent);
          moved.push(move);
        } catch (error) {
          if (error.code === "OBJECT_ALREADY_EXISTS") taken.push(move);
          else if (error.code === "OBJECT_NOT_FOUND") gone += 1;
          else failure = error;
        }
      }
    }),
  );
  if (failure) throw failure;
  if (gone > 0) notice(plural(gone, "{n} object was deleted meanwhile.", "{n} objects were deleted meanwhile."));
  return taken;
}

async function keepBoth(bucket, moves, moved) {
  let rest = moves;
  for (let number = 2; rest.length > 0 && number < 100; number += 1) {
    const named = rest.map((move) => ({
      ...move,
      to: numbered(move.wanted ?? move.to, number),
      wanted: move.wanted ?? move.to,
    }));
    rest = await moveAll(bucket, named, true, moved);
  }
}

// Asks once for all names that exist. `null`: they are left out.
async function askTaken(bucket, taken, moved) {
  const choice = select(
    [
      ["both", t("Keep both: the moved ones get a number")],
      ["replace", t("Replace what is there")],
      ["leave", t("Leave these out")],
    ],
    "both",
  );
  await ask({
    title: plural(taken.length, "{n} name exists already", "{n} names exist already"),
    action: t("Continue"),
    content: [
      h(
        "p",
        { class: "muted" },
        taken
          .slice(0, 5)
          .map(({ to }) => to)
          .join(", "),
        taken.length > 5 && " …",
      ),
      field(t("What happens to them"), choice),
    ],
    submit: async () => {
      if (choice.value === "both") await keepBoth(bucket, taken, moved);
      if (choice.value === "replace")
        await moveAll(
          bucket,
          taken.map((move) => ({ ...move, isReplacing: true })),
          false,
          moved,
        );
      return true;
    },
  });
}

function report(bucket, moved, where) {
  const isSafe = moved.every((move) => !move.isReplacing);
  const undo = async () => {
    try {
      for (const { from, to, target } of moved) await moveOne(target, { from: to, to: from, target: bucket }, true);
      notice(plural(moved.length, "{n} object is back.", "{n} objects are back."));
    } catch (error) {
      noticeError(error);
    }
    draw();
  };
  notice(
    plural(moved.length, "Moved {n} object to {where}.", "Moved {n} objects to {where}.", { where }),
    isSafe && moved.length > 0 ? [t("Undo"), undo] : undefined,
  );
}

/**
 * Asks where objects and folders go, and moves them. One object or folder gets a name of its own; several go into a
 * folder with their names. `folder` is where they are.
 */
export async function moveEntries(bucket, buckets, folder, { keys, prefixes }) {
  const [single] = keys.length + prefixes.length === 1 ? [...keys, ...prefixes] : [];
  const target = select(
    buckets.map((name) => [name, name]),
    bucket,
  );
  const to = h("input", { type: "text", spellcheck: "false", value: single ?? folder, required: single !== undefined });
  const moved = [];
  const progress = h("p", { class: "muted", role: "status" });
  let taken = [];
  const isDone = await ask({
    title: single === undefined ? t("Move to a folder") : t("Move or rename {name}", { name: single }),
    action: t("Move"),
    content: [
      field(t("Bucket"), target),
      field(single === undefined ? t("Folder") : t("New name, with its folders"), to),
      progress,
    ],
    submit: async () => {
      const end = single === undefined ? to.value.replace(/\/*$/, to.value ? "/" : "") : to.value;
      const moves = keys.map((from) => ({ from, to: single === undefined ? end + from.slice(folder.length) : end }));
      for (const prefix of prefixes) {
        const base = single === undefined ? end + prefix.slice(folder.length) : end.replace(/\/*$/, "/");
        if (target.value === bucket && base.startsWith(prefix))
          throw wrong(to, t("A folder cannot be moved into itself."));
        for await (const { objects } of objectPages(bucket, prefix))
          for (const { key } of objects) moves.push({ from: key, to: base + key.slice(prefix.length) });
      }
      for (const move of moves) move.target = target.value;
      const timer = setInterval(() => {
        progress.textContent = t("{done} of {n} moved", { done: count(moved.length), n: count(moves.length) });
      }, 500);
      try {
        taken = await moveAll(bucket, moves, true, moved);
      } finally {
        clearInterval(timer);
      }
      return true;
    },
  });
  if (isDone && taken.length > 0) await askTaken(bucket, taken, moved);
  if (moved.length > 0) report(bucket, moved, `${target.value}/${to.value}`);
  if (isDone || moved.length > 0) draw();
}

/** Asks where an object goes, copies or moves it, and shows it there. */
export async function copyObject(bucket, key, move) {
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
      throw wrong(name, t("The destination already has an object. Choose another name, or replace it."));
    }
  };
  const done = await ask({
    title: move ? t("Move object") : t("Copy object"),
    action: move ? t("Move") : t("Copy"),
    content: [field(t("Bucket"), to), field(t("Key"), name), choice],
    submit: async () => {
      if (to.value === bucket && name.value === key) throw wrong(name, t("Choose another name or bucket."));
      await copyTo();
      return true;
    },
  });
  if (done) go("object", [to.value, name.value]);
}
