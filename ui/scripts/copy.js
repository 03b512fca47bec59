// The copy buttons of replies and of code in them; and whatever is copied by hand is copied without
// the unseen characters that keep Streamlit from drawing icons in people's words.
(() => {
  if (window.memchatCopy) return;
  window.memchatCopy = true;
  const shown = button => {
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  document.addEventListener("click", event => {
    const button = event.target.closest?.(".memchat-copy");
    if (!button) return;
    const code = button.closest(".memchat-code")?.querySelector("code")?.textContent;
    navigator.clipboard.writeText(button.dataset.text ?? code ?? "").then(() => shown(button));
  });
  document.addEventListener("copy", event => {
    const words = getSelection().toString();
    if (!words.includes("\u2060") || event.target.matches?.("input, textarea")) return;
    event.clipboardData.setData("text/plain", words.replaceAll("\u2060", ""));
    event.preventDefault();
  });
})();
