// What is refused before anything is sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Decimal, InvalidArgument, Largesse, webhooks, type Options } from "largesse-client";
import { clientOf, failure, largesse, listen, loadWorld, newReference } from "./support.js";

const BATCH = { codeQuantity: 1 };
// Deliberately wrong arguments, which the types refuse.
type Any = any; // eslint-disable-line @typescript-eslint/no-explicit-any
const gift = (order: Any) => (client: Largesse) => client.send.gift({ productId: 1, ...order });
const uuid = "7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a";

const REFUSED: [string, (client: Largesse) => unknown][] = [
  ["recipients", gift({ value: 1 })],
  ["recipients", gift({ value: 1, recipients: ["a@b.example"], codeQuantity: 1 })],
  ["recipients", gift({ value: 1, recipients: [] })],
  ["recipients", gift({ value: 1, recipients: "sam@example.com" })],
  ["recipients", gift({ value: 1, recipients: Array(5001).fill("a@b.example") })],
  ["recipients", gift({ value: 1, recipients: Array(6).fill({ email: "a@b.example", quantity: 1000 }) })],
  ["recipients[1]", gift({ value: 1, recipients: ["a@b.example", 7] })],
  ["recipients[0].email", gift({ value: 1, recipients: [{ email: "" }] })],
  ["recipients[0].name", gift({ recipients: [{ email: "a@b.example", name: 7 }] })],
  ["recipients[0].quantity", gift({ recipients: [{ email: "a@b.example", quantity: 0 }] })],
  ["recipients[0].quantity", gift({ recipients: [{ email: "a@b.x", quantity: 1001 }] })],
  ["recipients[0].emial", gift({ recipients: [{ email: "a@b.x", emial: "x" }] })],
  ["codeQuantity", gift({ codeQuantity: 0 })],
  ["codeQuantity", gift({ codeQuantity: 5001 })],
  ["codeQuantity", gift({ codeQuantity: true })],
  ["codeQuantity", gift({ codeQuantity: 1.5 })],
  ["productId", gift({ productId: "1", ...BATCH })],
  ["productId", gift({ productId: 0, ...BATCH })],
  ["productId", gift({ productId: 2 ** 31, ...BATCH })],
  ["productId", gift({ productId: undefined, ...BATCH })],
  ["collectionId", (client) => client.send.collection({ collectionId: -1, ...BATCH })],
  ["templateId", (client) => client.send.template({ templateId: null as Any, ...BATCH })],
  ["value", gift({ value: 12.5, ...BATCH })],
  ["value", (client) => client.send.collection({ collectionId: 1, value: 0.1 + 0.2, ...BATCH })],
  ["value", gift({ value: "12,50", ...BATCH })],
  ["value", gift({ value: true, ...BATCH })],
  ["value", gift({ value: NaN, ...BATCH })],
  ["value", gift({ value: Infinity, ...BATCH })],
  ["value", gift({ value: 2 ** 53, ...BATCH })],
  ["value", gift({ value: 0, ...BATCH })],
  ["value", gift({ value: Decimal.of("-0.01"), ...BATCH })],
  ["country", gift({ country: "GBR", ...BATCH })],
  ["sendAt", gift({ sendAt: "2090-01-01T00:00:00", ...BATCH })],
  ["sendAt", gift({ sendAt: "2090-13-01T00:00:00Z", ...BATCH })],
  ["sendAt", gift({ sendAt: new Date(NaN), ...BATCH })],
  ["sendAt", gift({ sendAt: 4e12, ...BATCH })],
  ["accountId", gift({ accountId: 0, ...BATCH })],
  ["externalReference", gift({ externalReference: " ", ...BATCH })],
  ["externalReference", gift({ externalReference: "x".repeat(129), ...BATCH })],
  ["externalReference", gift({ externalReference: 7, ...BATCH })],
  ["fromName", gift({ fromName: "x".repeat(33), ...BATCH })],
  ["fromName", gift({ fromName: "half of a character: \ud83c", ...BATCH })],
  ["message", gift({ message: "x".repeat(257), ...BATCH })],
  ["wrappingKey", gift({ wrappingKey: "x".repeat(65), ...BATCH })],
  ["expiryAfterDays", gift({ expiryAfterDays: 0, ...BATCH })],
  ["quote", gift({ quote: "", ...BATCH })],
  ["externalRef", gift({ externalRef: "r-1", ...BATCH })],
  ["reference", (client) => client.orders.get("../me")],
  ["reference", (client) => client.orders.cancel("")],
  ["email", (client) => client.orders.resend("0".repeat(20), " ")],
  ["after", (client) => client.orders.list({ after: -1 })],
  ["pageSize", (client) => client.orders.list({ pageSize: 51 })],
  ["limit", (client) => client.orders.newest({ limit: 0 })],
  ["pageSize", (client) => client.products.list({ pageSize: 201 })],
  ["amount", (client) => client.products.list({ amount: 5.5 })],
  ["amount", (client) => client.products.list({ amount: -1 })],
  ["currency", (client) => client.collections.list({ currency: "pound" })],
  ["id", (client) => client.webhooks.delete("7")],
  ["targetUrl", (client) => client.webhooks.create({ targetUrl: "" })],
  ["events", (client) => client.webhooks.create({ targetUrl: "https://gifts.example", events: [] })],
  ["events[1]", (client) => client.webhooks.create({ targetUrl: "https://gifts.example", events: ["gift.sent", ""] })],
  ["events", (client) => client.webhooks.create({ targetUrl: "https://gifts.example", event: "gift.sent", events: ["gift.opened"] })],
  ["targetUrl", (client) => client.webhooks.create({ targetUrl: " " })],
  ["Subscribe", (client) => client.webhooks.create("https://gifts.example" as Any)],
  ["deliveryId", (client) => client.webhooks.redeliver(uuid, 0)],
];

