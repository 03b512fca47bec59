// The chat: what was said, a reply as it comes in, and the box to write in. The server says what is
// there (ui/parts.py); a reply that comes in is heard from its own address (ui/live.py). What is
// whole is not touched again, so that it can be marked and copied meanwhile.
const STORED = "memchat drafts"; // in the session storage of this tab
const INCOGNITO = "incognito"; // what is written there stays in this page's memory alone
const UNHEARD = 5000; // milliseconds after which something that was done is told once more
const FAR = 240; // pixels above the end from which a button leads down
const rooms = new WeakMap();
const drafts = new Map(JSON.parse(sessionStorage.getItem(STORED) ?? "[]"));
let count = 0; // of what was done in this page

const keep = (chat, draft) => {
  if (draft.words || draft.queue.length || draft.files.length) drafts.set(chat, draft);
  else drafts.delete(chat);
  const stored = [...drafts].filter(([where]) => where !== INCOGNITO);
  try {
    sessionStorage.setItem(STORED, JSON.stringify(stored));
  } catch {
    sessionStorage.removeItem(STORED); // too long for it: the drafts stay in the page's memory
  }
};
document.addEventListener("click", event => {
  if (event.target.closest?.(".st-key-wipe-yes, .st-key-sign-out")) drafts.clear(); // note_drafts.js: the stored ones
}, true);
const draftOf = chat => drafts.get(chat) ?? { words: "", queue: [], files: [] };

const make = (tag, name, text) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  if (tag === "button") made.type = "button";
  return made;
};

// The only place where HTML is put into the page: blocks that reply_html.py made.
const drawBlocks = (box, blocks) => {
  const drawn = box.memchatBlocks ??= [];
  blocks.forEach((html, n) => {
    if (drawn[n]?.html === html) return;
    const block = make("div", "memchat-block");
    block.innerHTML = html;
    if (drawn[n]) drawn[n].block.replaceWith(block);
    else box.append(block);
    drawn[n] = { html, block };
  });
  for (const gone of drawn.splice(blocks.length)) gone.block.remove();
};
const replyBox = () => {
  const box = make("div", "memchat-reply");
  box.dir = "auto";
  return box;
};

class Room {
  constructor(parent) {
    this.root = make("div", "memchat-chat");
    this.top = make("div", "memchat-part");
    this.turns = make("div", "memchat-turns");
    this.below = make("div", "memchat-part");
    this.form = make("form", "memchat-composer");
    this.queued = make("div", "memchat-queue");
    this.files = make("div", "memchat-files");
    this.chooser = make("input");
    this.clip = make("button", "memchat-plain", "+");
    this.box = make("textarea");
    this.button = make("button", "memchat-send");
    this.down = make("button", "memchat-down", "↓");
    this.box.id = "memchat-message";
    this.box.rows = 1;
    this.box.placeholder = "Write a message";
    this.box.setAttribute("aria-label", "Write a message");
    this.down.setAttribute("aria-label", "To the latest message");
    this.clip.setAttribute("aria-label", "Attach files");
    this.chooser.type = "file";
    this.chooser.multiple = this.chooser.hidden = true;
    const line = make("div", "memchat-box");
    this.model = make("button", "memchat-plain memchat-model");
    line.append(this.clip, this.box, this.model, this.button);
    this.form.append(this.down, this.queued, this.files, line, this.chooser);
    this.root.append(this.top, this.turns, this.below, this.form);
    parent.append(this.root);
    this.main = parent.closest(".stMain");
    this.page = parent.closest('[data-testid="stMainBlockContainer"]');
    this.nodes = new Map();
    this.data = null;
    this.pending = null; // a message that the server has not said that it took
    this.told = new Map(); // what was done and not heard yet, by its number
    this.pinned = true; // the end is to stay in sight
    this.height = 0;
    this.off = new AbortController();
    this.listen();
  }

  on(target, kinds, act, capture = false) {
    const options = { capture, passive: kinds !== "keydown", signal: this.off.signal };
    for (const kind of kinds.split(" ")) target.addEventListener(kind, act, options);
  }

