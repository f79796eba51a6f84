// Hidden triggers that fill the menus of the actions. A menu has 200 items at once; Zapier asks for more where somebody wants them.

import { asking, paged } from "../lib/client.js";

const menu = (key, noun, list, sample) => ({
  key,
  noun,
  display: { label: `${noun} Menu`, description: `Fills the menu of ${noun.toLowerCase()}s.`, hidden: true },
  operation: {
    canPaginate: true,
    perform: asking(async (largesse, bundle) => {
      const items = await paged(list(largesse, bundle), bundle.meta?.page ?? 0);
      return items.map(({ id, label, name }) => ({ id, label: label ?? name ?? String(id) }));
    }),
    sample: { id: 1, label: sample },
  },
});

export const MENUS = [
  menu("product_list", "Product", (largesse, bundle) => largesse.products.list({ country: bundle.inputData.country || "GB" }), "Coffee House e-gift, £5 to £25"),
  menu("account_list", "Account", (largesse) => largesse.fundingAccounts.list(), "Float (GBP), £100.00"),
  menu("template_list", "Template", (largesse) => largesse.templates.list(), "Welcome aboard"),
];
