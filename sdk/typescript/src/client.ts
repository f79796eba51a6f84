// The client and its operations.

import { Asker, LONGEST_TIMEOUT_MS, type CallOptions, type Ignored } from "./asking.js";
import type { AmountInput } from "./decimal.js";
import { ReferenceUsed } from "./generated/problems.js";
import { QUERIES } from "./generated/tables.js";
import type {
  BulkContact,
  Cancellation,
  ChangedContact,
  Collection,
  Contact,
  Delivery,
  AccountEntry,
  FundingAccount,
  Health,
  Identity,
  NewContact,
  NewSubscription,
  Order,
  OrderRecord,
  OrderRequest,
  Product,
  ProductInFull,
  Quote,
  RecipientDelivery,
  RotatedSecret,
  SavedContacts,
  SendCollection,
  SendGift,
  SendTemplate,
  Subscription,
  Template,
  User,
  Wrapping,
} from "./generated/types.js";
import { readBody, readId, readOrder, readQuery, readReference, readSetting, readUuid, type Members } from "./inputs.js";
import { byOffset, newestFirst, pages, whole, type Listing } from "./pages.js";
import { InvalidArgument } from "./problem.js";
import { recover } from "./recovery.js";
import { type StreamedEvent, verify } from "./webhooks.js";

const MOST_MS = 86_400_000;

/** The options of a client. */
export interface Options {
  /** The time limit of one attempt, including its whole answer: 30,000 by default. */
  readonly timeoutMs?: number;
  /** The most attempts of a request that may be repeated: 8 by default. */
  readonly attempts?: number;
  /** How long after the first attempt the last one may begin: 60,000 by default. */
  readonly patienceMs?: number;
  /** A fetch of your own, for a proxy or certificates. It must not send a request twice. */
  readonly fetch?: typeof fetch;
  /** What to do if the service ignored names that it does not know; by default a warning on the console. */
  readonly onIgnored?: (ignored: Ignored) => void;
}

/** A client of one service, for one key. It has no connection that you must close. */
export class Largesse {
  readonly baseUrl: string;
  readonly send: Sending;
  readonly quote: Quoting;
  readonly orders: Orders;
  readonly products: Products;
  readonly collections: Collections;
  readonly templates: Templates;
  readonly wrappings: Wrappings;
  readonly contacts: Contacts;
  readonly fundingAccounts: FundingAccounts;
  readonly webhooks: Webhooks;
  readonly events: Events;
  readonly users: Users;
  readonly #asker: Asker;

  constructor(baseUrl: string, apiKey: string, options: Options = {}) {
    this.baseUrl = readBaseUrl(baseUrl);
    const asker = new Asker({
      baseUrl: this.baseUrl,
      apiKey: readKey(apiKey),
      timeoutMs: readSetting("timeoutMs", options.timeoutMs ?? 30_000, 1, LONGEST_TIMEOUT_MS),
      attempts: readSetting("attempts", options.attempts ?? 8, 1, 100),
      patienceMs: readSetting("patienceMs", options.patienceMs ?? 60_000, 0, MOST_MS),
      fetch: options.fetch ?? ((...request) => globalThis.fetch(...request)),
      onIgnored: options.onIgnored ?? warn,
    });
    this.#asker = asker;
    this.send = new Sending(asker);
    this.quote = new Quoting(asker);
    this.orders = new Orders(asker);
    this.products = new Products(asker);
    this.collections = new Collections(asker);
    this.templates = new Templates(asker);
    this.wrappings = new Wrappings(asker);
    this.contacts = new Contacts(asker);
    this.fundingAccounts = new FundingAccounts(asker);
    this.webhooks = new Webhooks(asker);
    this.events = new Events(asker);
    this.users = new Users(asker);
  }

  /** Returns the identity that the key acts for. */
  async me(options?: CallOptions): Promise<Identity> {
    return this.#asker.ask("getMe", {}, options);
  }

  /** Returns whether the service works. */
  async health(options?: CallOptions): Promise<Health> {
    return this.#asker.ask("getHealth", {}, options);
  }
}

class Resource {
  protected readonly asker: Asker;

  constructor(asker: Asker) {
    this.asker = asker;
  }
}

/** Places orders.
 *
 * Without an `externalReference`, a request is sent only once. With one, it is sent again after time-outs, broken connections and
 * failures that may pass, and the order is still placed only once. */
