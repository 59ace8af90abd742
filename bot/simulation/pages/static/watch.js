// Fetches the page anew when the server says that something changed; what is being typed or unfolded stays.
(() => {
  const live = document.getElementById("live");
  let busy = false, again = false;
  const unfolded = () => [...live.querySelectorAll("details")].map((one) => one.open);
  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      const open = unfolded();
      [...next.querySelectorAll("details")].forEach((one, index) => { one.open = !!open[index]; });
      const form = live.querySelector("#say"), fresh = next.querySelector("#say");
      if (form && fresh) fresh.replaceWith(document.importNode(fresh, false));
      const keep = form;
      live.replaceChildren(...[...next.childNodes].filter((node) => node.id !== "say"));
      if (keep) live.append(keep);
    } finally {
      busy = false;
      if (again) { again = false; refresh(); }
    }
  }
  new EventSource("/watch/events").addEventListener("changed", refresh);
})();