test("an argument that cannot be right", async () => {
  let connections = 0;
  await using server = await listen(() => {
    connections += 1;
  });
  const client = clientOf(server.url);
  for (const [argument, question] of REFUSED) {
    const error = await failure((async () => question(client))());
    assert.ok(error instanceof InvalidArgument, `${argument}: ${String(error)}`);
    assert.equal(error.argument, argument);
    assert.ok(error.message.startsWith(`\`${argument}\` `), error.message);
  }
  assert.equal(connections, 0);
});

test("a list without items is empty", async () => {
  const error = await failure(largesse.webhooks.create({ targetUrl: "https://hooks.example.com", events: [] }));
  assert.equal(error.message, "`events` must not be empty.");
});

test("a list refuses at once, before anything is asked for", () => {
  assert.throws(() => largesse.orders.list({ pageSize: 51 }), InvalidArgument);
});

test("an exact amount is as good as another", async () => {
  const { coffee, account } = await loadWorld();
  for (const value of [5, 5n, "5", "5.0", "5e0", Decimal.of("5.00")]) {
    const order = await largesse.send.gift({ productId: coffee, value, accountId: account, ...BATCH });
    assert.ok(order.value.equals(5));
  }
});

test("the longest there may be", async () => {
  const { coffee, account } = await loadWorld();
  const order = await largesse.send.gift({
    productId: coffee,
    value: 5,
    recipients: [{ email: "sam@example.com", quantity: 2 }],
    accountId: account,
    fromName: "x".repeat(32),
    message: "\u{1F381}".repeat(256),
    wrappingKey: "x".repeat(64),
    externalReference: newReference().padEnd(128, "x"),
  });
  assert.equal(order.codeCount, 2);
});

test("all that is wrong is said at once", async () => {
  const people: Any[] = [{ email: " ", quantity: 0 }, "ada@example.com", { email: "", name: "Eve" }];
  const order: Any = { productId: 0, value: 12.5, country: "GBR", recipients: people, message: "x".repeat(257), mesage: "x" };
  for (const ask of [() => largesse.send.gift(order), () => largesse.quote.gift(order)]) {
    const error = await failure(ask());
    assert.ok(error instanceof InvalidArgument);
    const wrong = error.errors.map((one) => one.argument);
    assert.deepEqual(
      [...wrong].sort(),
      ["country", "mesage", "message", "productId", "recipients[0].email", "recipients[0].quantity", "recipients[2].email", "value"],
    );
    const [first, ...listed] = error.message.split("\n");
    assert.equal(first, "8 arguments are wrong:");
    assert.deepEqual(listed, error.errors.map((one) => `- ${one.message}`));
  }
});

test("the text lists the first hundred", async () => {
  const error = await failure(largesse.send.gift({ productId: 1, value: 1, recipients: Array(300).fill("") }));
  assert.ok(error instanceof InvalidArgument);
  assert.equal(error.errors.length, 300);
  const lines = error.message.split("\n");
  assert.deepEqual([lines.length, lines[0], lines.at(-1)], [102, "300 arguments are wrong:", "- and 200 more"]);
});

test("a client that cannot work", () => {
  const settings: [string, string, Options, string?][] = [
    ["baseUrl", "gifts.example", {}],
    ["baseUrl", "ftp://gifts.example", {}],
    ["baseUrl", "https://", {}],
    ["baseUrl", "https://me:secret@gifts.example", {}],
    ["baseUrl", "https://gifts.example/?x=1", {}],
    ["baseUrl", null as Any, {}],
    ["baseUrl", "http://[::1", {}],
    ["apiKey", "https://gifts.example", {}, ""],
    ["apiKey", "https://gifts.example", {}, "lgs live"],
    ["apiKey", "https://gifts.example", {}, "lgs\r\nX: y"],
    ["apiKey", "https://gifts.example", {}, null as Any],
    ["timeoutMs", "https://gifts.example", { timeoutMs: 0 }],
    ["timeoutMs", "https://gifts.example", { timeoutMs: NaN }],
    ["attempts", "https://gifts.example", { attempts: 0 }],
    ["patienceMs", "https://gifts.example", { patienceMs: -1 }],
  ];
  for (const [argument, url, options, key = "k"] of settings) {
    assert.throws(
      () => new Largesse(url, key, options),
      (error: unknown) => {
        assert.ok(error instanceof InvalidArgument);
        assert.equal(error.argument, argument);
        assert.doesNotMatch(error.message, /secret|lgs/);
        return true;
      },
    );
  }
});

test("what webhooks.verify cannot take", async () => {
  const wrong: [string, Any, Any][] = [
    ["body", { parsed: true }, "whsec_AAAA"],
    ["secrets", "{}", "AAAA"],
    ["secrets", "{}", "whsec_A%"],
    ["secrets", "{}", "whsec_"],
    ["secrets", "{}", []],
  ];
  for (const [argument, body, secret] of wrong) {
    const error = await failure(webhooks.verify(body, {}, secret));
    assert.ok(error instanceof InvalidArgument, String(error));
    assert.equal(error.argument, argument);
    assert.doesNotMatch(error.message, /AAAA|A%/);
  }
});
