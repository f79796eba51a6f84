// The nodes against a running Largesse, which LARGESSE and LARGESSE_API_KEY name. `functions` stands for what n8n gives a node.

const assert = require("node:assert/strict");
const { createServer } = require("node:http");
const { test } = require("node:test");
const { Expression, NodeApiError, NodeOperationError, NodeHelpers } = require("n8n-workflow");
const { Largesse } = require("../dist/nodes/Largesse/Largesse.node.js");
const { LargesseTrigger } = require("../dist/nodes/LargesseTrigger/LargesseTrigger.node.js");
const { LargesseApi } = require("../dist/credentials/LargesseApi.credentials.js");

const CREDENTIALS = { baseUrl: `${process.env.LARGESSE}/`, apiKey: process.env.LARGESSE_API_KEY };
const node = new Largesse();
const trigger = new LargesseTrigger();
const reference = () => `n8n-${process.pid}-${process.hrtime.bigint()}`;

/** Returns what n8n gives a node: its parameters by item, its credentials, and requests that carry them. */
function functions(items, more = {}) {
  const stored = {};
  const self = {
    getNode: () => ({ name: "Largesse", type: "largesse", typeVersion: 1, parameters: {} }),
    getInputData: () => items.map((json) => ({ json })),
    getNodeParameter: (name, item, fallback) => items[item ?? 0]?.[name] ?? fallback,
    getCurrentNodeParameter: (name) => items[0]?.[name],
    getCredentials: async () => CREDENTIALS,
    getTimezone: () => "America/New_York",
    getWorkflowStaticData: () => stored,
    continueOnFail: () => false,
    helpers: {
      returnJsonArray: (all) => all.map((json) => ({ json })),
      async httpRequestWithAuthentication(name, { method, baseURL, url, body, qs }) {
        assert.equal(name, new LargesseApi().name);
        const query = new URLSearchParams(Object.entries(qs ?? {}).map(([key, value]) => [key, String(value)]));
        const header = new LargesseApi().authenticate.properties.headers.Authorization;
        const response = await fetch(`${baseURL}${url}?${query}`, {
          method,
          headers: { Authorization: header.replace(/^=/, "").replace("{{$credentials.apiKey}}", CREDENTIALS.apiKey), "Content-Type": "application/json" },
          body: body && JSON.stringify(body),
        });
        const text = await response.text();
        return { statusCode: response.status, body: text ? JSON.parse(text) : undefined };
      },
    },
    ...more,
  };
  return self;
}

const run = async (...items) => (await node.execute.call(functions(items)))[0].map(({ json }) => json);
const menu = async (name, label) => (await node.methods.loadOptions[name].call(functions([{}]))).find((one) => one.name.startsWith(label)).value;

async function gift(more = {}) {
  const productId = await menu("getProducts", "Coffee House");
  const accountId = await menu("getAccounts", "Acme float");
  return { operation: "send", productId, accountId, value: "5.00", email: "sam@example.com", externalReference: reference(), ...more };
}

test("the descriptions are whole", () => {
  for (const { description } of [node, trigger]) {
    assert.deepEqual(description.credentials, [{ name: new LargesseApi().name, required: true }]);
    const parameters = NodeHelpers.getNodeParameters(description.properties, {}, true, false, null, description);
    assert.ok(parameters);
    assert.equal(new Set(description.properties.map((one) => `${one.name} ${JSON.stringify(one.displayOptions)}`)).size, description.properties.length);
  }
  assert.equal(typeof Expression, "function");
});

test("a gift is sent once, however often the node runs", async () => {
  const item = await gift({ additionalFields: { name: "Sam", message: "Thank you!", sendAt: "2090-01-01T00:00:00Z" } });
  const [placed] = await run(item);
  assert.deepEqual([placed.totalCost, placed.recipientCount, placed.codes], [5, 1, undefined]);
  assert.deepEqual(await run(item, { ...item, email: "SAM@example.com" }), [placed, placed]);
  const [found] = await run({ operation: "find", externalReference: item.externalReference });
  assert.deepEqual([found.reference, found.sourceType], [placed.reference, "n8n"]);
  assert.deepEqual(await run({ operation: "find", externalReference: reference() }), []);
  for (const [change, name] of [
    [{ email: "eve@example.com" }, "recipients"],
    [{ value: "10" }, "value"],
    [{ additionalFields: { ...item.additionalFields, message: "" } }, "message"],
    [{ additionalFields: { ...item.additionalFields, sendAt: "2090-01-01T00:00:01Z" } }, "sendAt"],
  ]) {
    await assert.rejects(run({ ...item, ...change }), (error) => error instanceof NodeOperationError && error.message.includes(`differs in ${name}`));
  }
});

