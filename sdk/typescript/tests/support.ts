// A running Largesse with the demo's customers and gifts, which LARGESSE and LARGESSE_API_KEY name, and servers of raw sockets.

import assert from "node:assert/strict";
import { createServer, connect, type AddressInfo, type Server, type Socket } from "node:net";
import { Decimal, Largesse, type Listing, type Options } from "largesse-client";

export const BASE_URL = process.env.LARGESSE!;
export const API_KEY = process.env.LARGESSE_API_KEY!;
assert.ok(BASE_URL && API_KEY, "LARGESSE and LARGESSE_API_KEY name a running service: use make test-typescript");

export const largesse = new Largesse(BASE_URL, API_KEY);

export async function all<T>(list: Listing<T>): Promise<T[]> {
  const found = [];
  for await (const item of list) found.push(item);
  return found;
}

/** The demo's gifts that the tests send, and who pays for them. */
export interface World {
  coffee: number;
  hamper: number;
  curated: number;
  custom: number;
  template: number;
  account: number;
  groupAccount: number;
}

export async function loadWorld(): Promise<World> {
  const products = await all(largesse.products.list());
  const collections = await all(largesse.collections.list({ country: "GB" }));
  const accounts = await all(largesse.fundingAccounts.list());
  const templates = await all(largesse.templates.list());
  const named = (items: { id: number; name: string | null }[], name: string) => items.find((item) => item.name === name)!.id;
  return {
    coffee: named(products, "Coffee House e-gift"),
    hamper: named(products, "Autumn hamper"),
    curated: collections.find((one) => one.requiresValue && !one.allowCustomValue)!.id,
    custom: collections.find((one) => !one.requiresValue)!.id,
    template: named(templates, "Welcome aboard"),
    account: named(accounts, "Acme float"),
    groupAccount: named(accounts, "People team"),
  };
}

/** Returns what an account holds. */
export async function balanceOf(account: number): Promise<Decimal> {
  return (await all(largesse.fundingAccounts.list())).find((one) => one.id === account)!.balance;
}

let numbers = 0;
const started = `${process.pid}-${process.hrtime.bigint()}`;

/** Returns a reference that no order has. */
export function newReference(): string {
  numbers += 1;
  return `typescript-${started}-${numbers}`;
}

/** Waits until something is true, and returns it. */
export async function eventually<T>(condition: () => T | Promise<T>): Promise<NonNullable<T>> {
  const until = Date.now() + 30_000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    assert.ok(Date.now() < until, "it did not happen");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A server whose connections are handed to `handle`. */
export interface Listener extends AsyncDisposable {
  readonly url: string;
}

export async function listen(handle: (socket: Socket) => void): Promise<Listener> {
  const open = new Set<Socket>();
  const server: Server = createServer((socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => undefined);
    handle(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Calls `found` with each whole HTTP message that has a Content-Length or no body. */
export function eachMessage(socket: Socket, found: (message: Buffer) => void): void {
  let rest = Buffer.alloc(0);
  socket.on("data", (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const head = rest.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = /^content-length: *(\d+)/im.exec(rest.subarray(0, head).toString("latin1"))?.[1] ?? "0";
      const end = head + 4 + Number(length);
      if (rest.length < end) return;
      const message = rest.subarray(0, end);
      rest = rest.subarray(end);
      found(message);
    }
  });
}

/** A proxy before the service that passes every request on, and withholds each n-th answer and breaks the connection. */
export async function dropAnswers(every: number): Promise<Listener & { seen: string[] }> {
  const { hostname, port } = new URL(BASE_URL);
  const seen: string[] = [];
  let answers = 0;
  const listener = await listen((client) => {
    const server = connect(Number(port), hostname);
    server.on("error", () => client.destroy());
    client.on("close", () => server.destroy());
    eachMessage(client, (message) => {
      seen.push(message.subarray(0, message.indexOf("\r\n")).toString());
      server.write(message);
    });
    eachMessage(server, (message) => {
      answers += 1;
      if (answers % every === 0) client.destroy();
      else client.write(message);
    });
  });
  return { ...listener, seen };
}

/** A server that answers requests with these bytes, one after the other and the last for ever. */
export async function answerWith(...answers: (string | Buffer)[]): Promise<Listener> {
  const left = [...answers];
  return listen((socket) => {
    eachMessage(socket, () => {
      const answer = (left.length > 1 ? left.shift() : left[0])!;
      if (/content-length/i.test(answer.toString())) socket.write(answer);
      else socket.end(answer);
    });
  });
}

export function http(status: string, mediaType: string, body: string, ...headers: string[]): string {
  const lines = [`HTTP/1.1 ${status}`, `Content-Type: ${mediaType}`, `Content-Length: ${Buffer.byteLength(body)}`, ...headers];
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** A receiver of webhooks, which stores what it gets. */
export async function receive(): Promise<Listener & { received: { headers: Record<string, string>; body: Buffer }[] }> {
  const received: { headers: Record<string, string>; body: Buffer }[] = [];
  const listener = await listen((socket) => {
    eachMessage(socket, (message) => {
      const end = message.indexOf("\r\n\r\n");
      const lines = message.subarray(0, end).toString().split("\r\n").slice(1);
      const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]));
      received.push({ headers, body: message.subarray(end + 4) });
      socket.write("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n");
    });
  });
  return { ...listener, url: `${listener.url}/hook`, received };
}

/** Returns the error that a promise is rejected with. */
export async function failure(promise: Promise<unknown>): Promise<Error & Record<string, unknown>> {
  const settled = await promise.then(
    () => null,
    (error: unknown) => error,
  );
  assert.ok(settled instanceof Error, "it did not fail");
  return settled as Error & Record<string, unknown>;
}

export function clientOf(url: string, options: Options = {}): Largesse {
  return new Largesse(url, API_KEY, options);
}
