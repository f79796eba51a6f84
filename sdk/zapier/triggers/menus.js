// Hidden triggers that fill the menus of the actions.

import { asking, first } from "../lib/client.js";

const menu = (key, noun, list, sample) => ({
  key,
  noun,
  display: { label: `${noun} Menu`, description: `Fills the menu of ${noun.toLowerCase()}s.`, hidden: true },
  operation: {
    perform: asking(async (largesse, bundle) => (await first(list(largesse, bundle))).map(({ id, label, name }) => ({ id, label: label ?? name ?? String(id) }))),
    sample: { id: 1, label: sample },
  },
});

export const MENUS = [
  menu("product_list", "Product", (largesse, bundle) => largesse.products.list({ country: bundle.inputData.country || "GB" }), "Coffee House e-gift, £5 to £25"),
  menu("account_list", "Account", (largesse) => largesse.fundingAccounts.list(), "Float (GBP), £100.00"),
  menu("template_list", "Template", (largesse) => largesse.templates.list(), "Welcome aboard"),
];
