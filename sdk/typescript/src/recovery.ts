// After a 409, finds out whether the order with the reference is the one that this call wanted to place.
//
// If an answer was lost, or the program was restarted, it is that order, and the result of the call. But a caller may have used the
// reference for another order by mistake: then the recipients of this call would get nothing. So the request is compared with the
// request of that order.

import type { Asker, CallOptions } from "./asking.js";
import type { Decimal } from "./decimal.js";
import { NotFound, OtherServiceAccount, ScopeRequired, type ReferenceUsed } from "./generated/problems.js";
import { SHAPES } from "./generated/tables.js";
import type { Order, OrderRequest } from "./generated/types.js";
import type { Members } from "./inputs.js";

const LONGEST_SOURCE = 32;
const PLACEHOLDER = /\{([^{}|\n]{1,60})(?:\|([^{}\n]{0,100}))?\}/g;
// Replaces the customer's name, which the client does not know. No message can contain it.
const COMPANY = "\0";
// The order was found by its external reference, of which the service trims other blanks than JavaScript does.
const NOT_COMPARED = new Set(["reference", "isOwn", "currency", "recipients", "externalReference"]);
// Members that a template may set if the caller leaves them out.
const OF_TEMPLATE = new Set(["productId", "collectionId", "wrappingKey", "fromName", "message", "expiryAfterDays"]);

/** Returns the order that `used` names if it is the one in `body`. Throws `used` if it is not. */
export async function recover(body: Members, used: ReferenceUsed, asker: Asker, options: CallOptions): Promise<Order> {
  const reference = used.orderReference;
  if (reference === null) throw used;
  const path = { reference };
  try {
    const request = await asker.ask("getOrderRequest", { path }, options);
    let found = differences(body, request);
    if (found.length === 1 && found[0] === "value" && request.collectionId !== null) {
      // A collection with its own value ignores a given one.
      const collection = await asker.ask("getCollection", { path: { id: request.collectionId } }, options);
      if (!collection.requiresValue) found = [];
    }
    if (!found.length) return await asker.ask("getOrder", { path }, options);
    used.differences = found;
    used.message += ` Order ${reference} differs in ${found.join(", ")}: nothing was placed.`;
  } catch (error) {
    if (!(error instanceof NotFound || error instanceof OtherServiceAccount || error instanceof ScopeRequired)) throw error;
    used.message += " The request of that order could not be read.";
  }
  throw used;
}

/** Returns the members that differ between the order and the body.
 *
 * A member that was left out is compared with its default. If a template or the gift may have set it, it is not compared. An expiry that
 * the order does not have is not compared either, as the plan may not include it. */
export function differences(body: Members, request: OrderRequest): string[] {
  const found = request.isOwn ? [] : ["serviceAccount"];
  const defaults: Members = {
    value: request.value,
    country: "productId" in body ? "GB" : request.country,
    wrappingKey: "default",
  };
  for (const name of Object.keys(SHAPES.OrderRequest)) {
    if (NOT_COMPARED.has(name) || ("templateId" in body && OF_TEMPLATE.has(name) && !(name in body))) continue;
    if (name === "message" && isFilledIn(body, request.message)) continue;
    // A code batch is neither scheduled nor followed by reminders.
    const isIgnored = (name === "sendAt" || name === "reminderDays") && !("recipients" in body);
    const wanted = isIgnored ? null : (body[name] ?? defaults[name] ?? null);
    if (!isSame(name, wanted, (request as unknown as Members)[name] ?? null)) found.push(name);
  }
  if (!areSame(body.recipients as Addressee[] | undefined, request.recipients)) found.push("recipients");
  return found;
}

function isSame(name: string, wanted: unknown, stored: unknown): boolean {
  switch (name) {
    case "value":
      return (stored as Decimal).equals(wanted as Decimal);
    case "country":
      return (wanted as string).toUpperCase() === stored;
    case "source":
      return normalSource(wanted as string | null) === stored;
    case "sendAt":
      return instantKey(wanted as string | null) === instantKey(stored as string | null);
    case "claimBy":
      // Left out, it may be the customer's default, and people may have moved it to a later date.
      return wanted === null || (stored !== null && Date.parse(stored as string) >= Date.parse(wanted as string));
    case "reminderDays":
      return wanted === null || JSON.stringify(wanted) === JSON.stringify(stored);
    case "expiryAfterDays":
      return wanted === stored || (wanted !== null && stored === null);
    default:
      return wanted === stored;
  }
}

