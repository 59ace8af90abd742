// Keeps the lists of the front page up to date while it is open. It receives HTML that the server has escaped.
import { follow } from "./stream.js";

const lists = document.getElementById("lists");

function put(html) {
  const focused = lists.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  lists.innerHTML = html;
  if (focused) for (const one of lists.querySelectorAll("a")) if (one.getAttribute("href") === focused) one.focus();
}

follow(() => `/events${window.location.search}`, { lists: (event) => put(JSON.parse(event.data)) });
