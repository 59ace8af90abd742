// Keeps the operator's page up to date while somebody looks at it. It receives HTML that the server has escaped.
"use strict";

const part = document.getElementById("now");
const link = document.getElementById("link");
const EVERY = 5000;

function say(text) {
  if (link.textContent !== text) link.textContent = text;
}

async function look() {
  // a button under the finger or the keyboard stays where it is
  if (document.hidden || part.querySelector(":focus, button:hover")) return;
  try {
    const answer = await fetch("/operator/now");
    if (!answer.ok) {
      say("This page is no longer up to date: please load it again.");
      return;
    }
    const html = await answer.text();
    if (html !== look.last) part.innerHTML = html;
    look.last = html;
    say("");
  } catch {
    say("Connection lost; trying again.");
  }
}

setInterval(look, EVERY);
document.addEventListener("visibilitychange", look);
