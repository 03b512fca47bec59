// Draws the formulas of replies: Streamlit keeps MathML out of the page's HTML, so it comes as data
// (reply_html.py made it, and left only how it is drawn). Until then the formula's source is shown.
(() => {
  if (window.memchatFormulas) return;
  window.memchatFormulas = true;
  const draw = () => {
    for (const span of document.querySelectorAll(".memchat-math[data-mathml]")) {
      span.innerHTML = span.dataset.mathml;
      delete span.dataset.mathml;
    }
  };
  new MutationObserver(draw).observe(document.body, { childList: true, subtree: true });
  draw();
})();
