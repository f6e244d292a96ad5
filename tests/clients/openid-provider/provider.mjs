// An OpenID provider with the people and the clients of a configuration in JSON, the only argument. Each start has new keys.

import { generateKeyPairSync, randomUUID } from "node:crypto";
import { Provider } from "oidc-provider";

const { issuer, port, clients, people, inIdToken, scopes } = JSON.parse(process.argv[2]);

function newKey(kind, options, algorithm) {
  const { privateKey } = generateKeyPairSync(kind, options);
  return { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: algorithm };
}

const provider = new Provider(issuer, {
  clients,
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email"] },
  scopes,
  // Whoever logs in under a name is that person.
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
  jwks: { keys: [newKey("rsa", { modulusLength: 2048 }, "RS256"), newKey("ec", { namedCurve: "P-256" }, "ES256")] },
  conformIdTokenClaims: !inIdToken,
  pkce: { required: () => true },
  cookies: { keys: [randomUUID()] },
  // Consoles are on this machine, whose addresses the provider does not send to otherwise.
  fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined }),
  features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true }, backchannelLogout: { enabled: true } },
});
provider.on("backchannel.error", (_, error) => console.log("no logout:", error.message));
provider.listen(port, () => console.log("ready"));
