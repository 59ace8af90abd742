// Single keys for people who read much. They never act in a field, beside another key, or if they are switched off.
import { current, entries, focusOn, nextError } from "./session-transcript.js";

const FIELDS = "input, textarea, select, [contenteditable]";

function step(by) {
  const all = entries();
  const here = all.indexOf(current());
  const next = here < 0 ? all.find((one) => one.getBoundingClientRect().bottom > 0) : all[here + by];
  if (next) focusOn(next);
}

export function start({ remember, remembered }) {
  const dialog = document.getElementById("keys");
  const on = document.getElementById("keys-on");
  const help = () => dialog.showModal();
  const find = () => document.getElementById("find").focus();
  const keys = { j: () => step(1), k: () => step(-1), e: nextError, "/": find, "?": help };
  on.checked = remembered("forgehand.keys") !== "off";
  on.addEventListener("change", () => remember("forgehand.keys", on.checked ? "on" : "off"));
  document.addEventListener("click", (event) => { if (event.target.closest("#help")) help(); });
  document.addEventListener("keydown", (event) => {
    const key = keys[event.key];
    if (!key || !on.checked || dialog.open || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest?.(FIELDS)) return;
    event.preventDefault();
    key();
  });
}
