// Downloads of several objects: one after the other, or as archives.

import { bucketPath, readError, withQuery } from "./api.js";
import { contentPath } from "./objects.js";
import { link, noticeError } from "./ui.js";

const BETWEEN_DOWNLOADS = 300;

/** The most bytes of single objects in an archive: it is kept in memory before it is saved. */
export const ZIP_IN_MEMORY_MAX = 200_000_000;

const pause = () => new Promise((resolve) => setTimeout(resolve, BETWEEN_DOWNLOADS));

/** Saves objects one after the other. */
export async function downloadAll(bucket, keys) {
  for (const key of keys) {
    link("", contentPath(bucket, key), { download: "" }).click();
    await pause();
  }
}

async function saveArchive(bucket, keys) {
  const response = await fetch(bucketPath(bucket, "archive"), {
    method: "POST",
    headers: { "content-type": "application/json", "x-service-console": "1" },
    body: JSON.stringify({ keys }),
  });
  if (!response.ok) throw await readError(response);
  const url = URL.createObjectURL(await response.blob());
  link("", url, { download: `${bucket}.zip` }).click();
  URL.revokeObjectURL(url);
}

/** Saves archives: one of each folder, which the browser saves while it is made, and one of the objects. */
export async function saveArchives(bucket, keys, folders, at) {
  for (const prefix of folders) {
    link("", withQuery(bucketPath(bucket, "archive"), { prefix, at }), { download: "" }).click();
    await pause();
  }
  if (keys.length > 0) await saveArchive(bucket, keys).catch(noticeError);
}
