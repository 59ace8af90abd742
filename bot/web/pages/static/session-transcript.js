// The entries on a session's page: put in order, replaced when they change, and other parts fetched from the server.
const MOST_SHOWN = 400; // older ones leave the page, and "Earlier entries" leads to them
const LEADS = "#older, #newer, #newest, #next-error, #clear";
let whenLoaded = () => {};
let loading = null;
let shown = window.location.search; // the part of the transcript that is on the page

export function reader() {
  return document.getElementById("reader");
}

export function isNewest() {
  return "newest" in reader().dataset;
}

export function entries() {
  return [...reader().querySelectorAll("li.entry")];
}

// Sorts by line and place in it, because an entry that changed later may have begun earlier.
export function order(id) {
  const [seq, place] = id.slice(1).split("-").map(Number);
  return seq * 1000 + place;
}

export function write(element, html) {
  if (html === undefined || element.dataset.html === html) return;
  element.dataset.html = html;
  const open = element.querySelector("details[open]") !== null;
  element.innerHTML = html;
  const fold = element.querySelector("details");
  if (fold && open) fold.open = true;
}

function part(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html.trim();
  return holder.content.firstElementChild;
}

export function chapter(turn) {
  const known = document.getElementById(`turn-${turn}`);
  if (known) return known;
  const made = document.createElement("section");
  made.className = "turn";
  made.id = `turn-${turn}`;
  made.setAttribute("aria-labelledby", `turn-${turn}-title`);
  made.innerHTML = '<div class="head"></div><ol class="entries"></ol><div class="end"></div>';
  made.querySelector("ol").setAttribute("aria-label", `Turn ${turn}`);
  document.getElementById("talk").append(made);
  return made;
}

// A new turn belongs on the page only if the page shows the end of the transcript.
export function turn(told) {
  const known = document.getElementById(`turn-${told.turn}`);
  const turns = [...document.querySelectorAll("section.turn")].map((one) => Number(one.id.slice(5)));
  if (!known && !(isNewest() && told.turn > Math.max(0, ...turns))) return;
  const section = chapter(told.turn);
  write(section.querySelector(".head"), told.head);
  if (isNewest()) write(section.querySelector(".end"), told.end);
}

export function decorate(entry) {
  const place = entry.querySelector("p.do");
  if (!place || place.querySelector("button")) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", place.querySelector("a").getAttribute("aria-label").replace("Link to", "Copy"));
  place.prepend(button);
}

function replace(known, entry) {
  const open = known.querySelector("details[open]") !== null;
  const focused = known.contains(document.activeElement);
  if (known.classList.contains("here")) entry.classList.add("here");
  known.replaceWith(entry);
  const fold = entry.querySelector("details");
  if (fold && open) fold.open = true;
  if (focused) (entry.querySelector("summary") || entry).focus({ preventScroll: true });
}

export function insert(entry, turnNumber) {
  const list = chapter(turnNumber).querySelector(".entries");
  let before = list.lastElementChild;
  while (before && order(before.id) > order(entry.id)) before = before.previousElementSibling;
  if (before) before.after(entry);
  else list.prepend(entry);
}

// Takes what the stream tells; returns the entries that are new on the page.
export function take(told) {
  const came = [];
  const begins = reader().dataset.first ? order(reader().dataset.first) : 0;
  for (const one of told) {
    const entry = part(one.html);
    const known = document.getElementById(one.id);
    decorate(entry);
    if (known) replace(known, entry);
    else if (isNewest() && order(one.id) > begins) { insert(entry, one.turn); came.push(entry); }
    if (entry.classList.contains("failed")) document.getElementById("next-error").hidden = false;
  }
  if (came.length) count(came.length);
  trim();
  return came;
}

function count(more) {
  const place = document.getElementById("count");
  const total = Number(place.dataset.total) + more;
  place.dataset.total = total;
  const from = Number(place.dataset.from) || 1;
  place.textContent = `Entries ${from.toLocaleString("en")} to ${total.toLocaleString("en")} of ${total.toLocaleString("en")}`;
}

function trim() {
  const all = entries();
  const spare = all.slice(0, Math.max(0, all.length - MOST_SHOWN));
  const gone = spare.filter((one) => one.getBoundingClientRect().bottom < 0 && !one.contains(document.activeElement));
  if (!gone.length) return;
  for (const one of gone) one.remove();
  const first = entries()[0];
  reader().dataset.first = first.id;
  const place = document.getElementById("count");
  place.dataset.from = Number(place.dataset.from) + gone.length;
  document.getElementById("older").href = `?before=${first.id}`;
  document.getElementById("older").parentElement.hidden = false;
}

export function focusOn(entry, { quiet = false } = {}) {
  for (const one of document.querySelectorAll(".here")) one.classList.remove("here");
  entry.classList.add("here");
  if (!quiet) (entry.querySelector("summary") || entry).focus({ preventScroll: true });
  entry.scrollIntoView({ block: "center" });
}

