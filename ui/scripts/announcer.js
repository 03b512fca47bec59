// Says to a screen reader, once, what the page puts into its announcer: Streamlit draws its elements
// anew, and a live region must stay the same element.
(() => {
  if (window.memchatAnnouncer) return;
  window.memchatAnnouncer = true;
  const region = document.createElement("div");
  region.id = "memchat-status";
  region.className = "memchat-hidden";
  region.setAttribute("role", "status");
  region.setAttribute("aria-live", "polite");
  document.body.append(region);
  const say = () => {
    const words = document.querySelector(".st-key-announcer")?.textContent.trim();
    if (words !== undefined && region.textContent !== words) region.textContent = words;
  };
  new MutationObserver(say).observe(document.body, {
    childList: true, subtree: true, characterData: true,
  });
  say();
})();