  listen() {
    this.form.addEventListener("submit", event => { event.preventDefault(); this.submit(); });
    this.button.addEventListener("click", () => (this.stops ? this.stop() : this.submit()));
    this.model.addEventListener("click", () => this.tell("model"));
    this.down.addEventListener("click", () => { this.pinned = true; this.follow(); });
    this.box.addEventListener("input", () => { this.grow(); this.note(); this.sign(); });
    this.box.addEventListener("keydown", event => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.submit();
    });
    this.clip.addEventListener("click", () => this.chooser.click());
    this.chooser.addEventListener("change", () => {
      this.attach([...this.chooser.files]);
      this.chooser.value = "";
    });
    const take = event => {
      const given = event.clipboardData ?? event.dataTransfer;
      if (!given?.types.includes("Files")) return;
      event.preventDefault(); // else the browser would open the file in the place of the app
      if (event.type !== "dragover") this.attach([...given.files]);
    };
    this.box.addEventListener("paste", take);
    for (const kind of ["dragover", "drop"]) {
      this.main.addEventListener(kind, take, { signal: this.off.signal });
    }
    this.on(document, "keydown", event => this.escape(event));
    this.on(document, "visibilitychange", () => this.hear());
    this.on(this.main, "scroll", () => this.scrolled());
    this.on(this.main, "wheel touchmove", event => {
      const up = event.type === "touchmove" || event.deltaY < 0;
      if (up && this.main.scrollHeight > this.main.clientHeight) this.pinned = false;
    });
    this.sizes = new ResizeObserver(() => { this.lay(); this.follow(); });
    for (const one of [this.main, this.page, this.root, this.form]) this.sizes.observe(one);
  }

  leave() {
    this.off.abort();
    this.sizes.disconnect();
    this.source?.close();
    clearInterval(this.again);
    this.page.style.paddingBottom = this.main.style.scrollPaddingBottom = "";
  }

  // --- what the server says

  show(data, tell) {
    this.send = tell;
    const before = this.data;
    this.data = data;
    count = Math.max(count, data.taken);
    for (const [n] of this.told) if (n <= data.taken) this.told.delete(n);
    const taken = this.pending && this.pending.n <= data.taken ? this.pending : null;
    const moved = before?.chat !== data.chat;
    if (moved && before) this.move(before.chat, data.chat, taken);
    if (taken) this.pending = null;
    if (moved || !data.answering) this.halted = null;
    if (moved && !(taken && before)) this.pinned = true;
    this.drawTurns(data, moved && !taken);
    this.drawParts(this.top, data.top);
    this.drawParts(this.below, data.below);
    if (moved) this.read();
    if (data.unsent !== null) this.back(data.unsent);
    if (taken || data.unsent !== null) this.sent = [];
    this.model.textContent = data.model.split("/").at(-1);
    this.model.setAttribute("aria-label", `Another model than ${data.model}`);
    this.model.disabled = data.answering;
    this.waiting();
    this.sign();
    this.hear();
    this.lay();
    if (data.turns.some(turn => turn.marked)) this.pinned = false;
    this.follow();
    if (moved) this.focus();
    this.next();
  }

  move(from, to, taken) {
    // The first message has made a chat out of the new one: what was written since is its.
    if (!taken || !from.endsWith("/new")) return;
    const written = draftOf(from);
    keep(from, { words: "", queue: [], files: [] });
    keep(to, written);
  }

  tell(key, words, files = []) {
    const did = { n: ++count, key };
    if (words !== undefined) did.words = words;
    if (files.length) did.files = files.map(file => file.key);
    this.told.set(did.n, did);
    // All that is not heard yet: what is sent last takes the place of what was sent before it.
    const send = () => this.send([...this.told.values()]);
    send();
    clearInterval(this.again);
    this.again = setInterval(() => {
      if (this.told.size) send();
      else clearInterval(this.again);
    }, UNHEARD);
    return did.n;
  }

  // --- the turns

  drawTurns(data, fresh) {
    if (fresh) {
      this.turns.replaceChildren();
      this.nodes.clear();
      this.coming = null;
    }
    const last = data.turns.at(-1);
    if (this.coming && !data.answering && last?.who === "model" && !this.nodes.has(last.key)) {
      this.coming.classList.remove("memchat-coming");
      this.nodes.set(last.key, this.coming); // what came in becomes the reply, block by block
      this.coming = null;
    } else if (this.coming && !data.answering && !this.pending) {
      this.coming.remove();
      this.coming = null;
    }
    const keys = new Set(data.turns.map(turn => turn.key));
    for (const [key, node] of this.nodes) {
      if (keys.has(key)) continue;
      node.remove();
      this.nodes.delete(key);
    }
    if (!this.pending) this.own?.remove();
    let at = this.turns.firstChild;
    for (const turn of data.turns) {
      let node = this.nodes.get(turn.key);
      if (!node) this.nodes.set(turn.key, node = make("article"));
      if (node !== at) this.turns.insertBefore(node, at);
      at = node.nextSibling;
      this.drawTurn(node, turn);
    }
    for (const change of this.turns.querySelectorAll('[data-key^="edit-"]')) {
      change.disabled = data.answering;
    }
    if (data.answering) this.expect();
  }

  drawTurn(node, turn) {
    const drawn = JSON.stringify(turn);
    if (node.memchatDrawn === drawn) return;
    const before = JSON.parse(node.memchatDrawn ?? "{}");
    node.memchatDrawn = drawn;
    // An editor that is open keeps what is typed in it, whatever comes in beside it.
    const same = ["text", "editing", "error"].every(one => before[one] === turn[one]);
    if (node.memchatEdited && same) return;
    node.memchatEdited = false;
    const kind = turn.who === "you" ? "said" : "answer";
    node.className = `memchat-${kind}${turn.marked ? ` memchat-${kind}-marked` : ""}`;
    node.dataset.key = turn.key;
    if (!turn.marked) delete node.dataset.landed;
    if (turn.who === "model") {
      this.drawParts(node, [...turn.body, ...turn.under]);
      return;
    }
    const had = document.activeElement?.closest?.(".memchat-row[data-key]");
    const key = had && node.contains(had) ? had.dataset.key : null;
    node.replaceChildren();
    if (turn.marked) node.append(make("small", "", "→ the message that was looked for"));
    if (turn.editing !== undefined) {
      this.edit(node, turn, turn.editing);
      return;
    }
    const words = make("div", "memchat-words", turn.text);
    if (turn.more) words.tabIndex = 0; // it may scroll
    node.append(words);
    const change = make("button", "memchat-plain", "Edit");
    change.dataset.key = `edit-${turn.key.slice(5)}`;
    change.setAttribute("aria-label", `Edit: ${turn.text.slice(0, 80)}`);
    change.addEventListener("click", () => {
      if (turn.edit) this.tell(turn.edit);
      else this.edit(node, turn, turn.text);
    });
    const under = make("div", "memchat-row memchat-under");
    if (turn.more) under.append(this.draw(turn.more));
    if (turn.versions) under.append(this.draw(turn.versions));
    under.append(change);
    node.append(under, ...turn.under.map(part => this.draw(part)));
    if (key) this.stay(node, key);
  }

  edit(node, turn, words) {
    const form = make("form", "memchat-editor");
    const box = make("textarea");
    box.setAttribute("aria-label", "Say it in other words");
    box.value = words;
    box.rows = Math.min(12, words.split("\n").length + 1);
    const send = make("button", "memchat-main", "Send");
    const leave = make("button", "", "Cancel");
    const row = make("div", "memchat-row");
    row.append(send, leave);
    form.append(box);
    if (turn.error) form.append(this.draw({ error: turn.error }));
    form.append(row, make("small", "", turn.hint));
    const go = () => {
      send.disabled = true;
      node.memchatEdited = false;
      node.memchatDrawn = null; // the same words said again are drawn again
      this.pinned = true;
      this.tell(turn.resend, box.value);
      this.focus();
    };
    send.addEventListener("click", go);
    const close = () => {
      node.memchatEdited = false;
      node.memchatDrawn = null;
      if (turn.editing !== undefined) this.tell("unedit");
      this.drawTurn(node, { ...turn, editing: undefined });
      this.focus();
    };
    leave.addEventListener("click", close);
    box.addEventListener("keydown", event => {
      if (event.isComposing) return;
      if (event.key === "Escape") {
        event.stopPropagation();
        close();
      } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) go();
    });
    node.replaceChildren(form);
    node.memchatEdited = true;
    this.pinned = false;
    this.reveal(form);
    box.focus({ preventScroll: true });
    box.setSelectionRange(words.length, words.length);
  }

  // Parts as the server sends them; the blocks of a reply keep their elements.
  drawParts(node, parts) {
    const boxes = [...node.children].filter(one => one.memchatBlocks);
    const made = parts.map(part => {
      if (!part.blocks) return this.draw(part);
      const box = boxes.shift() ?? replyBox();
      drawBlocks(box, part.blocks);
      return box;
    });
    const had = document.activeElement?.closest?.(".memchat-row[data-key]")?.dataset.key;
    let at = node.firstChild;
    for (const one of made) {
      while (at && at !== one && !made.includes(at)) {
        const gone = at;
        at = at.nextSibling;
        gone.remove();
      }
      if (at === one) at = at.nextSibling;
      else node.insertBefore(one, at);
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
    // The button that was pressed is gone: the one that undoes it has the keyboard.
    if (had) this.stay(node, had);
  }

  stay(node, key) {
    node.querySelector(`[data-key="${CSS.escape(key)}"] button:enabled`)?.focus();
  }

  draw(part) {
    if (part.row) {
      const row = make("div", "memchat-row");
      if (part.key) row.dataset.key = part.key;
      row.append(...part.row.map(one => this.draw(one)));
      return row;
    }
    if (part.button !== undefined) {
      const button = make("button", part.plain ? "memchat-plain" : "", part.button);
      button.dataset.key = part.key;
      button.disabled = Boolean(part.off);
      if (part.names) button.setAttribute("aria-label", `${part.button}: ${part.names}`);
      button.addEventListener("click", () => {
        if (part.key.startsWith("say-") || /^re(do|try)/.test(part.key)) this.pinned = true;
        this.tell(part.key);
      });
      return button;
    }
    if (part.copy !== undefined) {
      const button = make("button", "memchat-copy", "Copy");
      button.dataset.text = part.copy;
      return button;
    }
    if (part.told !== undefined) {
      const told = make("div", "memchat-told", part.told);
      told.append(make("small", "", part.note));
      return told;
    }
    if (part.error !== undefined) {
      const error = make("div", "memchat-error", part.error);
      error.setAttribute("role", "alert");
      return error;
    }
    return make("small", "", part.note);
  }

  // --- a reply that comes in

  expect() {
    if (this.coming?.isConnected) return;
    this.coming = make("article", "memchat-answer memchat-coming");
    this.coming.append(replyBox());
    this.turns.append(this.coming);
    this.blocks = [];
    this.last = "";
    drawBlocks(this.coming.firstChild, ["<p><em>Thinking …</em></p>"]);
  }

  hear() {
    const at = document.hidden && !this.data.answering ? "" : this.data.live;
    // One that waits to ask again would be late for a reply.
    const late = this.data.answering && this.source?.readyState !== EventSource.OPEN;
    const closed = this.source?.readyState === EventSource.CLOSED;
    if (this.source?.memchatAt === at && !late && !closed) return;
    this.source?.close();
    this.source = at ? new EventSource(at) : null;
    if (!at) return;
    this.source.memchatAt = at;
    this.source.onmessage = event => this.heard(JSON.parse(event.data));
  }

  heard(came) {
    const mine = this.data.answering && this.data.version === came.version;
    if (came.blocks && mine && this.halted !== came.version) {
      this.expect();
      this.blocks.splice(came.from, Infinity, ...came.blocks);
      this.last = came.last;
      drawBlocks(this.coming.firstChild, [...this.blocks, came.last]);
      this.follow();
    }
    const now = Date.now();
    if (came.version === this.data.version || this.pending) return;
    if (came.version === this.asked && now < this.askedAt + UNHEARD) return;
    this.asked = came.version;
    this.askedAt = now;
    this.tell("look");
  }

  // --- writing

  get empty() {
    return !this.box.value.trim() && !draftOf(this.data.chat).files.length;
  }

  get stops() {
    const comes = this.data?.answering && this.halted !== this.data.version;
    return Boolean(comes) && this.empty;
  }

  submit() {
    const words = this.box.value;
    const draft = draftOf(this.data.chat);
    if (this.empty || draft.files.some(file => !file.key)) return;
    this.box.value = "";
    this.grow();
    const said = { words, files: draft.files };
    draft.words = "";
    draft.files = [];
    this.drawFiles();
    if (this.data.answering || this.pending) {
      draft.queue.push(said);
      keep(this.data.chat, draft);
      this.waiting();
    } else {
      keep(this.data.chat, draft);
      this.say(said);
    }
    this.sign();
    this.box.focus();
  }

  say({ words, files }) {
    this.sent = files;
    this.pinned = true;
    if (!words.trimStart().startsWith("/")) {
      this.own?.remove();
      this.own = make("article", "memchat-said memchat-own");
      this.own.append(make("div", "memchat-words", words.slice(0, 2000)));
      this.own.append(...files.map(file => make("small", "", `Attached: ${file.name} (${file.size})`)));
      this.turns.append(this.own);
      this.expect();
    }
    this.follow();
    this.pending = { n: this.tell("say", words, files) };
  }

  next() {
    const draft = draftOf(this.data.chat);
    if (!draft.queue.length || this.data.answering || this.pending) return;
    if (this.data.below.length) { // the reply before it failed: nothing more is sent by itself
      const waited = draft.queue.splice(0);
      draft.words = [...waited.map(one => one.words), draft.words].filter(Boolean).join("\n\n");
      draft.files.unshift(...waited.flatMap(one => one.files));
      keep(this.data.chat, draft);
      this.read();
      return;
    }
    const said = draft.queue.shift();
    keep(this.data.chat, draft);
    this.say(said);
    this.waiting();
  }

  waiting() {
    const draft = draftOf(this.data.chat);
    this.queued.replaceChildren(...draft.queue.map(({ words, files }, n) => {
      const line = make("div", "memchat-row");
      const drop = make("button", "memchat-plain", "Remove");
      drop.setAttribute("aria-label", `Remove: ${words.slice(0, 80)}`);
      drop.addEventListener("click", () => {
        draft.queue.splice(n, 1);
        files.forEach(file => this.unheld(file));
        keep(this.data.chat, draft);
        this.waiting();
        this.focus();
      });
      line.append(make("small", "", `Sent when the reply is there: ${words.slice(0, 200)}`), drop);
      return line;
    }));
  }

  async attach(files) {
    for (const file of files) {
      const draft = draftOf(this.data.chat);
      const one = { name: file.name, size: "is being read" };
      draft.files.push(one);
      keep(this.data.chat, draft);
      this.drawFiles();
      const at = `${this.data.live}/attach?name=${encodeURIComponent(file.name)}`;
      const failed = () => ({ error: "It could not be read: memchat was not reached." });
      const answer = fetch(at, { method: "POST", body: file }).then(came => came.json());
      Object.assign(one, await answer.catch(failed));
      keep(this.data.chat, draftOf(this.data.chat));
      this.drawFiles();
    }
    this.focus();
  }

  drawFiles() {
    const draft = draftOf(this.data.chat);
    this.files.replaceChildren(...draft.files.map(file => {
      const line = make("div", "memchat-row");
      const drop = make("button", "memchat-plain", "Remove");
      drop.setAttribute("aria-label", `Remove: ${file.name}`);
      drop.addEventListener("click", () => {
        draft.files = draft.files.filter(other => other !== file);
        this.unheld(file);
        keep(this.data.chat, draft);
        this.drawFiles();
        this.focus();
      });
      const told = make("small", "", `${file.name}: ${file.error ?? file.size}`);
      if (file.error) told.setAttribute("role", "alert");
      line.append(told, drop);
      return line;
    }));
    this.sign();
  }

  unheld(file) {
    if (file.key) fetch(`${this.data.live}/attach/${file.key}`, { method: "DELETE" });
  }

  back(words) {
    const draft = draftOf(this.data.chat);
    draft.files.unshift(...(this.sent ?? []));
    draft.words = [words, this.box.value].filter(Boolean).join("\n\n");
    keep(this.data.chat, draft);
    this.read();
  }

  read() {
    this.box.value = draftOf(this.data.chat).words;
    this.grow();
    this.drawFiles();
  }

  note() {
    const draft = draftOf(this.data.chat);
    draft.words = this.box.value;
    keep(this.data.chat, draft);
  }

  sign() {
    this.button.textContent = this.stops ? "Stop" : "Send";
    const unread = draftOf(this.data.chat).files.some(file => !file.key);
    this.button.disabled = !this.stops && (this.empty || unread);
  }

  stop() {
    if (this.halted === this.data.version) return;
    this.halted = this.data.version; // seen at once: what still comes is not drawn
    fetch(`${this.data.live}/stop`, { method: "POST" });
    if (this.last) drawBlocks(this.coming.firstChild, [...this.blocks, this.last.replace(" ▍", "")]);
    this.coming?.append(make("small", "", "Stopped."));
    this.sign();
    this.focus();
  }

  escape(event) {
    if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) return;
    if (document.querySelector('[role="dialog"], [data-baseweb="popover"]')) return;
    if (this.data?.answering) this.stop();
    else if (!event.target.closest?.("form, [data-testid='stForm']")) this.focus();
  }

  focus() {
    if (matchMedia("(pointer: coarse)").matches || document.querySelector('[role="dialog"]')) return;
    this.box.focus({ preventScroll: true });
  }

  grow() {
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight, innerHeight * 0.4)}px`;
  }

  // --- the place

  lay() {
    const at = this.root.getBoundingClientRect();
    this.form.style.left = `${at.left}px`;
    this.form.style.width = `${at.width}px`;
    this.page.style.paddingBottom = `${this.form.offsetHeight + 24}px`;
    this.main.style.scrollPaddingBottom = `${this.form.offsetHeight + 8}px`;
  }

  scrolled() {
    const top = this.main.scrollTop;
    const left = this.main.scrollHeight - top - this.main.clientHeight;
    if (left <= 1) this.pinned = true;
    else if (top < this.height - 1) this.pinned = false;
    this.height = top;
    this.down.hidden = left < FAR || !this.data?.turns.length;
  }

  follow() {
    if (this.pinned) this.main.scrollTop = this.main.scrollHeight;
    this.scrolled();
  }

  reveal(node) {
    const at = node.getBoundingClientRect();
    const below = at.bottom + 16 - this.form.getBoundingClientRect().top;
    const above = this.main.getBoundingClientRect().top + 64 - at.top;
    if (below > 0) this.main.scrollTop += Math.min(below, -above);
    else if (above > 0) this.main.scrollTop -= above;
  }
}

export default function chat({ data, parentElement, setTriggerValue }) {
  let room = rooms.get(parentElement);
  if (!room) rooms.set(parentElement, room = new Room(parentElement));
  room.show(data, did => setTriggerValue("did", did));
  return () => setTimeout(() => { if (!parentElement.isConnected) room.leave(); });
}
