// The queue of uploads, which outlives views, lost connections and ended sessions.
//
// Files of up to one part are one request. Larger ones are sent in parts: a part that failed is sent again, and after
// a reload the parts that the server has are not. Files that were chosen together are a batch: after a reload, the user
// chooses them again, and those that arrived are not sent. What is needed for that is in IndexedDB (uploads-store.js),
// without the files.

import { ApiError, api, bucketPath, encodeKey, readError } from "./api.js";
import { describe } from "./errors.js";
import { typeOf } from "./files.js";
import { plural, t } from "./text.js";
import { notice } from "./ui.js";
import * as store from "./uploads-store.js";

const WHOLE_BYTES_MAX = 8 << 20;
// Browsers have six connections to a server: one stays for the views.
const REQUESTS_AT_ONCE = 5;
const FILES_AT_ONCE = 5;
const PARTS_AT_ONCE = 5;
const ATTEMPTS_MAX = 8;
const RATE_SECONDS = 15;

/** The uploads since the last time that none was open, in the order in which they were added. */
export const queue = [];
/** Those that are being sent. */
export const active = new Set();
/** Uploads that failed and are not tried again. */
export const failed = new Set();
const retries = [];
let cursor = 0;
/** Numbers of uploads by state, their bytes, and the bytes that were sent. */
export let tally = { waiting: 0, active: 0, done: 0, failed: 0, cancelled: 0, bytes: 0, sent: 0 };
let onFinished = () => {};
let onAdded = () => {};
let onChanged = () => {};

/** Sets what is called when an object was written: `(bucket, key)`. Returns what ends that. */
export function whenUploaded(task) {
  onFinished = task;
  return () => {
    if (onFinished === task) onFinished = () => {};
  };
}

/** Sets what is called when files were added, and, at most ten times a second, when something has changed. */
export function watchUploads(added, changed) {
  onAdded = added;
  onChanged = changed;
}

// --- what is interrupted ---

/** Returns uploads and batches of earlier visits that did not end. */
export async function unfinished() {
  const { uploads, batches } = await store.interrupted();
  const own = new Set(queue.flatMap((item) => [item.id, item.batch?.id]));
  return [...batches, ...uploads.filter((entry) => !batches.some((batch) => batch.id === entry.batch))].filter(
    (entry) => !own.has(entry.id),
  );
}

/** Gives up what an earlier visit left. */
export async function discard(entry) {
  if (!entry.keys) {
    await store.forgetUpload(entry.id);
    await api.remove(`/uploads/${entry.id}`).catch(() => {});
    return;
  }
  for (const upload of (await store.interrupted()).uploads) if (upload.batch === entry.id) await discard(upload);
  await store.forgetBatch(entry.id);
}

/** Returns those of the chosen files that belong to a batch. */
export function ofBatch(batch, files) {
  const keys = new Set(batch.keys);
  return files.filter(({ key }) => keys.has(key));
}

// The batch of an earlier visit that these files belong to, or a new one.
async function batchOf(bucket, prefix, files) {
  const { batches, uploads } = await store.interrupted();
  for (const batch of batches) {
    if (queue.some((item) => item.batch?.id === batch.id && (item.state === "active" || item.state === "waiting")))
      continue;
    if (batch.bucket === bucket && ofBatch(batch, files).length === files.length) {
      const done = await store.doneIn(batch.id);
      const left = files.filter(({ file, key }) => !done.has(key) || file.lastModified > batch.begun);
      if (left.length < files.length)
        notice(
          plural(files.length - left.length, "{n} file was already uploaded.", "{n} files were already uploaded."),
        );
      await store.rememberBatch(batch);
      return { batch: { ...batch, open: left.length }, left, uploads };
    }
  }
  const batch = {
    id: `${Date.now()}-${Math.random()}`,
    bucket,
    prefix,
    keys: files.map(({ key }) => key),
    bytes: files.reduce((sum, { file }) => sum + file.size, 0),
    begun: Date.now(),
  };
  await store.rememberBatch(batch);
  return { batch: { ...batch, open: files.length }, left: files, uploads };
}

