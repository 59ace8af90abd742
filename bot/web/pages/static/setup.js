// Runs the checks when the page opens, and again when someone returns to it while a check fails.
"use strict";

const findings = document.getElementById("findings");
let looking = false;

function say(words) {
  const line = document.createElement("p");
  line.textContent = words;
  findings.replaceChildren(line);
}

async function look() {
  if (looking || findings.querySelector("p.good")) return;
  looking = true;
  if (!findings.firstElementChild) say("Checking everything; this takes up to a minute …");
  findings.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch("/setup/findings");
    const text = await answer.text();
    if (answer.ok) findings.innerHTML = text;  // the server has escaped it, like the page
    else say(text);
  } catch {
    say("Forgehand does not answer. Is `forgehand setup` still running in the terminal?");
  }
  findings.setAttribute("aria-busy", "false");
  looking = false;
}

if (findings) {
  look();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
}
