// Verifies that deliveries of webhooks are genuine, with Web Crypto.

import { EVENTS } from "./generated/tables.js";
import type { EventPayloads, StreamedEvent as Streamed } from "./generated/types.js";
import { parse, type Json } from "./json.js";
import { InvalidArgument, InvalidSignature, InvalidWebhook, StaleWebhook } from "./problem.js";
import { reader, ShapeError } from "./shapes.js";

/** How far from now a delivery may have been signed, in milliseconds. */
export const TOLERANCE_MS = 300_000;
const PREFIX = "whsec_";
const CONTRACT = ["x-service-signature", "x-service-signature-new"];
const utf8 = new TextEncoder();

/** An event with its name and its data. Later releases may send other events, with other data. */
export type Event = { [K in keyof EventPayloads]: { readonly event: K; readonly data: EventPayloads[K] } }[keyof EventPayloads];

/** An event of the stream: continue after its `cursor`. */
export type StreamedEvent = Event & Omit<Streamed, "event" | "data">;

/** A genuine delivery. `id` and `sentAt` are null if it has only the contract's signature.
 *
 * Deliveries come at least once. `id` is the same in all attempts of a delivery, and `data.id` in all deliveries of an event. */
export type WebhookEvent = Event & { readonly id: string | null; readonly sentAt: Date | null };

/** Headers in the forms that frameworks use. The letter case of the names does not matter. */
export type HeadersLike = Headers | Iterable<readonly [string, string]> | Readonly<Record<string, string | readonly string[] | undefined>>;

/** The options of `verify`. */
export interface VerifyOptions {
  /** How far from now a delivery may have been signed: 300,000 by default. With null, deliveries without a signed time are accepted too. */
  readonly toleranceMs?: number | null;
}

/** Returns the event of a delivery that was signed with one of the subscription's secrets, not too long ago.
 *
 * `body` is the raw body, before anything parsed it. Every signature in the headers must be right, and one must cover the time: otherwise
 * somebody who has seen a delivery could send it again for ever. Only with `toleranceMs: null`, `X-Service-Signature` alone is enough. Throws InvalidSignature, StaleWebhook, InvalidWebhook, and InvalidArgument. */
export async function verify(
  body: Uint8Array | ArrayBuffer | string,
  headers: HeadersLike,
  secrets: string | readonly string[],
  { toleranceMs = TOLERANCE_MS }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const raw = rawOf(body);
  if (toleranceMs !== null && !(toleranceMs >= 0)) throw new InvalidArgument("toleranceMs", `must be at least 0, or null, not ${toleranceMs}.`);
  const given = headersOf(headers);
  const listed = typeof secrets === "string" ? [secrets] : secrets;
  if (!Array.isArray(listed) || !listed.length) throw new InvalidArgument("secrets", "must be a secret, or several.");
  const keys = listed.map(secretOf);
  const sentAt = given.has("webhook-signature") ? await checkStandard(raw, given, keys, toleranceMs) : null;
  const contract = CONTRACT.filter((name) => given.has(name)).map((name) => given.get(name)!);
  if (contract.length) await checkContract(raw, contract, keys);
  else if (!sentAt) throw new InvalidSignature("The delivery has no signature.");
  if (!sentAt && toleranceMs !== null) {
    throw new StaleWebhook("The delivery does not say when it was signed: it has X-Service-Signature alone. Pass toleranceMs: null to accept it.");
  }
  return { ...eventOf(raw, given.get("x-service-event")), id: sentAt ? given.get("webhook-id")! : null, sentAt };
}

