// The app against a running Largesse, which LARGESSE and LARGESSE_API_KEY name, by Zapier's own schema and tester.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Largesse } from "largesse-client";
import zapier from "zapier-platform-core";
import App from "../index.js";

const authData = { baseUrl: process.env.LARGESSE, apiKey: process.env.LARGESSE_API_KEY };
const tester = zapier.createAppTester(App);
const { triggers, creates, searches } = App;
const run = (operation, bundle = {}) => tester(operation, { authData, inputData: {}, ...bundle });
const reference = () => `zapier-${process.pid}-${process.hrtime.bigint()}`;

/** Runs `use` with a server that stores what it gets as Zapier hands it to a trigger. */
async function receiving(use) {
  const received = [];
  const server = createServer(async (request, response) => {
    let content = "";
    for await (const chunk of request) content += chunk;
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [`Http-${name}`, value]));
    received.push({ method: "POST", headers, content });
    response.writeHead(204).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${server.address().port}/hook`, received);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

async function eventually(condition) {
  const until = Date.now() + 30_000;
  while (!(await condition())) {
    assert.ok(Date.now() < until, "it did not happen");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function choices() {
  const product = (await run(triggers.product_list.operation.perform)).find((one) => one.label.startsWith("Coffee House"));
  const account = (await run(triggers.account_list.operation.perform)).find((one) => one.label.startsWith("Acme float"));
  return { productId: product.id, accountId: account.id };
}

test("the definition is valid by the schema of Zapier's own validate command", async () => {
  const { results } = await zapier.createAppHandler(App)({ command: "validate" });
  assert.deepEqual(results, []);
  const wrong = { ...App, searches: { find_order: { ...searches.find_order, noun: undefined } } };
  const { results: faults } = await zapier.createAppHandler(wrong)({ command: "validate" });
  assert.match(JSON.stringify(faults), /noun/);
});

test("credentials are tested", async () => {
  assert.equal((await run(App.authentication.test)).customerName, "Acme Ltd");
  const wrong = { authData: { ...authData, apiKey: "lgs_live_nobody" } };
  await assert.rejects(run(App.authentication.test, wrong), /unauthorized/);
});

test("a gift is sent once, however often the step runs", async () => {
  const inputData = { ...(await choices()), value: "5.00", email: "sam@example.com", name: "Sam", message: "", externalReference: reference() };
  const placed = await run(creates.send_gift.operation.perform, { inputData });
  assert.deepEqual([placed.id, placed.totalCost, placed.recipientCount, placed.codes], [placed.reference, "5.0", 1, undefined]);
  assert.deepEqual(await run(creates.send_gift.operation.perform, { inputData }), placed);
  const [found] = await run(searches.find_order.operation.perform, { inputData });
  assert.deepEqual([found.reference, found.sourceType, found.value], [placed.reference, "zapier", "5.0"]);
  await assert.rejects(run(creates.send_gift.operation.perform, { inputData: { ...inputData, email: "eve@example.com" } }), /differs in recipients/);
  await assert.rejects(run(creates.send_gift.operation.perform, { inputData: { ...inputData, value: "5,00", message: "x".repeat(257) } }), /2 arguments are wrong/);
  assert.deepEqual(await run(searches.find_order.operation.perform, { inputData: { externalReference: reference() } }), []);
});

test("blank fields are left out", async () => {
  const inputData = { ...(await choices()), value: "5.00", email: "sam@example.com", name: " ", fromName: " ", message: "\n", externalReference: reference() };
  assert.equal((await run(creates.send_gift.operation.perform, { inputData })).recipientCount, 1);
});

test("menus go on after 200 items", async () => {
  const headers = { Authorization: `Bearer ${authData.apiKey}` };
  const [product] = await (await fetch(`${authData.baseUrl}/products?limit=1`, { headers })).json();
  const server = createServer((request, response) => {
    const { page, limit } = Object.fromEntries(new URL(request.url, "http://localhost").searchParams);
    const ids = Array.from({ length: 450 }, (_, at) => at + 1).slice((page - 1) * limit, page * limit);
    response.setHeader("Content-Type", "application/json").end(JSON.stringify(ids.map((id) => ({ ...product, id }))));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const many = { ...authData, baseUrl: `http://127.0.0.1:${server.address().port}` };
  try {
    assert.equal(triggers.product_list.operation.canPaginate, true);
    const pages = [];
    for (const page of [0, 1, 2, 3]) pages.push(await run(triggers.product_list.operation.perform, { authData: many, meta: { page } }));
    assert.deepEqual(pages.map((page) => [page.length, page[0]?.id]), [[200, 1], [200, 201], [50, 401], [0, undefined]]);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
});

test("a template is sent", async () => {
  const template = (await run(triggers.template_list.operation.perform)).find((one) => one.label === "Welcome aboard");
  const { accountId } = await choices();
  const inputData = { templateId: template.id, accountId, email: "sam@example.com", externalReference: reference() };
  assert.equal((await run(creates.send_template.operation.perform, { inputData })).deliveryMode, "send");
});

test("the amounts are those of the chosen product", async () => {
  const field = creates.send_gift.operation.inputFields.find((one) => typeof one === "function");
  assert.deepEqual(await run(field), []);
  const { productId } = await choices();
  const [{ key, choices: amounts }] = await run(field, { inputData: { productId } });
  assert.equal(key, "value");
  assert.ok(amounts.includes("5.0"), amounts);
  const hamper = (await run(triggers.product_list.operation.perform)).find((one) => one.label.startsWith("Autumn hamper"));
  assert.deepEqual(await run(field, { inputData: { productId: hamper.id } }), []);
});

test("an order starts a Zap, and a forged one does not", async () => {
  await receiving(async (targetUrl, received) => {
    const hook = triggers.order_created.operation;
    const subscribeData = await run(hook.performSubscribe, { targetUrl });
    const inputData = { ...(await choices()), value: "5", email: "sam@example.com", externalReference: reference() };
    const placed = await run(creates.send_gift.operation.perform, { inputData });
    await eventually(() => received.length);
    const [order] = await run(hook.perform, { subscribeData, rawRequest: received[0] });
    assert.deepEqual([order.reference, order.value], [placed.reference, "5.0"]);
    assert.deepEqual((await run(hook.performList))[0], order);
    const forged = { ...received[0], content: received[0].content.replace(placed.reference, "0".repeat(20)) };
    await assert.rejects(run(hook.perform, { subscribeData, rawRequest: forged }), /does not match/);
    for (let times = 0; times < 2; times += 1) assert.deepEqual(await run(hook.performUnsubscribe, { subscribeData }), { id: subscribeData.id });
  });
});

test("gifts that are claimed or bounce start a Zap", async () => {
  for (const [trigger, event] of [[triggers.gift_claimed, "gift.claimed"], [triggers.gift_bounced, "gift.bounced"]]) {
    await receiving(async (targetUrl, received) => {
      const subscribeData = await run(trigger.operation.performSubscribe, { targetUrl });
      await new Largesse(authData.baseUrl, authData.apiKey).webhooks.test(subscribeData.id);
      await eventually(() => received.length);
      const [gift] = await run(trigger.operation.perform, { subscribeData, rawRequest: received[0] });
      assert.equal(gift.event, event);
      assert.deepEqual(Object.keys(gift).sort(), ["customerId", ...Object.keys(trigger.operation.sample)].sort());
      for (const one of await run(trigger.operation.performList)) assert.equal(one.event, event);
      await run(trigger.operation.performUnsubscribe, { subscribeData });
    });
  }
});
