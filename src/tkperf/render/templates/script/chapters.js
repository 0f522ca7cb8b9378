// A comparison first shows only its decision. With a select element, the reader shows one other part of the page
// below.

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

// Shows the part of the page that contains the target of a link.
function showChapterOf(target) {
  const chapter = target?.closest("[data-chapter]");
  if (!chapter || chapter.classList.contains("shown")) return;
  showChapter(chapter.id);
  target.scrollIntoView();
}
