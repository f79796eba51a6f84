import { asking } from "../lib/client.js";

export const findOrder = {
  key: "find_order",
  noun: "Order",
  display: { label: "Find Order", description: "Finds the order that has a reference of yours." },
  operation: {
    inputFields: [{ key: "externalReference", label: "Reference", required: true, helpText: "The reference that the order was sent with." }],
    perform: asking((largesse, { inputData }) => largesse.orders.newest({ externalReference: inputData.externalReference })),
    sample: { id: 1, reference: "0WBQK7M2PXR4D9VA1C3E", value: "10.0", currency: "GBP", externalReference: "thanks-1", lineCount: 1 },
  },
};
