// Deletion of a bucket and of what it holds.

import { api, bucketPath, encodeKey, withQuery } from "./api.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { describe } from "./errors.js";
import { count, plural, t } from "./text.js";
import { notice } from "./ui.js";

const AT_ONCE = 6;
const PAGE = 1000;

// Deletes entries of a list, a few at a time. Returns the errors. An entry that no longer exists is not an error.
async function removeEach(entries, pathOf, removed) {
  const errors = [];
  const rest = [...entries];
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let entry = rest.shift(); entry !== undefined; entry = rest.shift()) {
        try {
          await api.remove(pathOf(entry));
          removed();
        } catch (error) {
          if (error.code === "UNREACHABLE") throw error;
          if (error.status !== 404) errors.push(error);
        }
      }
    }),
  );
  return errors;
}

// Deletes all versions, delete markers and unfinished uploads. Versions that are not current go first, so that no
// deletion makes an older one current, which a quota could refuse.
async function empty(name, removed) {
  const refused = [];
  const removeVersions = async (isCurrent) => {
    let markers = {};
    do {
      const page = await api.get(bucketPath(name, "object-versions"), { limit: PAGE, ...markers });
      const found = page.versions.filter((version) => version.is_latest === isCurrent);
      const pathOf = ({ key, version_id }) =>
        withQuery(bucketPath(name, "object-versions", encodeKey(key)), { version_id });
      refused.push(...(await removeEach(found, pathOf, removed)));
      markers = { key_marker: page.next_key_marker, version_id_marker: page.next_version_id_marker };
    } while (markers.key_marker);
  };
  await removeVersions(false);
  await removeVersions(true);
  let markers = {};
  do {
    const page = await api.get(bucketPath(name, "multipart-uploads"), { limit: PAGE, ...markers });
    const pathOf = ({ key, upload_id }) =>
      withQuery(bucketPath(name, "multipart-uploads", encodeKey(key)), { upload_id });
    refused.push(...(await removeEach(page.multipart_uploads, pathOf, removed)));
    markers = { key_marker: page.next_key_marker, upload_id_marker: page.next_upload_id_marker };
  } while (markers.key_marker);
  if (refused.length > 0) {
    throw new Error(
      plural(
        refused.length,
        "{n} deletion was refused, so the bucket stays: {reason}",
        "{n} deletions were refused, so the bucket stays. The first one: {reason}",
        { reason: describe(refused[0]) },
      ),
    );
  }
}

/** Deletes a bucket with what it holds, after a confirmation. A refusal stays in the dialog, with its reason. */
export async function removeBucket(name) {
  const contents = await api.get(bucketPath(name, "contents"));
  const holds = contents.versions + contents.delete_markers + contents.multipart_uploads;
  const progress = h("p", { class: "muted", role: "status" });
  let done = 0;
  const removed = () => {
    done += 1;
    if (done % 10 === 0 || done === holds)
      progress.textContent = t("{done} of {n} deleted", { done: count(done), n: count(holds) });
  };
  const remove = () => api.remove(bucketPath(name));
  const choice =
    holds === 0
      ? {
          text: t("The bucket is empty. It will be deleted permanently."),
          action: t("Delete bucket"),
          task: remove,
        }
      : {
          text: t(
            "The bucket is not empty. It holds {objects}, {versions}, {markers} and {uploads}. All of it is deleted permanently.",
            {
              objects: plural(contents.objects, "{n} object", "{n} objects"),
              versions: plural(contents.versions, "{n} version", "{n} versions"),
              markers: plural(contents.delete_markers, "{n} delete marker", "{n} delete markers"),
              uploads: plural(contents.multipart_uploads, "{n} unfinished upload", "{n} unfinished uploads"),
            },
          ),
          action: t("Empty and delete"),
          shown: progress,
          task: async () => {
            await empty(name, removed);
            await remove();
          },
        };
  if (!(await confirmed({ title: t("Delete bucket {name}", { name }), name, ...choice }))) return false;
  notice(t("Bucket {name} is deleted.", { name }));
  return true;
}
