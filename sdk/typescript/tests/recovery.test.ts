// After a 409: the order that holds the reference, where it is the one that was asked for; an error where it is not.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ReferenceUsed, type Order, type SendGift } from "largesse-client";
import { addressKey, differences, normalSource } from "#dist/recovery.js";
import { answerWith, balanceOf, clientOf, failure, http, largesse, loadWorld, newReference, type World } from "./support.js";

const SAM = { email: "sam@example.com", name: "Sam" };
const ADA = { email: "ada@example.com" };
const SOON = "2090-01-01T12:00:00Z";
const HELD = newReference();
let world: World;
let held: Order;
before(async () => {
  world = await loadWorld();
  held = await largesse.send.gift({ ...gift(), externalReference: HELD });
});

/** A gift with everything said. */
function gift(): SendGift {
  return {
    productId: world.coffee,
    value: "10.00",
    country: "GB",
    recipients: [SAM, { email: "Ada@Example.com", quantity: 2 }],
    accountId: world.account,
    sendAt: SOON,
    wrappingKey: "confetti",
    fromName: "Acme",
    message: "Thank you!",
    expiryAfterDays: 30,
    claimBy: "2090-02-01T00:00:00Z",
    source: "HR portal",
  };
}

test("the same again is the same order", async () => {
  const externalReference = newReference();
  const start = await balanceOf(world.account);
  const order = await largesse.send.gift({ ...gift(), externalReference });
  assert.deepEqual(await largesse.send.gift({ ...gift(), externalReference: ` ${externalReference} ` }), order);
  // Said in other words: spellings, offsets, the order of recipients, one address in two entries.
  const again = await largesse.send.gift({
    ...gift(),
    externalReference,
    value: 10,
    country: "gb",
    source: "hr-PORTAL",
    sendAt: "2090-01-01T14:00:00.000+02:00",
    recipients: ["ada@example.com", SAM, "ADA@EXAMPLE.COM"],
  });
  assert.deepEqual(again, order);
  assert.deepEqual(await largesse.send.gift({ ...gift(), externalReference, sendAt: new Date(SOON), claimBy: null }), order);
  assert.deepEqual(await largesse.send.gift({ ...gift(), externalReference, claimBy: new Date("2090-01-15T00:00:00Z") }), order);
  assert.ok(start.minus(await balanceOf(world.account)).equals(30));
});

test("a reference with a byte order mark, as the first of a CSV file may have, is the same again", async () => {
  const order = { ...gift(), externalReference: `\ufeff${newReference()}` };
  assert.deepEqual(await largesse.send.gift(order), await largesse.send.gift(order));
});

test("recipients whose address people corrected are the same", async () => {
  const request = await largesse.orders.request(held.reference);
  const sam = { email: "sam@right.example", name: "Sam", quantity: 1, wasEmail: "S•••@example.com" };
  const corrected = { ...request, recipients: [sam, ...request.recipients.filter((one) => one.name !== "Sam")] };
  const recipientsDiffer = (email: string) => {
    const body = { ...gift(), recipients: [{ email, name: "Sam" }, { ...ADA, quantity: 2 }] };
    return differences(body as never, corrected).includes("recipients");
  };
  assert.deepEqual(["sam@EXAMPLE.com", "sam@right.example", "tam@example.com", "sam@wrong.example"].map(recipientsDiffer), [false, false, true, true]);
});

test("codes of a batch come back", async () => {
  const start = await balanceOf(world.account);
  const batch = { productId: world.coffee, value: 5, codeQuantity: 3, accountId: world.account, externalReference: newReference(), sendAt: SOON };
  const order = await largesse.send.gift(batch);
  assert.deepEqual(await largesse.send.gift(batch), order);
  assert.equal(order.codes.length, 3);
  assert.ok(start.minus(await balanceOf(world.account)).equals(15));
});

test("a batch comes back without the reminders and with the filled-in message", async () => {
  const batch = { productId: world.coffee, value: 5, codeQuantity: 1, accountId: world.account, externalReference: newReference(), placeholders: true };
  const message = "{first_name} Dear {first_name|friend}, {company} thanks you (again).";
  const order = await largesse.send.gift({ ...batch, message, reminderDays: [3, 7] });
  assert.deepEqual(await largesse.send.gift({ ...batch, message, reminderDays: [3, 7] }), order);
  for (const other of [message.replace("again", "twice"), "Dear {first_name|friend}", `${message}!`]) {
    const error = await failure(largesse.send.gift({ ...batch, message: other }));
    assert.ok(error instanceof ReferenceUsed, String(error));
    assert.deepEqual(error.differences, ["message"]);
  }
});

test("a key that may not read still learns that the reference is used", async () => {
  // ScopeRequired would say that nothing was placed.
  const said = (type: string, status: number, instance: string | null) => JSON.stringify({ type: `/problems/${type}`, title: "No", status, detail: "No.", instance });
  await using server = await answerWith(
    http("409 Conflict", "application/problem+json", said("reference-used", 409, "/orders/F6Z9")),
    http("403 Forbidden", "application/problem+json", said("scope-required", 403, null)),
  );
  const error = await failure(clientOf(server.url).send.gift({ productId: 1, value: 5, codeQuantity: 1, externalReference: "once" }));
  assert.ok(error instanceof ReferenceUsed, String(error));
  assert.equal(error.orderReference, "F6Z9");
});

test("an instant is compared as the service rounds it", async () => {
  for (const fraction of ["1234565", "123456499", "9999995", "5"]) {
    const order = { ...gift(), sendAt: `2090-01-01T12:00:00.${fraction}Z`, externalReference: newReference() };
    assert.deepEqual(await largesse.send.gift(order), await largesse.send.gift(order), fraction);
  }
});

