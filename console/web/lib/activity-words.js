// Sentences for people about what happened: who did what to which object, setting or right.

import { h } from "./dom.js";
import { place } from "./navigation.js";
import { commonFolder } from "./objects.js";
import { count, size, t } from "./text.js";
import { link, shortName } from "./ui.js";

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const DETAIL_MAX = 80;
// Matches details of the server that begin with a name.
const NAMED = /^named (.+?)(?:, |$)/;

/** Puts elements into the places of a translated text. */
export const phrase = (text, parts) =>
  text.split(/(\{\w+\})/).map((piece) => (piece.startsWith("{") ? (parts[piece.slice(1, -1)] ?? "") : piece));

// A text from outside must not turn the sentence around it.
const own = (text) => h("bdi", null, text);

/** The name of who did something. */
export function nameOf(principal) {
  if (!principal || principal === "anonymous") return t("Somebody");
  return principal === "service" ? "Cairn" : shortName(principal);
}

function whoOf(principal, names) {
  const id = principal?.startsWith("account:") && names.ids.get(shortName(principal));
  const name = own(nameOf(principal));
  return h("b", null, id ? link(name, place("account", [id])) : name);
}

const bucketLink = (bucket) => link(own(bucket), place("bucket", [bucket]));
const objectLink = (bucket, key) => link(own(`${bucket}/${key}`), place("object", [bucket, key]));
const folderLink = (bucket, prefix) =>
  prefix ? link(own(`${bucket}/${prefix}`), place("bucket", [bucket], { prefix })) : bucketLink(bucket);

const ONE = {
  "object.created": () => t("{who} added {what}, {size}"),
  "object.updated": () => t("{who} overwrote {what}, {size}"),
  "object.restored": () => t("{who} restored {what}, {size}"),
  "object.deleted": () => t("{who} deleted {what}"),
  "multipart.completed": () => t("{who} completed an upload of {what}"),
  "multipart.aborted": () => t("{who} gave up an upload of {what}"),
  "bucket.created": () => t("{who} created the bucket {what}"),
  "bucket.deleted": () => t("{who} deleted the bucket {what}"),
};
const MANY = {
  "object.created": () => t("{who} added {n} objects in {what}, {size}"),
  "object.updated": () => t("{who} overwrote {n} objects in {what}, {size}"),
  "object.restored": () => t("{who} restored {n} objects in {what}, {size}"),
  "object.deleted": () => t("{who} deleted {n} objects in {what}"),
  "multipart.aborted": () => t("{who} gave up {n} uploads in {what}"),
};
const BY_RULE = {
  "object.deleted": [() => t("Rule {who} removed {what}"), () => t("Rule {who} removed {n} objects in {what}")],
  "multipart.aborted": [
    () => t("Rule {who} gave up an upload of {what}"),
    () => t("Rule {who} gave up {n} uploads in {what}"),
  ],
};

/** The events that say what a row is about: without those that accompany them. */
export function mainEvents(row) {
  const main = row.events.filter((event) => event.type !== "multipart.completed");
  return main.length > 0 ? main : row.events;
}

function eventSentence(row, names) {
  const events = mainEvents(row);
  const [{ type, bucket, object, version_id: version, metadata }] = events;
  const same = events.filter((event) => event.type === type && event.object !== undefined);
  const rule = metadata.rule_id;
  const who = rule ? h("b", null, own(rule)) : whoOf(row.principal, names);
  const bytes = same.reduce((sum, event) => sum + (event.size ?? 0), 0);
  if (same.length > 1) {
    const text = rule ? BY_RULE[type]?.[1]() : MANY[type]?.();
    const number = row.mayGrow ? t("at least {n}", { n: count(same.length) }) : count(same.length);
    const what = folderLink(bucket, commonFolder(same.map((event) => event.object)));
    if (text) return phrase(text, { who, what, n: number, size: size(bytes) });
  }
  const what = object === undefined ? bucketLink(bucket) : objectLink(bucket, object);
  const isVersion = type === "object.deleted" && !metadata.delete_marker && version !== "null";
  if (isVersion && !rule) return phrase(t("{who} deleted a version of {what}"), { who, what });
  return phrase((rule && BY_RULE[type]?.[0]()) || ONE[type]?.() || type, { who, what, size: size(bytes) });
}

