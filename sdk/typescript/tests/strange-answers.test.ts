// A server that answers HTML, half an answer, nothing or something else: one clear error.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { LargesseError, NoAnswer, NotFound, Problem, UnreadableAnswer, Unreachable, type Options } from "largesse-client";
import { MOST_BYTES } from "#dist/asking.js";
import { answerWith, BASE_URL, clientOf, failure, http, listen } from "./support.js";

const ME = '{"customerId":1,"customerName":"A","serviceAccountId":1,"serviceAccountName":"B","environment":"staging"}';

/** Returns what asking that server for the key's identity ends with. */
async function ask(url: string, options: Options = {}): Promise<LargesseError & Partial<Problem>> {
  const error = await failure(clientOf(url, { attempts: 2, timeoutMs: 5_000, ...options }).me());
  assert.ok(error instanceof LargesseError, String(error));
  return error;
}

for (const status of ["200 OK", "404 Not Found", "403 Forbidden", "301 Moved Permanently"]) {
  test(`HTML with ${status}`, async () => {
    await using server = await answerWith(http(status, "text/html; charset=utf-8", "<h1>It works!</h1>"));
    const error = await ask(server.url);
    assert.ok(error instanceof UnreadableAnswer);
    assert.equal(error.status, Number(status.slice(0, 3)));
    assert.equal(
      error.message,
      `GET /me was answered ${error.status} with text/html, 18 bytes: that is no answer of Largesse. Is the base URL right? It is ${server.url}`,
    );
  });
}

test("a redirect is named", async () => {
  await using server = await answerWith(http("301 Moved Permanently", "text/html", "", "Location: https://gifts.example/me"));
  assert.match((await ask(server.url)).message, /that is a redirect to https:\/\/gifts.example\/me\. Is the base URL/);
});

// Others have errors of their own.
test("https where the server speaks http", { skip: "Deno" in globalThis || "Bun" in globalThis }, async () => {
  const { message } = await ask(BASE_URL.replace("http:", "https:"));
  assert.match(message, /the server speaks no TLS there\. Does the base URL begin with http:\/\/\?\) \(request id/);
});

test("JSON of something else", async () => {
  await using other = await answerWith(http("404 Not Found", "application/json", '{"error": "no"}'));
  assert.match((await ask(other.url)).message, /Is the base URL right\?/);
  await using name = await answerWith(http("200 OK", "application/json", '{"name": "x"}'));
  const error = await ask(name.url);
  assert.ok(error instanceof UnreadableAnswer);
  assert.match(error.message, /cannot be understood: `customerId` is missing/);
  await using list = await answerWith(http("400 Bad", "application/problem+json", "[]"));
  assert.ok((await ask(list.url)) instanceof UnreadableAnswer);
  await using kind = await answerWith(http("200 OK", "application/json", ME.replace('"A"', "7")));
  assert.match((await ask(kind.url)).message, /`customerName` must be a string, not number/);
});

test("no content where there has to be some", async () => {
  await using server = await answerWith("HTTP/1.1 204 No Content\r\n\r\n");
  const error = await ask(server.url);
  assert.ok(error instanceof UnreadableAnswer);
  assert.match(error.message, /^GET \/me was answered 204 with no content type, 0 bytes: that is no answer of Largesse/);
});

test("an id that a number cannot hold exactly is refused, not rounded", async () => {
  await using server = await answerWith(http("200 OK", "application/json", ME.replace('"customerId":1', '"customerId":9007199254740993')));
  assert.match((await ask(server.url)).message, /`customerId` must be an integer that is exact here/);
});

test("a wrong path of Largesse itself", async () => {
  assert.ok((await ask(`${BASE_URL}/docs`)) instanceof NotFound);
});

const HALVES: [string, string][] = [
  ["half a body", `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n${ME}`],
  ["half a head", "HTTP/1.1 200 OK\r\nContent-Ty"],
  ["nothing", ""],
  ["another protocol", "SSH-2.0-OpenSSH_9.2\r\n"],
  ["no chunk", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
];

for (const [name, answer] of HALVES) {
  test(`half an answer: ${name}`, async () => {
    await using server = await listen((socket) => {
      socket.once("data", () => socket.end(answer));
    });
    const error = await ask(server.url);
    assert.ok(error instanceof NoAnswer && !(error instanceof Unreachable), String(error));
    assert.match(error.message, /^GET \/me: no complete answer arrived/);
    assert.ok(error.requestId);
  });
}

test("an answer that never ends", async () => {
  await using server = await listen((socket) => {
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500000\r\n\r\n");
      const dripping = setInterval(() => socket.write(" "), 20);
      socket.on("close", () => clearInterval(dripping));
    });
  });
  const error = await ask(server.url, { timeoutMs: 300, attempts: 1 });
  assert.ok(error instanceof NoAnswer);
  assert.match(error.message, /did not arrive whole within 300 ms/);
});

test("an answer without bounds", async () => {
  const piece = Buffer.alloc(2 ** 20, " ");
  await using server = await listen((socket) => {
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
      const pour = () => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on("drain", pour);
      pour();
    });
  });
  const error = await ask(server.url, { attempts: 1, timeoutMs: 60_000 });
  assert.match(error.message, new RegExp(`larger than ${MOST_BYTES} bytes`));
});

test("no server", async () => {
  const free = createServer();
  await new Promise<void>((resolve) => free.listen(0, "127.0.0.1", resolve));
  const { port } = free.address() as { port: number };
  await new Promise((resolve) => free.close(resolve));
  const error = await ask(`http://127.0.0.1:${port}`);
  assert.ok(error instanceof Unreachable, String(error));
  assert.match(error.message, /no connection could be made/);
});

test("a name that is none", async () => {
  assert.ok((await ask("http://gifts.invalid")) instanceof Unreachable);
});

test("half an answer is asked for again", async () => {
  const [half, whole] = [ME.slice(0, 30), ME].map((text) => http("200 OK", "application/json", text));
  await using server = await answerWith(half!, whole!);
  assert.equal((await clientOf(server.url).me()).customerName, "A");
});

test("members and words that are new", async () => {
  const body = ME.replace('"staging"', '"moonbase"').replace("}", ',"later": {"deep": [1, null, 0.10]}, "__proto__": {"customerName": "B"}}');
  await using server = await answerWith(http("200 OK", "application/json", body));
  const me = await clientOf(server.url).me();
  assert.deepEqual([me.environment, me.customerName], ["moonbase", "A"]);
  assert.equal(JSON.stringify((me as unknown as { later: unknown }).later), '{"deep":[1,null,"0.10"]}');
  assert.equal(Object.getPrototypeOf(me), Object.prototype);
});

test("a problem that is new", async () => {
  const body = '{"type": "/problems/of-later", "title": "New", "status": 418, "detail": "Soon.", "more": 1}';
  await using server = await answerWith(http("418 X", "application/problem+json", body, "X-Request-Id: r1"));
  const error = await ask(server.url);
  assert.equal(error.constructor, Problem);
  assert.deepEqual([error.status, error.type, error.detail, error.requestId], [418, "/problems/of-later", "Soon.", "r1"]);
  for (const slug of ["constructor", "__proto__"]) {
    await using odd = await answerWith(http("400 X", "application/problem+json", body.replace("of-later", slug)));
    assert.equal((await ask(odd.url)).constructor, Problem);
  }
});

test("a service that is not well", async () => {
  await using server = await answerWith(http("503 Unwell", "application/json", '{"status":"fail"}'));
  assert.equal((await clientOf(server.url).health()).status, "fail");
});