// Shows an entry that may be on another part of the transcript.
export async function show(id, options = {}) {
  const known = document.getElementById(id);
  if (known) return focusOn(known, options);
  return load(`?at=${encodeURIComponent(id)}`, options);
}

export async function fetched(url, signal) {
  const response = await fetch(url, { signal, headers: { Accept: "text/html" } });
  if (!response.ok) return null;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return page.getElementById("reader") ? { page, url: new URL(response.url) } : null;
}

// Puts another part of the transcript on the page: the same one that the address shows without JavaScript.
export async function load(url, { quiet = false, remember = true, last = false } = {}) {
  if (loading) loading.abort();
  loading = new AbortController();
  document.dispatchEvent(new Event("leave-replay"));
  let found = null;
  try {
    found = await fetched(url, loading.signal);
  } catch (error) {
    if (error.name === "AbortError") return;
  }
  if (!found) { window.location.assign(url); return; }
  const at = found.url.searchParams.get("at");
  reader().replaceWith(document.adoptNode(found.page.getElementById("reader")));
  adopt(found.page.getElementById("finder"));
  if (remember) history.pushState(null, "", `${found.url.pathname}${found.url.search}${at ? `#${at}` : ""}`);
  shown = window.location.search;
  begin();
  whenLoaded(reader().dataset.seq);
  const target = (at && document.getElementById(at)) || entries().at(last ? -1 : 0);
  if (target && !quiet) focusOn(target);
  else if (target && at) focusOn(target, { quiet: true });
  document.getElementById("news").textContent = document.getElementById("count").textContent;
}

// Brings the form in line with the address, except a field in which somebody writes.
function adopt(fresh) {
  const form = document.getElementById("finder");
  form.querySelector("div.do").replaceWith(fresh.querySelector("div.do"));
  for (const name of ["find", "tool"]) {
    const field = document.getElementById(name);
    if (field !== document.activeElement) field.value = fresh.querySelector(`#${name}`).value;
  }
}

function begin() {
  document.getElementById("help").hidden = false;
  for (const entry of entries()) decorate(entry);
}

function textOf(entry) {
  const asked = entry.querySelector(".asked")?.textContent ?? entry.querySelector("summary code")?.textContent ?? "";
  const parts = [asked, entry.querySelector(".diff")?.textContent, entry.querySelector(".result")?.textContent];
  const words = entry.querySelector(".prose, .words")?.innerText;
  return [...parts, words].filter(Boolean).join("\n\n");
}

async function copy(button) {
  const text = textOf(button.closest("li"));
  try {
    await navigator.clipboard.writeText(text);
  } catch { // without https, browsers have only the old way
    const holder = document.createElement("textarea");
    holder.value = text;
    document.body.append(holder);
    holder.select();
    document.execCommand("copy");
    holder.remove();
    button.focus();
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

function expand(all) {
  const open = all.textContent === "Expand all";
  for (const fold of reader().querySelectorAll("details.call")) fold.open = open;
  all.textContent = open ? "Collapse all" : "Expand all";
}

function onClick(event) {
  const button = event.target.closest("button.copy");
  if (button) { copy(button); return; }
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  if (link.id === "all") { event.preventDefault(); expand(link); return; }
  if (link.matches("li.entry p.do a")) {
    event.preventDefault();
    history.replaceState(null, "", link.getAttribute("href"));
    shown = window.location.search;
    focusOn(link.closest("li"), { quiet: true });
    return;
  }
  if (!link.matches(LEADS)) return;
  event.preventDefault();
  if (link.id === "next-error") nextError();
  else if (link.id === "clear") load(link.href, { quiet: true });
  else load(link.href, { last: link.id === "older" || link.id === "newest" });
}

export function current() {
  return document.activeElement?.closest?.("li.entry") ?? document.querySelector("li.here");
}

export function nextError() {
  const here = current();
  const begins = here ? order(here.id) : -1;
  const next = entries().find((one) => one.classList.contains("failed") && order(one.id) > begins);
  if (next && (here || isFirst())) { focusOn(next); return; }
  load(`?error=${here ? entries().at(-1).id : ""}`);
}

function isFirst() {
  return document.getElementById("older").parentElement.hidden;
}

// Shows the entry that the address names behind its #, which may be on another part.
function showNamed() {
  const name = window.location.hash.slice(1);
  if (/^e\d+-\d+$/.test(name)) show(name, { quiet: true, remember: false });
}

export function start(loaded) {
  whenLoaded = loaded;
  begin();
  document.addEventListener("click", onClick);
  document.getElementById("finder").addEventListener("submit", (event) => {
    event.preventDefault();
    const asked = new URLSearchParams([...new FormData(event.target)].filter(([, value]) => value));
    load(`?${asked}`, { quiet: true });
  });
  document.getElementById("finder").addEventListener("change", (event) => {
    if (event.target.name !== "find") event.target.form.requestSubmit();
  });
  window.addEventListener("popstate", () => {
    if (window.location.search === shown) showNamed();
    else load(window.location.href, { remember: false });
  });
  showNamed();
}
