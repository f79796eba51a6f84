// Every operation, on a real service.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { randomUUID } from "node:crypto";
import {
  Decimal,
  InsufficientBalance,
  InvalidRequest,
  Largesse,
  NotFound,
  Problem,
  QuoteChanged,
  TooManyRequests,
  Unauthorized,
} from "largesse-client";
import { all, balanceOf, BASE_URL, eventually, failure, largesse, loadWorld, newReference, receive, type World } from "./support.js";

const SAM = { email: "sam@example.com", name: "Sam" };
let world: World;
before(async () => {
  world = await loadWorld();
});

test("the key, the service and the people", async () => {
  const me = await largesse.me();
  assert.deepEqual([me.customerName, me.environment], ["Acme Ltd", "production"]);
  assert.equal((await largesse.health()).status, "pass");
  const people = await all(largesse.users.list({ pageSize: 1 }));
  assert.ok(people.some((one) => one.email === "ada@acme.example"));
});

test("the catalogue", async () => {
  const products = await all(largesse.products.list({ pageSize: 3 }));
  assert.deepEqual(products, await all(largesse.products.list()));
  assert.equal(new Set(products.map((one) => one.id)).size, products.length);
  assert.ok(products.length > 6);
  const hamper = await largesse.products.get(world.hamper, { country: "IE" });
  assert.ok(hamper.totalPrice instanceof Decimal);
  assert.match(hamper.totalPrice.toString(), /^\d+\.\d{1,2}$/);
  assert.notDeepEqual(hamper, await largesse.products.get(world.hamper));
  assert.equal(typeof hamper.picture, "string");
  assert.equal(typeof hamper.description, "string");
  const cheap = await all(largesse.products.list({ currency: "gbp", amount: "5.00", keyword: "coffee" }));
  assert.deepEqual(cheap.map((one) => one.id), [world.coffee]);
  assert.deepEqual(await all(largesse.products.list({ amount: "0.001" })), []);
  const curated = await largesse.collections.get(world.curated);
  const listed = await all(largesse.collections.list({ country: "GB", currency: "GBP", amount: 1000 }));
  assert.deepEqual(listed.find((one) => one.id === world.curated), curated);
  assert.ok(curated.valuePoints.length > 0 && curated.valuePoints.every((point) => point instanceof Decimal));
  assert.ok((await all(largesse.wrappings.list())).some((one) => one.key === "confetti"));
  assert.deepEqual(await all(largesse.templates.list({ pageSize: 2 })), await all(largesse.templates.list()));
});

test("a gift by mail", async () => {
  const at = new Date(Date.now() + 86_400_000);
  const externalReference = newReference();
  const order = await largesse.send.gift({
    productId: world.coffee,
    value: 10,
    country: "GB",
    recipients: [SAM, "ada@example.com"],
    accountId: world.account,
    externalReference,
    sendAt: at,
    wrappingKey: "confetti",
    fromName: "Zoë",
    message: "Thank you!",
    expiryAfterDays: 30,
    source: "HR portal",
  });
  assert.ok(order.value.equals(10) && order.totalCost.equals(20));
  assert.deepEqual([order.currency, order.deliveryMode, order.codes], ["GBP", "send", []]);
  assert.equal(Date.parse(order.scheduledFor!), at.getTime());
  assert.deepEqual(await largesse.orders.get(order.reference), order);
  const request = await largesse.orders.request(order.reference);
  assert.deepEqual([request.externalReference, request.source], [externalReference, "hr-portal"]);
  const deliveries = await all(largesse.orders.deliveries(order.reference, { pageSize: 1 }));
  assert.deepEqual(deliveries.map((one) => one.email), ["sam@example.com", "ada@example.com"]);
  assert.deepEqual(new Set(deliveries.map((one) => one.state)), new Set(["scheduled"]));
  assert.equal((await largesse.orders.newest({ limit: 1 }))[0]?.reference, order.reference);
  assert.equal((await largesse.orders.newest({ externalReference }))[0]?.reference, order.reference);
  const cancelled = await largesse.orders.cancel(order.reference);
  assert.equal(cancelled.cancelledCount, 2);
  assert.ok(cancelled.refunded.equals("20.00"));
  assert.deepEqual(await largesse.orders.cancel(order.reference), cancelled);
});

test("a collection and a template as codes", async () => {
  for (const order of [
    await largesse.send.collection({ collectionId: world.curated, value: 25, codeQuantity: 2, accountId: world.account }),
    await largesse.send.template({ templateId: world.template, codeQuantity: 2, accountId: world.account }),
  ]) {
    assert.equal(new Set(order.codes.map((one) => one.code)).size, 2);
    assert.equal(order.deliveryMode, "manual");
    assert.deepEqual(await largesse.orders.get(order.reference), order);
  }
});

