// Each step has one place in the browser's history, so that Back returns to the chat or page before.
// Streamlit writes the address of a page in two steps, its path and then the chat in it; and a new
// chat gets its number with its first message.
(() => {
  if (window.memchatAddress) return;
  window.memchatAddress = true;
  const push = history.pushState.bind(history);
  let begun = false; // what is written next belongs to the step that is in the history already
  history.pushState = (state, unused, url) => {
    const samePage = new URL(url, location.href).pathname === location.pathname;
    if (samePage && begun) history.replaceState(state, unused, url);
    else push(state, unused, url);
    begun = !samePage;
  };
  const acted = event => {
    const says = event.target.closest?.('[data-testid="stChatInput"], .st-key-suggestion');
    begun = Boolean(says) && !new URLSearchParams(location.search).has("c");
  };
  for (const kind of ["pointerdown", "keydown"]) document.addEventListener(kind, acted, true);
})();
