// What was written and not sent stays with its chat while other chats and pages are looked at. It is
// held in this page's memory alone, and so is what was written in an incognito chat.
(() => {
  if (window.memchatDrafts) return;
  window.memchatDrafts = new Map();
  const drafts = window.memchatDrafts;
  const box = () => document.querySelector('[data-testid="stChatInputTextArea"]');
  const idle = () => document.querySelector(".stApp")?.dataset.testScriptState === "notRunning";
  const chat = () => {
    if (document.querySelector(".st-key-head-incognito")) return "incognito";
    return document.querySelector(".st-key-head") ? `chat ${location.search}` : null;
  };
  let here = null;
  let sent = false;
  const write = words => {
    const area = box();
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
    if (now === here) return;
    const before = here;
    here = now;
    if (sent && before !== null) {
      // The first message has made this chat out of the new one; what was written since is its.
      sent = false;
      drafts.delete(before);
      if (box().value) drafts.set(now, box().value);
    } else if (box().value !== (drafts.get(now) ?? "") && (before !== null || !box().value)) {
      write(drafts.get(now) ?? "");
    }
  };
  document.addEventListener("input", event => {
    if (event.target !== box() || here === null) return;
    if (event.target.value) drafts.set(here, event.target.value);
    else drafts.delete(here);
  }, true);
  const asked = () => { sent = true; if (here !== null) drafts.delete(here); };
  document.addEventListener("keydown", event => {
    if (event.target === box() && event.key === "Enter" && !event.shiftKey) asked();
  }, true);
  document.addEventListener("click", event => {
    if (event.target.closest?.('[data-testid="stChatInputSubmitButton"]')) asked();
    else if (event.target.closest?.('[data-testid="stSidebar"]')) sent = false;
  }, true);
  new MutationObserver(look).observe(document.body, {
    childList: true, subtree: true, attributes: true, attributeFilter: ["data-test-script-state"],
  });
  look();
})();
