// Each step has one place in the browser's history, so that Back returns to the chat or page before.
// Streamlit writes the address of a page in two steps, its path and then the space and chat in it, or
// the other way round; and a new chat gets its number with its first message.
(() => {
  if (window.memchatAddress) return;
  window.memchatAddress = true;
  const push = history.pushState.bind(history);
  let begun = false; // what is written next belongs to the step that is in the history already
  let early = false; // the step in the history has what comes behind the path, and not its path yet
  history.pushState = (state, unused, url) => {
    const to = new URL(url, location.href);
    if (to.href === location.href) return;
    const samePage = to.pathname === location.pathname;
    if (samePage ? begun : early) history.replaceState(state, unused, url);
    else push(state, unused, url);
    early = samePage && !begun;
    begun = !samePage;
  };
  const acted = event => {
    const says = event.target.closest?.(".memchat-composer, .st-key-suggestion");
    begun = Boolean(says) && !new URLSearchParams(location.search).has("c");
    early = false;
  };
  for (const kind of ["pointerdown", "keydown"]) document.addEventListener(kind, acted, true);
  addEventListener("popstate", () => { early = false; });
})();
