// The session of the user, and what its role may do.

/** Role and principal; null before the login. */
export let session = null;

/** Keeps the session after a login; null ends it. */
export function setSession(value) {
  session = value;
}

/** Returns whether the person has no role, but object rights through policies. */
export const isMember = () => session?.role === "member";
/** Returns whether the role may change stored data. */
export const mayStore = () => session?.role === "system_admin" || session?.role === "storage_admin";
/** Returns whether objects can be changed: by the role, or by policies, which decide about each request. */
export const mayWrite = () => mayStore() || isMember();
/** Returns whether the role may change accounts, policies, tokens and webhooks. */
export const mayAdminister = () => session?.role === "system_admin";
/** Returns whether the role may see accounts, policies and the audit trail. */
export const mayOversee = () => session?.role === "system_admin" || session?.role === "auditor";

const PLACE = "cairn-place";

/** Keeps the place of the user for after a sign-in elsewhere. */
export function keepPlace() {
  try {
    sessionStorage.setItem(PLACE, location.hash);
  } catch {
    // Without storage, the overview is shown afterwards.
  }
}

/** Goes to the place where the user was before a sign-in elsewhere. */
export function returnToPlace() {
  try {
    const place = sessionStorage.getItem(PLACE);
    sessionStorage.removeItem(PLACE);
    if (place?.startsWith("#/") && !location.hash) history.replaceState(history.state, "", `/${place}`);
  } catch {
    // There is no storage.
  }
}