test("blank texts are left out, and an address is the same in any spelling", async () => {
  const item = await gift({ email: "rene\u0301@example.com", additionalFields: { name: " ", fromName: " ", message: "\n" } });
  const [placed] = await run(item);
  assert.deepEqual(await run(item), [placed]);
  const abroad = await gift({ email: "sam@xn--bcher-kva.example" });
  const [sent] = await run(abroad);
  assert.deepEqual(await run(abroad, { ...abroad, email: "Sam@b\u00fccher.example" }), [sent, sent]);
});

test("ids that are numbers are references, and an item without one sends and finds nothing", async () => {
  const externalReference = Number(process.hrtime.bigint() % 10n ** 15n);
  const item = await gift({ externalReference, additionalFields: { message: 7 } });
  const [placed] = await run(item);
  assert.deepEqual([placed.externalReference, await run(item)], [String(externalReference), [placed]]);
  assert.equal((await run({ operation: "find", externalReference }))[0].reference, placed.reference);
  for (const nothing of ["", " ", undefined, null]) {
    for (const operation of ["send", "find"]) await assert.rejects(run({ ...item, operation, externalReference: nothing }), /has no Reference/);
  }
});

test("a time without an offset is one of the workflow's time zone", async () => {
  const at = async (sendAt) => (await run(await gift({ additionalFields: { sendAt } })))[0].scheduledFor;
  assert.equal(await at("2090-01-01T09:00:00"), "2090-01-01T14:00:00Z");
  assert.equal(await at("2090-01-01T09:00:00+01:00"), "2090-01-01T08:00:00Z");
  await assert.rejects(at("tomorrow"), /Send At must be a date, not "tomorrow"/);
});

test("menus have the items of all pages", async () => {
  const items = Array.from({ length: 450 }, (_, at) => ({ id: at + 1, name: `Gift ${at + 1}` }));
  const asked = [];
  const paged = functions([{}], {
    helpers: {
      async httpRequestWithAuthentication(name, { qs: { page, offset, limit } }) {
        const from = offset ?? (page - 1) * limit;
        asked.push(from);
        return { statusCode: 200, body: items.slice(from, from + limit) };
      },
    },
  });
  for (const menu of ["getProducts", "getTemplates"]) {
    assert.deepEqual((await node.methods.loadOptions[menu].call(paged)).map(({ value }) => value), items.map(({ id }) => id));
  }
  assert.deepEqual(asked, [0, 200, 400, 0, 200, 400]);
});

test("a template is sent", async () => {
  const item = await gift({ operation: "sendTemplate", templateId: await menu("getTemplates", "Welcome aboard") });
  const [placed] = await run(item);
  assert.equal(placed.deliveryMode, "send");
  assert.deepEqual(await run(item), [placed]);
});

test("what is refused is said", async () => {
  const refused = await gift({ email: "nobody" });
  await assert.rejects(run(refused), (error) => error instanceof NodeApiError && /recipients\[0\]\.email/.test(`${error.message} ${error.description}`));
  await assert.rejects(run(await gift({ value: "5,00" })), /such as 12.50/);
  const going = functions([refused, await gift()], { continueOnFail: () => true });
  const [[first, second]] = await node.execute.call(going);
  assert.ok(first.json.error && second.json.reference);
});

test("the trigger subscribes once, takes what is signed, and unsubscribes", async () => {
  const received = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    received.push({ headers: request.headers, rawBody: Buffer.concat(parts) });
    response.writeHead(204).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}/hook`;
  const answers = [];
  const self = functions([{ events: ["order.created", "gift.claimed"] }], {
    getNodeWebhookUrl: () => url,
    getRequestObject: () => received.at(-1),
    getResponseObject: () => ({ status: (status) => ({ json: () => answers.push(status) }) }),
  });
  const { checkExists, create, delete: remove } = trigger.webhookMethods.default;
  try {
    assert.equal(await checkExists.call(self), false);
    assert.equal(await create.call(self), true);
    assert.equal(await checkExists.call(self), true);
    const [placed] = await run(await gift());
    const until = Date.now() + 30_000;
    const isPlaced = () => received.at(-1)?.rawBody.includes(placed.reference);
    // An order placed just before may be announced first.
    while (!isPlaced() && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 20));
    const { workflowData } = await trigger.webhook.call(self);
    assert.equal(workflowData[0][0].json.reference, placed.reference);
    const taken = received.at(-1);
    received.push({ ...taken, rawBody: Buffer.concat([taken.rawBody, Buffer.from(" ")]) });
    assert.deepEqual(await trigger.webhook.call(self), { noWebhookResponse: true });
    received.push({ ...taken, headers: { ...taken.headers, "webhook-timestamp": "1000000000" } });
    assert.deepEqual(await trigger.webhook.call(self), { noWebhookResponse: true });
    assert.deepEqual(answers, [401, 401]);
    assert.equal(await remove.call(self), true);
    assert.equal(await remove.call(self), true);
    assert.equal(await checkExists.call(self), false);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
});
