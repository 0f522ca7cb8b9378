// The page as a whole: marks the current part in the navigation, opens the targets of addresses, and starts all
// drawing.

document.addEventListener("click", ({ target }) => {
  const button = target.closest("button[data-cell]");
  if (button) show(button.dataset.cell, button);
});

const leadsTo = (address) => address && allCells()[parse(address).key];

addEventListener("popstate", () => {
  const address = fromAddress();
  if (leadsTo(address)) show(address);
  else if (dialog?.open) leave();
});

// The part of the page at the reader's position is marked in the navigation. On a phone, the navigation scrolls to
// this part.
const links = [...document.querySelectorAll("nav a[href^='#']")];
const linked = links.map((link) => document.getElementById(link.hash.slice(1))).filter(Boolean);
function markHere() {
  const middle = innerHeight / 3;
  const here = linked.findLast((section) => section.getBoundingClientRect().top < middle) ?? linked[0];
  for (const link of links) {
    if (link.hash.slice(1) !== here?.id) link.removeAttribute("aria-current");
    else if (!link.hasAttribute("aria-current")) {
      link.setAttribute("aria-current", "true");
      const nav = link.closest("nav");
      nav.scrollLeft = link.offsetLeft - (nav.clientWidth - link.clientWidth) / 2;
    }
  }
}
addEventListener("scroll", () => requestAnimationFrame(markHere), { passive: true });
markHere();

// Opens the folded part of the page that contains the target of a link.
function unfold() {
  const target = document.getElementById(fromAddress());
  showChapterOf(target);
  const folded = target?.closest("details") ?? target?.querySelector(":scope > details.chapter");
  if (folded && !folded.open) { folded.open = true; target.scrollIntoView(); }
}
addEventListener("hashchange", unfold);
unfold();

showLinked();
addEventListener("hashchange", showLinked);
drawAll();
if (leadsTo(fromAddress())) show(fromAddress());