test("quotes", async () => {
  const before = await balanceOf(world.account);
  const asked = { codeQuantity: 2, accountId: world.account };
  const quotes = [
    await largesse.quote.gift({ productId: world.coffee, value: 5, country: "GB", ...asked }),
    await largesse.quote.collection({ collectionId: world.curated, value: 25, ...asked }),
    await largesse.quote.template({ templateId: world.template, ...asked }),
  ];
  assert.deepEqual(quotes.map((one) => one.totalCost.toFixed(2)), ["10.00", "50.00", "20.00"]);
  assert.deepEqual(quotes.map((one) => before.minus(one.balanceAfter!).toFixed(2)), ["10.00", "50.00", "20.00"]);
  assert.ok(before.equals(await balanceOf(world.account)));
  const { quote } = quotes[0]!;
  const order = await largesse.send.gift({ productId: world.coffee, value: 5, quote, ...asked });
  assert.ok(before.minus(await balanceOf(world.account)).equals(10) && order.totalCost.equals(10));
  await assert.rejects(largesse.send.gift({ productId: world.coffee, value: 10, quote, ...asked }), QuoteChanged);
  const wrong = largesse.quote.gift({ productId: world.coffee, value: 6, country: "ZZ", recipients: ["x@"], accountId: 1 });
  const error = (await failure(wrong)) as unknown as Problem;
  assert.ok(error instanceof InvalidRequest);
  assert.ok(error.errors.length > 1);
  assert.deepEqual(error.message.split("\n").slice(1), error.errors.map((one) => `- ${one.pointer}: ${one.detail}`));
});

test("contacts", async () => {
  const externalId = newReference();
  const contact = { email: `${externalId}@example.com`, name: "Sam", country: "GB", groups: ["TypeScript"], address: "1 High Street" };
  const made = await largesse.contacts.create({ ...contact, externalId });
  assert.deepEqual([made.name, made.groups, made.address], ["Sam", ["TypeScript"], "1 High Street"]);
  assert.deepEqual(await largesse.contacts.get(made.id), made);
  const changed = await largesse.contacts.change(made.id, { country: null, address: null, groups: [] });
  assert.deepEqual([changed.name, changed.country, changed.address, changed.groups], ["Sam", null, null, []]);
  const saved = await largesse.contacts.save([{ externalId, email: contact.email, name: null, country: "IE" }]);
  assert.deepEqual(saved, { created: 0, changed: 1, ids: [made.id] });
  const [found] = await all(largesse.contacts.list({ q: externalId, active: true, pageSize: 1 }));
  assert.deepEqual([found?.id, found?.name, found?.country], [made.id, "", "IE"]);
  await largesse.contacts.delete(made.id);
  await assert.rejects(largesse.contacts.get(made.id), NotFound);
});

test("orders are listed page by page", async () => {
  const after = (await largesse.orders.newest({ limit: 1 }))[0]?.id ?? 0;
  const sent = [];
  for (let at = 0; at < 5; at += 1) {
    sent.push((await largesse.send.gift({ productId: world.coffee, value: 5, codeQuantity: 1, accountId: world.account })).reference);
  }
  const listed = await all(largesse.orders.list({ after, pageSize: 2 }));
  assert.deepEqual(listed.map((one) => one.reference), sent);
  assert.deepEqual(listed.map((one) => one.id), listed.map((one) => one.id).sort((one, other) => one - other));
  // As of a program that has stored no id yet.
  const { value: first } = await largesse.orders.list({ after: undefined }).next();
  assert.deepEqual(first, (await largesse.orders.list().next()).value);
});

test("events are followed page by page", async () => {
  const after = (await largesse.events.newest({ limit: 1 }))[0]?.cursor ?? "start";
  const { reference } = await largesse.send.gift({ productId: world.coffee, value: 5, codeQuantity: 3, accountId: world.account });
  await largesse.orders.cancel(reference);
  const ofOrder = async () => {
    const found = await all(largesse.events.list({ after, pageSize: 2 }));
    return found.filter((one) => one.event !== "account.low" && one.data.reference === reference);
  };
  await eventually(async () => (await ofOrder()).length === 4);
  const [placed, ...cancelled] = await ofOrder();
  assert.ok(placed?.event === "order.created" && placed.data.value.equals(5));
  assert.deepEqual(
    cancelled.map((one) => one.event === "gift.cancelled" && one.data.number),
    [1, 2, 3],
  );
  assert.deepEqual(await all(largesse.events.list({ after: cancelled.at(-1)!.cursor })), []);
});

test("mail is sent again", async () => {
  const { reference } = await largesse.send.gift({ productId: world.coffee, value: 5, recipients: [SAM], accountId: world.account });
  const hasLeft = async (times: number) => {
    const [one] = await all(largesse.orders.deliveries(reference));
    return one?.sentAt && one.resends === times;
  };
  for (let times = 0; times < 5; times += 1) {
    await eventually(() => hasLeft(times));
    const again = await largesse.orders.resend(reference, "sam@example.com", { resends: times });
    assert.deepEqual([again.email, again.resends], ["sam@example.com", times + 1]);
  }
  await eventually(() => hasLeft(5));
  const refused = await failure(largesse.orders.resend(reference, "sam@example.com"));
  assert.ok(refused instanceof TooManyRequests && refused.retryAfterMs);
});

