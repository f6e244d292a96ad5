// Objects: their path as links, the URL of their content, and how a deletion is undone.

import { api, bucketPath, encodeKey, withQuery } from "./api.js";
import { h } from "./dom.js";
import { place } from "./navigation.js";
import { link } from "./ui.js";

/** Returns the path of a prefix as links. */
export function crumbs(bucket, prefix, last) {
  const parts = prefix.split("/").slice(0, -1);
  const made = [link(bucket, place("bucket", [bucket]))];
  parts.forEach((part, index) => {
    made.push(
      " / ",
      link(part || "∅", place("bucket", [bucket], { prefix: `${parts.slice(0, index + 1).join("/")}/` })),
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

/** Removes the delete marker that hides an object. */
export async function undelete(bucket, key) {
  const { versions } = await api.get(bucketPath(bucket, "object-versions"), { prefix: key, limit: 10 });
  const marker = versions.find((version) => version.key === key && version.is_latest && version.is_delete_marker);
  if (marker)
    await api.remove(
      withQuery(bucketPath(bucket, "object-versions", encodeKey(key)), { version_id: marker.version_id }),
    );
}
