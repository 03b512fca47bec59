// Shows at once that a click was heard: the line along the top (style.css) begins with the click,
// before the server has answered, and ends with the run that it asked for.
(() => {
  if (window.memchatUnderWay) return;
  window.memchatUnderWay = true;
  const root = document.documentElement;
  const asks = '.memchat-link, [data-testid="stPageLink"] a, [role="option"], ' +
    '[data-testid="stCheckbox"], .memchat-chat button[data-key], ' +
    '[data-testid="stButtonGroup"] button, ' +
    ["primary", "secondary", "tertiary"].map(kind => `[data-testid^="stBaseButton-${kind}"]`);
  const running = () => document.querySelector(".stApp")?.dataset.testScriptState === "running";
  let timer = 0;
  const end = () => { if (running()) timer = setTimeout(end, 50); else delete root.dataset.asked; };
  const begin = () => { root.dataset.asked = ""; clearTimeout(timer); timer = setTimeout(end, 400); };
  document.addEventListener("click", event => {
    if (event.target.closest(asks)) begin();
  }, true);
  document.addEventListener("keydown", event => {
    if (event.key === "Enter" && event.target.matches("input, textarea")) begin();
  }, true);
})();
