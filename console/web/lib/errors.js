// The meanings of the server's errors, in the language of the user, by their code.
//
// In English the server's own message is better: it names what is wrong. In other languages the meaning of the code is
// shown, and the server's words follow if they say more than the code does.

import { ApiError } from "./api.js";
import { currentLanguage, loadWords, t } from "./text.js";

// The tables of codes; none in English.
let meanings = { MEANINGS: {}, DETAILED: {} };

/** Loads the catalogue of the chosen or the browser's language, and what errors mean in it. */
export async function loadLanguage(chosen) {
  await loadWords(chosen);
  if (currentLanguage() !== "en") meanings = await import("./meanings.js");
}

/** Says what went wrong. */
export function describe(error) {
  if (!(error instanceof ApiError)) return String(error?.message ?? error);
  if (error.code === "UNREACHABLE") return t("The server cannot be reached.");
  if (currentLanguage() === "en") return error.message;
  const { MEANINGS, DETAILED } = meanings;
  if (error.code in MEANINGS) return MEANINGS[error.code]();
  if (error.code in DETAILED)
    return t("{meaning} The server says: {message}", { meaning: DETAILED[error.code](), message: error.message });
  return error.message;
}
