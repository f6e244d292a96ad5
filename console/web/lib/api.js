// Requests to the server that the page came from. The session is in a cookie that this code cannot read.

/** The region that S3 clients are told. */
export const REGION = "us-east-1";

/** An answer with an error. */
export class ApiError extends Error {
  constructor(status, code, message, requestId) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }
}

let onSignedOut = () => {};
// Grows when there is a new session.
let signIns = 0;

/** Sets what happens when the session has ended. It returns a promise that resolves when there is a new one. */
export function whenSignedOut(task) {
  onSignedOut = task;
}

/** Encodes a key for a path. */
export function encodeKey(key) {
  const segments = key.split("/");
  // Browsers resolve the segments `.` and `..`, also when they are encoded. Between encoded slashes they are no
  // segments.
  return segments
    .map(encodeSegment)
    .join(segments.some((segment) => segment === "." || segment === "..") ? "%2F" : "/");
}

/** Encodes one segment of a path. */
export function encodeSegment(segment) {
  return encodeURIComponent(segment).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Returns a path with the parameters that have a value. A list repeats its parameter. */
export function withQuery(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters ?? {})) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") query.append(name, one);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

export async function readError(response) {
  let found = {};
  try {
    found = (await response.json()).error ?? {};
  } catch {
    // The answer was not ours: a proxy, or a lost connection.
  }
  const id = found.request_id ?? response.headers.get("x-request-id") ?? "";
  return new ApiError(response.status, found.code ?? "", found.message ?? `HTTP ${response.status}`, id);
}

async function send(method, path, body, options = {}) {
  const headers = { "x-service-console": "1" };
  if (body !== undefined) headers["content-type"] = "application/json";
  const request = { method, headers, signal: options.signal, cache: "no-store" };
  if (body !== undefined) request.body = JSON.stringify(body);
  const before = signIns;
  const response = await fetch(path, request).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "UNREACHABLE", "The server cannot be reached.", "");
  });
  if (response.status === 401 && !options.isLogin) {
    // A late answer says nothing about a session that has begun since the request.
    if (before === signIns) {
      await onSignedOut();
      signIns += 1;
    }
    return send(method, path, body, options);
  }
  if (!response.ok) throw await readError(response);
  return response.status === 204 ? null : response.json();
}

export const api = {
  get: (path, parameters, options) => send("GET", withQuery(path, parameters), undefined, options),
  post: (path, body, options) => send("POST", path, body, options),
  put: (path, body, options) => send("PUT", path, body, options),
  patch: (path, body, options) => send("PATCH", path, body, options),
  remove: (path, options) => send("DELETE", path, undefined, options),
};

// Most reads of one request; the server takes no more.
const BATCH_MAX = 16;
let waiting = new Map();

/**
 * Reads like `api.get`, in one request with all that is read in the same moment: a request costs more than a small
 * answer. Only for what is quick, because the answers come together.
 */
export function getTogether(path, parameters, options = {}) {
  const target = withQuery(path, parameters);
  if (waiting.size >= BATCH_MAX && !waiting.has(target)) return api.get(path, parameters, options);
  if (waiting.size === 0)
    queueMicrotask(() => {
      const reads = waiting;
      waiting = new Map();
      sendTogether(reads);
    });
  const read = waiting.get(target) ?? { isLogin: true };
  read.isLogin &&= options.isLogin ?? false;
  read.promise ??= new Promise((resolve, reject) => Object.assign(read, { resolve, reject }));
  waiting.set(target, read);
  return read.promise;
}

/**
 * Reads like `getTogether` what nobody has asked for: it never asks for a login, and returns null in place of an error.
 */
export const readQuietly = (path, parameters) => getTogether(path, parameters, { isLogin: true }).catch(() => null);

async function sendTogether(reads) {
  const isLogin = [...reads.values()].every((read) => read.isLogin);
  try {
    const { answers } = await api.get("/batch", { path: [...reads.keys()] }, { isLogin });
    [...reads].forEach(([target, { resolve, reject }], index) => {
      const { status, body } = answers[index];
      if (status < 300) resolve(body);
      // A large answer comes by itself.
      else if (body.error.code === "INVALID_REQUEST") api.get(target, undefined, { isLogin }).then(resolve, reject);
      else reject(new ApiError(status, body.error.code, body.error.message, body.error.request_id));
    });
  } catch (error) {
    for (const { reject } of reads.values()) reject(error);
  }
}

/** Returns the path of a bucket in the API. */
export function bucketPath(bucket, ...rest) {
  return ["/api/v1/buckets", encodeSegment(bucket), ...rest].join("/");
}
