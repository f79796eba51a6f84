// Everything works without this script. With it, the buttons of a submitted form are disabled, so that it is sent once.
// Not for one that is answered with a file: the page stays, and its buttons are needed again.
let isConnected = false;
addEventListener("submit", async (event) => {
  const { target: form, submitter } = event;
  if (form.method !== "post" || event.defaultPrevented) return;
  if (!navigator.onLine && toasts && !isConnected) {
    // The browser's error page would lose what was typed. A service on this machine answers without a network.
    event.preventDefault();
    isConnected = await fetch(location.href, { method: "HEAD" }).then(() => true, () => false);
    if (isConnected) form.requestSubmit(submitter);
    else say(toasts.dataset.offline);
    isConnected = false;
    return;
  }
  if (submitter?.dataset.file !== undefined) return;
  setTimeout(() => form.querySelectorAll("button").forEach((button) => { button.disabled = true; }));
  if (!window.navigation) setTimeout(enable, 10_000);
});
// A person who stops a form, or returns to it, can send it again: the server carries it out once.
const enable = () => document.querySelectorAll("button[disabled]").forEach((button) => { button.disabled = false; });
addEventListener("pageshow", enable);
window.navigation?.addEventListener("navigateerror", enable);
// Filling in a time chooses "Later". Without this script, the server reports the contradiction.
addEventListener("input", (event) => {
  const later = event.target.value && event.target.closest("[data-later]")?.querySelector("[value=later]");
  if (later && event.target.name === "at") later.checked = true;
});

// Toasts: notices in the live region, until they are closed or TOAST_MS have passed.
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
function say(words) {
  const shown = document.createElement("p");
  shown.className = "toast";
  shown.append(words);
  toast(shown);
}
// Inserts the server's notices again, so that screen readers read them.
for (const shown of toasts?.querySelectorAll(".toast") ?? []) setTimeout(() => toast(shown), 100);

// Copy buttons. If the page may not use the clipboard, the text is selected and copied.
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
    say(toasts.dataset.copied);
  }
  // A click elsewhere closes menus.
  for (const menu of document.querySelectorAll("details:is(.row-menu, .me, .means, .filter)[open]")) if (!menu.contains(event.target)) menu.open = false;
});
addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details:is(.row-menu, .me, .menu, .means, .filter)[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
// Sets a cookie for the pages of the web application, for a year.
function remember(name, value) {
  const path = location.pathname.replace(/\/app.*/, "/app");
  document.cookie = `${name}=${value};path=${path};max-age=31536000;SameSite=Lax${location.protocol === "https:" ? ";Secure" : ""}`;
}
// Remembers whether the menu is narrow.
document.getElementById("narrow-menu")?.addEventListener("change", (event) => remember("largesse_menu", event.target.checked ? 1 : 0));
// The server shows times in the browser's zone, unless the person chose a zone.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) remember("largesse_zone", zone);

// In a list, j and k move to the next and the previous row.
addEventListener("keydown", (event) => {
  const step = { j: 1, k: -1 }[event.key];
  if (!step || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const rows = [...document.querySelectorAll("[data-rows] tbody th a")];
  const at = rows.findIndex((row) => row.closest("tr").contains(document.activeElement));
  rows[Math.min(Math.max(at + step, 0), rows.length - 1)]?.focus();
});
