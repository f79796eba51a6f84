// Actions that send a gift to one recipient by mail. No codes pass through Zapier.

import { asking } from "../lib/client.js";

const SAMPLE = {
  id: "0WBQK7M2PXR4D9VA1C3E",
  reference: "0WBQK7M2PXR4D9VA1C3E",
  value: "10.0",
  currency: "GBP",
  codeCount: 1,
  recipientCount: 1,
  totalCost: "10.0",
  deliveryMode: "send",
  scheduledFor: null,
  externalReference: "thanks-1",
};

const COMMON = [
  {
    key: "externalReference",
    label: "Reference",
    required: true,
    helpText: "What makes this gift this one, such as the id of what starts the Zap. A step that runs again with the same reference sends nothing more.",
  },
  { key: "email", label: "Recipient's Address", required: true },
  { key: "name", label: "Recipient's Name" },
  { key: "accountId", label: "Account", type: "integer", dynamic: "account_list.id.label", helpText: "Who pays. Leave it out if orders are invoiced." },
  { key: "fromName", label: "From", helpText: "At most 32 characters." },
  { key: "message", label: "Message", type: "text", helpText: "At most 256 characters." },
  { key: "sendAt", label: "Send At", type: "datetime", helpText: "Leave it out to send the gift now." },
];

/** Returns the field for the amount, with the amounts that the chosen product has. */
const valueField = asking(async (largesse, { inputData: { productId, country } }) => {
  if (!productId) return [];
  const { requiresAmount, denominations, minAmount, maxAmount, currency } = await largesse.products.get(Number(productId), { country: country || "GB" });
  if (!requiresAmount) return [];
  const field = { key: "value", label: `Amount in ${currency}`, type: "string", required: true };
  if (denominations.length) return [{ ...field, choices: denominations.map(String) }];
  return [{ ...field, helpText: `From ${minAmount} to ${maxAmount}.` }];
});

/** Returns a text; undefined for one that is empty or blank, as two empty fields with a space between are. */
const written = (text) => (text?.trim() ? text : undefined);

/** Returns the members that both kinds of gift have. Fields that are empty are left out. */
function order({ email, name, accountId, externalReference, fromName, message, sendAt }) {
  return {
    recipients: [{ email, name: written(name) }],
    accountId: accountId ? Number(accountId) : undefined,
    externalReference,
    fromName: written(fromName),
    message: written(message),
    sendAt: sendAt || undefined,
    source: "zapier",
  };
}

/** Returns what the step hands on: no codes, and the reference as the id. */
const receipt = ({ codes, ...placed }) => ({ id: placed.reference, ...placed });

const create = (key, label, description, inputFields, send) => ({
  key,
  noun: "Gift",
  display: { label, description },
  operation: {
    inputFields: [...inputFields, ...COMMON],
    perform: asking(async (largesse, { inputData }) => receipt(await send(largesse, inputData))),
    sample: SAMPLE,
  },
});

export const sendGift = create(
  "send_gift",
  "Send Gift",
  "Sends a product to a recipient by mail.",
  [
    { key: "country", label: "Country", default: "GB", helpText: "The two letters of the recipient's country.", altersDynamicFields: true },
    { key: "productId", label: "Product", type: "integer", required: true, dynamic: "product_list.id.label", altersDynamicFields: true },
    valueField,
  ],
  (largesse, input) => {
    const gift = { productId: Number(input.productId), value: input.value || undefined, country: input.country || undefined };
    return largesse.send.gift({ ...gift, ...order(input) });
  },
);

export const sendTemplate = create(
  "send_template",
  "Send Gift From Template",
  "Sends a saved template to a recipient by mail.",
  [{ key: "templateId", label: "Template", type: "integer", required: true, dynamic: "template_list.id.label" }],
  (largesse, input) => largesse.send.template({ templateId: Number(input.templateId), ...order(input) }),
);
