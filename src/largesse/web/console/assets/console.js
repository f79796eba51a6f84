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
