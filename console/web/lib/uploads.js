// The queue of uploads. It goes on while the user moves between views, and continues after lost connections and ended sessions.
//
// Files of up to one part are one request. Larger ones are sent in parts: a part that failed is sent again, and after a reload
// the parts that the server has are not. What is needed for that is in IndexedDB, but not the file itself: it must be chosen
// again.

import { h, fill } from "./dom.js";
import { api, ApiError, bucketPath, encodeKey, readError } from "./api.js";
import { plural, size, t } from "./text.js";
import { button, describe } from "./ui.js";

const WHOLE_BYTES_MAX = 8 << 20;
const FILES_AT_ONCE = 3;
const PARTS_AT_ONCE = 3;
const ATTEMPTS_MAX = 8;

const queue = [];
let running = 0;
let onFinished = () => {};
let sheet = null;
let isFolded = false;

/** Sets what is called when an object was written: `(bucket, key)`. */
export function whenUploaded(task) {
  onFinished = task;
}

const TYPES = { avif: "image/avif", bmp: "image/bmp", css: "text/css", csv: "text/csv", flac: "audio/flac", gif: "image/gif", gz: "application/gzip", html: "text/html", ico: "image/x-icon", jpeg: "image/jpeg", jpg: "image/jpeg", js: "text/javascript", json: "application/json", m4a: "audio/mp4", md: "text/markdown", mkv: "video/x-matroska", mov: "video/quicktime", mp3: "audio/mpeg", mp4: "video/mp4", ogg: "audio/ogg", pdf: "application/pdf", png: "image/png", svg: "image/svg+xml", tar: "application/x-tar", txt: "text/plain", wav: "audio/wav", webm: "video/webm", webp: "image/webp", xml: "application/xml", zip: "application/zip" };

function typeOf(file) {
  return file.type || TYPES[file.name.split(".").pop().toLowerCase()] || "application/octet-stream";
}

// --- what is remembered ---

