// Replays an ended session in the browser, by the times of its stored lines.
import { mark } from "./session-timeline.js";
import * as transcript from "./session-transcript.js";

const MOST_SHOWN = 200;
const MOST_AT_ONCE = 8; // in one frame, at the greatest speed
const PAUSE = 2; // seconds between two turns, however long it was
let replay = null;

export function isReplaying() {
  return replay !== null;
}

// Each entry gets a place on one clock that has no long gaps between turns.
function scheduled(told) {
  let clock = 0;
  let before = null;
  return told.map(([id, at, ended, turn], place) => {
    if (before) clock += before.turn === turn ? Math.max(0, at - before.at) : Math.min(PAUSE, Math.max(0, at - before.at));
    before = { id, at, turn, place, begins: clock, ends: clock + Math.max(0, ended - at) };
    return before;
  });
}

class Replay {
  constructor(told) {
    this.plan = scheduled(told.entries);
    this.spent = told.spent;
    this.places = new Map(this.plan.map((one) => [one.id, one.place]));
    this.html = new Map();
    this.heads = new Map();
    this.shown = 0; // so many entries have come
    this.open = []; // those that have come and not ended
    this.clock = 0;
    this.speed = 4;
    this.playing = true;
    this.last = null;
    this.fetching = null;
    this.seeks = 0; // the last seek counts, and the clock stands while it fetches
    this.held = false;
  }

  get done() {
    return this.shown >= this.plan.length && !this.open.length;
  }

  async fetchFrom(url) {
    const found = await transcript.fetched(url);
    if (!found) throw new Error("the server did not answer");
    for (const section of found.page.querySelectorAll("section.turn")) {
      this.heads.set(section.id.slice(5), section.querySelector(".head").innerHTML);
      for (const entry of section.querySelectorAll("li.entry")) this.html.set(entry.id, document.adoptNode(entry));
    }
  }

  // Fetches the part with this entry, unless it is there or on its way.
  ready(place) {
    const one = this.plan[place];
    if (!one || this.html.has(one.id) || this.fetching) return;
    const before = this.plan[place - 1]?.id ?? "e0-0";
    this.fetching = this.fetchFrom(`?after=${before}`).catch(() => { this.playing = false; }).finally(() => { this.fetching = null; });
  }

  tick(now) {
    if (replay !== this) return;
    if (this.playing && !this.held && this.last !== null) this.advance((now - this.last) / 1000);
    this.last = now;
    requestAnimationFrame((then) => this.tick(then));
  }

  advance(seconds) {
    this.ready(this.shown);
    this.ready(Math.min(this.shown + 40, this.plan.length - 1));
    const next = this.plan[this.shown];
    if (this.speed === 0) this.clock = Math.max(this.clock, (this.plan[this.shown + MOST_AT_ONCE - 1] ?? { begins: Infinity }).begins);
    else if (!next || this.html.has(next.id)) this.clock += seconds * this.speed;
    while (this.shown < this.plan.length && this.plan[this.shown].begins <= this.clock) {
      if (!this.put(this.plan[this.shown])) { this.clock = this.plan[this.shown].begins; break; }
      this.shown += 1;
    }
    this.settle();
    this.tell();
    if (this.done) this.pause();
  }

  put(one) {
    const entry = this.html.get(one.id);
    if (!entry) return false;
    this.html.delete(one.id);
    const section = transcript.chapter(one.turn);
    transcript.write(section.querySelector(".head"), this.heads.get(String(one.turn)));
    if (one.ends > this.clock) { entry.classList.add("pending"); this.open.push([one, entry]); }
    section.querySelector(".entries").append(entry);
    transcript.decorate(entry);
    const all = transcript.entries();
    for (const old of all.slice(0, Math.max(0, all.length - MOST_SHOWN))) old.remove();
    window.scrollTo(0, document.body.scrollHeight);
    return true;
  }

  settle() {
    this.open = this.open.filter(([one, entry]) => {
      if (one.ends > this.clock) return true;
      entry.classList.remove("pending");
      return false;
    });
  }

  tell() {
    const one = this.plan[Math.max(0, this.shown - 1)];
    if (!one) return;
    const gone = Math.max(0, this.clock - one.begins);
    const next = this.plan[this.shown];
    const at = one.at + Math.min(gone, (next ? next.begins : one.ends) - one.begins);
    const dollars = this.spent.reduce((sum, [when, usd]) => sum + (when <= at ? usd : 0), 0);
    const clock = new Date(at * 1000).toISOString().slice(11, 19);
    const text = `${clock} · ${this.shown.toLocaleString("en")} of ${this.plan.length.toLocaleString("en")} · $${dollars.toFixed(2)}`;
    const output = document.getElementById("moment");
    if (output.textContent !== text) output.textContent = text;
    const ids = document.querySelector("#timeline svg").dataset.ids.split(" ");
    let column = 0;
    while (column + 1 < ids.length && (this.places.get(ids[column + 1]) ?? 0) < this.shown) column += 1;
    mark(column);
    document.querySelector("#scrub input").value = column;
  }

  async seek(id) {
    const place = this.places.get(id);
    if (place === undefined) return;
    this.html.clear();
    this.open = [];
    this.seeks += 1;
    const mine = this.seeks;
    this.held = true;
    await this.fetchFrom(`?at=${id}`);
    if (mine !== this.seeks || replay !== this) return;
    document.getElementById("talk").replaceChildren();
    this.shown = place;
    while (this.shown > 0 && this.html.has(this.plan[this.shown - 1].id)) this.shown -= 1;
    this.clock = this.plan[place].begins;
    while (this.shown <= place && this.put(this.plan[this.shown])) this.shown += 1;
    this.settle();
    this.tell();
    this.held = false;
  }

  pause() {
    this.playing = false;
    document.getElementById("play").textContent = this.done ? "Replay again" : "Go on";
  }

  resume() {
    this.playing = true;
    document.getElementById("play").textContent = "Pause";
  }
}

export function seek(id) {
  replay?.seek(id);
}

async function begin() {
  const response = await fetch(`/sessions/${transcript.reader().dataset.session}/times`);
  if (!response.ok) return;
  const told = await response.json();
  if (!told.entries.length) return;
  replay = new Replay(told);
  replay.speed = Number(document.getElementById("speed").value);
  document.getElementById("talk").replaceChildren();
  document.body.classList.add("replaying");
  document.getElementById("leave").hidden = false;
  replay.resume();
  requestAnimationFrame((now) => replay?.tick(now));
}

function leave() {
  if (!replay) return;
  replay = null;
  document.body.classList.remove("replaying");
  document.getElementById("leave").hidden = true;
  document.getElementById("play").textContent = "Replay";
  document.getElementById("moment").textContent = "";
  mark(-1);
}

export function start() {
  const box = document.getElementById("replay");
  box.hidden = "live" in box.dataset;
  document.getElementById("play").addEventListener("click", () => {
    if (!replay || replay.done) { begin(); return; }
    if (replay.playing) replay.pause();
    else replay.resume();
  });
  document.getElementById("speed").addEventListener("change", (event) => { if (replay) replay.speed = Number(event.target.value); });
  document.addEventListener("leave-replay", leave);
  document.getElementById("leave").addEventListener("click", () => {
    leave();
    transcript.load(`/sessions/${transcript.reader().dataset.session}`, { quiet: true });
  });
}