/** Returns whether files were chosen before, and some of them are missing: nothing of theirs is new. */
export async function isResumed(bucket, files) {
  const { batches, uploads } = await store.interrupted();
  if (files.length > 1)
    return batches.some((batch) => batch.bucket === bucket && ofBatch(batch, files).length === files.length);
  return uploads.some(
    (entry) => entry.bucket === bucket && entry.key === files[0]?.key && entry.modified === files[0].file.lastModified,
  );
}

function leaveBatch(item) {
  if (!item.batch) return;
  store.markDone(item.batch.id, item.chosen);
  item.batch.open -= 1;
  if (item.batch.open === 0) store.forgetBatch(item.batch.id);
}

// --- sending ---

let free = REQUESTS_AT_ONCE;
const waiters = [];

/** Runs a task when there is a connection for it. */
async function connected(task) {
  if (free > 0) free -= 1;
  else await new Promise((resolve) => waiters.push(resolve));
  try {
    return await task();
  } finally {
    if (waiters.length > 0) waiters.shift()();
    else free += 1;
  }
}

function wait(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        reject(signal.reason);
      },
      { once: true },
    );
  });
}

// Without a connection the status is 0. A full disk (507) is not over soon.
function mayPass(error) {
  if (!(error instanceof ApiError)) return false;
  return [0, 408, 429].includes(error.status) || (error.status >= 500 && error.status !== 507);
}

/** Runs a request again after failures that may pass: no connection, 408, 429, 500 to 599. */
async function persistently(item, task) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await task();
    } catch (error) {
      if (!mayPass(error) || (attempt >= ATTEMPTS_MAX && error.status !== 0)) throw error;
      item.note = t("Waiting to try again…");
      changed();
      await wait(Math.min(1000 * 2 ** attempt, 15000), item.abort.signal);
      item.note = "";
    }
  }
}

/** Sends bytes with progress. `fetch` cannot report how much was sent. */
function sendBytes(item, path, body, headers, report) {
  return persistently(item, () => connected(() => put(item.abort.signal, path, body, headers, report)));
}

function put(signal, path, body, headers, report) {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new DOMException("", "AbortError"));
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    signal.addEventListener("abort", stop, { once: true });
    request.open("PUT", path);
    request.setRequestHeader("x-service-console", "1");
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => report(event.loaded);
    request.onabort = () => reject(new DOMException("", "AbortError"));
    request.onerror = () => reject(new ApiError(0, "UNREACHABLE", "The server cannot be reached.", ""));
    request.onload = async () => {
      signal.removeEventListener("abort", stop);
      if (request.status < 300) return resolve();
      if (request.status === 401) {
        // The answer to this question opens the login, and comes back with a session. Without one, the next try
        // asks again.
        await api.get("/api/v1/auth/session").catch(() => {});
        return reject(new ApiError(0, "UNREACHABLE", "", ""));
      }
      reject(await readError(new Response(request.responseText, { status: request.status })));
    };
    return request.send(body);
  });
}

// Returns whether the object has the content of the file. An upload whose answer was lost is repeated, and finds its
// own object: nobody is asked about that.
async function isStored(item) {
  const path = bucketPath(item.bucket, "object-content", encodeKey(item.key));
  const response = await fetch(path, { credentials: "same-origin", cache: "no-store", signal: item.abort.signal });
  if (!response.ok || Number(response.headers.get("content-length")) !== item.file.size) {
    await response.body?.cancel();
    return false;
  }
  const [stored, own] = await Promise.all([response.arrayBuffer(), item.file.arrayBuffer()]);
  const [found, wanted] = [new Uint8Array(stored), new Uint8Array(own)];
  return found.length === wanted.length && found.every((byte, index) => byte === wanted[index]);
}

