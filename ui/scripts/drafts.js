// What was written and not sent stays with its chat while other chats and pages are looked at, and
// over a reload. What was written in an incognito chat is held in this page's memory alone.
(() => {
  if (window.memchatDrafts) return;
  window.memchatDrafts = true;
  const STORED = "memchat drafts"; // in the session storage of this tab
  const INCOGNITO = "incognito";
  const drafts = new Map(JSON.parse(sessionStorage.getItem(STORED) ?? "[]"));
  const keep = (place, words) => {
    if (words) drafts.set(place, words);
    else drafts.delete(place);
    const stored = [...drafts].filter(([chat]) => chat !== INCOGNITO);
    try {
      sessionStorage.setItem(STORED, JSON.stringify(stored));
    } catch {
      sessionStorage.removeItem(STORED); // too long for it: the drafts stay in the page's memory
    }
  };
  const box = () => document.querySelector('[data-testid="stChatInputTextArea"]');
  const idle = () => document.querySelector(".stApp")?.dataset.testScriptState === "notRunning";
  const chat = () => {
    if (document.querySelector(".st-key-head-incognito")) return INCOGNITO;
    return document.querySelector(".st-key-head") ? `chat ${location.search}` : null;
  };
  let here = null;
  let area = null; // the box as it was last seen; a change of page makes another
  let sent = false; // the first message of a new chat
  let asking = null; // the words that were sent last
  const write = words => {
    const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set;
    set.call(area, words);
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const look = () => {
    const now = chat();
    if (!idle() || !box() || now === null) {
      if (idle() && !box()) here = null;
      return;
    }
    const words = box().value;
    if (now === here && box() === area) {
      // The page itself empties the box, and puts words back that could not be sent.
      if (words !== (drafts.get(now) ?? "")) keep(now, words);
      return;
    }
    const before = here;
    here = now;
    area = box();
    if (sent && before !== null) {
      // The first message has made this chat out of the new one; what was written since is its.
      sent = false;
      keep(before, "");
      keep(now, words);
    } else if (words && (before === null || words === asking)) {
      keep(now, words); // written before the page was still, or put back
    } else if (words !== (drafts.get(now) ?? "")) {
      write(drafts.get(now) ?? "");
    }
  };
  document.addEventListener("input", event => {
    if (event.target !== box() || here === null) return;
    // The page may have changed since it was last still; words of an incognito chat stay with it.
    keep(here === INCOGNITO ? here : chat() ?? here, event.target.value);
  }, true);
  const asked = () => {
    sent = !new URLSearchParams(location.search).has("c");
    asking = box()?.value;
    if (here !== null) keep(here, "");
  };
  addEventListener("popstate", () => { sent = false; });
  document.addEventListener("keydown", event => {
    if (event.target === box() && event.key === "Enter" && !event.shiftKey) asked();
  }, true);
  document.addEventListener("click", event => {
    if (event.target.closest?.(".st-key-wipe-yes")) {
      drafts.clear();
      sessionStorage.removeItem(STORED);
    } else if (event.target.closest?.('[data-testid="stChatInputSubmitButton"]')) asked();
    else if (event.target.closest?.('[data-testid="stSidebar"]')) sent = false;
  }, true);
  new MutationObserver(look).observe(document.body, {
    childList: true, subtree: true, attributes: true, attributeFilter: ["data-test-script-state"],
  });
  look();
})();
