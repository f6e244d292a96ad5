// Objects: their path as links, the URL of their content, and how a deletion is undone.

import { api, bucketPath, encodeKey, withQuery } from "./api.js";
import { h } from "./dom.js";
import { place } from "./navigation.js";
import { link } from "./ui.js";

/** Returns the path of a prefix as links. `at` is an earlier moment. */
export function crumbs(bucket, prefix, last, at) {
  const parts = prefix.split("/").slice(0, -1);
  const made = [link(bucket, place("bucket", [bucket], { at }))];
  parts.forEach((part, index) => {
    made.push(
      " / ",
      link(part || "∅", place("bucket", [bucket], { prefix: `${parts.slice(0, index + 1).join("/")}/`, at })),
    );
  });
  if (last === undefined) made.push(h("b", null, made.pop()));
  if (last !== undefined) made.push(" / ", h("b", null, last || "∅"));
  return made;
}

/** Returns the URL of an object's content, which the browser saves. */
export function contentPath(bucket, key, version) {
  return withQuery(bucketPath(bucket, "object-content", encodeKey(key)), { version_id: version });
}

/** Removes the delete markers that hide an object. */
export async function undelete(bucket, key) {
  await api.post(bucketPath(bucket, "undelete"), { keys: [key] });
}

/** Returns the longest folder that all keys are in. */
export function commonFolder(keys) {
  const [first, ...rest] = keys;
  let length = first.lastIndexOf("/") + 1;
  for (const key of rest) {
    while (length > 0 && !key.startsWith(first.slice(0, length))) length = first.lastIndexOf("/", length - 2) + 1;
  }
  return first.slice(0, length);
}
