// Icons: lines on a grid of 16, in the colour of the text. Each stands beside a word, or has a name of its own.

import { svg } from "./dom.js";

const PATHS = {
  overview: "M2 2.5h5v4H2zM9 2.5h5v7H9zM2 9h5v4.5H2zM9 12h5v1.5H9z",
  bucket:
    "M2.5 4c0-1 2.5-1.8 5.5-1.8s5.5.8 5.5 1.8S11 5.8 8 5.8 2.5 5 2.5 4l1.3 8.5c.1.8 2 1.3 4.2 1.3s4-.5 4.2-1.3L13.5 4",
  link: "M6.5 9.5a2.6 2.6 0 0 0 3.7 0L12.7 7A2.6 2.6 0 0 0 9 3.3M9.5 6.5a2.6 2.6 0 0 0-3.7 0L3 9A2.6 2.6 0 0 0 7 13",
  plug: "M5.5 1.8v3M10.5 1.8v3M3.5 4.8h9v2.7a4.5 4.5 0 0 1-9 0zM8 12v2.5",
  shield: "M8 1.8l5 1.7v4c0 3.3-2 5.6-5 6.8-3-1.2-5-3.5-5-6.8v-4z",
  person: "M8.5 5a2.5 2.5 0 1 1-5 0a2.5 2.5 0 1 1 5 0M1.5 13.5c0-2.5 2-4 4.5-4 .9 0 1.7.2 2.4.5M9.5 12l1.7 1.7L14.5 10",
  key: "M7.5 10.5a2.8 2.8 0 1 1-5.6 0a2.8 2.8 0 1 1 5.6 0M6.7 8.5l6-6M10.5 4.7l2 2",
  pulse: "M1.5 8.5h3l2-5.5 3 10 2-4.5h3",
  ban: "M14 8a6 6 0 1 1-12 0a6 6 0 1 1 12 0M3.8 3.8l8.4 8.4",
  send: "M14 2L1.8 6.5l5 2.2L9 13.8zM6.8 8.7L14 2",
  server: "M2 3h12v4H2zM2 9h12v4H2zM4.5 5v.01M4.5 11v.01",
  import: "M6.5 2.5h7v11h-7M2 8h8M7 5l3 3-3 3",
  search: "M11.5 7a4.5 4.5 0 1 1-9 0a4.5 4.5 0 1 1 9 0M10.3 10.3L14 14",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  upload: "M8 10V2.5M5 5.3l3-2.8 3 2.8M2.5 10v3.5h11V10",
  download: "M8 2.5V10M5 7.3l3 2.8 3-2.8M2.5 10.5v3h11v-3",
  folder: "M1.5 3.5h4l1.5 2h7.5v7.5h-13z",
  "folder-plus": "M1.5 3.5h4l1.5 2h7.5v7.5h-13zM8 7.5v4M6 9.5h4",
  file: "M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3",
  text: "M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3M5.5 8h5M5.5 11h5",
  image: "M1.5 2.5h13v11h-13zM1.5 11l4-4 4 4M8.5 10l2-2 4 4M10.5 5.5v.01",
  video: "M1.5 3h13v10h-13zM6.5 5.7v4.6l4-2.3z",
  audio: "M5.5 12V3.5l7-1.5v8.5M5.5 12a2 1.6 0 1 1-4 0a2 1.6 0 1 1 4 0M12.5 10.5a2 1.6 0 1 1-4 0a2 1.6 0 1 1 4 0",
  archive: "M2.5 4.5h11v9.5h-11zM1.5 2h13v2.5h-13zM6 7.5h4",
  table: "M1.5 3h13v10h-13zM1.5 6.5h13M6 6.5V13M1.5 9.7h13",
  code: "M5 4.5L1.5 8 5 11.5M11 4.5L14.5 8 11 11.5M9.2 3L6.8 13",
  more: "M3 8h.6M7.7 8h.6M12.4 8h.6",
  check: "M3 8.5l3.3 3.2L13 4.5",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  warn: "M8 2l6.5 11.5h-13zM8 6.5v3.2M8 11.5v.01",
  alert: "M14 8a6 6 0 1 1-12 0a6 6 0 1 1 12 0M8 4.8v3.7M8 11v.01",
  done: "M14 8a6 6 0 1 1-12 0a6 6 0 1 1 12 0M5.3 8.2l1.9 1.9 3.6-4",
  clock: "M14 8a6 6 0 1 1-12 0a6 6 0 1 1 12 0M8 4.5V8l2.3 1.5",
  past: "M2.5 5.5A6 6 0 1 1 2 8M2.3 2.5v3.2h3.2M8 5v3.2l2.3 1.3",
  lock: "M3.5 7h9v6.5h-9zM5.5 7V5a2.5 2.5 0 0 1 5 0v2",
  globe: "M14 8a6 6 0 1 1-12 0a6 6 0 1 1 12 0M2 8h12M8 2c2 2 2.5 4 2.5 6S10 12 8 14c-2-2-2.5-4-2.5-6S6 4 8 2z",
  layers: "M8 2l6 3-6 3-6-3zM2 8l6 3 6-3M2 11l6 3 6-3",
  trash: "M2.5 4h11M6 4V2.5h4V4M4 4l.7 9.5h6.6L12 4M6.7 6.5v4.5M9.3 6.5v4.5",
  undo: "M5.5 2.8L2.5 5.8l3 3M2.8 5.8h6.7a3.7 3.7 0 0 1 0 7.4H6",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  edit: "M2.5 13.5l.7-3L11 2.7l2.3 2.3L5.5 12.8z",
  eye: "M1.5 8C3 5 5.5 3.5 8 3.5S13 5 14.5 8C13 11 10.5 12.5 8 12.5S3 11 1.5 8zM10 8a2 2 0 1 1-4 0 2 2 0 1 1 4 0",
  filter: "M2 4h12M4.5 8h7M6.5 12h3",
  columns: "M2 3h12v10H2zM6 3v10M10 3v10",
  calendar: "M2 3.5h12v10H2zM2 6.5h12M5 2v2.5M11 2v2.5",
  tag: "M2 2.5h5.5l6.5 6.5-5 5L2 7.5zM5 5.3v.01",
  retry: "M13.5 8A5.5 5.5 0 1 1 11.8 4M13.3 2v3h-3",
  gauge: "M3.3 12.5a6 6 0 1 1 9.4 0M8 9.5l2.7-3.5",
  damage: "M3.5 1.5h6l3 3v4l-2 1.5-2.5-1.8L5.5 10l-2-1.5zM3.5 11v3.5h9V11",
  arrow: "M2.5 8h11M9.5 4l4 4-4 4",
  right: "M6 3.5L10.5 8 6 12.5",
  down: "M3.5 6L8 10.5 12.5 6",
  up: "M3.5 10L8 5.5l4.5 4.5",
  updown: "M5 6l3-3 3 3M5 10l3 3 3-3",
  shell: "M1.5 2.5h13v11h-13zM4 6l2.5 2L4 10M8 10.5h3.5",
};

