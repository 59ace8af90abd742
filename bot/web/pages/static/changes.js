// Keeps the Changes page up to date while a turn works. It receives HTML that the server has escaped, like the page.
"use strict";

const changes = document.getElementById("changes");
const link = document.getElementById("link");
const AGAIN = [1000, 2000, 5000, 10000, 30000];
let failures = 0;

function say(text) {
  if (link.textContent !== text) link.textContent = text;
}

// Names a file by its path, because its number may change.
function nameOf(fold) {
  return fold.querySelector("summary").firstElementChild?.textContent ?? "";
}

function put(html) {
  const closed = new Set();
  for (const fold of changes.querySelectorAll("details:not([open])")) closed.add(nameOf(fold));
  const focused = changes.contains(document.activeElement) ? document.activeElement : null;
  const to = focused && focused.getAttribute("href");
  const at = window.scrollY;
  changes.innerHTML = html;
  for (const fold of changes.querySelectorAll("details")) if (closed.has(nameOf(fold))) fold.open = false;
  if (to) for (const one of changes.querySelectorAll("a")) if (one.getAttribute("href") === to) { one.focus({ preventScroll: true }); break; }
  window.scrollTo(0, at);
}

function follow() {
  const source = new EventSource(changes.dataset.stream);
  source.addEventListener("open", () => { failures = 0; say(""); });
  source.addEventListener("changes", (event) => put(JSON.parse(event.data)));
  source.addEventListener("ended", () => source.close());
  source.addEventListener("gone", (event) => { source.close(); say(JSON.parse(event.data)); });
  source.addEventListener("error", () => {
    say("Connection lost; trying again.");
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(follow, AGAIN[Math.min(failures++, AGAIN.length - 1)]);
  });
}

follow();
