// Keeps the lists of the front page up to date while it is open. It receives HTML that the server has escaped.
"use strict";

const lists = document.getElementById("lists");
const link = document.getElementById("link");
const AGAIN = [1000, 2000, 5000, 10000, 30000];
let failures = 0;

function say(text) {
  if (link.textContent !== text) link.textContent = text;
}

function put(html) {
  const focused = lists.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  lists.innerHTML = html;
  if (focused) for (const one of lists.querySelectorAll("a")) if (one.getAttribute("href") === focused) one.focus();
}

function follow() {
  const source = new EventSource(`/events${window.location.search}`);
  source.addEventListener("open", () => { failures = 0; say(""); });
  source.addEventListener("lists", (event) => put(JSON.parse(event.data)));
  source.addEventListener("gone", (event) => { source.close(); say(JSON.parse(event.data)); });
  source.addEventListener("error", () => {
    say("Connection lost; trying again.");
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(follow, AGAIN[Math.min(failures++, AGAIN.length - 1)]);
  });
}

follow();
