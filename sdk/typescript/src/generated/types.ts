// Written by tools/typescript_types.py from the OpenAPI documents. Do not edit it: `make typescript-types` writes it anew.
import type { AmountInput, Decimal } from "../decimal.js";

/** One entry of a funding account. Entries never change. */
export interface AccountEntry {
  /** Unique; ascends in an account */
  id: number;
  /** When it was made */
  creationDate: string;
  /** `top_up`, `transfer` (from or to another account), `order`, `refund` or `correction`; later releases may add some */
  kind: string;
  /** Added to the balance; below 0 if it was taken */
  amount: Decimal;
  /** The balance after the entry */
  balance: Decimal;
  /** The `reference` of the order, for `order` and `refund` */
  orderReference: string | null;
  /** The order's idempotency key, or the reference of a top-up */
  externalReference: string | null;
}

/** A funding account with a low balance. */
export interface AccountLow {
  /** Stable per event; a deduplication key */
  id: string;
  /** The name of the event */
  event: string;
  /** Whose account it is */
  customerId: number;
  /** The account, as in `GET /funding-accounts` */
  accountId: number;
  /** Its name */
  accountName: string;
  /** ISO currency code */
  currency: string;
  /** What it held then */
  balance: Decimal;
  /** The amount that was set for it */
  below: Decimal;
  /** When it was noticed, some seconds after it fell */
  occurredAt: string;
}

/** One attempt of a delivery. */
export interface Attempt {
  /** Counts the attempts from 1 */
  number: number;
  /** When it began */
  startedAt: string;
  /** How long it took, in milliseconds */
  durationMs: number;
  /** The receiver's HTTP status */
  status: number | null;
  /** Why there was no status: `timeout`, `dns`, `connect`, `tls`, `connection_lost`, `bad_answer`, `forbidden_address` or `forbidden_target` */
  error: string | null;
  /** The first 2 KiB of the receiver's answer */
  answer: string | null;
}

/** One contact of POST /contacts/bulk. */
export interface BulkContact {
  /** Full name, used to address gifts */
  name?: string | null | undefined;
  /** Tag of a language */
  language?: "en" | "fr" | "de" | (string & {}) | null | undefined;
  /** ISO 3166-1 alpha-2, letter case ignored */
  country?: string | null | undefined;
  /** Month and day, without the year */
  birthday?: string | null | undefined;
  /** First day at work */
  startDate?: string | null | undefined;
  /** Postal address; stored encrypted */
  address?: string | null | undefined;
  /** Your own id, unique */
  externalId: string;
  /** False for somebody who left: they get no gifts */
  active?: boolean | undefined;
  /** Names of all groups; a new name creates a group, and null counts as left out */
  groups?: readonly string[] | null | undefined;
  /** Values of your own fields by key; those left out stay, null removes one */
  fields?: Readonly<Record<string, string | null>> | undefined;
  /** Unique, letter case ignored */
  email: string;
}

/** Body of POST /contacts/bulk. */
export interface BulkContacts {
  /** Contacts to create or change, each once */
  contacts: readonly BulkContact[];
}

/** An order after its cancellation. A repeated cancellation returns the same. */
export interface Cancellation {
  /** The order's public key */
  reference: string;
  /** Codes issued with the order */
  codeCount: number;
  /** Codes voided, by this cancellation and earlier ones */
  cancelledCount: number;
  /** Codes claimed before, which stay their recipients' */
  claimedCount: number;
  /** The cost of the voided codes, given back in full, in the order currency. Refunds of claimed codes by the operator do not count */
  refunded: Decimal;
  /** ISO currency code */
  currency: string;
}

/** Body of PATCH /contacts/{id}. */
export interface ChangedContact {
  /** Full name, used to address gifts */
  name?: string | null | undefined;
  /** Tag of a language */
  language?: "en" | "fr" | "de" | (string & {}) | null | undefined;
  /** ISO 3166-1 alpha-2, letter case ignored */
  country?: string | null | undefined;
  /** Month and day, without the year */
  birthday?: string | null | undefined;
  /** First day at work */
  startDate?: string | null | undefined;
  /** Postal address; stored encrypted */
  address?: string | null | undefined;
  /** Your own id, unique */
  externalId?: string | null | undefined;
  /** False for somebody who left: they get no gifts */
  active?: boolean | undefined;
  /** Names of all groups; a new name creates a group, and null counts as left out */
  groups?: readonly string[] | null | undefined;
  /** Values of your own fields by key; those left out stay, null removes one */
  fields?: Readonly<Record<string, string | null>> | undefined;
  /** Unique, letter case ignored */
  email?: string | undefined;
}

