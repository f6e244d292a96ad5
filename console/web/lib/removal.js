// Deletes objects and whole folders, with a way back where versions make it possible.

import { ApiError, api, bucketPath } from "./api.js";
import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { objectPages } from "./listing.js";
import { draw } from "./navigation.js";
import { count, plural, size, t } from "./text.js";
import { field, notice, noticeError } from "./ui.js";

// Objects that one request deletes. Their names fit into its body, whatever characters they have.
const AT_ONCE = 150;
const PAGE = 1000;
// Above this number, the deletion of folders asks also where it can be undone.
const UNASKED_MAX = 1000;
// Names that a question shows, and the number of objects above which the name of the bucket must be typed.
const NAMED_MAX = 3;
const TYPED_ABOVE = 100;

/** Brings deleted objects back. Returns how many came back. */
export async function undeleteKeys(bucket, keys) {
  let undeleted = 0;
  for (let first = 0; first < keys.length; first += PAGE) {
    const part = { keys: keys.slice(first, first + PAGE) };
    const answer = await api.post(bucketPath(bucket, "undelete"), part);
    undeleted += answer.undeleted;
    if (answer.failed > 0)
      throw new Error(plural(answer.failed, "{n} object did not come back.", "{n} objects did not come back."));
  }
  return undeleted;
}

/** Says how many objects came back. */
export const noticeBack = (number) => notice(plural(number, "{n} object is back.", "{n} objects are back."));

// Deletes keys and adds the deleted ones to `removed`. Returns the first failure. A missing object is not a failure.
async function removeKeys(bucket, keys, removed) {
  const all = [...keys];
  for (let first = 0; first < all.length; first += AT_ONCE) {
    const part = all.slice(first, first + AT_ONCE);
    try {
      const { failed } = await api.post(bucketPath(bucket, "delete"), { objects: part.map((key) => ({ key })) });
      const refused = new Set(failed.map((failure) => failure.index));
      removed.push(...part.filter((_, index) => !refused.has(index)));
      if (failed.length > 0) return new ApiError(409, failed[0].code, failed[0].message);
    } catch (error) {
      return error;
    }
  }
  return null;
}

/** Deletes objects and what is in folders. `entries` are `{keys, prefixes}`. Returns whether something was deleted. */
export async function removeAll(bucket, { keys, prefixes = [] }, isVersioned) {
  const all = new Set(keys);
  let bytes = 0;
  try {
    for (const prefix of prefixes)
      for await (const { objects } of objectPages(bucket, prefix))
        for (const object of objects) {
          all.add(object.key);
          bytes += object.size;
        }
  } catch (error) {
    noticeError(error);
    return false;
  }
  const removed = [];
  const title = plural(all.size, "Delete {n} object", "Delete {n} objects");
  let failure = null;
  if (!isVersioned || all.size > UNASKED_MAX) {
    const first = [...all].slice(0, NAMED_MAX);
    const typed =
      !isVersioned &&
      all.size > TYPED_ABOVE &&
      h("input", { type: "text", autocomplete: "off", spellcheck: "false", required: true });
    const progress = h("p", { class: "muted", role: "status" });
    const timer = setInterval(() => {
      if (removed.length > 0)
        progress.textContent = t("{done} of {n} deleted", { done: count(removed.length), n: count(all.size) });
    }, 500);
    const isDone = await ask({
      title,
      action: title,
      danger: true,
      content: [
        prefixes.length > 0 &&
          h("p", null, t("In {folders}: {size}.", { folders: prefixes.join(", "), size: size(bytes) })),
        h(
          "p",
          null,
          isVersioned
            ? t("Old versions are kept, so this can be undone.")
            : t("The bucket keeps no versions: this cannot be undone."),
        ),
        h(
          "p",
          { class: "muted" },
          first.map((key) => [h("code", { class: "key" }, key), " "]),
          all.size > first.length && "…",
        ),
        typed && field(t("Type {name} to confirm", { name: bucket }), typed),
        progress,
      ],
      submit: async () => {
        if (typed && typed.value !== bucket) throw new Error(t("The name does not match."));
        failure = await removeKeys(bucket, all, removed);
        return true;
      },
    });
    clearInterval(timer);
    if (!isDone) return false;
  } else failure = await removeKeys(bucket, all, removed);
  if (failure) noticeError(failure);
  const undo = async () => {
    await undeleteKeys(bucket, removed).then(noticeBack, noticeError);
    draw();
  };
  if (removed.length > 0)
    notice(
      plural(removed.length, "{n} object deleted.", "{n} objects deleted."),
      isVersioned ? [t("Undo"), undo] : undefined,
    );
  draw();
  return true;
}
