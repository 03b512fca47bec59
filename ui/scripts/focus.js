// Where the keyboard is after a click that replaces what was clicked: in the editor that it opened,
// or on the button that undoes it. Escape closes an editor, and a page of a list and a note begin at
// their top. The chat looks after its own (chat.js).
(() => {
  if (window.memchatFocus) return;
  window.memchatFocus = true;
  const LONGEST = 15000; // milliseconds in which the page may still be drawn anew
  const UNDO = '.st-key-undo-bar [class*="st-key-undo-row-"]';
  const undoRow = () => /st-key-undo-row-\d+/.exec(document.querySelector(UNDO)?.className)?.[0];
  // The button that undoes what was just done, and not what was done before.
  const newUndo = () => {
    const before = undoRow();
    return () => (undoRow() === before ? null : document.querySelector(`${UNDO} button`));
  };
  const NEXT = [
    [/st-key-(?:accept|reject)-(?:\d+|chosen|chat-\d+)(?![\w-])/, () => newUndo()],
    [/st-key-delete-note/, () => newUndo()],
    [/st-key-decide-(\d+)/, id => `.st-key-decided-${id} input`],
    [/st-key-undo-\d+-([a-z]+-\d+)/, key => `:is(.st-key-${key}, .memchat-${key}) button`],
    [/st-key-(?:edit-note|notes-add)/, () => '[class*="st-key-draft-text-"] textarea'],
    [/st-key-(?:save|leave)-note/, () => ".st-key-edit-note button, .st-key-notes-add button"],
  ];
  let wanted = null;
  const look = () => {
    if (wanted && Date.now() > wanted.until) wanted = null;
    const at = wanted?.at;
    const found = typeof at === "function" ? at() : at && document.querySelector(at);
    const now = document.activeElement;
    if (!found || now === found) return;
    if (wanted.met && now !== document.body) return;
    wanted.met = true; // it may be taken away once more, with what stood there before
    found.focus();
    if (found.matches("textarea")) found.setSelectionRange(found.value.length, found.value.length);
  };
  const want = at => { wanted = { at, met: false, until: Date.now() + LONGEST }; };
  const closed = button => {
    // An editor was saved or left: back to the button that opened it.
    const id = /st-key-item-(\d+)/.exec(button.closest('[class*="st-key-item-"]')?.className ?? "");
    if (!id || !button.closest('form, [data-testid="stForm"]')) return;
    const kept = button.textContent.trim() !== "Cancel";
    want(kept ? newUndo() : `.st-key-decide-${id[1]} button`);
  };
  const leave = event => { if (!event.repeat) wanted = null; };
  for (const moved of ["keydown", "pointerdown"]) document.addEventListener(moved, leave, true);
  document.addEventListener("click", event => {
    const button = event.target.closest?.("button");
    if (!button) return;
    if (button.closest('.st-key-next, .st-key-before, .st-key-all-notes, [class*="st-key-note-"]')) {
      document.querySelector(".stMain")?.scrollTo({ top: 0 });
    }
    closed(button);
    const name = button.closest('[class*="st-key-"]')?.className ?? "";
    for (const [key, at] of NEXT) {
      const found = key.exec(name);
      if (found) want(at(found[1]));
    }
  }, true);
  document.addEventListener("keydown", event => {
    // Enter in a box of a form presses its first button without a click.
    if (event.key !== "Enter" || event.isComposing || !event.target.matches("input")) return;
    const button = event.target.closest('[data-testid="stForm"]')
      ?.querySelector('[data-testid="stFormSubmitButton"] button');
    if (button) closed(button);
  }, true);
  document.addEventListener("keydown", event => {
    const field = event.target;
    if (event.key !== "Escape" || field.getAttribute?.("aria-expanded") === "true") return;
    const editor = field.closest?.('[data-testid="stForm"]');
    const left = [...(editor?.querySelectorAll("button") ?? [])]
      .find(button => button.textContent.trim() === "Cancel");
    if (!left || document.querySelector('[data-baseweb="popover"], [data-baseweb="calendar"]')) return;
    event.preventDefault();
    event.stopPropagation();
    left.click();
  }, true);
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
})();
