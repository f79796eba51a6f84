// The search page as a dialog on every page. "/" opens it, and the results follow the typing. Without this script, links open the page.
(() => {
  const link = document.querySelector("[data-search]");
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  const WAIT_MS = 150;
  const own = document.querySelector("main .seek");
  let asked;

  async function read(words) {
    asked?.abort();
    asked = new AbortController();
    const response = await fetch(`${link.href}?${new URLSearchParams({ q: words })}`, { signal: asked.signal });
    if (!response.ok || response.redirected) throw new Error(String(response.status));
    return new DOMParser().parseFromString(await response.text(), "text/html");
  }

  // The results follow the typing. Enter opens the first result, and the arrow keys move through the results.
  function follow(form, shown) {
    const around = form.parentElement;
    const input = form.q;
    const found = () => around.querySelector(".found");
    let timer;
    const look = async () => {
      clearTimeout(timer);
      const words = input.value.trim();
      if (words === shown) return;
      const page = await read(words);
      shown = words;
      found().replaceWith(page.getElementById("found"));
      if (form === own) history.replaceState(null, "", `?${new URLSearchParams({ q: words })}`);
    };
    const lookSoon = (wait) => {
      clearTimeout(timer);
      timer = setTimeout(() => look().catch((error) => { if (error.name !== "AbortError") form.submit(); }), wait);
    };
    input.addEventListener("input", () => lookSoon(WAIT_MS));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await look();
        found().querySelector("li a").click();
      } catch {
        form.submit();
      }
    });
    around.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      const hits = [input, ...found().querySelectorAll("a")];
      const at = hits.indexOf(document.activeElement);
      event.preventDefault();
      hits[Math.min(Math.max(at + step, 0), hits.length - 1)].focus();
    });
    return lookSoon;
  }

  if (own) follow(own, own.q.value.trim());
  const lookSoon = follow(dialog.querySelector(".seek"));

  function open() {
    if (own) {
      own.q.select();
      return;
    }
    if (dialog.open) return;
    dialog.showModal();
    dialog.querySelector("input").select();
    lookSoon(0);
  }

  addEventListener("keydown", (event) => {
    const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (!isSlash || event.target.closest("input, select, textarea, [contenteditable]")) return;
    event.preventDefault();
    open();
  });
  addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
    if (!event.target.closest("[data-search]") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
})();
