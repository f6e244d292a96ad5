// The choice for names that exist already, before files are sent.

import { askCollisions, freeNames, takenOf } from "./collisions.js";
import { plural, t } from "./text.js";
import { isResumed } from "./uploads.js";

/**
 * Asks once about all files whose names exist. Returns the files with what was decided, or `undefined` if nothing is to
 * be sent. Files that are continued were asked for before.
 */
export async function decided(bucket, prefix, files, isVersioned) {
  if (await isResumed(bucket, files)) return files;
  const keys = files.map(({ key }) => key);
  const taken = await takenOf(bucket, keys);
  if (taken.size === 0) return files;
  const choice = await askCollisions({
    taken: [...taken],
    total: files.length,
    where: `${bucket}/${prefix}`,
    isVersioned,
    action: (number) => (number > 0 ? plural(number, "Upload {n} file", "Upload {n} files") : t("Leave out")),
  });
  if (choice === "leave") return files.filter(({ key }) => !taken.has(key));
  if (choice === "replace") return files.map((one) => ({ ...one, isReplacing: taken.has(one.key) }));
  if (choice !== "both") return undefined;
  const names = await freeNames(bucket, [...taken], keys);
  return files.map((one) => ({ ...one, as: names.get(one.key) }));
}
