// Deliveries as a real service makes them, and everything that was changed about them.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { before, test } from "node:test";
import { InvalidSignature, InvalidWebhook, StaleWebhook, webhooks } from "largesse-client";
import { verify } from "largesse-client/webhooks";
import { eventually, failure, largesse, loadWorld, receive } from "./support.js";

type Headers = Record<string, string>;
let headers: Headers, body: Buffer, secret: string, reference: string;

before(async () => {
  const { coffee, account } = await loadWorld();
  await using receiver = await receive();
  const made = await largesse.webhooks.create({ targetUrl: receiver.url });
  ({ reference } = await largesse.send.gift({ productId: coffee, value: 5, codeQuantity: 1, accountId: account }));
  await eventually(() => receiver.received.length);
  ({ headers, body } = receiver.received[0]!);
  ({ secret } = made);
  await largesse.webhooks.delete(made.id);
});

const isStandard = ([name]: [string, string]) => name.toLowerCase().startsWith("webhook-");
const contract = (given: Headers): Headers => Object.fromEntries(Object.entries(given).filter((one) => !isStandard(one)));
const standard = (given: Headers): Headers => Object.fromEntries(Object.entries(given).filter(isStandard));
const cased = (given: Headers, change: (name: string) => string): Headers =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [change(name), value]));

test("a genuine delivery", async () => {
  for (const given of [headers, cased(headers, (name) => name.toUpperCase()), new globalThis.Headers(headers), Object.entries(headers)]) {
    const event = await largesse.webhooks.verify(body, given, secret);
    assert.ok(event.event === "order.created");
    assert.equal(event.id, headers["webhook-id"]);
    assert.ok(Math.abs(event.sentAt!.getTime() - Date.now()) < 60_000);
    assert.equal(event.data.reference, reference);
    assert.ok(event.data.value.equals(5));
  }
  const raw = body.buffer.slice(body.byteOffset, body.byteOffset + body.length) as ArrayBuffer;
  for (const given of [raw, body.toString(), new Uint8Array(body)]) {
    assert.equal((await verify(given, standard(headers), secret)).event, "order.created");
  }
  assert.equal((await verify(body, { ...headers, "x-other": ["a", "b"], cookie: undefined }, secret)).event, "order.created");
});

test("while a secret is rotated either verifies, and several may be given", async () => {
  await using receiver = await receive();
  const made = await largesse.webhooks.create({ targetUrl: receiver.url });
  const rotated = await largesse.webhooks.rotateSecret(made.id);
  await largesse.webhooks.test(made.id);
  await eventually(() => receiver.received.length);
  const { headers, body } = receiver.received[0]!;
  for (const one of [made.secret, rotated.secret, [made.secret, rotated.secret], [OTHER, rotated.secret]]) {
    for (const given of [headers, contract(headers)]) {
      assert.equal((await verify(body, given, one, { toleranceMs: null })).event, "order.created");
    }
  }
  await assert.rejects(verify(body, headers, OTHER), InvalidSignature);
  await assert.rejects(verify(body, headers, [OTHER, OTHER]), InvalidSignature);
  await largesse.webhooks.delete(made.id);
});

test("the contract's signature alone does not say when", async () => {
  const error = await failure(verify(body, contract(headers), secret));
  assert.ok(error instanceof StaleWebhook);
  assert.match(error.message, /toleranceMs: null/);
  const event = await verify(body, contract(headers), secret, { toleranceMs: null });
  assert.deepEqual([event.event, event.id, event.sentAt], ["order.created", null, null]);
});

test("what was changed is refused", async () => {
  for (const keep of [(given: Headers) => given, contract, standard]) {
    const given = keep(headers);
    for (const [text, key] of [[`${body} `, secret], [body.subarray(0, -1), secret], ["", secret], [body, OTHER]] as const) {
      await assert.rejects(verify(text, given, key, { toleranceMs: null }), InvalidSignature);
    }
    for (const name of Object.keys(given).filter((one) => /^(webhook-|x-service-signature)/i.test(one))) {
      for (const value of ["", "x", "é", `${given[name]}0`, "v1,", "sha256="]) {
        await assert.rejects(verify(body, { ...given, [name]: value }, secret, { toleranceMs: null }), InvalidSignature, `${name}: ${value}`);
      }
    }
  }
});

