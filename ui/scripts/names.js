// Buttons that stand once in each row, as Edit and Forget, are named with their memory for a screen
// reader.
(() => {
  if (window.memchatNames) return;
  window.memchatNames = true;
  const ROWS = '[class*="st-key-row-"], [class*="st-key-given-"], [class*="st-key-item-"]';
  const name = () => {
    for (const row of document.querySelectorAll(ROWS)) {
      const words = row.querySelector('[data-testid="stMarkdown"] p')?.textContent.replace(/\s+/g, " ").trim();
      for (const button of row.querySelectorAll('[data-testid="stButton"] button')) {
        const full = words ? `${button.textContent.trim()}: ${words}` : null;
        if (full === null) button.removeAttribute("aria-label");
        else if (button.getAttribute("aria-label") !== full) button.setAttribute("aria-label", full);
      }
    }
  };
  new MutationObserver(name).observe(document.body, {
    childList: true, subtree: true, characterData: true,
  });
  name();
})();
