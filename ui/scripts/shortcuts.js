// Single keys for what is done most (keyboard.py lists them). They do nothing while a person types
// in a box or a dialog is open, nor together with Ctrl, Alt or Cmd, which belong to the browser. What
// has a key names it when the pointer rests there.
(() => {
  if (window.memchatShortcuts) return;
  window.memchatShortcuts = true;
  const LONGEST = 15000; // milliseconds in which a box that was asked for may still be drawn
  const TWICE = 1500; // milliseconds in which an answered proposal may still be drawn
  const NEW = ".st-key-new button";
  const LIST = ".st-key-keyboard button";
  const MESSAGE = "#memchat-message";
  const MEMORIES = ".st-key-search-memories input";
  const NOTES = ".st-key-notes-words input";
  const CHATS = ".st-key-search-chats input";
  const find = at => document.querySelector(at);
  let wanted = null;
  const look = () => {
    if (wanted && Date.now() > wanted.until) wanted = null;
    const box = wanted && find(wanted.at);
    if (!box || box.disabled || box.getBoundingClientRect().width === 0) return;
    wanted = null;
    box.focus();
    if (box.matches("textarea")) box.setSelectionRange(box.value.length, box.value.length);
    else box.select();
  };
  const focus = at => { wanted = { at, until: Date.now() + LONGEST }; look(); };
  const click = at => find(at)?.click();
  // In the inbox the first proposal is answered; one that was just answered is still drawn for a
  // moment, and is not answered twice.
  let answered = { item: "", until: 0 };
  const forget = () => {
    if (answered.item && !find(`.${answered.item}`)) answered.item = "";
  };
  const answer = how => {
    const item = find('[class*="st-key-item-"]');
    const button = item?.querySelector(`[class*="st-key-${how}-"] button`);
    const name = /st-key-item-\d+/.exec(item?.className)?.[0];
    if (!button || (name === answered.item && Date.now() < answered.until)) return;
    if (how !== "decide") answered = { item: name, until: Date.now() + TWICE };
    button.click();
  };
  const KEYS = {
    n: () => { click(NEW); focus(MESSAGE); },
    s: () => {
      for (const at of [MEMORIES, NOTES]) if (find(at)) return focus(at);
      click('[data-testid="stExpandSidebarButton"]'); // there while the sidebar is folded
      focus(CHATS);
    },
    m: () => {
      if (!find(MESSAGE)) click('[data-testid="stSidebarNavLink"]');
      focus(MESSAGE);
    },
    "?": () => click(LIST),
    k: () => answer("accept"),
    x: () => answer("reject"),
    e: () => answer("decide"),
  };
  const BOXES = 'input:not([type="checkbox"]):not([type="radio"]), textarea, select, ' +
    '[contenteditable="true"], [role="combobox"], [role="listbox"], [role="dialog"]';
  // Where the keyboard writes another script, the key in the place of the Latin letter counts.
  const letter = event => /^[\x21-\x7e]$/.test(event.key) ? event.key.toLowerCase()
    : event.code.replace(/^Key/, "").toLowerCase();
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
    if (event.target.closest?.(BOXES) || find('[role="dialog"]')) return;
    const act = KEYS[letter(event)];
    if (!act) return;
    event.preventDefault();
    act();
  });
  const NAMED = [[NEW, "n"], [CHATS, "s"], [MEMORIES, "s"], [NOTES, "s"], [MESSAGE, "m"], [LIST, "?"]];
  const name = () => {
    for (const [at, key] of NAMED) {
      const found = find(at);
      if (!found || found.getAttribute("aria-keyshortcuts") === key) continue;
      found.setAttribute("aria-keyshortcuts", key);
      found.title = `${found.placeholder ?? found.textContent.trim()} (${key.toUpperCase()})`;
    }
  };
  new MutationObserver(() => { name(); look(); forget(); }).observe(document.body, {
    childList: true, subtree: true, attributes: true, attributeFilter: ["aria-expanded"],
  });
  name();
})();
