// What surrounds the pages: links that lead on without loading the page again, the header of a small
// screen, what is said where the server is gone, and the question before an incognito chat is lost.
(() => {
  if (window.memchatShell) return;
  window.memchatShell = true;
  const find = at => document.querySelector(at);
  const narrow = () => innerWidth < 768;
  const fold = () => find('[data-testid="stSidebarCollapseButton"] button')?.click();

  // A plain click goes on within the page, as the browser's Back does; any other is the browser's.
  document.addEventListener("click", event => {
    const link = event.target.closest?.("a.memchat-link");
    const chat = link || event.target.closest?.(".st-key-new button, .st-key-new-incognito button");
    if (chat && narrow() && chat.closest('[data-testid="stSidebar"]')) setTimeout(fold, 100);
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    history.pushState(null, "", link.href);
    dispatchEvent(new PopStateEvent("popstate"));
  });

  // On a small screen: the menu, the title, and a new chat.
  const header = document.createElement("header");
  header.id = "memchat-header";
  const button = (sign, name, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = sign;
    made.setAttribute("aria-label", name);
    made.addEventListener("click", act);
    return made;
  };
  const title = document.createElement("span");
  header.append(
    button("☰", "Menu", () => find('[data-testid="stExpandSidebarButton"]')?.click()),
    title,
    button("+", "New chat", () => find(".st-key-new button")?.click()),
  );
  document.body.append(header);

  // Streamlit's own words about a server that does not answer.
  const GONE = /Streamlit server is not responding|Is Streamlit still running|Cannot connect to Streamlit/;
  const WORDS = [
    [/^Connection error$/, "memchat is not running"],
    [GONE, "Start it again, and this page goes on by itself. Nothing that was kept is lost."],
    [/^streamlit run .*/, "memchat ui"],
  ];
  const reword = dialog => {
    if (!GONE.test(dialog.textContent)) return;
    const walker = document.createTreeWalker(dialog, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const found = WORDS.find(([theirs]) => theirs.test(node.nodeValue));
      if (found) node.nodeValue = found[1];
    }
  };

  const look = () => {
    const app = find(".stApp");
    if (app) header.style.colorScheme = getComputedStyle(app).colorScheme;
    const words = document.title.replace(/ · memchat$/, "");
    if (title.textContent !== words) title.textContent = words;
    document.querySelectorAll('[role="dialog"]').forEach(reword);
    document.body.classList.toggle("memchat-in-incognito", Boolean(find(".st-key-head-incognito")));
  };
  new MutationObserver(look).observe(document.documentElement, {
    childList: true, subtree: true, characterData: true,
  });
  look();

  addEventListener("beforeunload", event => {
    if (find(".memchat-incognito")) event.preventDefault();
  });
})();