/** A collection of gifts that the recipient chooses from. */
export interface Collection {
  /** Pass as `collectionId` when sending */
  id: number;
  /** Collection name */
  name: string;
  /** `curated`: global, with value points; `custom`: this customer's own, of one fixed value */
  kind: "curated" | "custom" | (string & {});
  /** ISO 3166-1 alpha-2 country code */
  country: string;
  /** ISO 4217 currency code */
  currency: string;
  /** Display prefix of the currency */
  currencyPrefix: string;
  /** Fixed value per recipient of a custom collection; null for a curated one */
  value: Decimal | null;
  /** True for a curated collection, false for a custom one */
  requiresValue: boolean;
  /** Whether a curated collection takes any positive amount, not its value points alone */
  allowCustomValue: boolean;
  /** Value points of a curated collection, ascending; empty for a custom one */
  valuePoints: readonly Decimal[];
  /** Each value point as canonical text, with its label; null when there is nothing to pick */
  valueChoices: Readonly<Record<string, string>> | null;
  /** Lowest value point; null without value points */
  minValue: Decimal | null;
  /** Highest value point; null without value points */
  maxValue: Decimal | null;
  /** Display label: the name with its value */
  label: string;
}

/** A contact. */
export interface Contact {
  /** Unique; ascends */
  id: number;
  /** E-mail address that gifts go to */
  email: string;
  /** Full name; empty if there is none */
  name: string;
  /** Tag of the language of mail; null for that of the gift's country */
  language: string | null;
  /** ISO 3166-1 alpha-2 */
  country: string | null;
  /** Month and day */
  birthday: string | null;
  /** First day at work */
  startDate: string | null;
  /** Your own id */
  externalId: string | null;
  /** False for somebody who left: they get no gifts */
  active: boolean;
  /** Names, in order */
  groups: readonly string[];
  /** Values of your own fields by key */
  fields: Readonly<Record<string, string>>;
  /** Postal address; left out of lists */
  address?: string | null | undefined;
}

/** The delivery of one event to a subscription. */
export interface Delivery {
  /** Unique; ascends */
  id: number;
  /** Name of the event */
  event: string;
  /** The order record's `id`; null for a sample and for an event that is about no order */
  orderId: number | null;
  /** `pending`, `delivered` (2xx), `dropped` (another 4xx), `exhausted` (all attempts failed) or `cancelled` (the subscription ended) */
  state: string;
  /** Those made so far, in order */
  attempts: readonly Attempt[];
  /** Attempts that may follow, 12 at first */
  attemptsLeft: number;
  /** When the next is due; null if none follows */
  nextAttemptAt: string | null;
  /** When the delivery was created */
  createdAt: string;
  /** When it ended; null while `pending` */
  finishedAt: string | null;
}

/** A funding account the key can draw from. */
export interface FundingAccount {
  /** Pass as `accountId` when sending */
  id: number;
  /** Name that people gave the account */
  name: string;
  /** True for the customer's master float, false for a group account */
  isMaster: boolean;
  /** ISO 4217 numeric code of the currency held */
  currencyId: number;
  /** ISO code of the currency held */
  currency: string;
  /** Funds currently available, in the account currency */
  balance: Decimal;
  /** Display label with name, currency and balance */
  label: string;
}

/** What happened to one gift of an order. */
export interface GiftEvent {
  /** Stable per event; a deduplication key */
  id: string;
  /** The name of the event */
  event: string;
  /** The order's opaque key */
  reference: string;
  /** Whose order it is */
  customerId: number;
  /** Counts the order's lines from 1 */
  number: number;
  /** The recipient's address; null in a code batch */
  recipient: string | null;
  /** When it happened */
  occurredAt: string;
}

