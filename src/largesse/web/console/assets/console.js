// Everything works without this; with it, a form that was sent shows that it was, and is sent once.
addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) return;
  setTimeout(() => form.querySelectorAll("button").forEach((button) => { button.disabled = true; }));
});
addEventListener("pageshow", () => document.querySelectorAll("button[disabled]").forEach((button) => { button.disabled = false; }));
// A time that is filled in chooses "At a time", which the server asks about without this.
addEventListener("input", (event) => {
  const later = event.target.value && event.target.closest("[data-later]")?.querySelector("[value=later]");
  if (later && event.target.name === "at") later.checked = true;
});

// Toasts: what happened, in the live region, until it is closed or has been there for a while.
const toasts = document.querySelector(".toasts");
const TOAST_MS = 8_000;
function toast(shown) {
  const close = document.createElement("button");
  close.type = "button";
  close.className = "toast-close";
  close.ariaLabel = toasts.dataset.close;
  close.textContent = "×";
  close.addEventListener("click", () => shown.remove());
  shown.append(close);
  toasts.replaceChildren(shown);
  const leave = () => { if (!shown.matches(":hover, :focus-within")) shown.remove(); else setTimeout(leave, TOAST_MS); };
  setTimeout(leave, TOAST_MS);
}
// What the server says is put in once more, so that screen readers read it.
for (const shown of toasts?.querySelectorAll(".toast") ?? []) setTimeout(() => toast(shown), 100);

// Copy buttons. Where the browser has no clipboard for the page, the text is selected and copied.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) {
    await copy(button.dataset.copy);
    button.focus();
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 2_000);
    const shown = document.createElement("p");
    shown.className = "toast";
    shown.append(toasts.dataset.copied);
    toast(shown);
  }
  // Menus close when something else is pressed.
  for (const menu of document.querySelectorAll("details:is(.row-menu, .me, .means)[open]")) if (!menu.contains(event.target)) menu.open = false;
});
addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details:is(.row-menu, .me, .menu, .means)[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
// A cookie of ours on the pages of the web application, for a year.
function remember(name, value) {
  const path = location.pathname.replace(/\/app.*/, "/app");
  document.cookie = `${name}=${value};path=${path};max-age=31536000;SameSite=Lax${location.protocol === "https:" ? ";Secure" : ""}`;
}
// The menu stays as narrow or wide as it was left.
document.getElementById("narrow-menu")?.addEventListener("change", (event) => remember("largesse_menu", event.target.checked ? 1 : 0));
// The server shows times in the browser's zone, unless the person chose another.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) remember("largesse_zone", zone);

// In a list, j and k go to the next row and the one before.
addEventListener("keydown", (event) => {
  const step = { j: 1, k: -1 }[event.key];
  if (!step || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const rows = [...document.querySelectorAll("[data-rows] tbody th a")];
  const at = rows.findIndex((row) => row.closest("tr").contains(document.activeElement));
  rows[Math.min(Math.max(at + step, 0), rows.length - 1)]?.focus();
});
