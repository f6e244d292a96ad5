// Previews of objects and of their versions: images, video, audio, PDF, and the beginning of texts.

import { bucketPath, encodeKey, withQuery } from "./api.js";
import { h } from "./dom.js";
import { contentPath } from "./objects.js";
import { t } from "./text.js";

const IMAGES = /^image\/(avif|bmp|gif|jpeg|png|vnd\.microsoft\.icon|webp|x-icon)\b/;
const TEXTS = /^(text\/|application\/(json|xml|yaml|toml|javascript|sql|x-sh)|.*\+(json|xml|yaml)\b)/;

export const isImage = (type) => IMAGES.test(type);
export const isText = (type) => TEXTS.test(type);

const pathOf = (bucket, key, version) =>
  withQuery(bucketPath(bucket, "object-preview", encodeKey(key)), { version_id: version });

/** Returns the beginning of a text, and whether that is all; null if the server shows nothing of it. */
export async function readText(bucket, key, record, version) {
  const response = await fetch(pathOf(bucket, key, version), { credentials: "same-origin" });
  if (!response.ok) return null;
  const bytes = await response.arrayBuffer();
  return { text: new TextDecoder().decode(bytes), isWhole: bytes.byteLength === record.size };
}

function printed(text, type) {
  if (!type.includes("json")) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Only the beginning of a long text is sent.
    return text;
  }
}

/** Makes the preview of a version, or returns null. */
export async function preview(bucket, key, record, version) {
  const name = t("Preview of {name}", { name: key });
  const content = contentPath(bucket, key, version);
  const type = record.content_type;
  if (/^video\//.test(type)) return h("video", { controls: true, preload: "metadata", src: content });
  if (/^audio\//.test(type)) return h("audio", { controls: true, preload: "metadata", src: content });
  const path = pathOf(bucket, key, version);
  if (IMAGES.test(type)) return h("img", { src: path, alt: name });
  // Browsers draw PDF in a process of their own, and Chromium does not do so in a sandbox. The policy of the answer
  // allows no script, and its type is never guessed.
  if (/^application\/pdf\b/.test(type)) {
    const found = await fetch(path, { method: "HEAD", credentials: "same-origin" });
    return found.ok ? h("iframe", { src: path, title: name }) : null;
  }
  if (!TEXTS.test(type)) return null;
  const found = await readText(bucket, key, record, version);
  return found && h("pre", { tabindex: "0", "aria-label": name }, printed(found.text, type));
}
