// Follows an event stream of the service: says when the connection is lost, and connects again.
const AGAIN = [1000, 2000, 5000, 10000, 30000];
const link = document.getElementById("link");

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// `address` is asked at each start. `handlers` hold a function for each kind of event. Returns how to end it.
export function follow(address, handlers) {
  let source = null;
  let failures = 0;
  let hasEnded = false;

  function end() {
    hasEnded = true;
    source.close();
  }

  function start() {
    if (hasEnded) return;
    source = new EventSource(address());
    source.addEventListener("open", () => { failures = 0; say(link, ""); });
    for (const [name, handle] of Object.entries(handlers)) source.addEventListener(name, handle);
    source.addEventListener("ended", end);
    source.addEventListener("gone", (event) => { end(); say(link, JSON.parse(event.data)); });
    source.addEventListener("error", () => {
      if (hasEnded) return;
      say(link, "Connection lost; trying again.");
      if (source.readyState === EventSource.CLOSED) setTimeout(start, AGAIN[Math.min(failures++, AGAIN.length - 1)]);
    });
  }

  start();
  return end;
}
