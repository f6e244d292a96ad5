// Uploads that outlive the page, in IndexedDB: unfinished ones, batches, and which files of them arrived.
//
// Without storage (a private window), nothing can be continued after a reload; all functions still work.

const DATABASE = "cairn-uploads";
const FLUSH_MILLIS = 300;
// A page holds a lock with its name as long as it is open, so that others do not take its uploads for interrupted ones.
const LOCK = "cairn-page-";
const page = `${LOCK}${Date.now()}-${Math.random()}`;
let opened;
let release = () => {};

function hold() {
  navigator.locks?.request(
    page,
    () =>
      new Promise((resolve) => {
        release = resolve;
      }),
  );
}

// Also a page that the browser keeps for the way back works on nothing.
addEventListener("pagehide", () => {
  flush();
  release();
});
addEventListener("pageshow", (event) => event.persisted && opened && hold());

function database() {
  opened ??= new Promise((resolve, reject) => {
    hold();
    const request = indexedDB.open(DATABASE, 2);
    request.onupgradeneeded = () => {
      for (const [name, options] of [
        ["uploads", { keyPath: "id" }],
        ["batches", { keyPath: "id" }],
        ["done", undefined],
      ]) {
        if (!request.result.objectStoreNames.contains(name)) request.result.createObjectStore(name, options);
      }
    };
    request.onsuccess = () => {
      // A newer version of this page may need another format.
      request.result.onversionchange = () => request.result.close();
      resolve(request.result);
    };
    request.onerror = () => reject(request.error);
  });
  return opened;
}

// Runs a transaction; the value of the request that `act` returns is the result.
async function stored(names, mode, act) {
  try {
    const open = await database();
    return await new Promise((resolve, reject) => {
      const transaction = open.transaction(names, mode);
      const request = act(...[names].flat().map((name) => transaction.objectStore(name)));
      transaction.oncomplete = () => resolve(request?.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } catch {
    return undefined;
  }
}

/** Remembers an upload in parts: `{id, bucket, key, name, size, modified, batch?}`. */
export const rememberUpload = (entry) => stored("uploads", "readwrite", (uploads) => uploads.put({ ...entry, page }));
export const forgetUpload = (id) => stored("uploads", "readwrite", (uploads) => uploads.delete(id));

/** Remembers files that were chosen together: `{id, bucket, prefix, keys, bytes, begun}`. */
export const rememberBatch = (batch) => stored("batches", "readwrite", (batches) => batches.put({ ...batch, page }));

const keysOf = (id) => IDBKeyRange.bound([id], [id, []]);

export async function forgetBatch(id) {
  await flush();
  await stored(["batches", "done"], "readwrite", (batches, done) => {
    done.delete(keysOf(id));
    return batches.delete(id);
  });
}

let marks = [];
let timer;

function flush() {
  clearTimeout(timer);
  timer = undefined;
  const written = marks;
  marks = [];
  return written.length > 0 && stored("done", "readwrite", (done) => written.map((mark) => done.put(1, mark)).pop());
}

/**
 * Notes that a file of a batch arrived. Written a moment later, many at once; a file whose note is lost is sent again.
 */
export function markDone(id, key) {
  marks.push([id, key]);
  timer ??= setTimeout(flush, FLUSH_MILLIS);
}

/** Returns the keys of a batch that arrived. */
export async function doneIn(id) {
  await flush();
  return new Set(
    ((await stored("done", "readonly", (done) => done.getAllKeys(keysOf(id)))) ?? []).map(([, key]) => key),
  );
}

/** Returns `{uploads, batches}` that no open page works on. `left` of a batch counts the files that are missing. */
export async function interrupted() {
  await flush();
  const held = new Set(((await navigator.locks?.query())?.held ?? []).map(({ name }) => name));
  const isLeft = (entry) => !held.has(entry.page) || entry.page === page;
  const [uploads, batches] = await Promise.all(
    ["uploads", "batches"].map(async (name) =>
      ((await stored(name, "readonly", (entries) => entries.getAll())) ?? []).filter(isLeft),
    ),
  );
  for (const batch of batches) batch.left = batch.keys.length - (await doneIn(batch.id)).size;
  return { uploads, batches: batches.filter((batch) => batch.left > 0) };
}
