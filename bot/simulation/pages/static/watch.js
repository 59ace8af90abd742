// Fetches the page again when the server reports a change; typed words and open folds stay.
(() => {
  const live = document.getElementById("live"), form = document.getElementById("say");
  const foldsOf = (root) => [...root.querySelectorAll("details")].map((fold) => {
    // Finds it by its words without their counts, because others come and go before it and its counts change.
    const entry = fold.closest("article"), words = (one) => one.firstElementChild.textContent.replace(/\d+/g, "");
    const alike = entry ? [...entry.querySelectorAll("details")].filter((one) => words(one) === words(fold)) : [fold];
    return [fold, `${entry ? entry.id : ""}/${words(fold)}/${alike.indexOf(fold)}`];
  });
  let busy = false, again = false;

  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      const open = new Set(foldsOf(live).filter(([fold]) => fold.open).map(([, name]) => name));
      const held = foldsOf(live).find(([fold]) => fold.firstElementChild === document.activeElement);
      const pressed = document.activeElement.matches("#live button") && document.activeElement.value;
      for (const [fold, name] of foldsOf(next)) fold.open = open.has(name);
      live.replaceChildren(...next.childNodes);
      const same = held && foldsOf(live).find(([, name]) => name === held[1]);
      if (same) same[0].firstElementChild.focus({ preventScroll: true });
      const button = pressed && [...live.querySelectorAll("button")].find((one) => one.value === pressed);
      if (button) button.focus({ preventScroll: true });
    } catch {
      // the demo has ended or is restarting; the stream of events says which
    } finally {
      busy = false;
      if (again) { again = false; refresh(); }
    }
  }

  const sending = new Set();

  async function send(event) {
    event.preventDefault();
    const sent = event.target, button = event.submitter, refused = document.getElementById("refused");
    const words = new URLSearchParams(new FormData(sent, button)), name = button.textContent;
    if (sending.has(name)) return;  // two clicks send it once
    sending.add(name);
    refused.textContent = "";
    try {
      const answering = fetch(sent.action, { method: "POST", body: words });
      if (sent !== form) refresh();  // shows a crash while it lasts
      const answer = await answering;
      if (!answer.ok) refused.textContent = await answer.text();
      else if (sent === form) sent.elements.body.value = "";
    } catch {
      refused.textContent = "The demo does not answer.";
    }
    sending.delete(name);
    await refresh();
    if (sent === form) form.scrollIntoView({ block: "nearest" });
  }

  async function tick(event) {
    const box = event.target.closest("input[data-task]"), entry = box && box.closest("article[data-comment]");
    if (!entry || !form) return;
    box.disabled = true;  // until the edit returns as the comment's new text
    const words = new URLSearchParams({ comment: entry.dataset.comment, task: box.dataset.task });
    try {
      await fetch(form.action.replace(/say$/, "tick"), { method: "POST", body: words });
    } catch {
      // the stream of events says that the demo has ended
    }
    await refresh();
  }

  document.addEventListener("submit", send);
  live.addEventListener("change", tick);
  const events = new EventSource("/watch/events");
  events.addEventListener("changed", refresh);
  events.onopen = () => { document.body.classList.remove("ended"); refresh(); };
  events.onerror = () => document.body.classList.add("ended");
  setInterval(() => { if (!document.hidden) refresh(); }, 10000);  // updates "5 s ago"
})();