/** Returns whether the order's message is the requested one with its placeholders filled in, as in a code batch. */
function isFilledIn(body: Members, stored: string | null): boolean {
  const message = (body.message ?? "") as string;
  if ("recipients" in body || body.placeholders !== true || message.search(PLACEHOLDER) < 0) return false;
  // A code batch has no recipients: the text after the bar replaces each placeholder.
  const filled = message.replace(PLACEHOLDER, (_, name: string, text = "") => (name.trim().toLowerCase() === "company" ? COMPANY : text.trim()));
  const literal = inOneLine(filled).split(COMPANY).map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${literal.join(".*")}$`).test(inOneLine(stored ?? ""));
}

function inOneLine(text: string): string {
  return text.split(/\s+/).filter(Boolean).join(" ");
}

/** Returns the reporting token as orders store it. */
export function normalSource(text: string | null): string {
  const words = ((text ?? "").toLowerCase().match(/[a-z0-9]+/g) ?? []).join("-");
  return words.slice(0, LONGEST_SOURCE).replace(/^-+|-+$/g, "") || "api";
}

/** Returns a key that is the same for all texts of a time: microseconds since 1970, rounded as the service rounds. */
function instantKey(text: string | null): string | null {
  if (text === null) return null;
  const [, whole = "", fraction = "", zone = ""] = /^([^.Zz+]*?\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?(Z|z|[+-]\d\d:\d\d)$/.exec(text) ?? [];
  const micros = Number(fraction.slice(0, 6).padEnd(6, "0")) + (Number(fraction[6] ?? 0) >= 5 ? 1 : 0);
  const millis = Date.parse(`${whole}${zone.toUpperCase()}`);
  return Number.isNaN(millis) ? text : `${BigInt(millis) * 1_000n + BigInt(micros)}`;
}

interface Addressee {
  readonly email: string;
  readonly name?: string | null | undefined;
  readonly quantity?: number | null | undefined;
}

/** Returns whether both name the same recipients. An address that people corrected is compared with the former one, which is masked. */
function areSame(wanted: readonly Addressee[] | undefined, stored: OrderRequest["recipients"]): boolean {
  const former = new Map(stored.flatMap(({ email, wasEmail }) => (wasEmail ? [[addressKey(email), addressKey(wasEmail)] as const] : [])));
  const masks = new Set(former.values());
  const masked = (address: string) => {
    const mask = `${[...address][0] ?? ""}•••@${address.slice(address.lastIndexOf("@") + 1)}`;
    return masks.has(mask) ? mask : address;
  };
  const asked = addressed(wanted, (email) => masked(addressKey(email)));
  const maskedFormer = (email: string) => masked(former.get(addressKey(email)) ?? addressKey(email));
  return asked === addressed(stored, maskedFormer) || addressed(wanted) === addressed(stored);
}

/** Returns how many codes each address and name gets, as one text. */
function addressed(recipients: readonly Addressee[] = [], keyOf = addressKey): string {
  const codes = new Map<string, number>();
  for (const { email, name, quantity } of recipients) {
    const key = JSON.stringify([keyOf(email), name?.trim() ? name : null]);
    codes.set(key, (codes.get(key) ?? 0) + (quantity ?? 1));
  }
  return JSON.stringify([...codes].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Returns a key that is the same for all spellings of an address: letter case, composed characters, and the form of the domain. */
export function addressKey(email: string): string {
  const text = email.trim();
  const at = text.lastIndexOf("@");
  const domain = text.slice(at + 1).toLowerCase();
  let ascii = domain;
  try {
    ascii = new URL(`http://${domain}`).hostname;
  } catch {
    // Not a valid domain: it stays as it is.
  }
  return `${text.slice(0, Math.max(at, 0))}@${ascii}`.normalize("NFC").toLowerCase();
}