const DONE = {
  create_bucket: () => t("{who} created the bucket {what}"),
  delete_bucket: () => t("{who} deleted the bucket {what}"),
  set_versioning: () => t("{who} changed versioning of {what}"),
  set_quota: () => t("{who} changed the quota of {what}"),
  set_cors: () => t("{who} changed the CORS rules of {what}"),
  delete_cors: () => t("{who} removed the CORS rules of {what}"),
  set_public_access: () => t("{who} changed public access to {what}"),
  set_object_lock: () => t("{who} changed object lock of {what}"),
  create_lifecycle_rule: () => t("{who} added a lifecycle rule to {what}"),
  replace_lifecycle_rule: () => t("{who} changed a lifecycle rule of {what}"),
  delete_lifecycle_rule: () => t("{who} removed a lifecycle rule {what}"),
  resume_lifecycle: () => t("{who} let lifecycle rules go on"),
  upload_object: () => t("{who} wrote {what}"),
  delete_object: () => t("{who} deleted {what}"),
  delete_object_version: () => t("{who} deleted a version of {what}"),
  set_object_retention: () => t("{who} changed the retention of {what}"),
  set_object_legal_hold: () => t("{who} changed the legal hold of {what}"),
  abort_multipart_upload: () => t("{who} gave up an upload of {what}"),
  copy_object: () => t("{who} copied to {what}"),
  move_object: () => t("{who} moved to {what}"),
  begin_import: () => t("{who} began an import into {what}"),
  pause_import: () => t("{who} paused an import"),
  resume_import: () => t("{who} resumed an import"),
  undelete_objects: () => t("{who} brought back deleted objects of {what}"),
  restore_bucket: () => t("{who} restored {what} to an earlier moment"),
  restore_object: () => t("{who} restored {what}"),
  create_share: () => t("{who} shared {what}"),
  update_share: () => t("{who} changed the share {what}"),
  delete_share: () => t("{who} deleted the share {what}"),
  get_share_url: () => t("{who} looked at the URL of the share {what}"),
  revoke_share: () => t("{who} revoked the share {what}"),
  create_embed: () => t("{who} embedded {what}"),
  update_embed: () => t("{who} changed the embed {what}"),
  delete_embed: () => t("{who} deleted the embed {what}"),
  get_embed_url: () => t("{who} looked at the URL of the embed {what}"),
  revoke_embed: () => t("{who} revoked the embed {what}"),
  create_service_account: () => t("{who} created the application {what}"),
  delete_service_account: () => t("{who} deleted the application {what}"),
  set_service_account_status: () => t("{who} turned the application {what} on or off"),
  create_credential: () => t("{who} created a key for {what}"),
  create_temporary_credential: () => t("{who} created a temporary key for {what}"),
  delete_credential: () => t("{who} deleted a key of {what}"),
  set_credential_status: () => t("{who} turned a key of {what} on or off"),
  create_policy: () => t("{who} created the policy {what}"),
  replace_policy: () => t("{who} changed the policy {what}"),
  delete_policy: () => t("{who} deleted the policy {what}"),
  attach_policy: () => t("{who} attached the policy {what}"),
  detach_policy: () => t("{who} detached the policy {what}"),
  create_management_token: () => t("{who} created the token {what}"),
  delete_management_token: () => t("{who} deleted the token {what}"),
  create_webhook: () => t("{who} created the webhook {what}"),
  update_webhook: () => t("{who} changed the webhook {what}"),
  delete_webhook: () => t("{who} deleted the webhook {what}"),
  set_webhook_status: () => t("{who} turned the webhook {what} on or off"),
  rotate_webhook_secret: () => t("{who} replaced the secret of the webhook {what}"),
  test_webhook: () => t("{who} tested the webhook {what}"),
  resume_webhook: () => t("{who} resumed the webhook {what}"),
  redeliver_events: () => t("{who} sent events again to the webhook {what}"),
  redeliver_delivery: () => t("{who} sent an event again: {what}"),
  repair_storage: () => t("{who} repaired the store"),
  upgrade_storage: () => t("{who} upgraded the store"),
  compact_storage: () => t("{who} compacted the store"),
  begin_backup: () => t("{who} began a backup"),
  end_backup: () => t("{who} ended a backup"),
  begin_console_session: () => t("{who} signed in"),
  end_session_by_id: () => t("{who} ended a session"),
  begin_browser_upload: () => t("{who} began an upload of {what}"),
  complete_browser_upload: () => t("{who} completed an upload of {what}"),
  abort_browser_upload: () => t("{who} gave up an upload of {what}"),
  CreateBucket: () => t("{who} created the bucket {what}"),
  DeleteBucket: () => t("{who} deleted the bucket {what}"),
  PutObject: () => t("{who} wrote {what}"),
  CopyObject: () => t("{who} copied to {what}"),
  CompleteMultipartUpload: () => t("{who} completed an upload of {what}"),
  AbortMultipartUpload: () => t("{who} gave up an upload of {what}"),
  DeleteObject: () => t("{who} deleted {what}"),
  DeleteObjects: () => t("{who} deleted objects of {what}"),
  GetObject: () => t("{who} read {what}"),
  HeadObject: () => t("{who} looked at {what}"),
  PutBucketVersioning: () => t("{who} changed versioning of {what}"),
  PutBucketCors: () => t("{who} changed the CORS rules of {what}"),
  DeleteBucketCors: () => t("{who} removed the CORS rules of {what}"),
  PutBucketLifecycleConfiguration: () => t("{who} changed the lifecycle rules of {what}"),
  DeleteBucketLifecycle: () => t("{who} removed the lifecycle rules of {what}"),
  PutObjectLockConfiguration: () => t("{who} changed object lock of {what}"),
  PutObjectRetention: () => t("{who} changed the retention of {what}"),
  PutObjectLegalHold: () => t("{who} changed the legal hold of {what}"),
  dismiss_attention: () => t("{who} dismissed for a day: {what}"),
  "service.start": () => t("Cairn was started"),
  "service.stop": () => t("Cairn was stopped"),
  "storage.changes_resumed": () => t("The device takes changes again"),
};
// Operations that say more than the changes they consist of.
const WHOLE = new Set(["copy_object", "move_object", "restore_bucket", "undelete_objects", "CopyObject"]);
// What has no other outcome.
const FAULTS = {
  "storage.damage": () => t("Stored data of {what} failed its check"),
  "storage.read_failed": () => t("The device could not read {what}"),
  "storage.volume_read_only": () => t("A volume takes no more changes"),
  "storage.changes_stopped": () => t("The device takes no more changes"),
  "audit.damaged": () => t("A record of the audit trail failed its check"),
};
const REFUSED = [
  [/^begin_console_session$/, () => t("{who} could not sign in")],
  [/^(Get|Head)Object|^download_|^get_object|^preview_/, () => t("{who} was refused to read {what}")],
  [/^List|^list_/, () => t("{who} was refused to list {what}")],
  [/^DeleteObject|^delete_object|^DeleteBucket$|^delete_bucket$/, () => t("{who} was refused to delete {what}")],
  [
    /^PutObject$|^CopyObject|Multipart|^UploadPart|^PostObject|^upload_object|^copy_|^move_|_upload/,
    () => t("{who} was refused to write {what}"),
  ],
];

