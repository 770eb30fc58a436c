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
 */
export function showButtons(root, values, key, fill, choose) {
  const before = new Map([...root.querySelectorAll("button")].map((button) => [button.dataset["key"], button]));
  const items = values.map((value) => {
    const of = key(value);
    const button = before.get(of) ?? make(of, choose);
    fill(button, value);
    return /** @type {HTMLElement} */ (button.parentElement);
  });
  if (root.children.length === items.length && items.every((item, i) => item === root.children[i])) return;
  const focused = document.activeElement;
  root.replaceChildren(...items);
  if (focused instanceof HTMLElement && root.contains(focused)) focused.focus({ preventScroll: true });
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
