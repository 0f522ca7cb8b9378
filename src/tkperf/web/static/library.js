// The page works without: this finds at once, and says whether enough runs are ticked.
"use strict";
const find = document.querySelector("form.find");
find.classList.add("at-once");
find.addEventListener("change", ({ target }) => {
  if (target.type === "search") return;
  submit(target);
});
// The next page goes on where this one was left: several values of a facet are ticked one after the other.
function submit(target) {
  if (target.type === "checkbox") sessionStorage.setItem("ticked", `${target.name}=${target.value}`);
  find.requestSubmit();
}
const ticked = sessionStorage.getItem("ticked");
sessionStorage.removeItem("ticked");
const again = [...find.elements].find((each) => each.type === "checkbox" && `${each.name}=${each.value}` === ticked);
if (again) {
  again.closest("details")?.setAttribute("open", "");
  again.focus();
}
const close = (kept) => {
  for (const facet of find.querySelectorAll("details[open]")) if (facet !== kept) facet.open = false;
};
document.addEventListener("click", (event) => close(event.target.closest(".facet")));
document.addEventListener("keydown", (event) => {
  const facet = event.target.closest(".facet[open]");
  if (event.key !== "Escape" || !facet) return;
  close();
  facet.querySelector("summary").focus();
});
// Empty fields would only lengthen the address.
find.addEventListener("formdata", ({ formData }) => {
  if (!formData.get("q")) formData.delete("q");
  if (!formData.get("by")) formData.delete("by");
  if (formData.get("sort") === "-date" || formData.get("by")) formData.delete("sort");
});

const compare = document.querySelector("#compare");
const ticks = () => document.querySelectorAll("input[name=run]:checked:enabled");
if (compare) {
  const button = compare.querySelector("button"), note = compare.querySelector(".note");
  const first = note.textContent;
  const show = () => {
    const count = ticks().length;
    button.textContent = count > 1 ? `Compare ${count} runs` : "Compare";
    button.setAttribute("aria-disabled", count < 2);
    compare.classList.toggle("ready", count > 1);
    note.textContent = count > 1 ? "" : count ? "Tick one more" : first;
  };
  button.addEventListener("click", (event) => {
    if (button.getAttribute("aria-disabled") === "true") event.preventDefault();
  });
  document.addEventListener("change", ({ target }) => {
    if (target.name !== "run") return;
    if (compare.contains(target)) submit(target);
    else show();
  });
  // Links of the list take along what is ticked.
  document.addEventListener("click", ({ target }) => {
    const link = target.closest("main a:is([href='/'], [href^='/?'])");
    if (!link) return;
    const url = new URL(link.href);
    url.searchParams.delete("run");
    for (const tick of ticks()) url.searchParams.append("run", tick.value);
    link.href = url;
  });
  show();
}

// While files are read for the first time, the page follows, unless something is being done with it.
if (document.querySelector(".count progress")) {
  setTimeout(() => {
    const busy = document.querySelector("input[name=run]:checked, details[open]") || find.contains(document.activeElement);
    if (!busy && scrollY < 100) location.reload();
  }, 5000);
}