test("one wrong signature beside a right one is refused", async () => {
  const wrong = { ...cased(headers, (name) => name.toLowerCase()), "x-service-signature": `sha256=${"0".repeat(64)}` };
  assert.match((await failure(verify(body, wrong, secret))).message, /X-Service-Signature/);
  const other = { ...headers, "webhook-signature": "v1,AAAA" };
  assert.match((await failure(verify(body, other, secret))).message, /webhook-signature/);
});

test("a name in the header that the signed body does not have is refused", async () => {
  const other = { ...cased(headers, (name) => name.toLowerCase()), "x-service-event": "gift.claimed" };
  const error = await failure(verify(body, other, secret));
  assert.ok(error instanceof InvalidWebhook && !(error instanceof InvalidSignature));
});

test("one of several standard signatures is enough", async () => {
  const several = `v1a,AAAA v1,AAAA ${headers["webhook-signature"]}`;
  assert.ok((await verify(body, { ...headers, "webhook-signature": several }, secret)).id);
});

test("nothing signed", async () => {
  const error = await failure(verify(body, { "X-Service-Event": "order.created" }, secret, { toleranceMs: null }));
  assert.ok(error instanceof InvalidSignature);
  assert.match(error.message, /no signature/);
});

const SECRET = `whsec_${Buffer.alloc(33).toString("base64")}`;
const OTHER = `whsec_${Buffer.alloc(33, "x").toString("base64")}`;

function signed(key: string, text: string, at: string, id = "7"): Headers {
  const digest = createHmac("sha256", Buffer.from(key.slice(6), "base64")).update(`${id}.${at}.${text}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": `v1,${digest}` };
}

const secondsAgo = (age: number) => String(Math.floor(Date.now() / 1_000) - age);

test("an old delivery is stale", async () => {
  for (const age of [-310, 310, 10 ** 9, -(10 ** 9)]) {
    const given = signed(SECRET, "{}", secondsAgo(age));
    await assert.rejects(verify("{}", given, SECRET), StaleWebhook);
    assert.ok((await verify("{}", given, SECRET, { toleranceMs: null })).sentAt);
    assert.ok((await verify("{}", given, SECRET, { toleranceMs: (Math.abs(age) + 60) * 1_000 })).sentAt);
  }
});

test("an instant that is none", async () => {
  for (const at of ["", "now", "-1", "1e9", "9".repeat(12), "1 "]) {
    await assert.rejects(verify("{}", signed(SECRET, "{}", at), SECRET, { toleranceMs: null }), InvalidSignature);
  }
});

test("a tolerance that is none", async () => {
  for (const toleranceMs of [NaN, -1]) {
    await assert.rejects(verify("{}", signed(SECRET, "{}", secondsAgo(10 ** 6)), SECRET, { toleranceMs }), /`toleranceMs` must be at least 0/);
  }
});

test("within the tolerance", async () => {
  for (const age of [0, 290, -290]) assert.equal((await verify("{}", signed(SECRET, "{}", secondsAgo(age)), SECRET)).id, "7");
  assert.equal(webhooks.TOLERANCE_MS, 300_000);
});

test("secrets of the first releases", async () => {
  const raw = Buffer.from("fbff".repeat(16), "hex");
  const now = `whsec_${raw.toString("base64")}`;
  const then = `whsec_${raw.toString("base64url")}`;
  assert.ok((await verify("{}", signed(now, "{}", secondsAgo(0)), then)).id);
});

test("an event is read as what it is about", async () => {
  const about = { customerId: 1, occurredAt: "2030-01-02T09:00:00Z", more: 1 };
  const read = (data: object) => verify(JSON.stringify(data), signed(SECRET, JSON.stringify(data), secondsAgo(0)), SECRET);
  const claimed = await read({ id: "evt_1", event: "gift.claimed", reference: "F", number: 2, recipient: null, ...about });
  assert.ok(claimed.event === "gift.claimed" && claimed.data.number === 2);
  const account = { accountId: 3, accountName: "Float", currency: "GBP", balance: 40.1, below: 50 };
  const low = await read({ id: "evt_2", event: "account.low", ...account, ...about });
  assert.ok(low.event === "account.low" && low.data.balance.equals("40.10") && low.data.below.equals(50));
  const later = await read({ event: "gift.returned", amount: 0.1 });
  assert.equal(JSON.stringify(later.data), '{"event":"gift.returned","amount":"0.1"}');
  await assert.rejects(read({ event: "gift.claimed" }), /`id` is missing/);
  await assert.rejects(verify("x", signed(SECRET, "x", secondsAgo(0)), SECRET), InvalidWebhook);
});
