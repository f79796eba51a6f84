// When a request is sent again, and when no more: with a fetch that gives one answer after another, and time that passes at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { InternalError, Largesse, NoAnswer, NotFound, TooManyRequests, Unavailable, Unreachable, type LargesseError } from "largesse-client";
import { retryAfterMs } from "#dist/answers.js";

const ME = '{"customerId":1,"customerName":"Acme","serviceAccountId":1,"serviceAccountName":"HR","environment":"new"}';
const TIMEOUT = 30_000;

type Heard = () => Response;

function problem(status: number, slug = "unavailable", headers: Record<string, string> = {}): Heard {
  const body = JSON.stringify({ type: `/problems/${slug}`, title: "No", status, detail: "No.", instance: null });
  return () => new Response(body, { status, headers: { "content-type": "application/problem+json", ...headers } });
}

const html = (status: number): Heard => () => new Response("<h1>Bad gateway</h1>", { status, headers: { "content-type": "text/html" } });
const json = (body: string): Heard => () => new Response(body, { headers: { "content-type": "application/json" } });
const GOOD = json(ME);
const HALF = json(ME.slice(0, 40));
const NOTHING: Heard = () => {
  throw new TypeError("fetch failed", { cause: Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" }) });
};
const NOBODY: Heard = () => {
  throw new TypeError("fetch failed", { cause: Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }) });
};

interface Talk {
  value?: unknown;
  error?: LargesseError;
  waits: number[];
  sent: string[];
}

/** A conversation in which the answers are given one after another; the last for ever. */
async function talk(ask: (client: Largesse) => Promise<unknown>, heard: Heard[], options = {}): Promise<Talk> {
  const { setTimeout: wait } = globalThis;
  const { now } = performance;
  const found: Talk = { waits: [], sent: [] };
  const left = [...heard];
  let passed = 0;
  const send = async (_: unknown, init?: RequestInit) => {
    found.sent.push((init?.headers as Record<string, string>)["X-Request-Id"]!);
    return (left.length > 1 ? left.shift()! : left[0]!)();
  };
  performance.now = () => passed;
  globalThis.setTimeout = ((go: () => void, ms: number) => {
    if (ms === TIMEOUT) return wait(() => undefined, 0);
    found.waits.push(ms);
    passed += ms;
    return wait(go, 0);
  }) as typeof setTimeout;
  try {
    found.value = await ask(new Largesse("http://x", "key", { fetch: send as typeof fetch, ...options }));
  } catch (error) {
    found.error = error as LargesseError;
  } finally {
    globalThis.setTimeout = wait;
    performance.now = now;
  }
  return found;
}

const me = (client: Largesse) => client.me();
const send = (client: Largesse) => client.send.gift({ productId: 1, codeQuantity: 1 });

test("what may pass is tried again", async () => {
  for (const first of [NOTHING, NOBODY, HALF, html(502), html(504), ...[408, 429, 500, 503].map((status) => problem(status))]) {
    const { value, sent, waits } = await talk(me, [first, first, GOOD]);
    assert.equal((value as { customerName: string }).customerName, "Acme");
    assert.equal(new Set(sent).size, 3);
    assert.ok(50 <= waits[0]! && waits[0]! <= 100 && 100 <= waits[1]! && waits[1]! <= 200, String(waits));
  }
});

test("what will not is not", async () => {
  for (const first of [html(200), html(404), json('{"name": 1}'), ...[400, 401, 402, 403, 404, 413].map((status) => problem(status))]) {
    const { sent, error } = await talk(me, [first, GOOD]);
    assert.equal(sent.length, 1);
    assert.ok(error);
  }
});

test("without a reference nothing is repeated, whatever the answer", async () => {
  for (const first of [NOTHING, NOBODY, HALF, html(502), problem(429), problem(503)]) {
    const { sent, waits, error } = await talk(send, [first, GOOD]);
    assert.deepEqual([sent.length, waits], [1, []]);
    assert.ok(error);
  }
});

test("attempts are counted", async () => {
  const { error, sent } = await talk(me, [problem(503)], { attempts: 4 });
  assert.ok(error instanceof Unavailable);
  assert.deepEqual([sent.length, error.attempts], [4, 4]);
  assert.match(error.message, /It was tried 4 times\.$/);
  assert.equal((await talk(me, [NOTHING], { attempts: 1 })).sent.length, 1);
});

test("waits grow and are bounded", async () => {
  const { waits } = await talk(me, [NOTHING], { attempts: 20, patienceMs: 1_000_000 });
  assert.equal(waits.length, 19);
  assert.ok(waits.every((ms) => ms <= 8_000) && waits.at(-1)! >= 4_000);
});