async function sendWhole(item) {
  const headers = { "content-type": typeOf(item.file) };
  if (item.ifAbsent) headers["if-none-match"] = "*";
  try {
    await sendBytes(item, bucketPath(item.bucket, "object", encodeKey(item.key)), item.file, headers, (sent) =>
      progress(item, sent),
    );
  } catch (error) {
    if (error.status !== 412 || !(await isStored(item))) throw error;
  }
}

// Returns the state of the upload of an item. One that the server has removed since is begun anew.
async function begunUpload(item) {
  const { file } = item;
  if (item.id) {
    try {
      return await persistently(item, () => api.get(`/uploads/${item.id}`));
    } catch (error) {
      if (error.code !== "UPLOAD_NOT_FOUND") throw error;
      await store.forgetUpload(item.id);
    }
  }
  const begun = await persistently(item, () =>
    api.post("/uploads", {
      bucket: item.bucket,
      key: item.key,
      size: file.size,
      content_type: typeOf(file),
      if_absent: item.ifAbsent,
    }),
  );
  item.id = begun.id;
  return { ...begun, parts: [] };
}

async function sendInParts(item) {
  const { file } = item;
  const found = await begunUpload(item);
  await store.rememberUpload({
    id: item.id,
    bucket: item.bucket,
    key: item.key,
    name: file.name,
    size: file.size,
    modified: file.lastModified,
    batch: item.batch?.id,
  });
  const held = new Set(found.parts.map((part) => part.number));
  const last = Math.ceil(file.size / found.part_bytes);
  const sent = new Map(found.parts.map((part) => [part.number, part.size]));
  const reportAll = () => {
    const total = [...sent.values()].reduce((sum, part) => sum + part, 0);
    progress(item, total);
  };
  const report = (number, bytes) => {
    sent.set(number, bytes);
    reportAll();
  };
  const missing = Array.from({ length: last }, (_, index) => index + 1).filter((number) => !held.has(number));
  reportAll();
  await Promise.all(
    Array.from({ length: PARTS_AT_ONCE }, async () => {
      for (let number = missing.shift(); number !== undefined; number = missing.shift()) {
        const part = file.slice((number - 1) * found.part_bytes, number * found.part_bytes);
        await sendBytes(item, `/uploads/${item.id}/${number}`, part, {}, (bytes) => report(number, bytes));
        report(number, part.size);
      }
    }),
  );
  item.note = t("Completing…");
  changed();
  await persistently(item, () => api.post(`/uploads/${item.id}/complete`));
  await store.forgetUpload(item.id);
}

function become(item, state) {
  tally[item.state] -= 1;
  tally[state] += 1;
  active.delete(item);
  failed.delete(item);
  if (state === "active") active.add(item);
  if (state === "failed") failed.add(item);
  if (state === "cancelled") {
    tally.bytes -= item.file.size;
    tally.sent -= item.sent;
  }
  item.state = state;
  changed();
}

async function run(item) {
  become(item, "active");
  try {
    await (item.file.size > WHOLE_BYTES_MAX || item.id ? sendInParts(item) : sendWhole(item));
    progress(item, item.file.size);
    become(item, "done");
    leaveBatch(item);
    onFinished(item.bucket, item.key);
  } catch (error) {
    item.error = error.name === "AbortError" ? "" : describe(error);
    item.isTaken = error.status === 412;
    if (item.isTaken) item.error = t("An object with this key already exists.");
    become(item, item.error ? "failed" : "cancelled");
    item.abort.abort();
    if (item.state === "cancelled") {
      leaveBatch(item);
      if (item.id) await discard({ id: item.id });
    }
  }
  item.note = "";
  changed();
  next();
}

function next() {
  while (active.size < FILES_AT_ONCE) {
    const item = retries.shift() ?? queue[cursor++];
    if (!item) {
      cursor = queue.length;
      return;
    }
    if (item.state === "waiting") run(item);
  }
}

