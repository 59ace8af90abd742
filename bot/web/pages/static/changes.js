// Keeps the Changes page up to date while a turn works. It receives HTML that the server has escaped, like the page.
import { follow } from "./stream.js";

const changes = document.getElementById("changes");

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

follow(() => changes.dataset.stream, { changes: (event) => put(JSON.parse(event.data)) });
