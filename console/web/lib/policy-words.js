// Policies in words: what a statement allows or denies, and what a change of a policy changes.

import { t } from "./text.js";

/** The beginning of resources in policies. */
export const PREFIX = "bucket:";

/** Returns a statement as the form has it. */
export const formOf = (statement) => ({
  effect: statement.effect,
  actions: statement.actions,
  places: statement.resources.map((resource) => resource.replace(PREFIX, "")),
  onlyIfAbsent: Boolean(statement.only_if_absent),
  networks: statement.source_ip ?? [],
});

/** Returns a statement of the form as the server has it. */
export function statementOf({ effect, actions, places, onlyIfAbsent, networks }) {
  return {
    effect,
    actions,
    resources: places.map((one) => PREFIX + one),
    ...(onlyIfAbsent && effect === "allow" && actions.includes("s3:PutObject") ? { only_if_absent: true } : {}),
    ...(networks.length > 0 ? { source_ip: networks } : {}),
  };
}

/** The actions of policies with their names in forms and in sentences. */
export const actionNames = () => [
  ["s3:ListBucket", t("List"), t("list")],
  ["s3:GetObject", t("Read"), t("read")],
  ["s3:PutObject", t("Write"), t("write")],
  ["s3:DeleteObject", t("Delete"), t("delete")],
  ["s3:ManageBucket", t("Manage"), t("manage")],
];

const listed = (texts) =>
  texts.length < 2
    ? texts.join("")
    : t("{first} and {last}", { first: texts.slice(0, -1).join(", "), last: texts.at(-1) });

/** Says what a resource is. It has no `bucket:` in front. */
export function placeText(resource) {
  const slash = resource.indexOf("/");
  if (resource === "*") return t("every bucket");
  if (slash < 0 && resource.endsWith("*"))
    return t("all buckets whose names begin with {name}", { name: resource.slice(0, -1) });
  if (slash < 0) return t("the bucket {name}", { name: resource });
  const [bucket, key] = [resource.slice(0, slash), resource.slice(slash + 1)];
  if (key === "*") return t("all objects in {bucket}", { bucket });
  if (key.endsWith("*")) return t("{prefix} in {bucket}", { prefix: key.slice(0, -1), bucket });
  return t("the object {key} in {bucket}", { key, bucket });
}

const OF_BUCKETS = new Set(["s3:ListBucket", "s3:ManageBucket"]);

/**
 * Returns whether an action can have an effect in a place: patterns of objects do not match their bucket, and the name
 * of a bucket does not match the objects in it.
 */
export const isEffective = (action, place) =>
  OF_BUCKETS.has(action) ? !place.includes("/") : place.includes("/") || place.endsWith("*");

/** Says in a sentence what a statement does. */
export function sentence({ effect, actions, places, onlyIfAbsent, networks }) {
  if (actions.length === 0 || places.length === 0) return t("This says nothing yet: choose an action and a place.");
  if (!actions.some((action) => places.some((place) => isEffective(action, place))))
    return t("This has no effect: List and Manage need a bucket, and the others objects, such as bucket/*.");
  const names = actionNames()
    .filter(([id]) => actions.includes(id))
    .map(([, , name]) => name);
  const values = { actions: listed(names), places: listed(places.map(placeText)) };
  return [
    effect === "allow"
      ? t("This allows to {actions}: {places}.", values)
      : t("This forbids to {actions}: {places}, whatever else allows it.", values),
    onlyIfAbsent && actions.includes("s3:PutObject") && t("Only new objects are written: nothing is replaced."),
    networks.length > 0 && t("Only for clients in {networks}.", { networks: networks.join(", ") }),
  ]
    .filter(Boolean)
    .join(" ");
}

// Each action in each place that statements allow, as a text with its words.
function pairs(statements) {
  const found = new Map();
  for (const { effect, actions, places, networks, onlyIfAbsent } of statements)
    for (const action of actions)
      for (const place of places.filter((one) => isEffective(action, one))) {
        const [, , name] = actionNames().find(([id]) => id === action) ?? ["", "", action];
        const key = [effect, action, place, networks, onlyIfAbsent && action === "s3:PutObject"].join(" ");
        const where = placeText(place) + (networks.length > 0 ? ` (${networks.join(", ")})` : "");
        found.set(key, { isAllow: effect === "allow", name, where });
      }
  return found;
}

/** Returns what other statements change: `{isMore, text}`; more is what becomes possible. */
export function changes(before, after) {
  const [old, now] = [pairs(before), pairs(after)];
  const made = [];
  for (const [key, { isAllow, name, where }] of now)
    if (!old.has(key))
      made.push({
        isMore: isAllow,
        text: isAllow
          ? t("may {action}: {where}", { action: name, where })
          : t("is forbidden to {action}: {where}", { action: name, where }),
      });
  for (const [key, { isAllow, name, where }] of old)
    if (!now.has(key))
      made.push({
        isMore: !isAllow,
        text: isAllow
          ? t("may no longer {action}: {where}", { action: name, where })
          : t("is no longer forbidden to {action}: {where}", { action: name, where }),
      });
  return made;
}