const CHANGES: [(world: World) => Partial<SendGift>, string][] = [
  [() => ({ value: 5 }), "value"],
  [() => ({ country: "IE" }), "country"],
  [() => ({ country: null, value: 25 }), "value"],
  [() => ({ recipients: [SAM, ADA] }), "recipients"],
  [() => ({ recipients: [SAM, { email: "eve@example.com", quantity: 2 }] }), "recipients"],
  [() => ({ recipients: [{ email: "sam@example.com", name: "Samuel" }, ADA, ADA] }), "recipients"],
  [() => ({ recipients: null, codeQuantity: 3 }), "codeQuantity, sendAt, recipients"],
  [({ groupAccount }) => ({ accountId: groupAccount }), "accountId"],
  [() => ({ sendAt: "2090-01-01T12:00:00.000001Z" }), "sendAt"],
  [() => ({ sendAt: null }), "sendAt"],
  [() => ({ wrappingKey: "stars" }), "wrappingKey"],
  [() => ({ wrappingKey: undefined }), "wrappingKey"],
  [() => ({ fromName: "Globex" }), "fromName"],
  [() => ({ message: null }), "message"],
  [() => ({ expiryAfterDays: 31 }), "expiryAfterDays"],
  [() => ({ claimBy: "2090-02-02T00:00:00Z" }), "claimBy"],
  [() => ({ expiryAfterDays: null }), "expiryAfterDays"],
  [() => ({ reminderDays: [3] }), "reminderDays"],
  [() => ({ source: null }), "source"],
  [({ hamper }) => ({ productId: hamper }), "productId"],
];

for (const [changes, difference] of CHANGES) {
  test(`another order is an error that names what differs: ${difference} of ${String(changes)}`, async () => {
    const start = await balanceOf(world.account);
    const error = await failure(largesse.send.gift({ ...gift(), externalReference: HELD, ...changes(world) }));
    assert.ok(error instanceof ReferenceUsed, String(error));
    assert.deepEqual([...error.differences].sort(), difference.split(", ").sort());
    assert.equal(error.orderReference, held.reference);
    assert.ok(error.requestId && error.message.includes(`Order ${held.reference} differs in `));
    assert.ok(start.equals(await balanceOf(world.account)));
  });
}

test("another kind of gift", async () => {
  const batch = { codeQuantity: 1, accountId: world.account, externalReference: newReference() };
  const { template: templateId } = world;
  const made = await largesse.send.template({ templateId, ...batch });
  assert.deepEqual(await largesse.send.template({ templateId, ...batch }), made);
  // What a template leaves to its caller is compared where the caller says it.
  assert.deepEqual(await largesse.send.template({ templateId, fromName: "Everyone at Acme", ...batch }), made);
  const others: [() => Promise<Order>, string[]][] = [
    [() => largesse.send.template({ templateId, fromName: "Bob", ...batch }), ["fromName"]],
    [() => largesse.send.gift({ productId: world.coffee, value: 10, ...batch }), ["templateId", "wrappingKey"]],
    [() => largesse.send.collection({ collectionId: world.curated, value: 10, ...batch }), ["collectionId", "productId"]],
  ];
  for (const [send, differences] of others) {
    const error = await failure(send());
    assert.ok(error instanceof ReferenceUsed);
    for (const name of differences) assert.ok(error.differences.includes(name), `${name} in ${error.differences.join()}`);
  }
});

test("a value that a custom collection ignores", async () => {
  const batch = { collectionId: world.custom, codeQuantity: 1, accountId: world.account, externalReference: newReference() };
  const made = await largesse.send.collection({ value: 1, ...batch });
  assert.ok(!made.value.equals(1));
  assert.deepEqual(await largesse.send.collection({ value: 1, ...batch }), made);
  assert.deepEqual(await largesse.send.collection(batch), made);
});

test("a value that is implied", async () => {
  const batch = { productId: world.hamper, codeQuantity: 1, accountId: world.account, externalReference: newReference() };
  const made = await largesse.send.gift(batch);
  assert.deepEqual(await largesse.send.gift(batch), made);
  assert.deepEqual(await largesse.send.gift({ value: made.value, ...batch }), made);
});

test("spellings of an address", () => {
  const pairs: [string, string, boolean][] = [
    ["Sam@Example.com", "sam@example.com", true],
    [" sam@example.com", "sam@example.com", true],
    ["sam@xn--bcher-kva.example", "sam@Bücher.example", true],
    ["zoe\u0308@example.com", "zo\u00eb@example.com", true],
    ["sam@EX\uff21MPLE\u3002com", "sam@example.com", true],
    ["sam@example.com", "sam@example.org", false],
    ["stra\u00dfe@example.com", "strasse@example.com", false],
  ];
  for (const [one, other, same] of pairs) assert.equal(addressKey(one) === addressKey(other), same, `${one} ${other}`);
});

test("sources as orders store them", async () => {
  const sources: [string | null, string][] = [
    [null, "api"],
    ["HR  Portal!", "hr-portal"],
    ["--", "api"],
    ["a".repeat(40), "a".repeat(32)],
    [`${"x".repeat(31)} y`, "x".repeat(31)],
  ];
  for (const [source, stored] of sources) {
    assert.equal(normalSource(source), stored);
    const order = await largesse.send.gift({ productId: world.coffee, value: 5, codeQuantity: 1, accountId: world.account, source });
    assert.equal((await largesse.orders.request(order.reference)).source, stored);
  }
});
