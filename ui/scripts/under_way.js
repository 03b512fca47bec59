// Shows at once that a click was heard: the line along the top (style.css) begins with the click,
// before the server has answered, and ends with the run that it asked for. On a narrow screen the
// sidebar lies over the page: it folds when a chat was chosen in it, as it does for a page.
(() => {
  if (window.memchatUnderWay) return;
  window.memchatUnderWay = true;
  const root = document.documentElement;
  const asks = '[data-testid="stSidebarNavLink"], [data-testid="stPageLink"] a, [role="option"], ' +
    '[data-testid="stCheckbox"], .memchat-chat button[data-key], ' +
    '[data-testid="stButtonGroup"] button, ' +
    ["primary", "secondary", "tertiary"].map(kind => `[data-testid^="stBaseButton-${kind}"]`);
  const running = () => document.querySelector(".stApp")?.dataset.testScriptState === "running";
  let timer = 0;
  const end = () => { if (running()) timer = setTimeout(end, 50); else delete root.dataset.asked; };
  const begin = () => { root.dataset.asked = ""; clearTimeout(timer); timer = setTimeout(end, 400); };
  const chats = '.st-key-new button, .st-key-new-incognito button, [class*="st-key-open-"] button, ' +
    '[class*="st-key-found-"] button';
  const fold = () => document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click();
  document.addEventListener("click", event => {
    if (event.target.closest(asks)) begin();
    if (window.innerWidth < 768 && event.target.closest(chats)) setTimeout(fold, 100);
  }, true);
  document.addEventListener("keydown", event => {
    if (event.key === "Enter" && event.target.matches("input, textarea")) begin();
  }, true);
})();
