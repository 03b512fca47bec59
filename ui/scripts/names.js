// Buttons that stand once in each row, as Edit and Forget, are named with their memory
// for a screen reader. A table that is scrolled sideways can be scrolled by keys.
(() => {
  if (window.memchatNames) return;
  window.memchatNames = true;
  const ROWS = '[class*="st-key-row-"], [class*="st-key-given-"], [class*="st-key-item-"], ' +
    '[class*="st-key-undo-row-"], [class*="st-key-client-"]';
  const LEFT = / [^.]*\d+ s\.$/; // the seconds that are left would be read out one by one
  const call = (row, text) => {
    const words = text?.replace(/\s+/g, " ").trim();
    for (const button of row.querySelectorAll('[data-testid="stButton"] button')) {
      const full = words ? `${button.textContent.trim()}: ${words}` : null;
      if (full === null) button.removeAttribute("aria-label");
      else if (button.getAttribute("aria-label") !== full) button.setAttribute("aria-label", full);
    }
  };
  const name = () => {
    for (const table of document.querySelectorAll('[data-testid="stTable"] table')) {
      const box = table.parentElement; // where it is too wide for the window, the arrow keys move it
      if (box.scrollWidth > box.clientWidth && box.tabIndex < 0) box.tabIndex = 0;
    }
    for (const row of document.querySelectorAll(ROWS)) {
      const words = row.querySelector('[data-testid="stMarkdown"] p')?.textContent;
      call(row, row.className.includes("st-key-undo-row-") ? words?.replace(LEFT, "") : words);
    }
  };
  new MutationObserver(name).observe(document.body, {
    childList: true, subtree: true, characterData: true,
  });
  name();
})();
