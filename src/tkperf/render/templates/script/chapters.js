// A comparison shows its decision; a select shows one of the other parts of the page below it.

const chooser = document.getElementById("chapter");
const chapters = [...document.querySelectorAll("[data-chapter]")];
if (chooser) document.body.classList.add("chaptered");

function showChapter(id) {
  for (const each of chapters) each.classList.toggle("shown", each.id === id);
  chooser.value = id;
}

chooser?.addEventListener("change", () => {
  showChapter(chooser.value);
  document.getElementById(chooser.value)?.scrollIntoView();
});

// The part that has what a link leads to.
function showChapterOf(target) {
  const chapter = target?.closest("[data-chapter]");
  if (!chapter || chapter.classList.contains("shown")) return;
  showChapter(chapter.id);
  target.scrollIntoView();
}
