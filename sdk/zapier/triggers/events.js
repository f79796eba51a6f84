// Triggers by REST hooks: Zapier's address is subscribed to an event, and each delivery is verified.

import { InvalidWebhook, NotFound } from "largesse-client";
import { verify } from "largesse-client/webhooks";
import { asking, plain } from "../lib/client.js";

// Zapier may hold deliveries back, so they may be older than the five minutes that are usual.
const TOLERANCE_MS = 24 * 3_600_000;

const ORDER = {
  id: 1,
  event: "order.created",
  reference: "0WBQK7M2PXR4D9VA1C3E",
  value: "10.0",
  currency: "GBP",
  externalReference: "thanks-1",
  lineCount: 1,
  creationDate: "2030-01-02T09:00:00Z",
};

const gift = (event) => ({
  id: "00000000-0000-0000-0000-000000000000",
  event,
  reference: ORDER.reference,
  number: 1,
  recipient: "sam@example.com",
  occurredAt: ORDER.creationDate,
});

/** Returns the newest events with that name, as webhooks deliver them. */
const newest = (event) => async (largesse) => {
  if (event === "order.created") return (await largesse.orders.newest({ limit: 3 })).map((one) => ({ ...one, event }));
  return (await largesse.events.newest({ limit: 200 })).filter((one) => one.event === event).slice(0, 3).map((one) => one.data);
};

async function receive(z, bundle) {
  const { headers = {}, content = "" } = bundle.rawRequest ?? {};
  const named = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.replace(/^http-/i, ""), value]));
  try {
    const { data } = await verify(content, named, bundle.subscribeData.secret, { toleranceMs: TOLERANCE_MS });
    return [plain(data)];
  } catch (error) {
    if (error instanceof InvalidWebhook) throw new z.errors.HaltedError(error.message);
    throw error;
  }
}

const trigger = (key, event, noun, label, description, sample) => ({
  key,
  noun,
  display: { label, description },
  operation: {
    type: "hook",
    performSubscribe: asking((largesse, bundle) => largesse.webhooks.create({ targetUrl: bundle.targetUrl, event })),
    performUnsubscribe: asking(async (largesse, bundle) => {
      try {
        await largesse.webhooks.delete(bundle.subscribeData.id);
      } catch (error) {
        if (!(error instanceof NotFound)) throw error; // it has already ended
      }
      return { id: bundle.subscribeData.id };
    }),
    perform: receive,
    performList: asking(newest(event)),
    sample,
    outputFields: Object.keys(sample).map((name) => ({ key: name })),
  },
});

export const EVENTS = [
  trigger("order_created", "order.created", "Order", "New Order", "Triggers when an order is placed.", ORDER),
  trigger("gift_claimed", "gift.claimed", "Gift", "Gift Claimed", "Triggers when a recipient claims a gift.", gift("gift.claimed")),
  trigger("gift_bounced", "gift.bounced", "Gift", "Gift Bounced", "Triggers when a gift's mail cannot be delivered.", gift("gift.bounced")),
];
