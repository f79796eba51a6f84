// The TypeScript client of Largesse, the gift ordering service.

export { Largesse, type GiftFilters, type Options } from "./client.js";
export type { CallOptions, Ignored } from "./asking.js";
export { Decimal, type AmountInput } from "./decimal.js";
export type { Listing } from "./pages.js";
export * from "./errors.js";
export type * from "./generated/types.js";
export * as webhooks from "./webhooks.js";
export type { Event, StreamedEvent, WebhookEvent } from "./webhooks.js";
export { VERSION } from "./version.js";