function database() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("cairn-uploads", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("uploads", { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function stored(mode, act) {
  try {
    const open = await database();
    return await new Promise((resolve, reject) => {
      const request = act(open.transaction("uploads", mode).objectStore("uploads"));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } catch {
    // Without storage (a private window), an upload cannot be continued after a reload.
    return undefined;
  }
}

const remember = (entry) => stored("readwrite", (store) => store.put(entry));
const forget = (id) => stored("readwrite", (store) => store.delete(id));

/** Returns uploads of earlier visits that did not end. */
export async function unfinished() {
  const all = (await stored("readonly", (store) => store.getAll())) ?? [];
  return all.filter((entry) => !queue.some((item) => item.id === entry.id));
}

export async function discard(entry) {
  await forget(entry.id);
  await api.remove(`/uploads/${entry.id}`).catch(() => {});
}

// --- sending ---

function wait(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

/** Runs a request again after failures that may pass: no connection, 408, 429, 500 to 599. */
async function persistently(item, task) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await task();
    } catch (error) {
      const passes = error instanceof ApiError && (error.status === 0 || error.status === 408 || error.status === 429 || (error.status >= 500 && error.status !== 507));
      if (!passes || (attempt >= ATTEMPTS_MAX && error.status !== 0)) throw error;
      item.note = t("Waiting to try again…");
      changed();
      await wait(Math.min(1000 * 2 ** attempt, 15000), item.abort.signal);
      item.note = "";
    }
  }
}

/** Sends bytes with progress. `fetch` cannot report how much was sent. */
function sendBytes(item, path, body, headers, report) {
  return persistently(item, () => new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    item.abort.signal.addEventListener("abort", stop, { once: true });
    request.open("PUT", path);
    request.setRequestHeader("x-service-console", "1");
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => report(event.loaded);
    request.onabort = () => reject(new DOMException("", "AbortError"));
    request.onerror = () => reject(new ApiError(0, "UNREACHABLE", "The server cannot be reached.", ""));
    request.onload = async () => {
      item.abort.signal.removeEventListener("abort", stop);
      if (request.status < 300) return resolve();
      if (request.status === 401) {
        // The answer to this question opens the login, and comes back with a session.
        await api.get("/api/v1/auth/session");
        return reject(new ApiError(0, "UNREACHABLE", "", ""));
      }
      reject(await readError(new Response(request.responseText, { status: request.status })));
    };
    request.send(body);
  }));
}

async function sendWhole(item) {
  const headers = { "content-type": typeOf(item.file) };
  if (item.ifAbsent) headers["if-none-match"] = "*";
  await sendBytes(item, bucketPath(item.bucket, "object", encodeKey(item.key)), item.file, headers, (sent) => progress(item, sent));
}

async function sendInParts(item) {
  const { file } = item;
  if (!item.id) {
    const begun = await persistently(item, () => api.post("/uploads", { bucket: item.bucket, key: item.key, size: file.size, content_type: typeOf(file), if_absent: item.ifAbsent }));
    item.id = begun.id;
    await remember({ id: item.id, bucket: item.bucket, key: item.key, name: file.name, size: file.size, modified: file.lastModified });
  }
  const found = await persistently(item, () => api.get(`/uploads/${item.id}`));
  const held = new Set(found.parts.map((part) => part.number));
  const total = Math.ceil(file.size / found.part_bytes);
  const sent = new Map(found.parts.map((part) => [part.number, part.size]));
  const report = (number, bytes) => {
    sent.set(number, bytes);
    progress(item, [...sent.values()].reduce((sum, part) => sum + part, 0));
  };
  const missing = Array.from({ length: total }, (_, index) => index + 1).filter((number) => !held.has(number));
  progress(item, [...sent.values()].reduce((sum, part) => sum + part, 0));
  await Promise.all(Array.from({ length: PARTS_AT_ONCE }, async () => {
    for (let number = missing.shift(); number !== undefined; number = missing.shift()) {
      const part = file.slice((number - 1) * found.part_bytes, number * found.part_bytes);
      await sendBytes(item, `/uploads/${item.id}/${number}`, part, {}, (bytes) => report(number, bytes));
      report(number, part.size);
    }
  }));
  item.note = t("Completing…");
  changed();
  await persistently(item, () => api.post(`/uploads/${item.id}/complete`));
  await forget(item.id);
}

async function run(item) {
  running += 1;
  item.state = "active";
  changed();
  try {
    await (item.file.size > WHOLE_BYTES_MAX || item.id ? sendInParts(item) : sendWhole(item));
    item.state = "done";
    item.sent = item.file.size;
    onFinished(item.bucket, item.key);
  } catch (error) {
    item.state = error.name === "AbortError" ? "cancelled" : "failed";
    item.error = item.state === "failed" ? describe(error) : "";
    item.abort.abort();
    if (item.state === "cancelled" && item.id) await discard(item);
  }
  item.note = "";
  running -= 1;
  changed();
  next();
}

function next() {
  while (running < FILES_AT_ONCE) {
    const item = queue.find((candidate) => candidate.state === "waiting");
    if (!item) return;
    run(item);
  }
}

/** Adds files: `[{file, key}]`. `ifAbsent` keeps objects that exist. `id` continues an earlier upload. */
export function add(bucket, files, { ifAbsent = false, id = null } = {}) {
  // Counts begin anew with each batch.
  if (!queue.some((item) => item.state === "active" || item.state === "waiting")) {
    for (let index = queue.length - 1; index >= 0; index -= 1) if (queue[index].state !== "failed") queue.splice(index, 1);
  }
  for (const { file, key } of files) {
    queue.push({ bucket, key, file, ifAbsent, id, state: "waiting", sent: 0, note: "", error: "", abort: new AbortController() });
  }
  isFolded = false;
  changed();
  next();
}

function cancel(item) {
  const wasWaiting = item.state === "waiting";
  item.abort.abort(new DOMException("", "AbortError"));
  if (wasWaiting) item.state = "cancelled";
  changed();
}

function again(item) {
  Object.assign(item, { state: "waiting", error: "", abort: new AbortController() });
  changed();
  next();
}

addEventListener("beforeunload", (event) => {
  if (queue.some((item) => item.state === "active" || item.state === "waiting")) event.preventDefault();
});

// --- the sheet ---

let scheduled = false;

function progress(item, sent) {
  item.sent = Math.min(sent, item.file.size);
  changed();
}

function changed() {
  if (scheduled) return;
  scheduled = true;
  setTimeout(() => {
    scheduled = false;
    drawSheet();
  }, 100);
}

const SHOWN_MAX = 50;

function drawSheet() {
  sheet ??= h("section", { class: "sheet", "aria-label": t("Uploads") });
  document.documentElement.classList.toggle("has-sheet", queue.length > 0);
  if (queue.length === 0) return sheet.remove();
  if (!sheet.isConnected) document.body.append(sheet);
  const of = (...states) => queue.filter((item) => states.includes(item.state));
  const open = of("active", "waiting");
  const bytes = (items, value) => items.reduce((sum, item) => sum + value(item), 0);
  const all = bytes(queue, (item) => item.file.size) || 1;
  const percent = Math.floor((bytes(queue, (item) => item.sent) / all) * 100);
  const failed = of("failed").length;
  const title = open.length > 0
    ? plural(open.length, "Uploading {n} file", "Uploading {n} files")
    : failed > 0 ? plural(failed, "{n} upload failed", "{n} uploads failed") : plural(of("done").length, "{n} file uploaded", "{n} files uploaded");
  const row = (item) => h("li", null,
    h("div", null, h("span", null, item.key), h("span", { class: "muted small number" }, item.state === "done" ? t("done") : t("{sent} of {size}", { sent: size(item.sent), size: size(item.file.size) }))),
    item.state !== "cancelled" && h("progress", { max: item.file.size || 1, value: item.state === "done" ? item.file.size || 1 : item.sent, "aria-label": item.key }),
    (item.note || item.error) && h("p", { class: item.error ? "bad small" : "muted small" }, item.error || item.note),
    h("div", null, h("span"), item.state === "failed" && button(t("Try again"), () => again(item), "link"),
      (item.state === "active" || item.state === "waiting") && h("button", { type: "button", class: "link", "aria-label": t("Cancel {name}", { name: item.key }), onclick: () => cancel(item) }, t("Cancel"))));
  const shown = [...of("failed"), ...of("active"), ...of("waiting"), ...of("done")].slice(0, SHOWN_MAX);
  const focused = sheet.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent : null;
  fill(sheet,
    h("header", null, h("b", null, title), open.length > 0 && h("span", { class: "muted" }, `${percent} %`),
      h("button", { type: "button", class: "icon", "aria-expanded": String(!isFolded), "aria-label": isFolded ? t("Show uploads") : t("Hide uploads"), onclick: () => { isFolded = !isFolded; drawSheet(); } }, isFolded ? "▴" : "▾"),
      open.length === 0 && h("button", { type: "button", class: "icon", "aria-label": t("Close"), onclick: () => { queue.length = 0; drawSheet(); } }, "×")),
    !isFolded && h("ul", null, shown.map(row)));
  if (focused) [...sheet.querySelectorAll("button")].find((found) => (found.getAttribute("aria-label") ?? found.textContent) === focused)?.focus();
}

// --- files from drops ---

async function entriesOf(reader) {
  const entries = [];
  for (;;) {
    // A reader returns a hundred entries at a time, and none at the end.
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return entries;
    entries.push(...some);
  }
}

async function walk(entry, path, found) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ file, key: `${path}${entry.name}` });
  } else if (entry.isDirectory) {
    for (const inner of await entriesOf(entry.createReader())) await walk(inner, `${path}${entry.name}/`, found);
  }
}

/** Returns all files of a drop, with those in folders, below a prefix. */
export async function dropped(transfer, prefix) {
  // The list is emptied as soon as the event has been handled.
  const entries = [...transfer.items].filter((item) => item.kind === "file").map((item) => item.webkitGetAsEntry());
  const found = [];
  for (const entry of entries) if (entry) await walk(entry, prefix, found);
  return found;
}

/** Returns the files of an input, with the folders that they were chosen with. */
export function chosen(input, prefix) {
  return [...input.files].map((file) => ({ file, key: prefix + (file.webkitRelativePath || file.name) }));
}
