// Elements: makes and replaces them without parsing HTML, so that no text can become markup.

/** Makes an element. Properties that begin with `on` are listeners; `class`, `aria-…` and others are attributes. */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "indeterminate" || name === "selected")
      element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** Makes an SVG element. */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, String(value));
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replaces what is in an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Returns a function that runs `task` when it was not called for `milliseconds`, and what ends that. */
export function debounce(milliseconds, task) {
  let timer;
  const end = () => clearTimeout(timer);
  const call = (...values) => {
    end();
    timer = setTimeout(() => task(...values), milliseconds);
  };
  return [call, end];
}
