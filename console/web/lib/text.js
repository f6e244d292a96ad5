// Words, numbers, sizes and times in the language of the user.
//
// The English text is the key of the catalogue, so a text without a translation is still a text.

const STORED = "cairn-language";
let words = {};
let language = "en";

/** The languages of the catalogue. */
export const LANGUAGES = { en: "English", de: "Deutsch" };

function stored() {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null;
  }
}

/** Loads the catalogue of the chosen or the browser's language. */
export async function loadWords(chosen) {
  const wanted =
    chosen ?? stored() ?? navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => tag in LANGUAGES);
  const known = wanted in LANGUAGES ? wanted : "en";
  words = known === "en" ? {} : (await import(`../words/${known}.js`)).words;
  language = known;
  if (chosen) {
    try {
      localStorage.setItem(STORED, chosen);
    } catch {
      // Without storage, the choice lasts as long as the page.
    }
  }
  document.documentElement.lang = language;
}

export function currentLanguage() {
  return language;
}

/** Translates a text. `{name}` is replaced by a value. */
export function t(text, values) {
  const found = words[text] ?? text;
  return values ? found.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole) : found;
}

/** As `t`, with one text for 1 and one for all other numbers. */
export function plural(number, one, other, values) {
  return t(number === 1 ? one : other, { n: count(number), ...values });
}

/** An hour and a day, in milliseconds. */
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

// Formatters take long to make: a list of thousands of rows needs each only once.
const formats = new Map();

function formatter(kind, options) {
  const name = `${language} ${kind} ${JSON.stringify(options)}`;
  if (!formats.has(name)) formats.set(name, new Intl[kind](language, options));
  return formats.get(name);
}

export function count(number) {
  return formatter("NumberFormat").format(number);
}

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** Returns a size in powers of ten, with three digits. */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  const rounding = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return `${formatter("NumberFormat", rounding).format(value)} ${UNITS[unit]}`;
}

/** Returns the exact number of bytes. */
export function exactSize(bytes) {
  return plural(bytes, "{n} byte", "{n} bytes");
}

export function date(text) {
  if (!text) return "–";
  return formatter("DateTimeFormat", { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" }).format(
    new Date(text),
  );
}

/** Returns a date without the time. */
export function day(text) {
  return formatter("DateTimeFormat", { dateStyle: "medium" }).format(new Date(text));
}

/** Returns the time of day with seconds. */
export function clock(text) {
  return formatter("DateTimeFormat", { timeStyle: "medium", hourCycle: "h23" }).format(new Date(text));
}

/** Returns a day of the week with its date. */
export function weekday(text) {
  const year = new Date(text).getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return formatter("DateTimeFormat", { weekday: "long", day: "numeric", month: "long", year }).format(new Date(text));
}

export function exactDate(text) {
  return text
    ? formatter("DateTimeFormat", { dateStyle: "full", timeStyle: "long", hourCycle: "h23" }).format(new Date(text))
    : "";
}

/** Returns minutes, hours or days in words. */
export function lengthOfTime(number, unit) {
  return formatter("NumberFormat", { style: "unit", unit, unitDisplay: "long" }).format(number);
}

/** Returns a time within a day relative to now, and others as a date. */
export function when(text) {
  if (!text) return "–";
  const seconds = (new Date(text) - Date.now()) / 1000;
  const relative = formatter("RelativeTimeFormat", { numeric: "auto" });
  for (const [limit, divisor, unit] of [
    [60, 1, "second"],
    [3600, 60, "minute"],
    [86400, 3600, "hour"],
  ]) {
    if (Math.abs(seconds) < limit) return relative.format(Math.round(seconds / divisor), unit);
  }
  return date(text);
}
