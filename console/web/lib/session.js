// The session of the user, and what its role may do.

/** Role and principal; null before the login. */
export let session = null;

/** Keeps the session after a login; null ends it. */
export function setSession(value) {
  session = value;
}

/** Returns whether the role may change stored data. */
export const mayStore = () => session?.role === "system_admin" || session?.role === "storage_admin";
/** Returns whether the role may change accounts, policies, tokens and webhooks. */
export const mayAdminister = () => session?.role === "system_admin";
/** Returns whether the role may see accounts, policies and the audit trail. */
export const mayOversee = () => session?.role === "system_admin" || session?.role === "auditor";
