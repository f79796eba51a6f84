// Only passkeys need a script: it passes the form's options to the browser, and posts the browser's answer with the form.
const READERS = { create: "parseCreationOptionsFromJSON", get: "parseRequestOptionsFromJSON" };
document.querySelectorAll("form[data-passkey]").forEach((form) => {
  const { passkey: act, options, unable, failed, known } = form.dataset;
  const said = form.querySelector("[role=alert]");
  const button = form.querySelector("button");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    said.textContent = "";
    const read = window.PublicKeyCredential?.[READERS[act]];
    if (!read) { said.textContent = unable; return; }
    button.disabled = true;
    try {
      const publicKey = read.call(PublicKeyCredential, JSON.parse(options));
      form.elements.passkey.value = JSON.stringify(await navigator.credentials[act]({ publicKey }));
      form.submit();
    } catch (error) {
      button.disabled = false;
      said.textContent = error.name === "InvalidStateError" ? known : failed;
    }
  });
});