class Sending extends Resource {
  /** Sends one product. */
  async gift(order: SendGift, options?: CallOptions): Promise<Order> {
    return this.#place("sendGift", readOrder("SendGift", order), options);
  }

  /** Sends a collection for each recipient to choose from. */
  async collection(order: SendCollection, options?: CallOptions): Promise<Order> {
    return this.#place("sendCollection", readOrder("SendCollection", order), options);
  }

  /** Sends a saved template. */
  async template(order: SendTemplate, options?: CallOptions): Promise<Order> {
    return this.#place("sendTemplate", readOrder("SendTemplate", order), options);
  }

  async #place(operation: "sendGift" | "sendCollection" | "sendTemplate", body: Members, options: CallOptions = {}): Promise<Order> {
    try {
      return await this.asker.ask(operation, { body, isRepeatable: "externalReference" in body }, options);
    } catch (error) {
      if (error instanceof ReferenceUsed) return recover(body, error, this.asker, options);
      throw error;
    }
  }
}

/** Quotes what a send would cost. Reports all errors at once. Nothing is placed or reserved. */
class Quoting extends Resource {
  async gift(order: Omit<SendGift, "quote">, options?: CallOptions): Promise<Quote> {
    return this.asker.ask("quoteGift", { body: readOrder("SendGift", order), isRepeatable: true }, options);
  }

  async collection(order: Omit<SendCollection, "quote">, options?: CallOptions): Promise<Quote> {
    return this.asker.ask("quoteCollection", { body: readOrder("SendCollection", order), isRepeatable: true }, options);
  }

  async template(order: Omit<SendTemplate, "quote">, options?: CallOptions): Promise<Quote> {
    return this.asker.ask("quoteTemplate", { body: readOrder("SendTemplate", order), isRepeatable: true }, options);
  }
}

class Orders extends Resource {
  /** Lists all orders after the one of that `id`, oldest first. If you continue with the last `id`, you miss none. */
  list(given: { after?: number | undefined; pageSize?: number } = {}, options?: CallOptions): Listing<OrderRecord> {
    const then = (page: readonly OrderRecord[]) => ({ after: page.at(-1)!.id });
    return pages(this.asker, "listOrders", { after: 0, pageSize: 50 }, given, then, {}, options);
  }

  /** Returns the newest orders, newest first; with an `externalReference`, the order that has it, or none. */
  async newest(given: { limit?: number; externalReference?: string } = {}, options?: CallOptions): Promise<readonly OrderRecord[]> {
    return this.asker.ask("listOrders", { query: readQuery(QUERIES.listOrders!, given) }, options);
  }

  /** Returns the response to the send again, with the codes of a batch. Each reading of codes is recorded. */
  async get(reference: string, options?: CallOptions): Promise<Order> {
    return this.asker.ask("getOrder", { path: { reference: readReference(reference) } }, options);
  }

  /** Returns the request of an order, without codes. */
  async request(reference: string, options?: CallOptions): Promise<OrderRequest> {
    return this.asker.ask("getOrderRequest", { path: { reference: readReference(reference) } }, options);
  }

  /** Voids and refunds the codes that nobody has claimed. Repeating it changes nothing. */
  async cancel(reference: string, options?: CallOptions): Promise<Cancellation> {
    return this.asker.ask("cancelOrder", { path: { reference: readReference(reference) }, isRepeatable: true }, options);
  }

  /** Mails a recipient's codes again.
   *
   * With `resends`, from the recipient's delivery, a request without an answer is repeated: the mail is sent once. Without it, the request is
   * never repeated automatically, as each would send another mail. */
  async resend(reference: string, email: string, options: CallOptions & { resends?: number } = {}): Promise<RecipientDelivery> {
    const { resends, ...others } = options;
    const path = { reference: readReference(reference) };
    const body = readBody("Resend", { email, resends });
    return this.asker.ask("resendOrderMail", { path, body, isRepeatable: typeof resends === "number" }, others);
  }

  /** Lists the state of each recipient's mail and codes. */
  deliveries(reference: string, given: { pageSize?: number } = {}, options?: CallOptions): Listing<RecipientDelivery> {
    return byOffset(this.asker, "listOrderDeliveries", given, { reference: readReference(reference) }, options);
  }
}