/** Whether the service can work. */
export interface Health {
  /** `pass`, `warn` or `fail` */
  status: string;
  /** Version of the service */
  version?: string | null | undefined;
  /** The reasons, unless `status` is `pass` */
  notes?: readonly string[] | undefined;
}

/** The customer and the service account that the key acts for. */
export interface Identity {
  /** The customer's id */
  customerId: number;
  /** The customer's name */
  customerName: string;
  /** The service account's id: `createdBy` of its orders */
  serviceAccountId: number;
  /** The service account's name */
  serviceAccountName: string;
  /** Environment of the key; `staging` is the sandbox, whose mail is captured and not sent */
  environment: "production" | "staging" | (string & {});
}

/** An issued code in clear, with its PIN and its claim link. Its repr shows none of them, as it could end in a log. */
export interface IssuedCode {
  /** Entered by the recipient */
  code: string;
  /** Six digits */
  pin: string;
  /** Shareable claim link */
  redemptionUrl: string;
}

/** The state of a line, and when each step happened; null for a step that has not. */
export interface Line {
  /** Counts the order's lines from 1 */
  number: number;
  /** `issued` (nobody has claimed it), `claimed` (the recipient has yet to choose), `chosen` (waits for a voucher, an address or a parcel), `fulfilled`, `expired` or `cancelled` */
  state: string;
  /** When a person first used its link */
  openedAt: string | null;
  /** When the recipient claimed it */
  claimedAt: string | null;
  /** When its product was fixed */
  chosenAt: string | null;
  /** When the recipient got the voucher number, or the parcel left */
  fulfilledAt: string | null;
  /** When the gift expired */
  expiredAt: string | null;
  /** When the code was voided */
  cancelledAt: string | null;
}

/** Body of POST /contacts. */
export interface NewContact {
  /** Full name, used to address gifts */
  name?: string | null | undefined;
  /** Tag of a language */
  language?: "en" | "fr" | "de" | (string & {}) | null | undefined;
  /** ISO 3166-1 alpha-2, letter case ignored */
  country?: string | null | undefined;
  /** Month and day, without the year */
  birthday?: string | null | undefined;
  /** First day at work */
  startDate?: string | null | undefined;
  /** Postal address; stored encrypted */
  address?: string | null | undefined;
  /** Your own id, unique */
  externalId?: string | null | undefined;
  /** False for somebody who left: they get no gifts */
  active?: boolean | undefined;
  /** Names of all groups; a new name creates a group, and null counts as left out */
  groups?: readonly string[] | null | undefined;
  /** Values of your own fields by key; those left out stay, null removes one */
  fields?: Readonly<Record<string, string | null>> | undefined;
  /** Unique, letter case ignored */
  email: string;
}

/** A new subscription. */
export interface NewSubscription {
  /** Names the subscription in `/webhooks/{id}` */
  id: string;
  /** The event; null where several are named */
  event: string | null;
  /** HTTPS address that events are sent to */
  targetUrl: string | null;
  /** Signing secret, shown this once */
  secret: string;
  /** The events; left out where one is named */
  events?: readonly string[] | undefined;
}

/** The receipt of a placed order, as the caller gets it. `codes` are those of a batch, in clear. */
export interface Order {
  /** Opaque, non-sequential public order key */
  reference: string;
  /** `gift` or `gifts` */
  giftSelectionType: string | null;
  /** Per-code face value */
  value: Decimal;
  /** ISO currency code */
  currency: string | null;
  /** Codes issued */
  codeCount: number;
  /** Distinct recipients; 0 for a code batch */
  recipientCount: number;
  /** What was charged, in the order currency */
  totalCost: Decimal;
  /** `send` or `manual` */
  deliveryMode: string | null;
  /** Null when sent immediately */
  scheduledFor: string | null;
  /** The idempotency key */
  externalReference: string | null;
  /** Of a code batch; empty when recipients were emailed */
  codes: readonly IssuedCode[];
}

