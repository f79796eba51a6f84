// Written by tools/typescript_types.py from the OpenAPI documents. Do not edit it: `make typescript-types` writes it anew.
import { Problem } from "../problem.js";

/** 400: The request is not valid. A member of the body or a parameter breaks a rule; the detail names it and the limit. */
export class InvalidRequest extends Problem {
  static override readonly slug: string = "invalid-request";
  override name = "InvalidRequest";
}

/** 401: No valid API key. Send an API key as `Authorization: Bearer …` or `X-Api-Key: …`. A key works in one environment only, and a deleted key in none. */
export class Unauthorized extends Problem {
  static override readonly slug: string = "unauthorized";
  override name = "Unauthorized";
}

/** 402: The funding account cannot cover the order. Nothing was placed and no codes were issued. Top the account up or send less. */
export class InsufficientBalance extends Problem {
  static override readonly slug: string = "insufficient-balance";
  override name = "InsufficientBalance";
}

/** 402: The plan does not include API access. The API is available on the Pro plan and above. */
export class PlanRequired extends Problem {
  static override readonly slug: string = "plan-required";
  override name = "PlanRequired";
}

/** 403: The order exceeds a budget. The detail names the budget and what is left of it, or the most that a gift may cost. Nothing was placed or charged. An administrator of the customer sets budgets; cancelled gifts give back what they cost. */
export class BudgetExceeded extends Problem {
  static override readonly slug: string = "budget-exceeded";
  override name = "BudgetExceeded";
}

/** 403: The service account has ordered too much today. The service account may order only so much in a day (UTC). The detail gives the limit and what it has ordered. Nothing was placed or charged. The operator of this service sets the limit. */
export class DailyLimit extends Problem {
  static override readonly slug: string = "daily-limit";
  override name = "DailyLimit";
}

/** 403: The service account is not active. The key is valid, but the service account it acts as has been switched off. */
export class InactiveServiceAccount extends Problem {
  static override readonly slug: string = "inactive-service-account";
  override name = "InactiveServiceAccount";
}

/** 403: The API key may not be used from there. The key may be used from certain networks only, and the request came from another address. */
export class NetworkNotAllowed extends Problem {
  static override readonly slug: string = "network-not-allowed";
  override name = "NetworkNotAllowed";
}

/** 403: The order is larger than the service account may place. The service account may order only so much at once. The detail gives the limit. Nothing was placed or charged. The operator of this service sets the limit. */
export class OrderLimit extends Problem {
  static override readonly slug: string = "order-limit";
  override name = "OrderLimit";
}

/** 403: Another service account placed the order. Only a key of the service account that placed an order can read its codes again, cancel it or mail it again. */
export class OtherServiceAccount extends Problem {
  static override readonly slug: string = "other-service-account";
  override name = "OtherServiceAccount";
}

/** 403: The API key may not be used for that. A key may be limited to some scopes, such as `read` or `send`. The detail names the scope that it lacks. */
export class ScopeRequired extends Problem {
  static override readonly slug: string = "scope-required";
  override name = "ScopeRequired";
}

/** 404: Not found. Nothing here is available to this key under that address. */
export class NotFound extends Problem {
  static override readonly slug: string = "not-found";
  override name = "NotFound";
}

/** 405: Method not allowed. The address exists, but not with this method; `Allow` lists those it has. */
export class MethodNotAllowed extends Problem {
  static override readonly slug: string = "method-not-allowed";
  override name = "MethodNotAllowed";
}

/** 408: The request took too long to arrive. The head of a request must arrive whole within 10 seconds, its body within 30 and without a pause of 10. The connection is closed. */
export class SlowRequest extends Problem {
  static override readonly slug: string = "slow-request";
  override name = "SlowRequest";
}

/** 409: The order is not what was quoted. The request or its price is no longer what the `quote` was given for. Nothing was placed: ask for a new quote. */
export class QuoteChanged extends Problem {
  static override readonly slug: string = "quote-changed";
  override name = "QuoteChanged";
}

/** 409: The quote has expired. A quote is valid until its `expiresAt`. Nothing was placed: ask for a new one. */
export class QuoteExpired extends Problem {
  static override readonly slug: string = "quote-expired";
  override name = "QuoteExpired";
}

/** 409: The external reference is already used. An order of this customer has that `externalReference`; `instance` is its address. Nothing was placed again. */
export class ReferenceUsed extends Problem {
  static override readonly slug: string = "reference-used";
  override name = "ReferenceUsed";
  /** The order that holds the reference. */
  orderReference: string | null = null;
  /** The members that differ, `serviceAccount` among them if another one placed that order; empty if that is unknown. */
  differences: readonly string[] = [];
}

/** 409: It cannot be done as things stand. It was done before, or comes too early or too late; the detail says which. Nothing was changed. */
export class StateConflict extends Problem {
  static override readonly slug: string = "state-conflict";
  override name = "StateConflict";
}

/** 413: The request body is too large. A request body may have at most 4 MiB. */
export class TooLarge extends Problem {
  static override readonly slug: string = "too-large";
  override name = "TooLarge";
}

/** 415: The request body must be JSON. Send `Content-Type: application/json`, UTF-8, without a content encoding. */
export class UnsupportedBody extends Problem {
  static override readonly slug: string = "unsupported-body";
  override name = "UnsupportedBody";
}

/** 421: This service does not answer to that host name. The captured mailbox is for the user of the machine it runs on. It answers to that machine's names alone, so that no web page elsewhere can read it under a name of its own. */
export class Misdirected extends Problem {
  static override readonly slug: string = "misdirected";
  override name = "Misdirected";
}

/** 429: Too many requests. Wait for the seconds in `Retry-After` and try again. */
export class TooManyRequests extends Problem {
  static override readonly slug: string = "too-many-requests";
  override name = "TooManyRequests";
}

/** 431: The request headers are too large. The headers of a request may have at most 32 KiB in all. */
export class HeadersTooLarge extends Problem {
  static override readonly slug: string = "headers-too-large";
  override name = "HeadersTooLarge";
}

/** 500: Something went wrong on our side. The failure was logged under the request id in `X-Request-Id`. */
export class InternalError extends Problem {
  static override readonly slug: string = "internal-error";
  override name = "InternalError";
}

/** 503: The service cannot answer just now. Try again after the seconds in `Retry-After`. With an `externalReference` a repeated order is never placed twice. */
export class Unavailable extends Problem {
  static override readonly slug: string = "unavailable";
  override name = "Unavailable";
}

export const PROBLEMS: Readonly<Record<string, typeof Problem>> = {
  "invalid-request": InvalidRequest,
  unauthorized: Unauthorized,
  "insufficient-balance": InsufficientBalance,
  "plan-required": PlanRequired,
  "budget-exceeded": BudgetExceeded,
  "daily-limit": DailyLimit,
  "inactive-service-account": InactiveServiceAccount,
  "network-not-allowed": NetworkNotAllowed,
  "order-limit": OrderLimit,
  "other-service-account": OtherServiceAccount,
  "scope-required": ScopeRequired,
  "not-found": NotFound,
  "method-not-allowed": MethodNotAllowed,
  "slow-request": SlowRequest,
  "quote-changed": QuoteChanged,
  "quote-expired": QuoteExpired,
  "reference-used": ReferenceUsed,
  "state-conflict": StateConflict,
  "too-large": TooLarge,
  "unsupported-body": UnsupportedBody,
  misdirected: Misdirected,
  "too-many-requests": TooManyRequests,
  "headers-too-large": HeadersTooLarge,
  "internal-error": InternalError,
  unavailable: Unavailable,
};