const KINDS = [
  [/^image\//, "image"],
  [/^video\//, "video"],
  [/^audio\//, "audio"],
  [/csv|spreadsheet|excel/, "table"],
  [/json|xml|javascript|html|css|x-sh|yaml|toml/, "code"],
  [/^text\/|pdf|word|document/, "text"],
  [/zip|tar|compressed|zstd/, "archive"],
];

// The colour of a kind of file: that of a stone.
const STONE_BY_KIND = { image: 1, archive: 2, text: 3, table: 4, audio: 5, video: 6, code: 7 };

/** Makes an icon. `name` is one of the table. */
export function icon(name, kind = "") {
  return svg(
    "svg",
    { class: `icon-mark ${kind}`, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
    svg("path", { d: PATHS[name] }),
  );
}

/** The icon of a content type. */
export const kindOf = (type) => KINDS.find(([pattern]) => pattern.test(type))?.[1] ?? "file";

/** A small picture of a kind: `folder`, or a content type, in the colour of the kind. */
export function mark(kind) {
  const name = kind === "folder" ? kind : kindOf(kind);
  return icon(name, name === "folder" ? "folder" : `stone-${STONE_BY_KIND[name] ?? 7}`);
}

/** The stone of a name, from 1 to 7: the same everywhere and always, so that it is stored nowhere. */
export function stoneOf(name) {
  let hash = 7;
  for (const character of name) hash = (hash * 31 + character.codePointAt(0)) >>> 0;
  return (hash % 7) + 1;
}
