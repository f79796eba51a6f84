// Everything works without this script. With it, a list is searched while somebody types, a choice takes effect at once, progress is updated,
// and the browser asks before it discards changes in a list, or recipients that were typed or pasted.
const isChanged = () => [...document.querySelectorAll("[data-edits] input")].some((field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked);
const isTyped = () => [...document.querySelectorAll("textarea[name=rows]")].some((field) => field.value !== field.defaultValue);
let isSent = false;
addEventListener("submit", (event) => { isSent ||= event.target.method === "post" && !event.defaultPrevented; });
addEventListener("pageshow", () => { isSent = false; });
window.navigation?.addEventListener("navigateerror", () => { isSent = false; }); // somebody stopped it
addEventListener("beforeunload", (event) => { if (!isSent && (isChanged() || isTyped())) event.preventDefault(); });

// Replaces the parts of the page that `data-live` names with those of the page that the form would open.
for (const form of document.querySelectorAll("form[data-live]")) {
  let timer, request;
  const search = async () => {
    if (isChanged()) return;
    request?.abort();
    request = new AbortController();
    const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
    try {
      const response = await fetch(address, { signal: request.signal });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const ids = form.dataset.live.split(" ");
      if (!response.ok || response.redirected || !ids.every((id) => page.getElementById(id))) return location.assign(address);
      ids.forEach((id) => document.getElementById(id).replaceChildren(...page.getElementById(id).childNodes));
      history.replaceState(null, "", address);
    } catch (error) {
      if (error.name !== "AbortError") location.assign(address);
    }
  };
  form.querySelector("[type=search]").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 150); });
  form.addEventListener("change", (event) => { if (event.target.type !== "search") form.requestSubmit(); });
}

// A form that only has choices is submitted when one changes.
for (const form of document.querySelectorAll("form[data-at-once]")) {
  form.addEventListener("change", () => form.requestSubmit());
}

// A button that inserts its text at the cursor.
addEventListener("click", ({ target }) => {
  const button = target.closest?.("[data-insert]");
  const field = button && document.getElementById(button.dataset.into);
  if (!field) return;
  field.setRangeText(button.dataset.insert, field.selectionStart, field.selectionEnd, "end");
  field.focus();
  field.dispatchEvent(new Event("input", { bubbles: true }));
});

// The previews follow the typing: this saves the form as its button would, and loads the new frames hidden before it shows them.
for (const form of document.querySelectorAll("form[data-preview]")) {
  const WAIT_MS = 400;
  let timer, saving;
  const save = async () => {
    const body = new URLSearchParams(new FormData(form));
    body.set("then", "look");
    const page = new DOMParser().parseFromString(await (await fetch(form.action, { method: "POST", body })).text(), "text/html");
    const fresh = page.querySelector("form[data-preview] [name=token]");
    const isSaved = fresh && !page.querySelector("form[data-preview] .error");
    document.querySelector("#unsaved span").hidden = isSaved;
    if (!isSaved) return;
    form.elements.token.value = fresh.value;
    // What was saved from this window is what its next save starts from. A field that it did not change may have changed in another one.
    for (const was of form.querySelectorAll("[name^=was_]")) {
      if (body.get(was.name.slice(4)) !== was.value) was.value = page.querySelector(`form[data-preview] [name=${was.name}]`).value;
    }
    if (!document.querySelector("#previews iframe")) return document.getElementById("previews").replaceChildren(...page.getElementById("previews").childNodes);
    page.querySelectorAll("#previews figcaption").forEach((one, at) => document.querySelectorAll("#previews figcaption")[at]?.replaceWith(one));
    document.querySelectorAll("#previews iframe.next").forEach((one) => one.remove());
    for (const frame of document.querySelectorAll("#previews iframe:not(.next)")) {
      const next = frame.cloneNode();
      next.classList.add("next");
      next.addEventListener("load", () => { frame.remove(); next.classList.remove("next"); }, { once: true });
      frame.after(next);
    }
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      // Saves run one after the other, because each needs the token from the response before it.
      const mine = Promise.resolve(saving).then(save).catch(() => {}).finally(() => { if (saving === mine) saving = null; });
      saving = mine;
    }, WAIT_MS);
  };
  form.addEventListener("input", soon);
  // A button pressed during a save waits for it, because the server accepts each token once.
  form.addEventListener("submit", async (event) => {
    clearTimeout(timer);
    if (!saving) return;
    event.preventDefault();
    const { submitter } = event;
    await saving;
    form.requestSubmit(submitter);
  });
}

// Updates the progress until it is complete, or the page has been open for ten minutes.
async function refresh(times) {
  const old = document.querySelector("[data-refresh]");
  if (!old || !times) return;
  try {
    const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
    const fresh = page.getElementById(old.id);
    if (!fresh) return;
    document.title = page.title;
    document.querySelector("h1").textContent = page.querySelector("h1").textContent;
    if (fresh.innerHTML !== old.innerHTML) old.replaceWith(fresh);
  } catch { /* offline: the next update tries again */ }
  setTimeout(refresh, 2_000, times - 1);
}
setTimeout(refresh, 2_000, 300);
