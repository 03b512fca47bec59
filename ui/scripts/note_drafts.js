// What was written into the form of a note and not saved stays while other pages are looked at, and
// over a reload. It is held by this browser tab until it is saved, left, or the tab is closed. Where
// the note was changed in the meantime, the form says so.
(() => {
  if (window.memchatNoteDrafts) return;
  window.memchatNoteDrafts = true;
  const STORED = "memchat note drafts"; // in the session storage of this tab
  const FIELD = '[class*="st-key-draft-"]';
  const drafts = new Map(JSON.parse(sessionStorage.getItem(STORED) ?? "[]"));
  const store = () => {
    try {
      sessionStorage.setItem(STORED, JSON.stringify([...drafts]));
    } catch {
      sessionStorage.removeItem(STORED); // too long for it: the drafts stay in the page's memory
    }
  };
  const boxes = () => document.querySelectorAll(`${FIELD} :is(input, textarea)`);
  const space = () => new URLSearchParams(location.search).get("app") ?? "";
  const place = box =>
    `${/st-key-(draft-[\w-]+)/.exec(box.closest(FIELD).className)[1]} ${space()}`;
  const idle = () => document.querySelector(".stApp")?.dataset.testScriptState === "notRunning";
  let saving = []; // the drafts of a form that was sent, until it is closed
  const stale = new Set(); // the drafts of texts that were changed since
  const note = () => document.querySelector(".memchat-stale-draft")?.dataset.note;
  const write = (box, words) => {
    const kind = box.matches("textarea") ? HTMLTextAreaElement : HTMLInputElement;
    Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(box, words);
    box.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const forget = places => {
    for (const one of places) {
      drafts.delete(one);
      stale.delete(one);
    }
    store();
  };
  const look = () => {
    if (!idle()) return;
    const there = [...boxes()];
    if (saving.length && !there.some(box => saving.includes(place(box)))) {
      forget(saving);
      saving = [];
    }
    for (const box of there) {
      // A run that comes late may put the note's own words into a box that was filled already.
      const drawn = box.dataset.drafted !== undefined;
      if (drawn && (box === document.activeElement || saving.length)) continue;
      box.dataset.drafted = "";
      const draft = drafts.get(place(box));
      if (draft === undefined || draft.words === box.value) continue;
      if (draft.note !== note()) stale.add(place(box));
      write(box, draft.words);
    }
    document.body.classList.toggle("memchat-stale", there.some(box => stale.has(place(box))));
  };
  document.addEventListener("input", event => {
    if (!event.target.closest?.(FIELD)) return;
    saving = [];
    const where = place(event.target);
    const over = stale.has(where) ? drafts.get(where).note : note();
    drafts.set(where, { words: event.target.value, note: over });
    store();
  }, true);
  document.addEventListener("click", event => {
    if (event.target.closest?.(".st-key-save-note")) saving = [...boxes()].map(place);
    else if (event.target.closest?.(".st-key-leave-note")) forget([...boxes()].map(place));
    else if (event.target.closest?.(".st-key-delete-note")) {
      const note = new URLSearchParams(location.search).get("note");
      forget(["title", "text"].map(box => `draft-${box}-${note} ${space()}`));
    } else if (event.target.closest?.(".st-key-wipe-yes, .st-key-sign-out")) {
      forget([...drafts.keys()]);
      sessionStorage.removeItem("memchat drafts"); // those of the chats
    }
    else saving = []; // another page may be on its way, and the form was not saved
  }, true);
  addEventListener("popstate", () => { saving = []; });
  new MutationObserver(look).observe(document.body, {
    childList: true, subtree: true, attributes: true, attributeFilter: ["data-test-script-state"],
  });
  look();
})();