/** Filters of lists of gifts. With `amount`, only gifts that can be sent for that or less. */
export interface GiftFilters {
  readonly country?: string | undefined;
  readonly currency?: string | undefined;
  readonly amount?: AmountInput | undefined;
}

class Products extends Resource {
  /** Lists the products that can be sent to `country`, `GB` by default. */
  list(given: GiftFilters & { keyword?: string; pageSize?: number } = {}, options?: CallOptions): Listing<Product> {
    const then = (_: unknown, query: Members) => ({ page: (query.page as number) + 1 });
    return pages(this.asker, "listProducts", { page: 1, pageSize: 100 }, given, then, {}, options);
  }

  /** Returns one product as it is sent to `country`, with its texts. */
  async get(id: number, given: { country?: string } = {}, options?: CallOptions): Promise<ProductInFull> {
    const request = { path: { id: readId("id", id) }, query: readQuery(QUERIES.getProduct!, given) };
    return this.asker.ask("getProduct", request, options);
  }
}

class Collections extends Resource {
  list(given: GiftFilters = {}, options?: CallOptions): Listing<Collection> {
    return whole(this.asker, "listCollections", given, options);
  }

  async get(id: number, options?: CallOptions): Promise<Collection> {
    return this.asker.ask("getCollection", { path: { id: readId("id", id) } }, options);
  }
}

class Templates extends Resource {
  /** Lists the saved presets, newest first. */
  list(given: { pageSize?: number } = {}, options?: CallOptions): Listing<Template> {
    return newestFirst(this.asker, "listTemplates", given, options);
  }
}

class Wrappings extends Resource {
  list(options?: CallOptions): Listing<Wrapping> {
    return whole(this.asker, "listWrappings", {}, options);
  }
}

class FundingAccounts extends Resource {
  /** Lists the accounts that the key can use; none if orders are invoiced. */
  list(options?: CallOptions): Listing<FundingAccount> {
    return whole(this.asker, "listFundingAccounts", {}, options);
  }

  /** Lists every change of an account after the entry of that `id`, oldest first; with `month`, such as `2030-01`, those of its statement. */
  entries(id: number, given: { month?: string; after?: number; pageSize?: number } = {}, options?: CallOptions): Listing<AccountEntry> {
    const then = (page: readonly AccountEntry[]) => ({ after: page.at(-1)!.id });
    return pages(this.asker, "listFundingAccountEntries", { after: 0, pageSize: 200 }, given, then, { id: readId("id", id) }, options);
  }
}

class Users extends Resource {
  /** Lists the people on the customer's account, newest first. */
  list(given: { pageSize?: number } = {}, options?: CallOptions): Listing<User> {
    return newestFirst(this.asker, "listUsers", given, options);
  }
}

class Events extends Resource {
  /** Lists all events of the last 30 days after the one of that `cursor`, oldest first. */
  list(given: { after?: string | undefined; pageSize?: number } = {}, options?: CallOptions): Listing<StreamedEvent> {
    const then = (page: readonly { cursor: string }[]) => ({ after: page.at(-1)!.cursor });
    const found = pages(this.asker, "listEvents", { after: "start", pageSize: 200 }, given, then, {}, options);
    return found as Listing<StreamedEvent>;
  }

  /** Returns the newest events, newest first. */
  async newest(given: { limit?: number } = {}, options?: CallOptions): Promise<readonly StreamedEvent[]> {
    const found = await this.asker.ask("listEvents", { query: readQuery(QUERIES.listEvents!, given) }, options);
    return found as readonly StreamedEvent[];
  }
}

class Contacts extends Resource {
  /** Lists contacts in the order of their ids, without postal addresses. */
  list(given: { q?: string; group?: number; active?: boolean; after?: number; pageSize?: number } = {}, options?: CallOptions): Listing<Contact> {
    const then = (page: readonly Contact[]) => ({ after: page.at(-1)!.id });
    return pages(this.asker, "listContacts", { after: 0, pageSize: 200 }, given, then, {}, options);
  }

  /** Returns one contact with its postal address. */
  async get(id: number, options?: CallOptions): Promise<Contact> {
    return this.asker.ask("getContact", { path: { id: readId("id", id) } }, options);
  }

  /** Creates a contact. The request is never repeated automatically; that of `save` is. */
  async create(contact: NewContact, options?: CallOptions): Promise<Contact> {
    return this.asker.ask("createContact", { body: readBody("NewContact", contact) }, options);
  }

