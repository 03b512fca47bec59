// Shortcuts, each Ctrl or Alt with one key (keyboard.py lists them): a letter alone is always a letter.
// They do nothing while a dialog is open. What has a shortcut names it when the pointer rests there.
(() => {
  if (window.memchatShortcuts) return;
  window.memchatShortcuts = true;
  const LONGEST = 15000; // milliseconds in which a box that was asked for may still be drawn
  const TWICE = 1500; // milliseconds in which an answered proposal may still be drawn
  const NEW = ".st-key-new button";
  const LIST = ".st-key-shortcuts button";
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
  const search = () => {
    for (const at of [MEMORIES, NOTES]) if (find(at)) return focus(at);
    click('[data-testid="stExpandSidebarButton"]'); // there while the sidebar is folded
    focus(CHATS);
  };
  const KEYS = {
    "Alt+N": () => { click(NEW); focus(MESSAGE); },
    "Control+K": search,
    "Alt+M": () => {
      if (!find(MESSAGE)) click("nav a.memchat-link");
      focus(MESSAGE);
    },
    "Control+/": () => click(LIST),
    "Alt+Y": () => answer("accept"),
    "Alt+X": () => answer("reject"),
    "Alt+E": () => answer("decide"),
  };
  const mac = /^Mac|iP(hone|ad)/.test(navigator.platform);
  const pressed = event => {
    const ctrl = mac ? event.metaKey : event.ctrlKey;
    if (ctrl === event.altKey || event.getModifierState("AltGraph")) return null;
    // Alt writes other signs on some keyboards, and some write another script: the place counts.
    const key = /^[\x21-\x7e]$/.test(event.key) ? event.key : event.code.replace(/^Key/, "");
    return `${ctrl ? "Control" : "Alt"}+${key.toUpperCase()}`;
  };
  document.addEventListener("keydown", event => {
    const act = KEYS[pressed(event)];
    if (!act || event.repeat || event.isComposing || find('[role="dialog"]')) return;
    event.preventDefault();
    act();
  });
  const NAMED = [
    [NEW, "Alt+N"], [CHATS, "Control+K"], [MEMORIES, "Control+K"], [NOTES, "Control+K"],
    [MESSAGE, "Alt+M"], [LIST, "Control+/"],
  ];
  const name = () => {
    for (const [at, key] of NAMED) {
      const found = find(at);
      if (!found || found.getAttribute("aria-keyshortcuts") === key) continue;
      found.setAttribute("aria-keyshortcuts", key);
      const shown = key.replace("Control", mac ? "⌘" : "Ctrl").replace("Alt", mac ? "⌥" : "Alt");
      found.title = `${found.placeholder ?? found.textContent.trim()} (${shown.replace("+", " + ")})`;
    }
  };
  new MutationObserver(() => { name(); look(); forget(); }).observe(document.body, {
    childList: true, subtree: true, attributes: true, attributeFilter: ["aria-expanded"],
  });
  name();
})();