/** An order with the members of GET /orders and of the event order.created. */
export interface OrderRecord {
  /** Stable per order; a deduplication key */
  id: number;
  /** The name of the event */
  event: string | null;
  /** Opaque, non-sequential public order key */
  reference: string | null;
  /** Whose order it is */
  customerId: number;
  /** Per-code face value */
  value: Decimal;
  /** ISO currency code */
  currency: string | null;
  /** ISO country code of the gift */
  country: string | null;
  /** The order's source token */
  sourceType: string | null;
  /** The idempotency key */
  externalReference: string | null;
  /** `gift` or `gifts` */
  giftSelectionType: string | null;
  /** Of a single gift */
  giftProductId: number | null;
  /** Of a collection */
  giftsCollectionId: number | null;
  /** The wrapping */
  wrappingKey: string | null;
  /** Whom the gift is from */
  fromName: string | null;
  /** `send` or `manual` */
  deliveryMode: string | null;
  /** Codes issued */
  lineCount: number;
  /** The service account */
  createdBy: number | null;
  /** When it was placed */
  creationDate: string;
}

/** The request that an order was placed with, by the members of a send body. Members left out have the template's value or the default. */
export interface OrderRequest {
  /** Wrapping of the gift */
  wrappingKey: string;
  /** Sender name */
  fromName: string | null;
  /** Message to the recipient */
  message: string | null;
  /** The order's public key */
  reference: string;
  /** Whether the key's service account placed it */
  isOwn: boolean;
  /** The product; null for a collection */
  productId: number | null;
  /** The collection; null for a product */
  collectionId: number | null;
  /** The template; null if the order was sent without one */
  templateId: number | null;
  /** Per-code face value */
  value: Decimal;
  /** ISO currency code */
  currency: string;
  /** ISO 3166-1 alpha-2 */
  country: string;
  /** Reporting token */
  source: string;
  /** In the order they were given; empty for a code batch */
  recipients: readonly RequestedRecipient[];
  /** Null when recipients were emailed */
  codeQuantity: number | null;
  /** As asked for, however often people moved the order; null when sent immediately */
  sendAt: string | null;
  /** Null when invoiced */
  accountId: number | null;
  /** Null where it is left to the plan's policy */
  expiryAfterDays: number | null;
  /** The idempotency key; null when none was sent */
  externalReference: string | null;
  /** As it is now; the customer's default where the request named none, null where there is none */
  claimBy: string | null;
  /** Empty where recipients are not reminded */
  reminderDays: readonly number[];
}

/** A product that can be sent to the requested country. */
export interface Product {
  /** Pass as `productId` when sending */
  id: number;
  /** Product name */
  name: string;
  /** Digital (e-voucher) or physical */
  isDigital: boolean;
  /** ISO 4217 currency code */
  currency: string;
  /** Display prefix of the currency */
  currencyPrefix: string;
  /** Fixed delivered total of a physical gift (marked-up cost, postage and VAT); null for a digital gift */
  totalPrice: Decimal | null;
  /** Fixed amounts a digital gift can be sent at, ascending. Empty for a physical gift and for a digital gift that takes any amount in a range */
  denominations: readonly Decimal[];
  /** Each denomination as canonical text, with its label */
  denominationChoices: Readonly<Record<string, string>>;
  /** Lowest amount allowed; null for a physical gift */
  minAmount: Decimal | null;
  /** Highest amount allowed; null for a physical gift */
  maxAmount: Decimal | null;
  /** False when the amount is implied: a physical gift, or a digital gift with one denomination */
  requiresAmount: boolean;
  /** Display label: the name with its price */
  label: string;
  /** Address of its picture, PNG, JPEG or WebP, which anybody may load; null where there is none. A picture that changes gets another address */
  picture: string | null;
}

/** A product that can be sent to the requested country, with its texts. */
export interface ProductInFull {
  /** Pass as `productId` when sending */
  id: number;
  /** Product name */
  name: string;
  /** Digital (e-voucher) or physical */
  isDigital: boolean;
  /** ISO 4217 currency code */
  currency: string;
  /** Display prefix of the currency */
  currencyPrefix: string;
  /** Fixed delivered total of a physical gift (marked-up cost, postage and VAT); null for a digital gift */
  totalPrice: Decimal | null;
  /** Fixed amounts a digital gift can be sent at, ascending. Empty for a physical gift and for a digital gift that takes any amount in a range */
  denominations: readonly Decimal[];
  /** Each denomination as canonical text, with its label */
  denominationChoices: Readonly<Record<string, string>>;
  /** Lowest amount allowed; null for a physical gift */
  minAmount: Decimal | null;
  /** Highest amount allowed; null for a physical gift */
  maxAmount: Decimal | null;
  /** False when the amount is implied: a physical gift, or a digital gift with one denomination */
  requiresAmount: boolean;
  /** Display label: the name with its price */
  label: string;
  /** Address of its picture, PNG, JPEG or WebP, which anybody may load; null where there is none. A picture that changes gets another address */
  picture: string | null;
  /** With line breaks, in the language of the name; null if there is none */
  description: string | null;
  /** With line breaks, in the language of the name; null if there is none */
  howToRedeem: string | null;
  /** With line breaks, in the language of the name; null if there is none */
  terms: string | null;
}

