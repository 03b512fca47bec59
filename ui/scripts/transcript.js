// A message or a passage of a note that was looked for is landed on. Only the page's main part is
// scrolled: what is asked to come into sight by the browser may slide the whole app.
(() => {
  if (window.memchatTranscript) return;
  window.memchatTranscript = true;
  const LANDING = [0, 150, 400, 800, 1300, 2000, 3000]; // milliseconds: what is above may still grow
  let landing = [];
  const stay = () => { landing.forEach(clearTimeout); landing = []; };
  const show = marked => {
    const main = marked.closest(".stMain");
    if (!main) return;
    const free = main.clientHeight - marked.offsetHeight;
    const above = free > main.clientHeight / 2 ? free / 2 : 80;
    main.scrollTop += marked.getBoundingClientRect().top - main.getBoundingClientRect().top - above;
  };
  const look = () => {
    const marked = document.querySelector('[class*="-marked"]:not([data-landed])');
    if (!marked) return;
    marked.dataset.landed = "";
    stay();
    LANDING.forEach(after => landing.push(setTimeout(show, after, marked)));
  };
  for (const moved of ["wheel", "touchmove", "pointerdown", "keydown"])
    document.addEventListener(moved, stay, { capture: true, passive: true });
  new MutationObserver(look).observe(document.body, {
    childList: true, subtree: true, attributes: true, attributeFilter: ["class"],
  });
  look();
})();
