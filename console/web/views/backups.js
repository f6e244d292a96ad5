// Backups: the hold that keeps the store still while it is copied, the outcome of the last one, and the commands.

import { api, withQuery } from "../lib/api.js";
import { ask, confirmed } from "../lib/dialogs.js";
import { fill, h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { mayStore } from "../lib/session.js";
import { size, t } from "../lib/text.js";
import {
  banner,
  button,
  card,
  commandBlock,
  commands,
  facts,
  field,
  loadInto,
  notice,
  noticeError,
  quoted,
  said,
  select,
  tag,
  timeCell,
  viewHead,
} from "../lib/ui.js";

const POLL = 5000;
const MINUTE = 60;

const STATES = {
  none: () => tag(t("Not held")),
  copying: () => tag(t("Metadata are being copied"), "warn", "retry"),
  held: () => tag(t("The store is held"), "warn", "lock"),
  released: () => tag(t("The last hold ended as it should"), "good"),
  lost: () => tag(t("The last hold was lost"), "bad"),
};

const isHolding = ({ state }) => state === "copying" || state === "held";

const lasts = () =>
  select(
    [
      [String(30 * MINUTE), t("30 minutes")],
      [String(120 * MINUTE), t("2 hours")],
      [String(720 * MINUTE), t("12 hours")],
      [String(1440 * MINUTE), t("1 day")],
      [String(10_080 * MINUTE), t("7 days")],
    ],
    String(120 * MINUTE),
  );

async function begin(changed) {
  const time = lasts();
  const isDone = await ask({
    title: t("Hold the store?"),
    action: t("Hold the store"),
    content: [
      h(
        "p",
        null,
        t(
          "Reads and writes go on. Space of removed objects is kept until the hold ends, so that any tool can copy the data folder.",
        ),
      ),
      h(
        "p",
        null,
        t("A hold ends by itself when space is needed or the service ends. What was copied then is no backup."),
      ),
      field(t("Ends by itself after"), time),
    ],
    submit: () => api.post("/api/v1/storage/backup", { timeout_seconds: Number(time.value) }),
  });
  if (isDone) changed();
}

async function end(status, changed) {
  const isDone = await confirmed({
    title: t("End the hold?"),
    text: t("A tool that still copies the data folder then copies no valid backup."),
    action: t("End the hold"),
    task: () => api.remove(withQuery("/api/v1/storage/backup", { id: status.id })),
  });
  if (!isDone) return;
  notice(t("The hold has ended."));
  changed();
}

function holdCard(status) {
  if (status.state === "none")
    return card(
      t("Hold"),
      null,
      h("p", { class: "muted none" }, t("Nobody has held the store since the service was started.")),
    );
  const isOpen = isHolding(status);
  return card(
    isOpen ? t("Hold") : t("The last hold"),
    null,
    facts([
      [t("Began"), timeCell(status.begun_at)],
      [
        t("Metadata copied"),
        status.held_at
          ? timeCell(status.held_at)
          : t("{sent} of {size}", { sent: size(status.copied_bytes), size: size(status.expected_bytes) }),
      ],
      [isOpen && t("Ends by itself"), isOpen ? timeCell(status.expires_at, false) : null],
      [t("Ended"), status.ended_at && timeCell(status.ended_at)],
      [t("Why"), status.reason && said(status.reason)],
      [isOpen ? t("Space that it keeps") : t("Space that it kept"), size(status.held_bytes)],
      [t("Data folder"), status.data_dir && h("code", null, status.data_dir)],
      [t("Copy of the metadata"), isOpen && status.backup_dir ? h("code", null, status.backup_dir) : null],
    ]),
  );
}

function bannerOf(status) {
  if (status.state === "lost")
    return banner("bad", [
      h("b", null, t("What was copied during the last hold is no backup.")),
      " ",
      said(status.reason),
    ]);
  if (status.state === "held") return banner("warn", t("The store is held. End the hold when the copy is complete."));
  if (status.state === "released") return banner("good", t("Everything was kept until the end of the last hold."));
  return null;
}

// The commands, with the folder that somebody types.
function folderCard() {
  const folder = h("input", { type: "text", value: "/var/backups/cairn", spellcheck: "false", autocomplete: "off" });
  const keep = h("input", { type: "number", min: 1, max: 10_000, value: 14 });
  const target = h("input", {
    type: "text",
    value: "/var/lib/cairn-restored",
    spellcheck: "false",
    autocomplete: "off",
  });
  const make = h("div");
  const verify = h("div");
  const restore = h("div");
  const show = () => {
    const where = quoted(folder.value || "/var/backups/cairn");
    const number = Number(keep.value);
    fill(
      make,
      commandBlock(`cairn backup to ${where}${number > 0 ? ` --keep ${number}` : ""}`, `cairn backup list ${where}`),
    );
    fill(verify, commandBlock(`cairn backup verify ${where}`));
    fill(
      restore,
      commandBlock(`cairn backup restore ${where} --data-dir ${quoted(target.value || "/var/lib/cairn-restored")}`),
    );
  };
  for (const input of [folder, keep, target]) input.addEventListener("input", show);
  show();
  return card(
    t("A folder of backups"),
    null,
    h(
      "p",
      null,
      t(
        "Each backup has what earlier ones lack, and a signed manifest. The commands run on the server's machine, as its user.",
      ),
    ),
    h("div", { class: "pair" }, field(t("Folder"), folder), field(t("Backups to keep"), keep)),
    h("h3", null, icon("archive"), t("Make a backup")),
    make,
    h("h3", null, icon("done"), t("Verify all backups")),
    verify,
    h("h3", null, icon("undo"), t("Restore into a new data folder")),
    field(t("New data folder"), target),
    restore,
  );
}

export async function show(view) {
  const actions = h("div", { class: "head-actions" });
  const state = h("span", { class: "tags" });
  const shown = h("div");
  const hold = h("div", { class: "stack" });
  let timer;
  let isOver = false;
  let before;
  const again = () => loadInto(hold, read);
  const read = async () => {
    // After a failure, nothing of it is shown.
    const previous = before;
    before = undefined;
    const status = await api.get("/api/v1/storage/backup");
    if (isOver) return undefined;
    clearTimeout(timer);
    timer = setTimeout(() => (document.hidden ? later() : again()), POLL);
    // What somebody uses stays, as long as nothing changes.
    before = JSON.stringify(status);
    const isUsed = [hold, actions].some((one) => one.contains(document.activeElement));
    if (before === previous && isUsed) return undefined;
    fill(state, STATES[status.state]?.());
    fill(shown, bannerOf(status));
    fill(
      actions,
      mayStore() &&
        (isHolding(status)
          ? button([icon("lock"), t("End the hold")], () => end(status, again).catch(noticeError), "main")
          : button([icon("lock"), t("Hold the store")], () => begin(again), "main")),
    );
    return holdCard(status);
  };
  // A hidden page asks for nothing.
  const later = () => document.addEventListener("visibilitychange", () => isOver || again(), { once: true });
  fill(
    view,
    viewHead(t("Backups"), { sign: "archive", tags: state, actions }),
    shown,
    h(
      "div",
      { class: "columns" },
      h("div", null, folderCard()),
      h(
        "div",
        null,
        hold,
        card(
          t("Any other tool"),
          null,
          h("p", null, t("This holds the store while a command copies it, and ends the hold in any case.")),
          commandBlock("cairn backup run -- rsync -aS /var/lib/cairn/ /mnt/copy"),
          h("p", { class: "hint" }, t("The server does not know the folders: verify them with the command.")),
        ),
      ),
    ),
    commands("cairn backup status", "cairn backup begin --timeout 2h", "cairn backup end"),
  );
  await again();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