/** The price of a send, and the token with which a send is placed only at that price. */
export interface Quote {
  /** Per-code face value */
  value: Decimal;
  /** ISO currency code */
  currency: string;
  /** Codes that would be issued */
  codeCount: number;
  /** Distinct recipients; 0 for a code batch */
  recipientCount: number;
  /** What would be charged, in the order currency */
  totalCost: Decimal;
  /** `send` or `manual` */
  deliveryMode: string;
  /** Null when sent immediately */
  scheduledFor: string | null;
  /** What the funding account would hold then; null when invoiced */
  balanceAfter: Decimal | null;
  /** Until when `quote` holds */
  expiresAt: string;
  /** Send it with the order, which is then placed as quoted */
  quote: string;
}

/** One address and how many codes it gets. */
export interface Recipient {
  /** Address the gift is emailed to */
  email: string;
  /** Used to address the gift */
  name?: string | null | undefined;
  /** Codes for this recipient; each is its own order line */
  quantity?: number | null | undefined;
}

/** The state of the mail to one recipient of an order. */
export interface RecipientDelivery {
  /** Null in a code batch */
  email: string | null;
  /** Used to address the gift */
  name: string | null;
  /** Codes in the mail */
  codeCount: number;
  /** `scheduled` (not due yet), `pending` (due, or to be tried again), `held` (until a mail server is set), `sent`, `captured` (staging), `bounced` (refused for good), `exhausted` (given up: not taken for three days) or `cancelled` (with its codes); `manual` in a code batch, whose codes went to the caller */
  state: string;
  /** Why it was not delivered: what the mail server said, after its reply code, or in other words what happened, such as that it does not answer */
  reason: string | null;
  /** Why it was not taken: because of the `recipient`; of the mail `server`, when it cannot be talked to, fails or refuses whatever it is given; or of the `service`, which could not write the mail. The last two are tried again */
  fault: string | null;
  /** When it was, or is, due first */
  dueAt: string;
  /** When the mail server took it, or the service captured it */
  sentAt: string | null;
  /** How often it was handed to the mail server */
  attempts: number;
  /** How often the mail was sent again. The other members are about the last one */
  resends: number;
  /** The state of each code */
  lines: readonly Line[];
}

/** One address and name, and how many codes it got in all. */
export interface RequestedRecipient {
  /** Address the gift is emailed to */
  email: string;
  /** Used to address the gift */
  name: string | null;
  /** Codes for this recipient */
  quantity: number;
  /** The address before people corrected it, with most of its local part hidden; null otherwise */
  wasEmail: string | null;
}

/** Body of POST /orders/{reference}/resend. */
export interface Resend {
  /** A recipient of the order */
  email: string;
  /** The `resends` of this recipient that you read in the deliveries. With it, you can repeat the request: the mail is sent again once, and each repetition returns its state */
  resends?: number | null | undefined;
}

/** The new secret of a subscription. */
export interface RotatedSecret {
  /** Names the subscription in `/webhooks/{id}` */
  id: string;
  /** Signing secret, shown this once */
  secret: string;
  /** Until then deliveries are signed with the previous secret too */
  previousUntil: string;
}

/** The result of a bulk call. */
export interface SavedContacts {
  /** How many contacts are new */
  created: number;
  /** How many contacts existed, and have other values now */
  changed: number;
  /** Of the contacts, in the order of the request */
  ids: readonly number[];
}

