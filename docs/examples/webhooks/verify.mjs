// Checks the signature of a delivery with Node's standard library.
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

// Whether a delivery is genuine and at most `tolerance` seconds old. `headers` are those of node:http, with lower-case names.
// `body` must be a Buffer with the bytes as received: in Express, use express.raw(), not express.json().
export function verify(secret, headers, body, tolerance = 300) {
  const timestamp = headers["webhook-timestamp"] ?? "";
  if (!/^[0-9]{1,15}$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > tolerance) {
    return false;
  }
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const hmac = createHmac("sha256", key).update(`${headers["webhook-id"]}.${timestamp}.`).update(body);
  const expected = Buffer.from(`v1,${hmac.digest("base64")}`);
  // While the secret is rotated, there are two signatures.
  return (headers["webhook-signature"] ?? "").split(" ").some((text) => {
    const found = Buffer.from(text);
    return found.length === expected.length && timingSafeEqual(found, expected);
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { WEBHOOK_SECRET, WEBHOOK_ID, WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE, WEBHOOK_TOLERANCE } = process.env;
  const headers = { "webhook-id": WEBHOOK_ID, "webhook-timestamp": WEBHOOK_TIMESTAMP, "webhook-signature": WEBHOOK_SIGNATURE };
  process.exitCode = verify(WEBHOOK_SECRET, headers, readFileSync(0), Number(WEBHOOK_TOLERANCE ?? 300)) ? 0 : 1;
}
