// A program that uses all there is, with the types that a compiler must find. It is compiled; nothing runs it.

import {
  Decimal,
  InsufficientBalance,
  InvalidWebhook,
  Largesse,
  LargesseError,
  Problem,
  ReferenceUsed,
  webhooks,
  type Identity,
  type NewSubscription,
  type Order,
  type OrderRecord,
  type Product,
  type Quote,
} from "largesse-client";

/** Holds the type of an expression. */
function is<T>(_: T): void {}

export async function sending(largesse: Largesse): Promise<void> {
  const order = await largesse.send.gift({
    productId: 1,
    value: "12.50",
    country: "GB",
    recipients: [{ email: "sam@example.com", name: "Sam", quantity: 2 }, "ada@example.com"],
    accountId: 1,
    externalReference: "thanks-1",
    sendAt: new Date("2030-01-01T00:00:00Z"),
  });
  is<Order>(order);
  is<Decimal>(order.totalCost);
  is<string>(order.reference);
  is<string | null>(order.scheduledFor);
  is<Quote>(await largesse.quote.gift({ productId: 1, value: Decimal.of(10), codeQuantity: 3 }, { timeoutMs: 5_000 }));
  is<readonly OrderRecord[]>(await largesse.orders.newest({ limit: 5 }));
  is<Identity>(await largesse.me({ signal: AbortSignal.timeout(1_000) }));
  is<NewSubscription>(await largesse.webhooks.create({ targetUrl: "https://gifts.example/hook", events: ["gift.claimed"] }));
  for await (const product of largesse.products.list({ country: "IE", amount: 10 })) is<Product>(product);
  for await (const event of largesse.events.list()) {
    if (event.event === "gift.bounced") is<string | null>(event.data.recipient);
    if (event.event === "account.low") is<Decimal>(event.data.below);
    is<string>(event.cursor);
  }
}

export async function wrong(largesse: Largesse): Promise<void> {
  // @ts-expect-error an id is a number
  await largesse.send.gift({ productId: "1", codeQuantity: 1 });
  // @ts-expect-error there is no such member
  await largesse.send.gift({ productId: 1, recipient: "x" });
  // @ts-expect-error a product is required
  await largesse.send.gift({ codeQuantity: 1 });
  // @ts-expect-error a quote is not quoted
  await largesse.quote.gift({ productId: 1, codeQuantity: 1, quote: "x" });
  // @ts-expect-error a reference is required
  await largesse.orders.get();
  const { value } = await largesse.orders.get("x");
  // @ts-expect-error amounts are no numbers
  is<number>(value);
  // @ts-expect-error nor are they added as such
  is<unknown>(value + value);
}

export async function receiving(request: Request, secret: string): Promise<string | null> {
  try {
    const event = await webhooks.verify(await request.arrayBuffer(), request.headers, [secret]);
    return event.event === "order.created" ? event.data.reference : null;
  } catch (error) {
    if (error instanceof InvalidWebhook) return null;
    throw error;
  }
}

export async function failing(largesse: Largesse): Promise<string | null> {
  try {
    await largesse.me();
  } catch (error) {
    if (error instanceof ReferenceUsed) return error.orderReference;
    if (error instanceof InsufficientBalance) return error.detail;
    if (error instanceof Problem) return error.type;
    if (error instanceof LargesseError) return error.requestId;
  }
  return null;
}
