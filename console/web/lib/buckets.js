// Deletion of a bucket, which must be empty.

import { api, bucketPath } from "./api.js";
import { count, t } from "./text.js";
import { confirmed, notice } from "./ui.js";

/** Deletes an empty bucket. */
export async function removeBucket(name) {
  const contents = await api.get(bucketPath(name, "contents"));
  const holds = contents.versions + contents.delete_markers + contents.multipart_uploads;
  const text =
    holds === 0
      ? t("The bucket is empty. It will be deleted permanently.")
      : t(
          "The bucket is not empty: {objects} objects, {versions} versions, {markers} delete markers, {uploads} unfinished uploads. Only an empty bucket can be deleted.",
          {
            objects: count(contents.objects),
            versions: count(contents.versions),
            markers: count(contents.delete_markers),
            uploads: count(contents.multipart_uploads),
          },
        );
  if (!(await confirmed({ title: t("Delete bucket {name}", { name }), text, action: t("Delete bucket"), name })))
    return false;
  await api.remove(bucketPath(name));
  notice(t("Bucket {name} is deleted.", { name }));
  return true;
}
