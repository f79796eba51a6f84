// Answers get lost: orders with references are placed once all the same, and those without are sent once.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { before, test } from "node:test";
import { type Largesse, NoAnswer, Unreachable } from "largesse-client";
import { all, balanceOf, clientOf, dropAnswers, failure, largesse, listen, loadWorld, newReference, receive, type World } from "./support.js";

const ORDERS = Number(process.env.CLIENT_ORDERS ?? "100");
let world: World;
before(async () => {
  world = await loadWorld();
});

test("every order is placed once", async (context) => {
  await using proxy = await dropAnswers(3);
  const client = clientOf(proxy.url, { attempts: 20 });
  const start = await balanceOf(world.account);
  const after = (await largesse.orders.newest({ limit: 1 }))[0]?.id ?? 0;
  const references = Array.from({ length: ORDERS }, newReference);
  const heard: string[] = [];
  const left = [...references];
  const place = async () => {
    for (let externalReference = left.pop(); externalReference; externalReference = left.pop()) {
      const gift = { productId: world.coffee, value: 5, codeQuantity: 1, accountId: world.account, externalReference };
      const order = await client.send.gift(gift);
      assert.deepEqual([order.codes.length, order.externalReference], [1, externalReference]);
      heard.push(order.reference);
    }
  };
  await Promise.all(Array.from({ length: 40 }, place));
  const placed = (await all(largesse.orders.list({ after }))).map((one) => one.reference);
  const posts = proxy.seen.filter((line) => line.startsWith("POST ")).length;
  context.diagnostic(`${placed.length} orders, ${heard.length} results, ${placed.length - new Set(heard).size} doubled, ${posts} sends`);
  assert.ok(posts > ORDERS);
  assert.deepEqual([...placed].sort(), [...heard].sort());
  assert.equal(new Set(heard).size, ORDERS);
  assert.ok(start.minus(await balanceOf(world.account)).equals(5 * ORDERS));
});

test("without a reference nothing is sent twice", async () => {
  await using proxy = await dropAnswers(1);
  const start = await balanceOf(world.account);
  const gift = { productId: world.coffee, value: 5, codeQuantity: 1, accountId: world.account };
  const error = await failure(clientOf(proxy.url).send.gift(gift));
  assert.ok(error instanceof NoAnswer && !(error instanceof Unreachable) && error.requestId);
  assert.deepEqual(proxy.seen, ["POST /send/gift HTTP/1.1"]);
  assert.ok(start.minus(await balanceOf(world.account)).equals(5));
});

test("nor on a connection that was used before", async () => {
  let requests = 0;
  const me = '{"customerId":1,"customerName":"A","serviceAccountId":1,"serviceAccountName":"B","environment":"staging"}';
  await using server = await listen((socket) => {
    socket.on("data", () => {
      requests += 1;
      if (requests > 1) socket.destroy();
      else socket.write(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${me.length}\r\n\r\n${me}`);
    });
  });
  const client = clientOf(server.url);
  await client.me();
  await failure(client.send.gift({ productId: 1, codeQuantity: 1 }));
  assert.equal(requests, 2);
});

const ONCE: [string, (client: Largesse) => Promise<unknown>][] = [
  ["resend", (client) => client.orders.resend("0".repeat(20), "sam@example.com")],
  ["create", (client) => client.webhooks.create({ targetUrl: "https://gifts.example/hook" })],
  ["test", (client) => client.webhooks.test(randomUUID())],
  ["redeliver", (client) => client.webhooks.redeliver(randomUUID(), 1)],
  ["rotate", (client) => client.webhooks.rotateSecret(randomUUID())],
];

for (const [name, ask] of ONCE) {
  test(`what would happen twice is not repeated: ${name}`, async () => {
    let heard = 0;
    await using server = await listen((socket) => {
      socket.on("data", () => {
        heard += 1;
        socket.destroy();
      });
    });
    assert.ok((await failure(ask(clientOf(server.url)))) instanceof NoAnswer);
    assert.equal(heard, 1);
  });
}

test("a subscription whose end nobody confirmed has ended", async () => {
  await using receiver = await receive();
  const made = await largesse.webhooks.create({ targetUrl: receiver.url });
  await using proxy = await dropAnswers(2);
  const client = clientOf(proxy.url);
  await client.me();
  await client.webhooks.delete(made.id);
  assert.ok(!(await all(largesse.webhooks.list())).some((one) => one.id === made.id));
});

test("an answer that takes too long", async () => {
  const start = await balanceOf(world.account);
  await using silent = await listen(() => undefined);
  const client = clientOf(silent.url, { timeoutMs: 200, attempts: 2 });
  const gift = { productId: world.coffee, value: 5, codeQuantity: 1, accountId: world.account, externalReference: newReference() };
  const error = await failure(client.send.gift(gift));
  assert.ok(error instanceof NoAnswer && error.attempts === 2);
  assert.match(error.message, /did not arrive whole within 200 ms.*It may have been carried out\. It was tried 2 times\.$/);
  assert.match((await failure(client.me({ timeoutMs: 50 }))).message, /within 50 ms\) \(request id [^)]*\) It was tried 2 times\.$/);
  assert.ok(start.equals(await balanceOf(world.account)));
});

test("a signal ends a request, a pause and a list", async () => {
  await using silent = await listen(() => undefined);
  const reason = new Error("no longer wanted");
  const ending = new AbortController();
  const asked = failure(clientOf(silent.url).me({ signal: ending.signal }));
  ending.abort(reason);
  assert.equal(await asked, reason);
  assert.equal(await failure(largesse.me({ signal: AbortSignal.abort(reason) })), reason);
  const later = new AbortController();
  await using busy = await listen((socket) => {
    socket.on("data", () => {
      socket.end("HTTP/1.1 503 Busy\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n");
      setTimeout(() => later.abort(reason), 20);
    });
  });
  assert.equal(await failure(clientOf(busy.url).me({ signal: later.signal })), reason);
  const list = largesse.products.list({ pageSize: 1 }, { signal: AbortSignal.abort(reason) });
  assert.equal(await failure(list.next()), reason);
});
