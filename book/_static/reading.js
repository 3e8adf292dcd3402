// On every page: one switch opens all folded code, links to records open what is folded there,
// and a link to a figure, a table, a source or a term shows it before one goes there.

const ROOT = document.documentElement.dataset.content_root || "./";
const loading = {};

/** Load a script of `_static` once; from disk as from a server. */
function load(name) {
  loading[name] ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = `${ROOT}_static/${name}`;
    script.onload = done;
    script.onerror = failed;
    document.head.append(script);
  });
  return loading[name];
}

/** A new element: make("button", {className: "x"}, "text", child). */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** What the browser keeps between pages; a reader may have forbidden it. */
function remembered(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function codeSwitch() {
  const folded = document.querySelectorAll("main details.hide");
  const bar = document.querySelector(".article-header-buttons");
  if (!folded.length || !bar) return;
  const button = make("button", { type: "button", className: "btn btn-sm code-switch" });
  const show = (open) => {
    folded.forEach((cell) => { cell.open = open; });
    button.setAttribute("aria-pressed", open);
    button.textContent = open ? "Fold all code" : "Open all code";
  };
  button.onclick = () => {
    const open = button.getAttribute("aria-pressed") !== "true";
    remembered("code", open ? "open" : "folded");
    show(open);
  };
  show(remembered("code") === "open");
  bar.prepend(button);
}

/** Unfold what a link of this page leads to. */
function unfold() {
  let name = location.hash.slice(1);
  try {
    name = decodeURIComponent(name);
  } catch { /* a bare % stands for itself */ }
  const target = name && document.getElementById(name);
  if (!target) return;
  if (target.matches(".dropdown.toggle-hidden")) target.querySelector(".toggle-button")?.click();
  target.scrollIntoView();
}

function previews() {
  const main = document.querySelector("main");
  const box = make("div", { className: "preview mathjax_ignore", id: "preview", hidden: true });
  box.setAttribute("role", "tooltip");
  document.body.append(box);
  let timer;
  const root = new URL(ROOT, location.href).pathname;

  const hide = () => {
    clearTimeout(timer);
    box.hidden = true;
    document.querySelector("[aria-describedby=preview]")?.removeAttribute("aria-describedby");
  };
  const hideSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(hide, 150);
  };
  const show = async (link) => {
    clearTimeout(timer);
    await load("previews.js");
    const url = new URL(link.href);
    const page = url.pathname.slice(root.length) || "index.html";
    const html = url.pathname.startsWith(root) && window.PREVIEWS[page + decodeURIComponent(url.hash)];
    if (!html) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      link.removeAttribute("title");
      link.setAttribute("aria-describedby", "preview");
      box.innerHTML = html.replaceAll("{root}", ROOT);
      if (box.querySelector(".math")) setFormulas().then(() => MathJax.startup.promise).then(() => MathJax.typesetPromise([box]));
      box.hidden = false;
      const place = link.getClientRects()[0];
      const below = place.bottom + box.offsetHeight + 8 < innerHeight;
      box.style.top = `${scrollY + (below ? place.bottom + 4 : Math.max(8, place.top - box.offsetHeight - 4))}px`;
      box.style.left = `${Math.max(8, Math.min(place.left, innerWidth - box.offsetWidth - 24))}px`;
    }, 120);
  };

  const linkOf = (event) => event.target.closest?.("main a[href*='#']:not(.headerlink):not(.made a)");
  for (const [come, go] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
    main.addEventListener(come, (event) => linkOf(event) && show(linkOf(event)));
    main.addEventListener(go, (event) => linkOf(event) && hideSoon());
  }
  box.addEventListener("mouseenter", () => clearTimeout(timer));
  box.addEventListener("mouseleave", hideSoon);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}

/** Formulas are set by a script that weighs more than all others, once one of them is about to be seen. */
function setFormulas() {
  window.MathJax ??= { options: { processHtmlClass: "tex2jax_process|mathjax_process|math|output_area" } };
  return load("mathjax/tex-svg.js");
}

function formulas() {
  const near = new IntersectionObserver((seen) => {
    if (!seen.some((one) => one.isIntersecting)) return;
    near.disconnect();
    setFormulas();
  }, { rootMargin: "50%" });
  document.querySelectorAll("main .math").forEach((one) => near.observe(one));
  if (document.querySelector("main .math")) addEventListener("beforeprint", setFormulas);
}

/** What the theme's markup lacks for readers who do not see it: names of buttons, roles, landmarks. */
function nameAll() {
  document.querySelectorAll(".search-button-field, details.hide > summary").forEach((one) => one.removeAttribute("aria-label"));
  document.querySelectorAll(".bd-links summary").forEach((one) => {
    one.setAttribute("aria-label", `Pages of ${one.closest("li").querySelector("a").textContent.trim()}`);
  });
  document.querySelector(".theme-switch-button")?.setAttribute("aria-label", "Color mode: Light, Dark, System Settings");
  document.querySelectorAll(".citation[role]").forEach((one) => one.setAttribute("role", "listitem"));
  const sidebar = document.querySelector(".bd-sidebar-primary");
  sidebar?.setAttribute("role", "region");
  sidebar?.setAttribute("aria-label", "All pages");
}

document.addEventListener("DOMContentLoaded", () => {
  nameAll();
  codeSwitch();
  previews();
  formulas();
  unfold();
  addEventListener("hashchange", unfold);
});