test("Retry-After is followed", async () => {
  assert.deepEqual((await talk(me, [problem(429, "too-many-requests", { "retry-after": "7" }), GOOD])).waits, [7_000]);
  const at = new Date(Date.now() + 20_000).toUTCString();
  const [ms] = (await talk(me, [problem(503, "unavailable", { "retry-after": at }), GOOD])).waits;
  assert.ok(ms! > 10_000 && ms! <= 20_000);
});

test("a Retry-After beyond patience ends it at once", async () => {
  for (const after of ["61", "9".repeat(70), "Fri, 01 Jan 2100 00:00:00 GMT"]) {
    const { error, waits } = await talk(me, [problem(429, "too-many-requests", { "retry-after": after }), GOOD]);
    assert.ok(error instanceof TooManyRequests);
    assert.deepEqual(waits, []);
    assert.ok(error.retryAfterMs! > 60_000);
  }
});

test("a Retry-After that is none", async () => {
  for (const after of ["", "soon", "-5", "1.5", "\u0663", "Fri, 99 Jan 2100"]) {
    assert.equal(retryAfterMs(after), null, after);
  }
});

test("time is counted too", async () => {
  const { waits, error } = await talk(me, [problem(503, "unavailable", { "retry-after": "9" })], { attempts: 100, patienceMs: 30_000 });
  assert.deepEqual(waits, [9_000, 9_000, 9_000]);
  assert.ok(error instanceof Unavailable);
});

test("no server after an attempt that may have arrived is unclear", async () => {
  const { error } = await talk(me, [NOTHING, NOBODY], { attempts: 3 });
  assert.equal(error?.constructor, NoAnswer);
  assert.equal((await talk(me, [NOBODY], { attempts: 3 })).error?.constructor, Unreachable);
});

test("gone after an attempt that may have arrived is done", async () => {
  const gone = problem(404, "not-found");
  const end = (client: Largesse) => client.webhooks.delete("7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a");
  for (const [first, isDone] of [[NOTHING, true], [problem(500, "internal-error"), true], [NOBODY, false]] as const) {
    const { error } = await talk(end, [first, gone]);
    assert.equal(error === undefined, isDone);
  }
  assert.ok((await talk(end, [gone])).error instanceof NotFound);
  assert.ok((await talk(me, [problem(500, "internal-error")])).error instanceof InternalError);
});

test("a Retry-After of a proxy is followed", async () => {
  const busy: Heard = () => new Response("busy", { status: 503, headers: { "content-type": "text/html", "retry-after": "7" } });
  const found = await talk((client) => client.me(), [busy, GOOD]);
  assert.deepEqual(found.waits, [7_000]);
  assert.ok(found.value);
});

test("a timeout of a call that is none is refused before anything is sent", async () => {
  for (const timeoutMs of [0, -1, NaN, Infinity, 2 ** 32]) {
    const found = await talk((client) => client.me({ timeoutMs }), [GOOD]);
    assert.match(found.error!.message, /`timeoutMs` must be from 1 to 3600000/);
    assert.deepEqual(found.sent, []);
  }
});

test("of hundreds of calls, a hundred go on at once", async () => {
  let atOnce = 0;
  let most = 0;
  const hold = async () => {
    most = Math.max(most, (atOnce += 1));
    await new Promise((resolve) => setTimeout(resolve, 1));
    atOnce -= 1;
    return GOOD();
  };
  const client = new Largesse("http://x", "key", { fetch: hold as typeof fetch });
  const answers = await Promise.all(Array.from({ length: 300 }, () => client.me()));
  assert.equal(answers.length, 300);
  assert.equal(most, 100);
});

test("a call that waits for its turn can be aborted, and the others go on", async () => {
  const ends: (() => void)[] = [];
  const hold = () => new Promise<Response>((resolve) => ends.push(() => resolve(GOOD())));
  const client = new Largesse("http://x", "key", { fetch: hold as typeof fetch });
  const first = Array.from({ length: 100 }, () => client.me());
  const ending = new AbortController();
  const aborted = client.me({ signal: ending.signal });
  const last = client.me();
  ending.abort(new Error("enough"));
  await assert.rejects(aborted, /enough/);
  assert.equal(ends.length, 100);
  ends.shift()!();
  await first[0];
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.equal(ends.length, 100);
  for (const end of ends) end();
  await Promise.all([...first, last]);
});
