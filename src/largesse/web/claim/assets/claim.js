// Everything here is a convenience: the pages work without it.
"use strict";

(() => {
  const claim = document.querySelector("form[data-claim]");

  // The link in a mail has the PIN after "#", which browsers never send. The script removes it from the address and the history at once.
  const fillIn = () => {
    const carried = location.hash;
    if (!carried.startsWith("#pin=")) return;
    history.replaceState(null, "", location.pathname + location.search);
    const pin = claim?.querySelector(".pin");
    const [, digits] = /^#pin=(\d{6})(?!\w)/.exec(carried) ?? []; // what follows is the text around the link
    if (!pin || !digits) return;
    pin.value = digits;
    pin.removeAttribute("aria-invalid");
    claim.querySelector(".message").hidden = true; // of a wrong PIN before
    const lead = document.querySelector("[data-filled]");
    if (lead) lead.textContent = lead.dataset.filled;
    // Passes the PIN on to the page in another language.
    for (const other of document.querySelectorAll("a[hreflang]")) {
      other.addEventListener("click", () => { other.hash = /^\d{6}$/.test(pin.value) ? `pin=${pin.value}` : ""; });
    }
  };
  fillIn();
  addEventListener("hashchange", fillIn);

  // Reports that a person opened the page. A scanner that loads it causes no trusted events.
  if (claim && "opened" in claim.dataset) {
    const tell = (event) => {
      if (!event.isTrusted) return;
      removeEventListener("pointerdown", tell);
      removeEventListener("keydown", tell);
      fetch(location.pathname.replace(/\/$/, "") + "/opened", { method: "POST", keepalive: true }).catch(() => {});
    };
    addEventListener("pointerdown", tell);
    addEventListener("keydown", tell);
  }

  // Shows a wrong PIN beside the field, so that nothing has to be typed twice.
  if (claim) {
    const message = claim.querySelector(".message");
    const button = claim.querySelector("button");
    const pin = claim.querySelector(".pin");
    const say = (text) => {
      message.textContent = text;
      message.hidden = false;
      pin.focus();
      pin.select();
    };
    claim.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      document.documentElement.classList.add("busy");
      message.hidden = true;
      pin.removeAttribute("aria-invalid");
      try {
        const response = await fetch(location.href, {
          method: "POST",
          body: new URLSearchParams(new FormData(claim)),
        });
        if (response.redirected) {
          location.assign(response.url + "#open");
          return;
        }
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        const written = page.querySelector("[data-message]");
        if (written) {
          pin.setAttribute("aria-invalid", "true");
          say(written.textContent);
        } else {
          document.title = page.title;
          document.querySelector("main").replaceWith(page.querySelector("main"));
          const next = document.querySelector("main a, main button") ?? document.querySelector("main h1");
          if (next.matches("h1")) next.tabIndex = -1; // nothing is left to do, and screen readers read it
          next.focus();
        }
      } catch {
        say(claim.dataset.trouble);
      }
      document.documentElement.classList.remove("busy");
      button.disabled = false;
    });
    addEventListener("pageshow", () => {
      button.disabled = false;
      document.documentElement.classList.remove("busy");
    });
  }

  for (const button of document.querySelectorAll("button[data-copy]")) {
    const label = button.textContent;
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = button.dataset.copied;
      setTimeout(() => { button.textContent = label; }, 2000);
    });
  }
})();