test("subscriptions", async () => {
  await using receiver = await receive();
  const several = await largesse.webhooks.create({ targetUrl: receiver.url, events: ["gift.claimed", "order.created"] });
  assert.deepEqual([several.event, several.events], [null, ["gift.claimed", "order.created"]]);
  assert.equal((await largesse.webhooks.test(several.id, { event: "order.created" })).event, "order.created");
  const rotated = await largesse.webhooks.rotateSecret(several.id);
  assert.notEqual(rotated.secret, several.secret);
  assert.equal(await largesse.webhooks.delete(several.id), undefined);
  const made = await largesse.webhooks.create({ targetUrl: receiver.url, ...({ event: undefined } as object) });
  assert.equal(made.event, "order.created");
  assert.ok((await all(largesse.webhooks.list())).some((one) => one.id === made.id));
  const sample = await largesse.webhooks.test(made.id);
  assert.equal(sample.orderId, null);
  await eventually(async () => (await all(largesse.webhooks.deliveries(made.id)))[0]?.state === "delivered");
  const again = await largesse.webhooks.redeliver(made.id, sample.id);
  assert.deepEqual([again.id, again.state], [sample.id, "pending"]);
  await largesse.webhooks.test(made.id);
  await eventually(() => receiver.received.length >= 3);
  const listed = await all(largesse.webhooks.deliveries(made.id, { pageSize: 1 }));
  assert.deepEqual([listed.length, listed.at(-1)?.id], [2, sample.id]);
  await largesse.webhooks.delete(made.id);
  await assert.rejects(largesse.webhooks.delete(made.id), NotFound);
});

test("problems have their classes", async () => {
  const questions: [() => Promise<unknown>, typeof Problem, number][] = [
    [() => largesse.orders.get("0".repeat(20)), NotFound, 404],
    [() => largesse.products.get(2 ** 31 - 1), NotFound, 404],
    [() => largesse.webhooks.delete(randomUUID()), NotFound, 404],
    [() => largesse.send.gift({ productId: 2 ** 31 - 1, codeQuantity: 1, accountId: 1 }), InvalidRequest, 400],
    [() => largesse.webhooks.create({ targetUrl: "https://10.0.0.1/hook" }), InvalidRequest, 400],
  ];
  for (const [question, kind, status] of questions) {
    const problem = (await failure(question())) as unknown as Problem;
    assert.ok(problem instanceof kind);
    assert.deepEqual([problem.name, problem.status, problem.type], [kind.name, status, `/problems/${kind.slug}`]);
    assert.ok(problem.requestId && problem.message.includes(problem.requestId) && problem.message.includes(problem.detail!));
  }
});

test("wrong recipients are all named", async () => {
  const recipients = ["sam@example.com", "Sam", "y@.example"];
  const error = await failure(largesse.send.gift({ productId: world.coffee, value: 5, recipients, accountId: world.account }));
  assert.ok(error instanceof InvalidRequest);
  assert.deepEqual(error.errors.map((one) => one.pointer), ["#/recipients/1/email", "#/recipients/2/email"]);
});

test("an account that is too small", async () => {
  const before = await balanceOf(world.groupAccount);
  const order = { productId: world.coffee, value: 25, codeQuantity: 5000, accountId: world.groupAccount };
  await assert.rejects(largesse.send.gift(order), InsufficientBalance);
  assert.ok(before.equals(await balanceOf(world.groupAccount)));
});

test("an unknown key is not shown", async () => {
  const client = new Largesse(BASE_URL, "lgs_live_nobody");
  const error = await failure(client.me());
  assert.ok(error instanceof Unauthorized);
  const { inspect } = await import("node:util");
  assert.doesNotMatch(`${inspect(error, { depth: 9 })} ${inspect(client, { depth: 9 })}`, /lgs_live_nobody/);
});

test("codes and secrets are not shown by accident", async () => {
  const { inspect } = await import("node:util");
  const order = await largesse.send.gift({ productId: world.coffee, value: 5, codeQuantity: 1, accountId: world.account });
  const [code] = order.codes;
  const shown = inspect(order, { depth: 9 });
  assert.ok(shown.includes(order.reference) && !shown.includes(code!.pin) && !shown.includes(code!.code));
  await using receiver = await receive();
  const made = await largesse.webhooks.create({ targetUrl: receiver.url });
  const rotated = await largesse.webhooks.rotateSecret(made.id);
  assert.ok(!inspect([made, rotated]).includes("whsec_"));
  await largesse.webhooks.delete(made.id);
});

test("what the service ignores is reported", async () => {
  const ignored: unknown[] = [];
  // A fetch that adds a parameter, as a newer client would.
  const later: typeof fetch = (url, init) => fetch(`${String(url)}&later=1`, init);
  const client = new Largesse(BASE_URL, process.env.LARGESSE_API_KEY!, { fetch: later, onIgnored: (one) => ignored.push([one.operation, one.names]) });
  await client.orders.newest({ limit: 1 });
  assert.deepEqual(ignored, [["listOrders", ["later"]]]);
});
