// A session's page while it is open: what comes by itself, and the switch to follow it. The server has escaped all HTML.
import { start as startKeys } from "./session-keys.js";
import { start as startReplay, isReplaying } from "./session-replay.js";
import { start as startTimeline } from "./session-timeline.js";
import * as transcript from "./session-transcript.js";
import { follow as followStream, say } from "./stream.js";

const QUIET = 10000; // the least time between two announcements of new entries
const BACK = new Set(["ArrowUp", "PageUp", "Home", "j", "k", "e"]);
const follow = document.getElementById("follow");
const news = document.getElementById("news");
let end = null;
let last = "0";
let fresh = { calls: 0, failed: 0, timer: null };

function remember(name, value) {
  try { localStorage.setItem(name, value); } catch { /* a browser may refuse to store */ }
}

function remembered(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

function toEnd() {
  window.scrollTo(0, document.body.scrollHeight);
}

function announce() {
  fresh.timer = null;
  if (!fresh.calls) return;
  say(news, `${fresh.calls} new ${fresh.calls === 1 ? "entry" : "entries"}${fresh.failed ? `, ${fresh.failed} failed` : ""}.`);
  fresh.calls = fresh.failed = 0;
}

function onTurn(event) {
  if (!isReplaying()) transcript.turn(JSON.parse(event.data));
}

function onLines(event) {
  last = event.lastEventId;
  if (isReplaying()) return;
  const came = transcript.take(JSON.parse(event.data));
  if (!came.length) return;
  fresh.calls += came.length;
  fresh.failed += came.filter((entry) => entry.classList.contains("failed")).length;
  if (follow.checked) {
    toEnd();
    fresh.timer ??= setTimeout(announce, QUIET);
  }
}

function onOverview(event) {
  const told = JSON.parse(event.data);
  for (const name of ["overview", "money", "pull", "timeline"]) transcript.write(document.getElementById(name), told[name]);
  say(document.getElementById("headline"), told.headline);
  const stop = document.getElementById("stop");
  if (stop) stop.hidden = !told.live;
  if (stop) document.getElementById("retry").hidden = told.live;
  document.getElementById("replay").hidden = told.live;
}

function listen(after) {
  if (end) end();
  last = after;
  const at = `/sessions/${transcript.reader().dataset.session}/events`;
  end = followStream(() => `${at}?after=${last}`, { turn: onTurn, lines: onLines, overview: onOverview });
}

async function setFollow(on) {
  follow.checked = on;
  remember("forgehand.follow", on ? "on" : "off");
  if (!on) return;
  if (!transcript.isNewest()) await transcript.load(`/sessions/${transcript.reader().dataset.session}`, { quiet: true });
  toEnd();
}

function stopFollowing() {
  if (follow.checked) setFollow(false);
}

function startFollowing() {
  document.querySelector("label.follow").hidden = false;
  follow.addEventListener("change", () => setFollow(follow.checked));
  window.addEventListener("wheel", (event) => { if (event.deltaY < 0) stopFollowing(); }, { passive: true });
  window.addEventListener("touchmove", stopFollowing, { passive: true });
  window.addEventListener("keydown", (event) => { if (BACK.has(event.key)) stopFollowing(); });
  const asked = window.location.search || window.location.hash;
  if (remembered("forgehand.follow") === "on" && !asked) setFollow(true);
}

document.documentElement.classList.add("js");
transcript.start((seq) => listen(seq));
startTimeline();
startReplay();
startKeys({ remember, remembered });
startFollowing();
listen(transcript.reader().dataset.seq);
