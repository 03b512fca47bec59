// Where the transcript stands: a message that is sent is scrolled to, a button leads down to the
// latest turn, and a message or a passage of a note that was looked for is landed on.
(() => {
  if (window.memchatTranscript) return;
  window.memchatTranscript = true;
  const FAR = 240; // pixels above the end from which the button is offered
  const LANDING = [0, 150, 400, 800, 1300, 2000, 3000]; // milliseconds: what is above may still grow
  const main = () => document.querySelector(".stMain");
  const turns = () => document.querySelectorAll('[class*="st-key-said-"]');
  const toEnd = () => main()?.scrollTo({ top: main().scrollHeight });
  const down = document.createElement("button");
  down.id = "memchat-down";
  down.type = "button";
  down.textContent = "↓";
  down.setAttribute("aria-label", "To the latest message");
  down.hidden = true;
  down.addEventListener("click", toEnd);
  document.body.append(down);
  let sent = -1;
  let landing = [];
  const stay = () => { landing.forEach(clearTimeout); landing = []; };
  const place = () => {
    const page = main();
    const left = page ? page.scrollHeight - page.scrollTop - page.clientHeight : 0;
    down.hidden = !(turns().length && left > FAR);
    if (down.hidden) return;
    down.style.colorScheme = getComputedStyle(document.querySelector(".stApp")).colorScheme;
    const box = page.getBoundingClientRect();
    const input = document.querySelector('[data-testid="stBottom"]')?.getBoundingClientRect();
    down.style.left = `${box.left + box.width / 2}px`;
    down.style.bottom = `${innerHeight - (input?.top ?? innerHeight) + 12}px`;
  };
  const look = () => {
    if (sent >= 0 && turns().length && turns()[turns().length - 1] !== last) {
      sent = -1;
      LANDING.slice(0, 3).forEach(after => landing.push(setTimeout(toEnd, after)));
    }
    const marked = document.querySelector('[class*="-marked"]:not([data-landed])');
    if (marked) {
      marked.dataset.landed = "";
      stay();
      const tall = marked.offsetHeight > innerHeight / 2;
      const show = () => marked.scrollIntoView({ block: tall ? "start" : "center" });
      LANDING.forEach(after => landing.push(setTimeout(show, after)));
    }
    place();
  };
  let last = null;
  const asked = () => { sent = turns().length; last = turns()[sent - 1] ?? null; };
  document.addEventListener("keydown", event => {
    if (event.key === "Enter" && !event.shiftKey &&
        event.target.matches('[data-testid="stChatInputTextArea"]')) asked();
  }, true);
  document.addEventListener("click", event => {
    const sends = '[data-testid="stChatInputSubmitButton"], .st-key-answers button';
    if (event.target.closest?.(sends)) asked();
  }, true);
  for (const moved of ["wheel", "touchmove", "pointerdown", "keydown"])
    document.addEventListener(moved, stay, { capture: true, passive: true });
  document.addEventListener("scroll", place, { capture: true, passive: true });
  addEventListener("resize", place);
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
})();