interface Secret {
  readonly text: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Checks the signature of Standard Webhooks, which covers id, time and body. Returns when the delivery was signed. */
async function checkStandard(raw: Uint8Array<ArrayBuffer>, headers: Map<string, string>, keys: readonly Secret[], toleranceMs: number | null): Promise<Date> {
  const timestamp = headers.get("webhook-timestamp") ?? "";
  const signed = joined(utf8.encode(`${headers.get("webhook-id") ?? ""}.${timestamp}.`), raw);
  const given = headers.get("webhook-signature")!.trim().split(/\s+/).map((one) => one.split(","));
  const signatures = given.filter(([version]) => version === "v1").map(([, text]) => bytesOfBase64(text ?? ""));
  const isGenuine = await isSigned(signed, signatures, keys.map(({ bytes }) => bytes));
  if (!isGenuine || !/^\d{1,11}$/.test(timestamp)) {
    throw new InvalidSignature("The webhook-signature does not match this body, id, time and secret.");
  }
  const sentAt = new Date(Number(timestamp) * 1_000);
  const age = Date.now() - sentAt.getTime();
  if (toleranceMs !== null && Math.abs(age) > toleranceMs) {
    throw new StaleWebhook(`The delivery was signed ${Math.round(age / 1_000)} s ago; ${toleranceMs / 1_000} s are allowed.`);
  }
  return sentAt;
}

/** Checks the contract's signatures. During a rotation there are two, by the previous and by the new secret: one must be right. */
async function checkContract(raw: Uint8Array<ArrayBuffer>, given: readonly string[], keys: readonly Secret[]): Promise<void> {
  const signatures = given.map((text) => /^sha256=([0-9a-f]{64})$/.exec(text.trim())?.[1]).map((hex) => (hex ? bytesOfHex(hex) : null));
  if (await isSigned(raw, signatures, keys.map(({ text }) => utf8.encode(text)))) return;
  throw new InvalidSignature("The X-Service-Signature does not match this body and secret.");
}

/** Returns whether one of the signatures is by one of the keys. `subtle.verify` takes the same time for each wrong one. */
async function isSigned(
  signed: Uint8Array<ArrayBuffer>,
  signatures: readonly (Uint8Array<ArrayBuffer> | null)[],
  keys: readonly Uint8Array<ArrayBuffer>[],
): Promise<boolean> {
  let found = false;
  for (const bytes of keys) {
    const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of signatures) {
      if (signature && (await crypto.subtle.verify("HMAC", key, signature, signed))) found = true;
    }
  }
  return found;
}

/** Returns the event that the signed body names. No signature covers the header, which must not name another event. */
function eventOf(raw: Uint8Array, header: string | undefined): Event {
  let data: Json;
  try {
    data = parse(new TextDecoder("utf-8", { fatal: true }).decode(raw));
  } catch (error) {
    throw new InvalidWebhook("The body is not JSON.", { cause: error });
  }
  const event = typeof data === "object" && data !== null && !Array.isArray(data) ? ((data as { event?: Json }).event ?? header ?? "") : header;
  if (typeof event !== "string" || (header !== undefined && header !== event)) {
    throw new InvalidWebhook(`The header X-Service-Event says ${JSON.stringify(header)}, the body ${JSON.stringify(event)}.`);
  }
  return readEvent(event, data);
}

/** Returns an event whose `data` has the shape for its name. Throws InvalidWebhook if it has another one. */
function readEvent(event: string, data: Json): Event {
  try {
    return { event, data: Object.hasOwn(EVENTS, event) ? reader(EVENTS[event]!)(data, "") : data } as Event;
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error;
    throw new InvalidWebhook(`The event ${JSON.stringify(event)} cannot be understood: ${error.message}`, { cause: error });
  }
}

function rawOf(body: unknown): Uint8Array<ArrayBuffer> {
  if (typeof body === "string") return utf8.encode(body);
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  if (body instanceof Uint8Array) return new Uint8Array(body);
  throw new InvalidArgument("body", "must be the raw body: a Uint8Array, an ArrayBuffer or a string.");
}

function headersOf(headers: HeadersLike): Map<string, string> {
  const entries = Symbol.iterator in headers ? [...headers] : Object.entries(headers as Record<string, string | readonly string[] | undefined>);
  const found = new Map<string, string>();
  for (const [name, value] of entries) {
    if (value !== undefined) found.set(name.toLowerCase(), typeof value === "string" ? value : value.join(" "));
  }
  return found;
}

/** Returns a secret with its bytes. The first secrets are in the URL-safe alphabet, without padding. */
function secretOf(secret: unknown): Secret {
  if (typeof secret !== "string" || !secret.startsWith(PREFIX)) {
    throw new InvalidArgument("secrets", `must be a subscription's secret, which begins with ${PREFIX}.`);
  }
  const bytes = bytesOfBase64(secret.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/"));
  if (!bytes?.length) throw new InvalidArgument("secrets", "is incomplete.");
  return { text: secret, bytes };
}

function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> | null {
  const digits = text.replace(/=+$/, "");
  if (!/^[A-Za-z0-9+/]*$/.test(digits) || digits.length % 4 === 1) return null;
  return Uint8Array.from(atob(digits), (character) => character.charCodeAt(0));
}

function bytesOfHex(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(one.length + other.length);
  all.set(one);
  all.set(other, one.length);
  return all;
}
