// A list of rows that is drawn as one scrolls. The page holds the rows that were asked for and no
// others; a row that stays is never drawn anew, so that neither the place nor the keyboard is lost.
// What a person does is told to the page as { act, ids }, where ids may be "all".
const NEAR = "600px"; // how far below the window more rows are asked for
const make = (tag, name, text) => {
  const one = document.createElement(tag);
  if (name) one.className = name;
  if (text) one.textContent = text;
  return one;
};
const button = (label, name, does) => {
  const one = make("button", name, label);
  one.type = "button";
  one.addEventListener("click", does);
  return one;
};
const pieces = (box, text) => {
  for (const [words, lit] of text) box.append(lit ? make("mark", "", words) : words);
};

class Rows {
  constructor(root) {
    this.drawn = new Map(); // by id: the row's element and what it was drawn from
    this.chosen = new Set();
    this.all = false; // every row of the list is chosen, also those that are not here
    this.head = make("div", "memchat-rows-head");
    this.list = make("ul", "memchat-rows");
    this.told = make("div", "memchat-told");
    this.more = make("div", "memchat-rows-more");
    this.menu = make("div", "memchat-menu");
    this.menu.popover = "auto";
    this.menu.setAttribute("role", "menu");
    this.menu.addEventListener("keydown", event => this.walk(event));
    this.menu.addEventListener("toggle", event => {
      this.opener?.setAttribute("aria-expanded", event.newState === "open");
    });
    root.append(this.told, this.head, this.list, this.more, this.menu);
    this.watch = new IntersectionObserver(seen => {
      if (seen.some(one => one.isIntersecting)) this.ask();
    }, { root: root.closest(".stMain"), rootMargin: NEAR });
    this.watch.observe(this.more);
  }

  draw(data, tell) {
    Object.assign(this, { data, tell });
    if (data.list !== this.name) {
      this.name = data.list;
      this.chosen.clear();
      this.all = false;
      this.asked = 0;
      this.menu.hidePopover(); // its row stands elsewhere now, or is gone
    }
    this.tellParts(data.parts ?? []);
    const there = new Set(data.rows.map(row => row.id));
    for (const [id, one] of this.drawn) if (!there.has(id)) this.drop(id, one);
    data.rows.forEach((row, at) => this.put(row, at));
    for (const row of data.rows) if (!row.acts) this.chosen.delete(row.id);
    this.mark();
    this.focus();
    // What is seen is looked at anew: the end of a short list may have stayed in sight.
    this.watch.unobserve(this.more);
    this.watch.observe(this.more);
  }

  // What is known, part by part, each sentence with the way to its source.
  tellParts(parts) {
    const from = JSON.stringify(parts);
    if (from === this.partsFrom) return;
    this.partsFrom = from;
    this.told.replaceChildren(...parts.map(part => {
      const box = make("section");
      const words = make("p");
      words.dir = "auto";
      for (const { id, said, day } of part.rows) {
        const source = button(day, "source", () => this.tell({ act: "details", ids: [id] }));
        source.setAttribute("aria-label", `Where this comes from: ${said}`);
        words.append(`${said} `, source, " ");
      }
      box.append(make("h2", "", part.title), words);
      if (part.more) {
        box.append(button(part.more, "quiet", () => this.tell({ act: "group", ids: [part.group] })));
      }
      return box;
    }));
  }

  drop(id, one) {
    one.row.remove();
    this.drawn.delete(id);
    this.chosen.delete(id);
  }

  put(row, at) {
    const from = JSON.stringify(row);
    let one = this.drawn.get(row.id);
    if (one?.from !== from) {
      const fresh = { from, row: this.row(row) };
      if (one?.row.contains(document.activeElement)) this.wanted = row.id;
      one?.row.replaceWith(fresh.row);
      this.drawn.set(row.id, fresh);
      one = fresh;
    }
    if (this.list.children[at] !== one.row) this.list.insertBefore(one.row, this.list.children[at]);
  }

  row(row) {
    const line = make("li", `memchat-row memchat-row-${row.id}${row.faded ? " faded" : ""}`);
    const words = make("div", "words");
    words.dir = "auto";
    pieces(words, row.text);
    const plain = words.textContent;
    if (row.about) words.append(" ", make("small", "", row.about));
    for (const tag of row.tags ?? []) words.append(" ", make("span", "tag", tag));
    if (this.data.bulk.length && row.acts) {
      const box = make("input");
      box.type = "checkbox";
      box.setAttribute("aria-label", `Select: ${plain}`);
      box.addEventListener("change", () => this.choose(row.id, box.checked));
      const label = make("label", "pick");
      label.append(box);
      line.append(label);
    }
    line.append(words);
    if (row.button) {
      const [act, label] = row.button;
      const one = button(label, "quiet", () => this.act(act, [row.id]));
      one.setAttribute("aria-label", `${label}: ${plain}`);
      line.append(one);
    }
    if (row.acts) {
      const dots = button("⋯", "dots", () => this.open(row, dots));
      dots.setAttribute("aria-label", `What can be done: ${plain}`);
      dots.setAttribute("aria-haspopup", "menu");
      dots.setAttribute("aria-expanded", "false");
      line.append(dots);
    }
    return line;
  }

