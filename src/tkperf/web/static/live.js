// A run or batch under way is shown as it goes on. A page of one that has ended looks now and then whether it was resumed.
"use strict";
const place = document.querySelector("[data-live]");
const address = place?.dataset.live;

function listen() {
  const source = new EventSource(address);
  source.onmessage = ({ data }) => { place.innerHTML = data; };
  source.addEventListener("ended", () => { source.close(); location.reload(); });
  source.onerror = async () => {
    // Closed: nothing is under way any more, or the server refuses. Else the browser asks again by itself.
    if (source.readyState !== EventSource.CLOSED) return;
    const answer = await fetch(address, { method: "HEAD" }).catch(() => null);
    if (answer?.status !== 503) {
      setTimeout(() => location.reload(), 3000);
      return;
    }
    place.textContent = "The server shows as many runs under way, or to as many browsers, as it can. This page asks again by itself.";
    setTimeout(listenVisibly, 1000 * (answer.headers.get("Retry-After") ?? 10));
  };
  // A browser has few connections to a host: a page that nobody sees needs none.
  document.addEventListener("visibilitychange", () => { source.close(); listenVisibly(); }, { once: true });
}

function listenVisibly() {
  if (document.hidden) document.addEventListener("visibilitychange", listenVisibly, { once: true });
  else listen();
}

async function look() {
  if (document.hidden) return;
  const answer = await fetch(address, { method: "HEAD" }).catch(() => null);
  if (answer?.status === 200) location.reload();
}

if (place?.id === "live") listenVisibly();
else if (place && !location.search.includes("report")) setInterval(look, 5000);
