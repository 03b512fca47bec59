// The number of a source in an answer leads to the source below it, which opens the note.
(() => {
  if (window.memchatCitations) return;
  window.memchatCitations = true;
  document.addEventListener("click", event => {
    const number = event.target.closest?.(".memchat-cite")?.dataset.source;
    const source = number && document.querySelector(`.st-key-row-source-${CSS.escape(number)}`);
    if (!source) return;
    source.scrollIntoView({ block: "center" });
    source.querySelector("button")?.focus({ preventScroll: true, focusVisible: true });
    const lit = "color-mix(in srgb, currentColor 16%, transparent)";
    source.animate([{ backgroundColor: lit }, { backgroundColor: "transparent" }], 2000);
  });
})();
