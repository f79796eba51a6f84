// The client held against the document of the service that it talks to.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Largesse, Problem, VERSION, type Listing } from "largesse-client";
import * as errors from "largesse-client";
import { PROBLEMS } from "#dist/generated/problems.js";
import { OPERATIONS } from "#dist/generated/tables.js";
import { readFile } from "node:fs/promises";
import { BASE_URL } from "./support.js";

interface Document {
  paths: Record<string, Record<string, { operationId: string }>>;
}

const ID = "7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a";
const REFERENCE = "0".repeat(20);
// What each method is called with; those that are not named take nothing.
const ARGUMENTS: Record<string, unknown[]> = {
  "send.gift": [{ productId: 1, codeQuantity: 1 }],
  "send.collection": [{ collectionId: 1, codeQuantity: 1 }],
  "send.template": [{ templateId: 1, codeQuantity: 1 }],
  "quote.gift": [{ productId: 1, codeQuantity: 1 }],
  "quote.collection": [{ collectionId: 1, codeQuantity: 1 }],
  "quote.template": [{ templateId: 1, codeQuantity: 1 }],
  "orders.get": [REFERENCE],
  "orders.request": [REFERENCE],
  "orders.cancel": [REFERENCE],
  "orders.resend": [REFERENCE, "sam@example.com"],
  "orders.deliveries": [REFERENCE],
  "products.get": [1],
  "collections.get": [1],
  "fundingAccounts.entries": [1],
  "contacts.get": [1],
  "contacts.create": [{ email: "sam@example.com" }],
  "contacts.change": [1, { name: "Sam" }],
  "contacts.save": [[{ externalId: "1", email: "sam@example.com" }]],
  "contacts.delete": [1],
  "webhooks.create": [{ targetUrl: "https://gifts.example" }],
  "webhooks.delete": [ID],
  "webhooks.rotateSecret": [ID],
  "webhooks.deliveries": [ID],
  "webhooks.redeliver": [ID, 1],
  "webhooks.test": [ID],
};

/** Returns the methods of the client and its parts by their names. */
function methods(client: Largesse): [string, (...given: unknown[]) => unknown][] {
  const parts: [string, object][] = [["", client], ...Object.entries(client).filter((one): one is [string, object] => typeof one[1] === "object")];
  return parts.flatMap(([part, value]) =>
    Object.getOwnPropertyNames(Object.getPrototypeOf(value))
      .filter((name) => name !== "constructor")
      .map((name): [string, (...given: unknown[]) => unknown] => {
        const method = (value as Record<string, (...given: unknown[]) => unknown>)[name]!;
        return [part ? `${part}.${name}` : name, method.bind(value)];
      }),
  );
}

test("every operation of the service is there, and nothing else", async () => {
  const document = (await (await fetch(`${BASE_URL}/openapi.json`)).json()) as Document;
  const known = Object.entries(document.paths).flatMap(([path, of]) => Object.keys(of).map((method) => `${method.toUpperCase()} ${path}`));
  const asked = new Set<string>();
  const client = new Largesse("http://x", "key", {
    fetch: (async (url: string, init: RequestInit) => {
      const { pathname } = new URL(url);
      const template = known.find((one) => new RegExp(`^${one.replace(/\{\w+\}/g, "[^/]+")}$`).test(`${init.method} ${pathname}`));
      // A literal path is preferred to one with a parameter.
      asked.add(known.includes(`${init.method} ${pathname}`) ? `${init.method} ${pathname}` : template!);
      return new Response("", { status: 400 });
    }) as typeof fetch,
  });
  for (const [name, method] of methods(client)) {
    const found = method(...(ARGUMENTS[name] ?? []));
    const isList = Symbol.asyncIterator in Object(found);
    await assert.rejects(isList ? (found as Listing<unknown>).next() : (found as Promise<unknown>), { name: "UnreadableAnswer" }, name);
  }
  assert.deepEqual([...asked].sort(), [...known].sort());
  const ids = Object.values(document.paths).flatMap((of) => Object.values(of).map((one) => one.operationId));
  assert.deepEqual(Object.keys(OPERATIONS).sort(), ids.sort());
});

test("each type of problem has its class and its page", async () => {
  const page = await (await fetch(`${BASE_URL}/problems`)).text();
  const slugs = [...page.matchAll(/href="\/problems\/([a-z-]+)"/g)].map(([, slug]) => slug!);
  assert.deepEqual(Object.keys(PROBLEMS).sort(), [...new Set(slugs)].sort());
  for (const [slug, kind] of Object.entries(PROBLEMS)) {
    const name = slug.replace(/(^|-)([a-z])/g, (_, _dash, letter: string) => letter.toUpperCase());
    assert.deepEqual([kind.name, kind.slug], [name, slug]);
    assert.equal((errors as Record<string, unknown>)[name], kind);
    assert.ok(kind.prototype instanceof Problem);
  }
});

test("the version is that of the package", async () => {
  const { version } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };
  assert.equal(VERSION, version);
});