const isOpen = () => tally.active + tally.waiting > 0;

/** Forgets all uploads but some. */
export function clear(kept) {
  queue.splice(0, queue.length, ...kept);
  cursor = queue.length;
  samples = [];
  tally = {
    waiting: 0,
    active: 0,
    done: 0,
    failed: kept.length,
    cancelled: 0,
    bytes: kept.reduce((sum, item) => sum + item.file.size, 0),
    sent: kept.reduce((sum, item) => sum + item.sent, 0),
  };
}

/**
 * Adds files: `[{file, key, as, isReplacing}]`; `as` is another name than the chosen one. Objects that exist are kept
 * unless `isReplacing` is set. `id` continues an earlier upload of one file.
 */
export async function add(bucket, files, { id = null, prefix = "" } = {}) {
  const { batch, left, uploads } =
    files.length > 1 ? await batchOf(bucket, prefix, files) : { left: files, uploads: [] };
  if (left.length === 0 && batch) await store.forgetBatch(batch.id);
  // Counts begin anew with each batch.
  if (!isOpen()) clear([...failed]);
  for (const { file, key: chosen, as, isReplacing } of left) {
    const key = as ?? chosen;
    const earlier = uploads.find(
      (entry) =>
        entry.bucket === bucket &&
        entry.key === key &&
        entry.size === file.size &&
        entry.modified === file.lastModified,
    );
    queue.push({
      bucket,
      key,
      chosen,
      file,
      ifAbsent: !isReplacing,
      id: id ?? earlier?.id ?? null,
      batch,
      state: "waiting",
      sent: 0,
      note: "",
      error: "",
      abort: new AbortController(),
    });
    tally.waiting += 1;
    tally.bytes += file.size;
  }
  onAdded();
  changed();
  next();
}

/** Ends an upload. */
export function cancel(item) {
  item.abort.abort(new DOMException("", "AbortError"));
  // What is being sent ends by itself.
  if (item.state === "waiting" || item.state === "failed") {
    become(item, "cancelled");
    leaveBatch(item);
  }
}

/** Tries an upload again that has failed. */
export function again(item) {
  if (item.state !== "failed") return;
  become(item, "waiting");
  Object.assign(item, { error: "", isTaken: false, abort: new AbortController() });
  retries.push(item);
  next();
}

/** Uploads a file in place of the object that exists. */
export async function replace(item) {
  // The server keeps with the upload that the object must not exist, so there must be another one.
  if (item.id) await discard({ id: item.id }).catch(() => {});
  item.id = null;
  item.ifAbsent = false;
  again(item);
}

/** Uploads a file under another name than the one that exists. */
export async function rename(item, key) {
  if (item.id) await discard({ id: item.id }).catch(() => {});
  item.id = null;
  // The row shows the name.
  item.row = null;
  item.key = key;
  again(item);
}

addEventListener("beforeunload", (event) => {
  if (isOpen()) event.preventDefault();
});

// --- progress ---

let scheduled = false;
let samples = [];

function progress(item, sent) {
  const now = Math.min(sent, item.file.size);
  tally.sent += now - item.sent;
  item.sent = now;
  changed();
}

function changed() {
  if (scheduled) return;
  scheduled = true;
  setTimeout(() => {
    scheduled = false;
    onChanged();
  }, 100);
}

/** Returns how many seconds the rest takes at the rate of the last ones; null while that is not known. */
export function secondsLeft() {
  const now = performance.now() / 1000;
  samples.push([now, tally.sent]);
  while (samples.length > 2 && now - samples[0][0] > RATE_SECONDS) samples.shift();
  const [[begun, before]] = samples;
  const rate = (tally.sent - before) / (now - begun);
  return now - begun < 1 || !(rate > 0) ? null : (tally.bytes - tally.sent) / rate;
}
