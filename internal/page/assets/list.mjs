// A list of buttons that is shown again and again.

/**
 * Shows values as buttons in a list. The button of a value stays the same one for as long as there is a value of that key: a press of the
 * mouse that began before ends on it, and it keeps the focus.
 * @template T
 * @param {HTMLElement} root  a ul, which has nothing else in it
 * @param {T[]} values
 * @param {(value: T) => string} key
 * @param {(button: HTMLButtonElement, value: T) => void} fill  puts into a button what there is to say now
 * @param {(key: string) => void} choose  is called when one is pressed
 * @param {(value: T) => T | undefined} [over]  returns the value in whose item this one is, in a list of its own; it must be before this one in values
 */
export function showButtons(root, values, key, fill, choose, over = () => undefined) {
  const before = new Map([...root.querySelectorAll("button")].map((button) => [button.dataset["key"], button]));
  /** @type {Map<T, HTMLElement>} */
  const items = new Map();
  /** @type {Map<string, HTMLElement>} */
  const seen = new Map(); // by their keys
  /** @type {Map<HTMLElement, HTMLElement[]>} */
  const lists = new Map([[root, []]]); // each behind the one that it is in
  for (const value of values) {
    const of = key(value);
    const shown = seen.get(of);
    if (shown) { // What says that it is the same is shown once: no item gets into itself.
      items.set(value, shown);
      continue;
    }
    const button = before.get(of) ?? make(of, choose);
    fill(button, value);
    const item = /** @type {HTMLElement} */ (button.parentElement);
    items.set(value, item);
    seen.set(of, item);
    const parent = over(value);
    const list = parent === undefined ? root : listIn(/** @type {HTMLElement} */ (items.get(parent)));
    lists.set(list, [...(lists.get(list) ?? []), item]);
  }
  const focused = document.activeElement;
  let moved = false;
  for (const [list, wanted] of lists) { // What is around a list is in its place already.
    if (list.children.length === wanted.length && wanted.every((item, i) => item === list.children[i])) continue;
    list.replaceChildren(...wanted);
    moved = true;
  }
  for (const list of root.querySelectorAll("ul")) if (!lists.has(list)) list.remove();
  if (moved && focused instanceof HTMLElement && root.contains(focused)) focused.focus({ preventScroll: true });
}

/** The list in an item, which is made if there is none. @param {HTMLElement} item */
function listIn(item) {
  const last = item.lastElementChild;
  if (last instanceof HTMLUListElement) return last;
  const list = document.createElement("ul");
  list.setAttribute("role", "list"); // Without bullets some screen readers take it for none.
  item.append(list);
  return list;
}

/** @param {string} key @param {(key: string) => void} choose */
function make(key, choose) {
  const button = document.createElement("button");
  button.type = "button";
  button.dataset["key"] = key;
  button.addEventListener("click", () => choose(key));
  document.createElement("li").append(button);
  return button;
}

/** The button of a key; null if there is none. @param {HTMLElement} root @param {string} key */
export function buttonOf(root, key) {
  for (const button of root.querySelectorAll("button")) if (button.dataset["key"] === key) return button;
  return null;
}
