// The timeline: its slider, and a click on it, lead to the entry of that moment.
import { isReplaying, seek } from "./session-replay.js";
import { show } from "./session-transcript.js";

const WAIT = 120; // milliseconds, so that a drag asks for its last place only

function drawn() {
  return document.querySelector("#timeline svg");
}

export function clockOf(column) {
  return drawn().dataset.clocks.split(" ")[column] ?? "";
}

export function mark(column) {
  const head = drawn().querySelector(".playhead");
  head.setAttribute("d", column < 0 ? "" : `M${column * 5 + 2.5} 0v50`);
}

export function start() {
  const form = document.getElementById("scrub");
  const slider = form.querySelector("input");
  let waits = null;
  const go = (column) => {
    slider.value = column;
    slider.setAttribute("aria-valuetext", clockOf(column));
    mark(column);
    clearTimeout(waits);
    waits = setTimeout(() => {
      const id = drawn().dataset.ids.split(" ")[column];
      if (!id) return;
      if (isReplaying()) seek(id);
      else show(id, { quiet: true });
    }, WAIT);
  };
  form.querySelector("button").hidden = true;
  slider.setAttribute("aria-valuetext", clockOf(slider.value));
  form.addEventListener("submit", (event) => event.preventDefault());
  slider.addEventListener("input", () => go(Number(slider.value)));
  const timeline = document.getElementById("timeline");
  // The strip stays in sight while the slider has the focus: a press that took it away would move the strip from under it.
  timeline.addEventListener("mousedown", (event) => { event.preventDefault(); slider.focus({ preventScroll: true }); });
  timeline.addEventListener("click", (event) => {
    const box = drawn().getBoundingClientRect(); // not the target's: news may redraw it between press and release
    if (event.clientY < box.top || event.clientY > box.bottom) return;
    go(Math.max(0, Math.min(119, Math.floor(((event.clientX - box.left) / box.width) * 120))));
  });
}