/** Body of POST /send/collection. */
export interface SendCollection {
  /** From GET /collections */
  collectionId: number;
  /** Curated collections only; ignored for custom ones */
  value?: AmountInput | null | undefined;
  /** Reporting token, `api` by default; normalised to lower-case letters, digits and hyphens, at most 32 */
  source?: string | null | undefined;
  /** Who gets the gift by email; at most 5,000 codes in all. Excludes `codeQuantity`. */
  recipients?: readonly (Recipient | string)[] | null | undefined;
  /** Anonymous codes, returned and not emailed. Excludes `recipients`. */
  codeQuantity?: number | null | undefined;
  /** When to deliver, in the future; without an offset it is UTC. Ignored for a code batch, whatever it holds. */
  sendAt?: Date | string | null | undefined;
  /** Funding account in the order's currency; omitted when invoiced */
  accountId?: number | null | undefined;
  /** Days after claiming that gifts expire. Enterprise plans only: below, any number is ignored. */
  expiryAfterDays?: number | null | undefined;
  /** What nobody has claimed by then is cancelled by itself, and refunded in full to where the order was paid from; after `sendAt`, at most 3,650 days. Without an offset it is UTC. Without it, gifts wait for ever, unless the customer has set a default for orders of the API. */
  claimBy?: Date | string | null | undefined;
  /** So many days after the gifts leave, recipients who have not claimed are reminded by mail, at their daytime: at most three numbers, ascending, before `claimBy`. An empty list: none. Left out: the customer's default, if it has one for orders of the API. Ignored for a code batch. */
  reminderDays?: readonly number[] | null | undefined;
  /** Idempotency key, at most 128 characters, surrounding blanks trimmed; blank opts out */
  externalReference?: string | null | undefined;
  /** Whether `message` has placeholders, such as `{first_name|there}`, which are filled in for each recipient; by default it is literal. */
  placeholders?: boolean | null | undefined;
  /** From POST /quote/…: the order is placed only as it was quoted, or else 409. A quote itself ignores it. */
  quote?: string | null | undefined;
  /** Wrapping of the gift, by default the template's, or `default`. Known are `default`, `confetti`, `birthday`, `thank-you`, `winter`, `elegant`, `stars`, `gold`, `garden`; any other is kept, and looks like `default`. */
  wrappingKey?: string | null | undefined;
  /** Sender name */
  fromName?: string | null | undefined;
  /** Message to the recipient */
  message?: string | null | undefined;
}

/** Body of POST /send/gift. */
export interface SendGift {
  /** From GET /products */
  productId: number;
  /** Per-recipient face value; required when the product has `requiresAmount` */
  value?: AmountInput | null | undefined;
  /** ISO 3166-1 alpha-2; `GB` by default */
  country?: string | null | undefined;
  /** Reporting token, `api` by default; normalised to lower-case letters, digits and hyphens, at most 32 */
  source?: string | null | undefined;
  /** Who gets the gift by email; at most 5,000 codes in all. Excludes `codeQuantity`. */
  recipients?: readonly (Recipient | string)[] | null | undefined;
  /** Anonymous codes, returned and not emailed. Excludes `recipients`. */
  codeQuantity?: number | null | undefined;
  /** When to deliver, in the future; without an offset it is UTC. Ignored for a code batch, whatever it holds. */
  sendAt?: Date | string | null | undefined;
  /** Funding account in the order's currency; omitted when invoiced */
  accountId?: number | null | undefined;
  /** Days after claiming that gifts expire. Enterprise plans only: below, any number is ignored. */
  expiryAfterDays?: number | null | undefined;
  /** What nobody has claimed by then is cancelled by itself, and refunded in full to where the order was paid from; after `sendAt`, at most 3,650 days. Without an offset it is UTC. Without it, gifts wait for ever, unless the customer has set a default for orders of the API. */
  claimBy?: Date | string | null | undefined;
  /** So many days after the gifts leave, recipients who have not claimed are reminded by mail, at their daytime: at most three numbers, ascending, before `claimBy`. An empty list: none. Left out: the customer's default, if it has one for orders of the API. Ignored for a code batch. */
  reminderDays?: readonly number[] | null | undefined;
  /** Idempotency key, at most 128 characters, surrounding blanks trimmed; blank opts out */
  externalReference?: string | null | undefined;
  /** Whether `message` has placeholders, such as `{first_name|there}`, which are filled in for each recipient; by default it is literal. */
  placeholders?: boolean | null | undefined;
  /** From POST /quote/…: the order is placed only as it was quoted, or else 409. A quote itself ignores it. */
  quote?: string | null | undefined;
  /** Wrapping of the gift, by default the template's, or `default`. Known are `default`, `confetti`, `birthday`, `thank-you`, `winter`, `elegant`, `stars`, `gold`, `garden`; any other is kept, and looks like `default`. */
  wrappingKey?: string | null | undefined;
  /** Sender name */
  fromName?: string | null | undefined;
  /** Message to the recipient */
  message?: string | null | undefined;
}

