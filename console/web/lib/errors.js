// What errors of the server mean, in the language of the user, by their code.
//
// In English the server's own message is better: it names what is wrong. In other languages the meaning of the code is
// shown, and the server's words follow if they say more than the code does.

import { ApiError } from "./api.js";
import { currentLanguage, t } from "./text.js";

// Codes whose messages say nothing more. A test compares the codes of both tables with those of the server.
const MEANINGS = {
  ACCESS_KEY_EXISTS: () => t("A credential with this access key already exists."),
  BUCKET_ALREADY_EXISTS: () => t("A bucket with this name already exists."),
  BUCKET_NOT_FOUND: () => t("The bucket does not exist."),
  CLIENT_GONE: () => t("The connection was closed."),
  CREDENTIAL_NOT_FOUND: () => t("The credential does not exist."),
  EMBED_NOT_FOUND: () => t("The embed does not exist."),
  EVENTS_DISABLED: () => t("Storage events are off: set events.enabled to true, and restart the server."),
  IMPORT_NOT_FOUND: () => t("No import of this bucket has this id."),
  INTERNAL_ERROR: () => t("An error occurred in the server. Its log has the details under the request id."),
  LIFECYCLE_RULE_NOT_FOUND: () => t("The lifecycle rule does not exist."),
  NOT_FOUND: () => t("The server does not have this route. It may have another version than this page: load it again."),
  OBJECT_ALREADY_EXISTS: () => t("The destination already has an object."),
  OBJECT_LOCK_NOT_ENABLED: () => t("The bucket has no object lock. It is turned on only when a bucket is created."),
  OBJECT_NOT_FOUND: () => t("The object does not exist."),
  POLICY_NOT_FOUND: () => t("The policy does not exist."),
  PUBLIC_ACCESS_DISABLED: () => t("Public access is turned off by the configuration of the server."),
  PRECONDITION_FAILED: () => t("An object with this key already exists."),
  QUOTA_BELOW_USAGE: () => t("The bucket already holds more than this quota allows."),
  QUOTA_EXCEEDED: () => t("The change would exceed the quota of the bucket."),
  REFUSED_REQUEST_NOT_FOUND: () => t("No refused request with this id is known. Look for the id in the log."),
  SERVICE_ACCOUNT_ALREADY_EXISTS: () => t("An account with this name already exists."),
  SERVICE_ACCOUNT_NOT_FOUND: () => t("The account does not exist."),
  SESSION_NOT_FOUND: () => t("The session does not exist or has ended."),
  SHARE_NOT_FOUND: () => t("The share does not exist."),
  SIGN_IN_UNKNOWN: () =>
    t("This sign-in took too long, was finished before, or was begun in another browser. Sign in again."),
  STORAGE_FULL: () => t("The disk is full. Delete objects, or enlarge the file system."),
  TOKEN_NOT_FOUND: () => t("The token does not exist."),
  UNREACHABLE: () => t("The server cannot be reached."),
  UPLOAD_NOT_FOUND: () => t("The upload does not exist any more."),
  VERSION_NOT_FOUND: () => t("The version does not exist."),
  WEBHOOK_DISABLED: () => t("The webhook is off. Turn it on first."),
  WEBHOOK_NOT_FOUND: () => t("The webhook does not exist."),
};

// Codes whose messages name what is wrong.
const DETAILED = {
  BUCKET_NOT_EMPTY: () => t("The bucket is not empty."),
  BACKUP_NOT_FOUND: () => t("No such backup was begun since the service was started."),
  DELIVERY_NOT_FOUND: () => t("The delivery or its event is no longer kept."),
  EMBED_CONTENT_TYPE_REFUSED: () => t("Objects of this type cannot be embedded."),
  EXPIRATION_REQUIRED: () => t("The sharing policy requires an end."),
  INVALID_STORE_STATE: () => t("The store does not allow this as it is."),
  FORBIDDEN: () => t("Your role does not allow this, or the request did not come from a page of this console."),
  IMPORT_CONFLICT: () => t("The version cannot be imported as it is."),
  INVALID_AUDIT_CURSOR: () => t("The place in the list is not valid. Load the list again."),
  INVALID_BUCKET_NAME: () => t("The name is not valid for a bucket."),
  INVALID_BUCKET_STATE: () => t("The settings of the bucket do not allow this."),
  INVALID_EVENT_CURSOR: () => t("The place in the list is not valid. Load the list again."),
  INVALID_ORIGIN: () => t("An allowed website is not valid."),
  INVALID_REQUEST: () => t("The input is not valid."),
  INVALID_WEBHOOK_TARGET: () => t("The address is not valid or not allowed."),
  LIFETIME_TOO_LONG: () => t("The sharing policy does not allow it to be valid for so long."),
  LIMIT_REACHED: () => t("The greatest number of these exists."),
  METHOD_NOT_ALLOWED: () => t("The server does not support this request."),
  NOT_READY: () => t("The server cannot do this now. Try again later."),
  OBJECT_LOCKED: () => t("Object lock protects this version."),
  PAYLOAD_TOO_LARGE: () => t("This is too large."),
  POLICY_IN_USE: () => t("The policy is attached to accounts."),
  SIGN_IN_INVALID: () => t("What the provider said about you is not valid."),
  SIGN_IN_REFUSED: () => t("You cannot sign in."),
  SIGN_IN_UNAVAILABLE: () => t("The provider of the sign-in cannot be asked."),
  RANGE_NOT_SATISFIABLE: () => t("This part of the object does not exist."),
  SHARING_DISABLED: () => t("The configuration of the server turns this off."),
  TOO_MANY_REQUESTS: () => t("Too many of these are running. Try again later."),
  UNAUTHENTICATED: () => t("The token or the credential is wrong, or the session has ended."),
  UNSUPPORTED_MEDIA_TYPE: () => t("There is no preview of this."),
};

/** Says what went wrong. */
export function describe(error) {
  if (!(error instanceof ApiError)) return String(error?.message ?? error);
  if (error.code !== "UNREACHABLE" && currentLanguage() === "en") return error.message;
  if (error.code in MEANINGS) return MEANINGS[error.code]();
  if (error.code in DETAILED)
    return t("{meaning} The server says: {message}", { meaning: DETAILED[error.code](), message: error.message });
  return error.message;
}