  open(row, dots) {
    if (this.menu.matches(":popover-open")) return this.menu.hidePopover();
    this.opener = dots;
    this.menu.replaceChildren(...row.acts.map(([act, label, danger]) => {
      const item = button(label, danger ? "danger" : "", () => {
        this.menu.hidePopover();
        this.act(act, [row.id]);
      });
      item.setAttribute("role", "menuitem");
      return item;
    }));
    this.menu.showPopover();
    const at = dots.getBoundingClientRect();
    const size = this.menu.getBoundingClientRect();
    const above = at.bottom + size.height > innerHeight;
    this.menu.style.left = `${Math.max(8, at.right - size.width)}px`;
    this.menu.style.top = `${above ? Math.max(8, at.top - size.height) : at.bottom}px`;
    this.menu.firstChild.focus();
  }

  walk(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const items = [...this.menu.children];
    const at = items.indexOf(document.activeElement);
    items[(at + step + items.length) % items.length].focus();
  }

  act(act, ids) {
    this.wanted = ids.length === 1 ? ids[0] : null;
    this.tell({ act, ids });
  }

  focus() {
    // Where the button that was used is gone, its row has the keyboard, or the list where that went.
    const held = document.activeElement;
    if (this.wanted == null || (held !== document.body && held?.isConnected)) return;
    const one = this.drawn.get(this.wanted)?.row.querySelector("button");
    one?.focus({ preventScroll: true });
  }

  choose(id, on) {
    if (on) this.chosen.add(id);
    else this.chosen.delete(id);
    this.all &&= on;
    this.mark();
  }

  chooseAll(on) {
    this.all = false;
    this.chosen = new Set(on ? this.free() : []);
    this.mark();
  }

  free() {
    return this.data.rows.filter(row => row.acts).map(row => row.id);
  }

  mark() {
    const { rows, total, bulk, counted } = this.data;
    const free = this.free();
    if (this.all) this.chosen = new Set(free);
    const count = this.all ? total : this.chosen.size;
    for (const [id, one] of this.drawn) {
      const box = one.row.querySelector("input");
      if (box) box.checked = this.chosen.has(id);
      one.row.classList.toggle("chosen", this.chosen.has(id));
    }
    const held = this.head.contains(document.activeElement) && document.activeElement.dataset.name;
    this.head.replaceChildren();
    if (bulk.length && free.length) {
      const label = make("label", "pick");
      const box = make("input");
      box.type = "checkbox";
      box.dataset.name = "all";
      box.checked = count > 0 && this.chosen.size === free.length;
      box.indeterminate = count > 0 && !box.checked;
      box.setAttribute("aria-label", "Select all that are shown");
      box.addEventListener("change", () => this.chooseAll(box.checked));
      label.append(box);
      this.head.append(label);
    }
    const said = count ? `${count.toLocaleString("en")} selected` : counted;
    this.head.append(make("span", "count", said));
    if (count && !this.all && this.chosen.size === free.length && total > free.length) {
      const label = `Select all ${total.toLocaleString("en")}`;
      this.head.append(this.named("every", button(label, "quiet", () => {
        this.all = true;
        this.mark();
      })));
    }
    for (const [act, label, danger] of count ? bulk : []) {
      this.head.append(this.named(act, button(label, danger ? "danger" : "quiet", () => {
        this.act(act, this.all ? "all" : [...this.chosen]);
        this.chooseAll(false);
      })));
    }
    if (held) [...this.head.querySelectorAll("[data-name]")].find(e => e.dataset.name === held)?.focus();
    this.more.hidden = rows.length >= total;
  }

  named(name, one) {
    one.dataset.name = name;
    return one;
  }

  ask() {
    const { rows, total } = this.data;
    if (rows.length >= total || this.asked === rows.length) return;
    this.asked = rows.length;
    this.tell({ act: "more", ids: [] });
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  parentElement.memchatRows ??= new Rows(parentElement);
  parentElement.memchatRows.draw(data, what => setTriggerValue("act", what));
}