  /** Changes what is given; null removes a value. */
  async change(id: number, change: ChangedContact, options?: CallOptions): Promise<Contact> {
    return this.asker.ask("changeContact", { path: { id: readId("id", id) }, body: readBody("ChangedContact", change) }, options);
  }

  /** Creates and changes up to 1,000 contacts by their `externalId`: all of them, or none. */
  async save(contacts: readonly BulkContact[], options?: CallOptions): Promise<SavedContacts> {
    return this.asker.ask("saveContacts", { body: readBody("BulkContacts", { contacts }), isRepeatable: true }, options);
  }

  /** Deletes a contact for good. */
  async delete(id: number, options?: CallOptions): Promise<void> {
    return this.asker.ask("deleteContact", { path: { id: readId("id", id) }, ends: true }, options);
  }
}

class Webhooks extends Resource {
  readonly verify = verify;

  /** Subscribes an HTTPS address to one `event` or several `events`; `order.created` by default.
   *
   * Only this response has the secret. The request is never repeated automatically, as each would create another subscription. */
  async create(given: { targetUrl: string; event?: string; events?: readonly string[] }, options?: CallOptions): Promise<NewSubscription> {
    const body = readBody("Subscribe", given);
    if (body.event !== undefined && body.events !== undefined) throw new InvalidArgument("events", "or `event` must be given, not both.");
    if (body.event === undefined && body.events === undefined) body.event = "order.created";
    return this.asker.ask("createWebhook", { body }, options);
  }

  list(options?: CallOptions): Listing<Subscription> {
    return whole(this.asker, "listWebhooks", {}, options);
  }

  /** Ends a subscription. */
  async delete(id: string, options?: CallOptions): Promise<void> {
    return this.asker.ask("deleteWebhook", { path: { id: readUuid("id", id) }, ends: true }, options);
  }

  /** Replaces the secret. For 24 hours, the old one signs too. The request is never repeated automatically. */
  async rotateSecret(id: string, options?: CallOptions): Promise<RotatedSecret> {
    return this.asker.ask("rotateWebhookSecret", { path: { id: readUuid("id", id) } }, options);
  }

  /** Lists the deliveries of the last 30 days, newest first, with every attempt. */
  deliveries(id: string, given: { pageSize?: number } = {}, options?: CallOptions): Listing<Delivery> {
    const then = (page: readonly Delivery[]) => ({ before: page.at(-1)!.id });
    return pages(this.asker, "listWebhookDeliveries", { pageSize: 50 }, given, then, { id: readUuid("id", id) }, options);
  }

  /** Makes the next attempt of a delivery due now. */
  async redeliver(id: string, deliveryId: number, options?: CallOptions): Promise<Delivery> {
    const path = { id: readUuid("id", id), deliveryId: readId("deliveryId", deliveryId, Number.MAX_SAFE_INTEGER) };
    return this.asker.ask("redeliverWebhook", { path }, options);
  }

  /** Sends a signed sample of an event, by default the subscription's first. */
  async test(id: string, given: { event?: string } = {}, options?: CallOptions): Promise<Delivery> {
    const request = { path: { id: readUuid("id", id) }, query: readQuery(QUERIES.testWebhook!, given) };
    return this.asker.ask("testWebhook", request, options);
  }
}

function readBaseUrl(given: unknown): string {
  let url: URL;
  try {
    url = new URL(given as string);
  } catch {
    throw new InvalidArgument("baseUrl", "must be the address of the service, such as https://gifts.example.");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") throw new InvalidArgument("baseUrl", "must begin with http:// or https://.");
  if (url.username || url.password || url.search || url.hash) {
    throw new InvalidArgument("baseUrl", "must be only an address, without user, query or fragment.");
  }
  return url.href.replace(/\/+$/, "");
}

function readKey(given: unknown): string {
  if (typeof given === "string" && /^[\x21-\x7e]{1,512}$/.test(given)) return given;
  throw new InvalidArgument("apiKey", "must be an API key alone, without blanks or line breaks."); // never shown
}

function warn({ operation, names, requestId }: Ignored): void {
  console.warn(`largesse-client: the service ignored ${names.join(", ")} of ${operation} (request id ${requestId}). It may be older than this client.`);
}

