// Files that the user has chosen, from drops and inputs, and their types.

const TYPES = {
  avif: "image/avif",
  bmp: "image/bmp",
  css: "text/css",
  csv: "text/csv",
  flac: "audio/flac",
  gif: "image/gif",
  gz: "application/gzip",
  html: "text/html",
  ico: "image/x-icon",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  js: "text/javascript",
  json: "application/json",
  m4a: "audio/mp4",
  md: "text/markdown",
  mkv: "video/x-matroska",
  mov: "video/quicktime",
  mp3: "audio/mpeg",
  mp4: "video/mp4",
  ogg: "audio/ogg",
  pdf: "application/pdf",
  png: "image/png",
  svg: "image/svg+xml",
  tar: "application/x-tar",
  txt: "text/plain",
  wav: "audio/wav",
  webm: "video/webm",
  webp: "image/webp",
  xml: "application/xml",
  zip: "application/zip",
};

/** Returns the type of a file: the one that the browser knows, or that of its suffix. */
export function typeOf(file) {
  return file.type || TYPES[file.name.split(".").pop().toLowerCase()] || "application/octet-stream";
}

async function entriesOf(reader) {
  const entries = [];
  for (;;) {
    // A reader returns a hundred entries at a time, and none at the end.
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return entries;
    entries.push(...some);
  }
}

async function walk(entry, path, found) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ file, key: `${path}${entry.name}` });
  } else if (entry.isDirectory) {
    for (const inner of await entriesOf(entry.createReader())) await walk(inner, `${path}${entry.name}/`, found);
  }
}

/** Returns all files of a drop, with those in folders, below a prefix. */
export async function dropped(transfer, prefix) {
  // The list is emptied as soon as the event has been handled.
  const items = [...transfer.items]
    .filter((item) => item.kind === "file")
    .map((item) => item.webkitGetAsEntry() ?? item.getAsFile());
  const found = [];
  for (const item of items) {
    if (item instanceof File) found.push({ file: item, key: prefix + item.name });
    else if (item) await walk(item, prefix, found);
  }
  return found;
}

/** Returns the files of an input, with the folders that they were chosen with. */
export function chosen(input, prefix) {
  return [...input.files].map((file) => ({ file, key: prefix + (file.webkitRelativePath || file.name) }));
}

/** Lets a whole view take drops of files: `task(transfer)`, if `may()`. `text` says where they go. */
export function takeDrops(view, text, may, task) {
  view.dataset.drop = text;
  view.addEventListener("dragover", (event) => {
    if (!may() || ![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    view.classList.add("drop");
  });
  view.addEventListener("dragleave", (event) => event.target === view && view.classList.remove("drop"));
  view.addEventListener("drop", (event) => {
    if (!may()) return;
    event.preventDefault();
    view.classList.remove("drop");
    task(event.dataTransfer);
  });
}