// The subject of an audit record. An id says nothing to people: its name does, or the detail.
function whatOf({ resource, detail, operation }, names) {
  const of = resource ?? "";
  const slash = of.indexOf("/");
  if (slash > 0 && !ID.test(of.slice(0, slash))) return objectLink(of.slice(0, slash), of.slice(slash + 1));
  const id = slash > 0 ? of.slice(0, slash) : of;
  if (ID.test(id)) {
    const [name, href] = names.known.get(id) ?? [];
    if (name) return link(own(name), href);
    const said = NAMED.exec(detail ?? "")?.[1] ?? (detail?.includes("\n") ? "" : detail?.slice(0, DETAIL_MAX));
    return said ? h("span", { lang: "en" }, own(said)) : h("code", null, id.slice(0, 8));
  }
  if (names.buckets.has(of)) return bucketLink(of);
  if (of) return h("b", null, own(of));
  return operation.startsWith("storage") ? t("the store") : "";
}

function auditSentence(audit, names) {
  const who = whoOf(audit.principal, names);
  const operation = audit.operation ?? "";
  const parts = { who, what: whatOf(audit, names), operation: h("code", null, operation) };
  if (FAULTS[operation]) return phrase(FAULTS[operation](), parts);
  if (audit.result === "denied") {
    const found = REFUSED.find(([pattern]) => pattern.test(operation));
    if (found) return phrase(found[1](), parts);
    return phrase(
      parts.what ? t("{who} was refused {operation} on {what}") : t("{who} was refused {operation}"),
      parts,
    );
  }
  if (audit.result === "failed" && operation !== "service.start")
    return phrase(parts.what ? t("{operation} of {who} on {what} failed") : t("{operation} of {who} failed"), parts);
  return phrase(DONE[operation]?.() ?? t("{who}: {operation} {what}"), parts);
}

/**
 * The sentence of a row. `names` are `{ids, known, buckets}`: ids of accounts by name, name and URL by id, and the
 * names of buckets.
 */
export function sentence(row, names) {
  const isChange = row.events.length > 0 && (!row.audit || row.audit.result === "allowed");
  if (isChange && WHOLE.has(row.audit?.operation)) return auditSentence(row.audit, names);
  return isChange ? eventSentence(row, names) : auditSentence(row.audit, names);
}