/** Body of POST /send/template; the template supplies gift, value, country and, unless overridden, the rest. */
export interface SendTemplate {
  /** From GET /templates */
  templateId: number;
  /** Reporting token, `api` by default; normalised to lower-case letters, digits and hyphens, at most 32 */
  source?: string | null | undefined;
  /** Who gets the gift by email; at most 5,000 codes in all. Excludes `codeQuantity`. */
  recipients?: readonly (Recipient | string)[] | null | undefined;
  /** Anonymous codes, returned and not emailed. Excludes `recipients`. */
  codeQuantity?: number | null | undefined;
  /** When to deliver, in the future; without an offset it is UTC. Ignored for a code batch, whatever it holds. */
  sendAt?: Date | string | null | undefined;
  /** Funding account in the order's currency; omitted when invoiced */
  accountId?: number | null | undefined;
  /** Days after claiming that gifts expire. Enterprise plans only: below, any number is ignored. */
  expiryAfterDays?: number | null | undefined;
  /** What nobody has claimed by then is cancelled by itself, and refunded in full to where the order was paid from; after `sendAt`, at most 3,650 days. Without an offset it is UTC. Without it, gifts wait for ever, unless the customer has set a default for orders of the API. */
  claimBy?: Date | string | null | undefined;
  /** So many days after the gifts leave, recipients who have not claimed are reminded by mail, at their daytime: at most three numbers, ascending, before `claimBy`. An empty list: none. Left out: the customer's default, if it has one for orders of the API. Ignored for a code batch. */
  reminderDays?: readonly number[] | null | undefined;
  /** Idempotency key, at most 128 characters, surrounding blanks trimmed; blank opts out */
  externalReference?: string | null | undefined;
  /** Whether `message` has placeholders, such as `{first_name|there}`, which are filled in for each recipient; by default it is literal. */
  placeholders?: boolean | null | undefined;
  /** From POST /quote/…: the order is placed only as it was quoted, or else 409. A quote itself ignores it. */
  quote?: string | null | undefined;
  /** Wrapping of the gift, by default the template's, or `default`. Known are `default`, `confetti`, `birthday`, `thank-you`, `winter`, `elegant`, `stars`, `gold`, `garden`; any other is kept, and looks like `default`. */
  wrappingKey?: string | null | undefined;
  /** Sender name */
  fromName?: string | null | undefined;
  /** Message to the recipient */
  message?: string | null | undefined;
}

/** An event of the stream. */
export interface StreamedEvent {
  /** Its place in the stream: give it as `after` to go on from here */
  cursor: string;
  /** The name of the event; later releases may add some */
  event: "order.created" | "gift.sent" | "gift.bounced" | "gift.opened" | "gift.claimed" | "gift.fulfilled" | "gift.cancelled" | "gift.expired" | "account.low" | (string & {});
  /** When it was recorded */
  creationDate: string;
  /** The payload, as webhooks deliver it */
  data: unknown;
}

/** Body of POST /webhooks. */
export interface Subscribe {
  /** A publicly reachable HTTPS address */
  targetUrl: string;
  /** The event to deliver */
  event?: "order.created" | "gift.sent" | "gift.bounced" | "gift.opened" | "gift.claimed" | "gift.fulfilled" | "gift.cancelled" | "gift.expired" | "account.low" | (string & {}) | undefined;
  /** Several events instead of one; null counts as left out. */
  events?: readonly ("order.created" | "gift.sent" | "gift.bounced" | "gift.opened" | "gift.claimed" | "gift.fulfilled" | "gift.cancelled" | "gift.expired" | "account.low" | (string & {}))[] | null | undefined;
}

