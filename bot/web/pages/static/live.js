// Keeps a session's page up to date while it is open. It receives HTML that the server has escaped, like the page.
"use strict";

const talk = document.getElementById("talk");
const link = document.getElementById("link");
const AGAIN = [1000, 2000, 5000, 10000, 30000];
let last = talk.dataset.seq;
let failures = 0;

function part(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html.trim();
  return holder.content.firstElementChild;
}

function chapter(turn) {
  const known = document.getElementById(`turn-${turn}`);
  if (known) return known;
  const made = document.createElement("section");
  made.className = "turn";
  made.id = `turn-${turn}`;
  made.setAttribute("aria-labelledby", `turn-${turn}-title`);
  made.innerHTML = '<div class="head"></div><ol class="entries" role="log"></ol><div class="end"></div>';
  talk.append(made);
  return made;
}

// Sorts by line and place in it, because an entry that changed later may have begun earlier.
function order(id) {
  const [seq, place] = id.slice(1).split("-").map(Number);
  return seq * 1000 + place;
}

function put(list, entry) {
  const known = document.getElementById(entry.id);
  if (known) {
    const open = known.querySelector("details[open]") !== null;
    const focused = known.contains(document.activeElement);
    known.replaceWith(entry);
    const fold = entry.querySelector("details");
    if (fold && open) fold.open = true;
    if (fold && focused) fold.querySelector("summary").focus();
    return;
  }
  let before = list.lastElementChild;
  while (before && order(before.id) > order(entry.id)) before = before.previousElementSibling;
  if (before) before.after(entry);
  else list.prepend(entry);
}

function write(element, html) {
  if (element.dataset.html === html) return;
  element.dataset.html = html;
  const open = element.querySelector("details[open]") !== null;
  element.innerHTML = html;
  const fold = element.querySelector("details");
  if (fold && open) fold.open = true;
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function onTurn(event) {
  const told = JSON.parse(event.data);
  const section = chapter(told.turn);
  write(section.querySelector(".head"), told.head);
  write(section.querySelector(".end"), told.end);
}

function onLines(event) {
  const low = window.innerHeight + window.scrollY >= document.body.offsetHeight - 80;
  for (const one of JSON.parse(event.data)) put(chapter(one.turn).querySelector(".entries"), part(one.html));
  last = event.lastEventId;
  if (low && document.activeElement === document.body) window.scrollTo(0, document.body.scrollHeight);
}

function onOverview(event) {
  const told = JSON.parse(event.data);
  write(document.getElementById("overview"), told.html);
  say(document.getElementById("headline"), told.headline);
  const stop = document.getElementById("stop");
  if (stop) stop.hidden = !told.live;
  if (stop) document.getElementById("retry").hidden = told.live;
}

function follow() {
  const source = new EventSource(`${talk.dataset.stream}?after=${last}`);
  source.addEventListener("open", () => { failures = 0; say(link, ""); });
  source.addEventListener("turn", onTurn);
  source.addEventListener("lines", onLines);
  source.addEventListener("overview", onOverview);
  source.addEventListener("gone", (event) => { source.close(); say(link, JSON.parse(event.data)); });
  source.addEventListener("error", () => {
    say(link, "Connection lost; trying again.");
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(follow, AGAIN[Math.min(failures++, AGAIN.length - 1)]);
  });
}

follow();
