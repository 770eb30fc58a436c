// xterm.js has styles in <style> elements and in style attributes, both of which the page's Content-Security-Policy forbids: a browser could
// not tell them from those in markup that somebody has smuggled in. Scripts may style by the CSSOM, and markup cannot. So what xterm.js
// does in the one way is done in the other.

/** Has <style> elements and style attributes that scripts make from now on be style sheets and declarations of the CSSOM. */
export function styleByCSSOM() {
  const create = document.createElement.bind(document);
  document.createElement = (/** @type {string} */ name, /** @type {ElementCreationOptions | undefined} */ options) =>
    name === "style" ? sheetElement(create("template")) : create(name, options);
  const set = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function (name, value) {
    if (name === "style" && this instanceof HTMLElement) this.style.cssText = value;
    else set.call(this, name, value);
  };
}

/** Returns the element, which shows nothing: its text is a style sheet of the document until it is removed. @param {HTMLElement} e */
function sheetElement(e) {
  const sheet = new CSSStyleSheet();
  let text = "";
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(e, "textContent", {
    get: () => text,
    set: (/** @type {string} */ to) => {
      text = to;
      sheet.replaceSync(to);
    },
  });
  e.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    Element.prototype.remove.call(e);
  };
  return e;
}