/** A subscription, without its secret. */
export interface Subscription {
  /** Names the subscription in `/webhooks/{id}` */
  id: string;
  /** The event; null where several are named */
  event: string | null;
  /** HTTPS address that events are sent to */
  targetUrl: string | null;
  /** When it was created */
  creationDate: string;
  /** The events; left out where one is named */
  events?: readonly string[] | undefined;
}

/** A saved send preset. */
export interface Template {
  /** Pass as `templateId` */
  id: number;
  /** Name that people gave it */
  name: string | null;
  /** `gift` or `gifts` */
  giftSelectionType: string | null;
  /** Set when it sends a single gift */
  giftProductId: number | null;
  /** Set when the recipient chooses */
  giftsCollectionId: number | null;
  /** Name of the gift when the template was saved */
  giftName: string | null;
  /** Per-recipient face value */
  value: Decimal;
  /** Null when the gift has since been deleted */
  currency: string | null;
  /** ISO 3166-1 alpha-2; the country it sends for */
  country: string | null;
  /** Wrapping used unless overridden */
  wrappingKey: string | null;
  /** Sender name unless overridden */
  fromName: string | null;
  /** Message unless overridden */
  message: string | null;
  /** Days after claiming that gifts expire; null for the plan's policy */
  expiryAfterDays: number | null;
  /** When it was saved */
  creationDate: string;
}

/** A person on the customer's account. */
export interface User {
  /** The person's id on this account */
  id: number;
  /** Full name */
  name: string;
  /** E-mail address that they sign in with */
  email: string;
  /** Later releases may add some */
  role: "admin" | "member" | "finance" | "viewer" | (string & {});
  /** Whether they may sign in */
  isActive: boolean;
  /** When they were invited */
  creationDate: string;
  /** When they last signed in; null for never */
  lastLoginDate: string | null;
  /** Display label */
  label: string;
}

/** A gift wrapping: one for all customers, or one of the customer's own. */
export interface Wrapping {
  /** Pass as `wrappingKey` when sending */
  key: string;
  /** Display label */
  label: string;
  /** Other keys that name the same wrapping */
  aliases: readonly string[];
}

/** What each event is about. */
export interface EventPayloads {
  "order.created": OrderRecord;
  "gift.sent": GiftEvent;
  "gift.bounced": GiftEvent;
  "gift.opened": GiftEvent;
  "gift.claimed": GiftEvent;
  "gift.fulfilled": GiftEvent;
  "gift.cancelled": GiftEvent;
  "gift.expired": GiftEvent;
  "account.low": AccountLow;
}

/** The response of each operation. */
export interface Answers {
  sendGift: Order;
  sendCollection: Order;
  sendTemplate: Order;
  listOrders: readonly OrderRecord[];
  getOrder: Order;
  getOrderRequest: OrderRequest;
  cancelOrder: Cancellation;
  quoteGift: Quote;
  quoteCollection: Quote;
  quoteTemplate: Quote;
  listProducts: readonly Product[];
  getProduct: ProductInFull;
  listCollections: readonly Collection[];
  getCollection: Collection;
  listWrappings: readonly Wrapping[];
  listTemplates: readonly Template[];
  listContacts: readonly Contact[];
  createContact: Contact;
  saveContacts: SavedContacts;
  getContact: Contact;
  changeContact: Contact;
  deleteContact: void;
  listFundingAccounts: readonly FundingAccount[];
  listFundingAccountEntries: readonly AccountEntry[];
  createWebhook: NewSubscription;
  listWebhooks: readonly Subscription[];
  deleteWebhook: void;
  rotateWebhookSecret: RotatedSecret;
  listWebhookDeliveries: readonly Delivery[];
  redeliverWebhook: Delivery;
  testWebhook: Delivery;
  listOrderDeliveries: readonly RecipientDelivery[];
  resendOrderMail: RecipientDelivery;
  listEvents: readonly StreamedEvent[];
  getMe: Identity;
  listUsers: readonly User[];
  getHealth: Health;
}
