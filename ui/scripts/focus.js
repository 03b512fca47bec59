// Where the keyboard is after a click that replaces what was clicked: in the editor that it opened,
// or on the button that undoes it. Escape closes an editor of a message, Ctrl+Enter sends it, and a
// page of a list begins at its top.
(() => {
  if (window.memchatFocus) return;
  window.memchatFocus = true;
  const LONGEST = 4000; // milliseconds in which the page may still be drawn anew
  const NEXT = [
    [/st-key-change-(\d+)/, id => `.st-key-value-${id} textarea`],
    [/st-key-forget-(\d+)/, id => `.st-key-unforget-${id} button`],
    [/st-key-unforget-(\d+)/, id => `.st-key-forget-${id} button`],
    [/st-key-edit-(\d+)/, n => `.st-key-edited-${n} textarea`],
    [/st-key-forget-told-(\d+-\d+)/, key => `.st-key-untold-${key} button`],
    [/st-key-untold-(\d+-\d+)/, key => `.st-key-forget-told-${key} button`],
    [/st-key-(?:accept|reject)-(?:\d+|chosen|chat-\d+)(?![\w-])/,
      () => '.st-key-undo-bar [class*="st-key-undo-row-"] button'],
    [/st-key-add(?![\w-])/, () => ".st-key-key-new input"],
  ];
  const MESSAGE = '[data-testid="stChatInputTextArea"]';
  let wanted = null;
  const look = () => {
    if (wanted && Date.now() > wanted.until) wanted = null;
    const found = wanted && document.querySelector(wanted.at);
    const at = document.activeElement;
    if (!found || at === found || (wanted.later && at !== document.body) || (wanted.met && at !== document.body)) return;
    wanted.met = true; // it may be taken away once more, with what stood there before
    found.focus();
    if (found.matches("textarea")) found.setSelectionRange(found.value.length, found.value.length);
  };
  const want = (at, later = false) => {
    wanted = { at, later, met: false, until: Date.now() + LONGEST };
  };
  const closed = button => {
    // An editor was saved or left: back to the button that opened it.
    const row = button.closest('[class*="st-key-row-"], [class*="st-key-said-"]');
    const id = /st-key-(row|said)-(\d+)/.exec(row?.className ?? "");
    if (!id || !button.closest('form, [data-testid="stForm"], .st-key-unedit')) return;
    want(id[1] === "row" ? `.st-key-change-${id[2]} button` : `.st-key-edit-${id[2]} button`);
  };
  const leave = () => { wanted = null; };
  for (const moved of ["keydown", "pointerdown"]) document.addEventListener(moved, leave, true);
  document.addEventListener("click", event => {
    const button = event.target.closest?.("button");
    if (!button) return;
    if (button.closest(".st-key-next, .st-key-before")) {
      document.querySelector(".stMain")?.scrollTo({ top: 0 });
    }
    closed(button);
    // Sent by the keyboard: on to the message box, once the editor is gone; an error keeps it open.
    if (event.detail === 0 && button.closest(".st-key-resend")) want(MESSAGE, true);
    const name = button.closest('[class*="st-key-"]')?.className ?? "";
    for (const [key, at] of NEXT) {
      const found = key.exec(name);
      if (found) want(at(found[1]));
    }
  }, true);
  document.addEventListener("keydown", event => {
    const field = event.target;
    if (event.key !== "Escape" || field.getAttribute?.("aria-expanded") === "true") return;
    const editor = field.closest?.('[data-testid="stForm"], [class*="st-key-said-"]');
    const left = [...(editor?.querySelectorAll("button") ?? [])]
      .find(button => button.textContent.trim() === "Cancel");
    if (!left || document.querySelector('[data-baseweb="popover"], [data-baseweb="calendar"]')) return;
    event.preventDefault();
    event.stopPropagation();
    left.click();
  }, true);
  document.addEventListener("keydown", event => {
    // In the bubbling phase: Streamlit has taken the words by then.
    const editor = event.target.closest?.('[class*="st-key-said-"]');
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) {
      editor?.querySelector(".st-key-resend button")?.click();
    }
  });
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
})();
